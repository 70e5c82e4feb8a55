"""The detector `hf:MODEL`: any token classifier of transformers that marks what the evidence does not support."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from veriglot.detectors.admission import Refusal, admitted, without_words
from veriglot.detectors.grounding.language import evidence_notes
from veriglot.detectors.token_classifier.inputs import TooLongError, arranged
from veriglot.detectors.token_classifier.labels import labels_of
from veriglot.detectors.token_classifier.marking import (
    DIGITS,
    check_pooling,
    marked_words,
    span_list,
    word_list,
)
from veriglot.detectors.token_classifier.network import TokenProbabilities, load_network
from veriglot.detectors.token_classifier.prompts import (
    FORMATS,
    format_of,
    language_of,
    prompt_for,
    wordings_version,
)
from veriglot.errors import UnknownNameError
from veriglot.provenance import signature
from veriglot.records import Prediction, Status
from veriglot.records.languages import language
from veriglot.text import sentences, word_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from veriglot.detectors.grounding.language import Spoken
    from veriglot.detectors.token_classifier.inputs import Arranged
    from veriglot.records import Sample

__all__ = ["TokenClassifier"]

_THRESHOLD = 0.5
_LETTUCE_LENGTH = 4096  # tokens that LettuceDetect's checkpoints were trained with


@dataclass(frozen=True)
class _Plan:
    """A sample that can be judged, with its inputs."""

    sample: Sample
    spoken: Spoken
    words: NDArray[np.int32]
    made: Arranged
    notes: tuple[str, ...]


class TokenClassifier:
    """Marks the words of a response that a token classifier finds unsupported by the evidence in front of it.

    A word's confidence is the network's probability as it stands: no calibration is claimed (note `calibration:none`).
    The response's score is the highest of its words' confidences. See `docs/token_classifiers.md`.

    Args:
        model: a folder, a name of the registry (`veriglot models`), or a name on the hub.
        threshold: confidence from which a word is marked, 0 to 1; None for 0.5.
        words: whether predictions carry every word.
        prompt: how evidence and question are written: `lettucedetect`, `request` or `plain`; None goes by the model's
            name.
        language: BCP 47 tag that the prompt is written in; None for the response's, where there is such a prompt, and
            otherwise English.
        labels: what the outputs mean, in their order, or with commas between them; None reads the configuration.
        languages: BCP 47 tags that the model knows: responses in others are `unsupported_language`; None for the one
            in the name of a checkpoint of LettuceDetect, or else any; empty for any.
        pooling: a word is as unsupported as its worst token (`max`), as the `mean` of them, or as its `first`.
        max_length: tokens of an input, special tokens included; None for as many as the model was made for.
        revision: of a model on the hub.
        device: where it runs, such as `cpu` or `cuda:0`; None for the first accelerator, otherwise the CPU.
        dtype: of the weights. Of less than `float32`, confidences vary with the batch in their last digits.
        trust_remote_code: run code that comes with the model.
        accept_licence: you have read the model's licence, and it allows what you do.

    Raises:
        LicenceError: the model's licence forbids something, and was not accepted.
        WeightsError: the model cannot be loaded, or its labels do not say what they mean.
        UnknownNameError: no such prompt, pooling or language.
        UsageError: an option that makes no sense.
    """

    def __init__(
        self,
        *,
        model: str,
        threshold: float | None = None,
        words: bool = False,
        prompt: str | None = None,
        language: str | None = None,
        labels: Sequence[str] | str | None = None,
        languages: Sequence[str] | str | None = None,
        pooling: str = "max",
        max_length: int | None = None,
        revision: str | None = None,
        device: str | None = None,
        dtype: str = "float32",
        trust_remote_code: bool = False,
        accept_licence: bool = False,
    ) -> None:
        self._options = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        self._threshold = _THRESHOLD if threshold is None else threshold
        self._words = words
        self._format = format_of(model) if prompt is None else prompt
        if self._format not in FORMATS:
            raise UnknownNameError("prompt", self._format, FORMATS)
        check_pooling(pooling)
        self._pooling = pooling
        self._prompt_language = None if language is None else _base(language)
        self._languages = _known(model, languages)
        lettuce = self._format == "lettucedetect"
        self._network = load_network(
            model, revision=revision, max_length=max_length, most=_LETTUCE_LENGTH if lettuce else None,
            device=device, dtype=dtype, trust_remote_code=trust_remote_code, accept_licence=accept_licence,
        )  # fmt: skip
        names = self._network.names
        self._labels = labels_of(names if labels is None else labels, model, outputs=len(names), unnamed=lettuce)

    def __reduce__(self) -> tuple[Any, ...]:
        """A detector travels to another process as its options; the model is loaded there."""
        return _remade, (self._options,)

    @cached_property
    def name(self) -> str:
        """`hf:`, the last part of the model's name, and the revision of its weights."""
        last = str(self._options["model"]).rstrip("/\\").replace("\\", "/").split("/")[-1]
        return f"hf:{last.replace('@', '-').replace('|', '-')}@{self._network.revision[:12]}"

    @property
    def taxonomy(self) -> str:
        """The taxonomy that its labels are of."""
        return self._labels.taxonomy

    @property
    def threshold(self) -> float:
        """Confidence from which a word is marked."""
        return self._threshold

    @cached_property
    def signature(self) -> str:
        """Name, what the outputs mean, the prompt, the length, threshold and unit in one line."""
        import torch
        import transformers

        return signature(
            detector=self.name,
            labels=self._labels.line,
            prompt=f"{self._format}.{wordings_version()}",
            prompt_language=self._prompt_language,
            languages=",".join(sorted(self._languages)) or None,
            window=self._network.room,
            pooling=self._pooling,
            threshold=self._threshold,
            unit="word",
            dtype=self._options["dtype"],
            device=self._network.device.type,
            transformers=transformers.__version__,
            torch=torch.__version__,
        )

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        """Judge a batch: one prediction per sample, in order. No sample makes it raise."""
        plans = [self._planned(sample) for sample in samples]
        inputs = [one for plan in plans if isinstance(plan, _Plan) for one in plan.made.inputs]
        said = iter(self._network.run(inputs))
        return [
            self._judged(plan, [next(said) for _ in plan.made.inputs]) if isinstance(plan, _Plan) else plan
            for plan in plans
        ]

    def _not_scored(self, sample: Sample, status: Status, reason: str) -> Prediction:
        return Prediction(
            id=sample.id, status=status, detector=self.name, reason=reason, signature=self.signature,
            language=sample.language,
        )  # fmt: skip

    def _planned(self, sample: Sample) -> _Plan | Prediction:
        try:
            found = self._plan(sample)
        except TooLongError as error:
            return self._not_scored(sample, Status.TOO_LONG, str(error))
        except Exception as error:  # one sample's failure must not lose the batch; it is said, not hidden
            return self._not_scored(sample, Status.FAILED, f"{type(error).__name__}: {error}")
        return found if isinstance(found, _Plan) else self._not_scored(sample, found.status, found.reason)

    def _plan(self, sample: Sample) -> _Plan | Refusal:
        spoken = admitted(sample)
        if isinstance(spoken, Refusal):
            return spoken
        base = _base(spoken.tag)
        if self._languages and base not in self._languages:
            known = ", ".join(sorted(self._languages))
            return Refusal(Status.UNSUPPORTED_LANGUAGE, f"the model knows {known}, and the response is in {spoken.tag}")
        words = word_bounds(sample.response, spoken.tag)
        if not len(words) or not any(len(word_bounds(passage.text)) for passage in sample.evidence):
            return without_words(sample)
        prompt = prompt_for(self._format, sample, self._prompt_language or base)
        made = arranged(prompt, sample.evidence, sample.response, self._network.tokens, self._network.room)
        notes = [*spoken.notes, *evidence_notes(sample, spoken), "calibration:none"]
        if not self._languages:
            notes.append("languages:not stated")
        if prompt.wording.language not in (None, base):
            notes.append(f"prompt:{prompt.wording.language}")
        return _Plan(sample, spoken, words, made, tuple(notes))

    def _judged(self, plan: _Plan, said: Sequence[TokenProbabilities | str]) -> Prediction:
        tokens = [one for one in said if isinstance(one, TokenProbabilities)]
        if len(tokens) < len(said):
            reason = next(one for one in said if isinstance(one, str))
            return self._not_scored(plan.sample, Status.FAILED, reason)
        try:
            return self._scored(plan, tokens)
        except Exception as error:  # as above
            return self._not_scored(plan.sample, Status.FAILED, f"{type(error).__name__}: {error}")

    def _scored(self, plan: _Plan, said: Sequence[TokenProbabilities]) -> Prediction:
        sample, made = plan.sample, plan.made
        marked = marked_words(plan.words, made, said, self._labels, self._pooling)
        if not len(marked.bounds):
            return self._not_scored(sample, Status.FAILED, "the model's tokenizer knows none of the response's words")
        parts = sentences(sample.response, plan.spoken.tag)
        unseen = (f"words:{marked.unseen} not seen",) if marked.unseen else ()
        return Prediction(
            id=sample.id,
            status=Status.SCORED,
            detector=self.name,
            score=round(float(marked.confidences.max()), DIGITS),
            spans=span_list(sample.response, marked, parts, self._labels, made.windows, self._threshold),
            words=word_list(marked, made.windows, self._threshold) if self._words else None,
            language=plan.spoken.tag,
            notes=(*plan.notes, *unseen),
            signature=self.signature,
        )


def _remade(options: dict[str, Any]) -> TokenClassifier:
    return TokenClassifier(**options)


def _known(model: str, given: Sequence[str] | str | None) -> frozenset[str]:
    """Base tags of the languages that a model knows; empty for any."""
    if given is None:
        told = language_of(model)
        return frozenset([told] if told else [])
    tags = [tag.strip() for tag in given.split(",") if tag.strip()] if isinstance(given, str) else given
    return frozenset(language(tag).base for tag in tags)


def _base(tag: str) -> str:
    try:
        return language(tag).base
    except UnknownNameError:
        return tag.split("-")[0].lower()

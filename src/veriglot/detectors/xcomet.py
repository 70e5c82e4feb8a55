"""XCOMET (Guerreiro et al. 2024) as a detector: marks the errors of a translation."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from veriglot.errors import UsageError, WeightsError
from veriglot.hub.checkpoints import check_licence
from veriglot.hub.registry import offline
from veriglot.judging.base import DIGITS, BaseDetector, NotScored, ResolvedLanguage, check_sample, no_words, runs
from veriglot.pipeline.external import Answer, ExternalEngine, python_of
from veriglot.records import Prediction, Sample, Span, Status, Task, Word
from veriglot.signatures import checkpoint_revision, signature
from veriglot.text.segmentation import word_bounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


__all__ = []

_HALF = 0.5


class _Token(NamedTuple):
    start: int
    end: int
    error: float  # probability of an error of any severity
    severity: str  # of the most probable label; empty for "no error"


class _Run(NamedTuple):
    start: int
    end: int
    tokens: tuple[_Token, ...]


class XComet(BaseDetector[ResolvedLanguage, Answer]):
    """Marks all errors of a translation, not only hallucinations; so spans have no type.

    A word's confidence is the highest probability of an error of any severity over its tokens. Words that reach
    `threshold` are marked, neighbours as one span. With `published`, as in the published decoding, tokens are marked if
    their most probable label is an error; but a span at the end of the translation, which that decoding drops, stays.
    A span's confidence is the mean over its tokens, and the score is the maximum over all words; both are uncalibrated
    (`calibration:none`). Notes give the severities (`severities:major,minor`, one per span) and XCOMET's quality score
    (`quality:0.8312`, 0 to 1, higher is better). It runs unbabel-comet in the environment `comet`
    (docs/neural_scorers.md).

    Args:
        model: a folder with `hparams.yaml` and `checkpoints/`, or a name on the hub (`Unbabel/XCOMET-XL`).
        encoder: folder of the model's encoder, if the one that its configuration names is not available.
        threshold: see above; None for 0.5.
        published: mark by the published rule; then `threshold` is not used.
        words: whether predictions include every word.
        python: interpreter or folder of the environment `comet`; None for `VERIGLOT_ENV_COMET`, else that in the cache.
        device: such as `cpu` or `cuda:0`; None for CUDA if available.
        batch_size: pairs per batch.
        timeout: seconds for 64 pairs; start_timeout: seconds for loading.
        accept_licence: you accept its licence, if that is not a permissive one.

    Raises:
        UsageError: the environment is missing (the remedy lists the commands that create it), or an option is invalid.
        WeightsError: the model cannot be loaded, gives no spans, or its licence was not accepted.
        VeriglotError: the process does not start.
    """

    name = "xcomet@1"
    taxonomy = "hat"

    def __init__(
        self,
        model: str,
        *,
        encoder: str | None = None,
        threshold: float | None = None,
        published: bool = False,
        words: bool = False,
        python: str | None = None,
        device: str | None = None,
        batch_size: int = 8,
        timeout: float = 1800.0,
        start_timeout: float = 1800.0,
        accept_licence: bool = False,
    ) -> None:
        if published and threshold is not None:
            raise UsageError("The published rule has no threshold.", remedy="Leave out published or threshold.")
        super().__init__(_HALF if threshold is None else threshold, words=words)  # not used if published
        check_licence(model, accepted=accept_licence)
        self._model, self._encoder, self._published = model, encoder, published
        interpreter = python_of("comet", python)
        given = {
            "model": str(model),
            "encoder": encoder,
            "device": device,
            "batch_size": batch_size,
            "offline": offline(),
        }

        self._engine = ExternalEngine(interpreter, "comet", given, start_timeout=start_timeout, timeout=timeout)
        about = self._engine.about
        if not about["marks"]:
            self._engine.close()
            raise WeightsError(
                f"{model!r} ({about['class']}) gives a score, and marks no errors.",
                remedy="Use an XCOMET model, or the scorer comet.",
            )

    @cached_property
    def signature(self) -> str:
        """Name, model, threshold, and the packages that run it, in one line."""
        about = self._engine.about
        return signature(
            detector=self.name,
            model=self._model,
            revision=checkpoint_revision(about["folder"]),
            encoder=self._encoder,
            threshold="published" if self._published else self.threshold,
            unit="word",
            device=about["device"],
            **{name.replace("-", "_"): version for name, version in self._engine.packages.items()},
        )

    def close(self) -> None:
        """End the process; the next prediction starts another."""
        self._engine.close()

    def _plan(self, sample: Sample) -> ResolvedLanguage | NotScored:
        resolved = check_sample(sample)
        if not isinstance(resolved, NotScored) and not len(word_bounds(sample.response, resolved.tag)):
            return no_words(sample)
        return resolved

    def _run(self, plans: Sequence[tuple[Sample, ResolvedLanguage]]) -> Iterator[Answer | NotScored]:
        answers = self._engine.ask([_row(sample) for sample, _ in plans])
        return (NotScored(Status(a.status), a.error or "") if a.value is None else a for a in answers)

    def _scored(self, sample: Sample, plan: ResolvedLanguage, result: Answer) -> Prediction | NotScored:
        tokens = [_Token(*token) for token in result.details.get("tokens", ())]
        if not tokens:
            return NotScored(Status.FAILED, "the model's tokenizer knows nothing of the response")
        words = _word_list(sample.response, plan.tag, tokens)
        ranges = _published(sample.response, tokens) if self._published else self._marked(words, tokens)
        severities = [_severity(marked) for marked in ranges]
        notes = [*plan.notes, "calibration:none", f"quality:{result.value:.4f}"]
        if severities:
            notes.append(f"severities:{','.join(severities)}")
        if sample.task is not Task.TRANSLATION:
            notes.append(f"task:{sample.task}, and the model was trained on translations")
        return self._prediction(
            sample,
            score=max(word.confidence for word in words),
            spans=tuple(_span(sample.response, marked) for marked in ranges),
            words=words if self._words else None,
            language=plan.tag,
            notes=notes,
        )

    def _marked(self, words: Sequence[Word], tokens: Sequence[_Token]) -> list[_Run]:
        """Runs of words that reach the threshold."""
        reached = np.array([word.confidence >= self.threshold for word in words], bool)
        bounds = (
            (words[low].start, words[high - 1].end) for low, high in runs(reached, np.zeros(len(words), np.int64))
        )
        return [
            _Run(start, end, tuple(token for token in tokens if token.start < end and token.end > start))
            for start, end in bounds
        ]


def _row(sample: Sample) -> dict[str, str]:
    source = "\n".join(filter(str.strip, sample.passages))
    return {"source": source.encode("utf-8", "replace").decode(), "response": sample.response}


def _published(text: str, tokens: Sequence[_Token]) -> list[_Run]:
    """Runs of tokens whose most probable label is an error, without white space at their ends."""
    groups: list[list[_Token]] = [[]]
    for token in tokens:
        if token.severity:
            groups[-1].append(token)
        elif groups[-1]:
            groups.append([])
    ranges = []
    for group in filter(None, groups):
        start, end = group[0].start, max(token.end for token in group)
        inside = text[start:end]
        start, end = start + len(inside) - len(inside.lstrip()), end - len(inside) + len(inside.rstrip())
        if start < end:
            ranges.append(_Run(start, end, tuple(group)))
    return ranges


def _severity(run: _Run) -> str:
    """The severity of the token with the highest error probability, among those with a severity."""
    named = [token for token in run.tokens if token.severity]
    return max(named, key=lambda token: token.error).severity if named else "none"


def _span(text: str, run: _Run) -> Span:
    confidence = sum(token.error for token in run.tokens) / len(run.tokens)
    return Span(run.start, run.end, confidence=round(confidence, DIGITS), text=text[run.start : run.end])


def _word_list(text: str, language: str, tokens: Sequence[_Token]) -> tuple[Word, ...]:
    """Every word with the highest error probability of the tokens that overlap it; 0 if none does."""
    words = []
    first = 0
    for start, end in word_bounds(text, language).tolist():
        while first < len(tokens) and tokens[first].end <= start:
            first += 1
        errors = [token.error for token in tokens[first:] if token.start < end and token.end > start]
        words.append(Word(start, end, round(max(errors, default=0.0), DIGITS)))
    return tuple(words)

"""XCOMET as a detector: the errors that it marks in a translation (Guerreiro et al. 2024)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from veriglot.detectors.admission import Refusal, admitted, without_words
from veriglot.detectors.grounding.marking import DIGITS
from veriglot.errors import UsageError, WeightsError
from veriglot.provenance import checkpoint_revision, signature
from veriglot.records import Prediction, Span, Status, Task, Word
from veriglot.run.companion import Companion, Keeper, Refused, ask, python_of
from veriglot.text import word_bounds
from veriglot.weights.cards import agree
from veriglot.weights.folder import offline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.detectors.grounding.language import Spoken
    from veriglot.records import Sample
    from veriglot.run.companion import Result

__all__ = ["XComet"]

_HALF = 0.5


class _Token(NamedTuple):
    start: int
    end: int
    error: float  # probability that it is in an error, of whatever severity
    severity: str  # the likeliest; empty where "no error" is


class _Run(NamedTuple):
    start: int
    end: int
    tokens: tuple[_Token, ...]


class XComet:
    """Marks the errors of a translation: of any kind, hallucinations among them, so spans carry no type.

    A word's confidence is the highest probability, over its tokens, of an error of whatever severity. Words that reach
    `threshold` are marked, neighbours as one span. With `published`, tokens are marked where one of the severities is
    likelier than that there is no error, as in the published decoding; a span that runs to the end of the translation,
    which that drops, is kept. The confidence of a span is the mean over its tokens, and the score the highest of all
    words: they are the model's own, and no calibration is claimed (`calibration:none`). Notes hold the
    severities (`severities:major,minor`, one a span) and XCOMET's score of quality (`quality:0.8312`, 0 to 1, higher is
    better). It runs unbabel-comet in the environment `comet` (docs/neural_scorers.md).

    Args:
        model: a folder with `hparams.yaml` and `checkpoints/`, or a name on the hub (`Unbabel/XCOMET-XL`).
        encoder: folder of the encoder that the model was made from, where the one that it names is not here.
        threshold: see above; None for one half.
        published: mark by the published rule; `threshold` has no meaning then.
        words: whether predictions carry every word.
        python: interpreter, or folder, of the environment `comet`; None for `VERIGLOT_ENV_COMET`, else the cache's.
        device: such as `cpu` or `cuda:0`; None for CUDA if it is there.
        batch_size: pairs at a time.
        timeout: seconds for 64 pairs; start_timeout: seconds for loading.
        accept_licence: its licence, where it is not a permissive one, is accepted.

    Raises:
        MissingEnvironmentError: the environment is not here; the remedy is the commands that make it.
        WeightsError: the model cannot be loaded, or marks nothing.
        LicenceError: its licence has to be accepted first.
        CompanionError: the process does not start.
        UsageError: an option that makes no sense.
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
        self._options = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        if threshold is not None and not 0 <= threshold <= 1:
            raise UsageError(f"A threshold lies between 0 and 1, not at {threshold}.")
        agree(model, accepted=accept_licence)
        if published and threshold is not None:
            raise UsageError("The published rule has no threshold.", remedy="Leave out published or threshold.")
        self._threshold, self._published, self._words = threshold, published, words
        interpreter = python_of("comet", python)
        given = {
            "model": str(model),
            "encoder": encoder,
            "device": device,
            "batch_size": batch_size,
            "offline": offline(),
        }

        def start() -> Companion:
            return Companion(interpreter, "comet_engine", given, start_timeout=start_timeout, timeout=timeout)

        self._keeper = Keeper(start)
        about = self._keeper.about
        if not about["marks"]:
            self._keeper.close()
            raise WeightsError(
                f"{model!r} ({about['class']}) gives a score, and marks no errors.",
                remedy="Take an XCOMET, or use the scorer comet.",
            )
        self.signature = signature(
            detector=self.name,
            model=model,
            revision=checkpoint_revision(about["folder"]),
            encoder=encoder,
            threshold="published" if published else self.threshold,
            unit="word",
            device=about["device"],
            **{name.replace("-", "_"): version for name, version in self._keeper.hello.packages.items()},
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._options,)

    @property
    def threshold(self) -> float:
        """Confidence from which a word counts as marked; by the published rule the severities decide."""
        return _HALF if self._threshold is None else self._threshold

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        """Judge a batch: one prediction per sample, in order. No sample makes it raise."""
        found = [_admitted(sample) for sample in samples]
        rows = [_row(sample) for sample, one in zip(samples, found, strict=True) if not isinstance(one, Refusal)]
        answers = iter(ask(self._keeper, rows))
        return [
            self._not_scored(sample, one.status, one.reason)
            if isinstance(one, Refusal)
            else self._judged(sample, one, next(answers))
            for sample, one in zip(samples, found, strict=True)
        ]

    def close(self) -> None:
        """Have the process leave; predicting starts another."""
        self._keeper.close()

    def _not_scored(self, sample: Sample, status: Status, reason: str) -> Prediction:
        return Prediction(
            id=sample.id, status=status, detector=self.name, reason=reason, signature=self.signature,
            language=sample.language,
        )  # fmt: skip

    def _judged(self, sample: Sample, spoken: Spoken, answer: Result | Refused) -> Prediction:
        if isinstance(answer, Refused):
            return self._not_scored(sample, answer.status, answer.reason)
        tokens = [_Token(*token) for token in answer.details.get("tokens", ())]
        if not tokens:
            return self._not_scored(sample, Status.FAILED, "the model's tokenizer knows nothing of the response")
        words = _word_list(sample.response, spoken.tag, tokens)
        runs = _published(sample.response, tokens) if self._published else self._marked(words, tokens)
        severities = [_severity(run) for run in runs]
        notes = [*spoken.notes, "calibration:none", f"quality:{answer.value:.4f}"]
        if severities:
            notes.append(f"severities:{','.join(severities)}")
        if sample.task is not Task.TRANSLATION:
            notes.append(f"task:{sample.task}, and the model was trained on translations")
        return Prediction(
            id=sample.id,
            status=Status.SCORED,
            detector=self.name,
            score=max(word.confidence for word in words),
            spans=tuple(_span(sample.response, run) for run in runs),
            words=words if self._words else None,
            language=spoken.tag,
            notes=tuple(notes),
            signature=self.signature,
        )

    def _marked(self, words: Sequence[Word], tokens: Sequence[_Token]) -> list[_Run]:
        """Neighbouring words that reach the threshold."""
        stretches: list[tuple[int, int]] = []
        open_run = False
        for word in words:
            marked = word.confidence >= self.threshold
            if marked and open_run:
                stretches[-1] = (stretches[-1][0], word.end)
            elif marked:
                stretches.append((word.start, word.end))
            open_run = marked
        return [
            _Run(start, end, tuple(token for token in tokens if token.start < end and token.end > start))
            for start, end in stretches
        ]


def _again(options: dict[str, Any]) -> XComet:
    return XComet(**options)


def _row(sample: Sample) -> dict[str, str]:
    source = "\n".join(passage.text for passage in sample.evidence if passage.text.strip())
    return {"source": source.encode("utf-8", "replace").decode(), "response": sample.response}


def _admitted(sample: Sample) -> Spoken | Refusal:
    """As `admitted`, of a response that holds a word."""
    found = admitted(sample)
    if not isinstance(found, Refusal) and not len(word_bounds(sample.response, found.tag)):
        return without_words(sample)
    return found


def _published(text: str, tokens: Sequence[_Token]) -> list[_Run]:
    """Neighbouring tokens whose likeliest label is an error, without white space around them."""
    groups: list[list[_Token]] = [[]]
    for token in tokens:
        if token.severity:
            groups[-1].append(token)
        elif groups[-1]:
            groups.append([])
    found = []
    for group in filter(None, groups):
        start, end = group[0].start, max(token.end for token in group)
        inside = text[start:end]
        start, end = start + len(inside) - len(inside.lstrip()), end - len(inside) + len(inside.rstrip())
        if start < end:
            found.append(_Run(start, end, tuple(group)))
    return found


def _severity(run: _Run) -> str:
    """The severity of the token that is likeliest to be wrong, of those that have one."""
    named = [token for token in run.tokens if token.severity]
    return max(named, key=lambda token: token.error).severity if named else "none"


def _span(text: str, run: _Run) -> Span:
    confidence = sum(token.error for token in run.tokens) / len(run.tokens)
    return Span(run.start, run.end, confidence=round(confidence, DIGITS), text=text[run.start : run.end])


def _word_list(text: str, language: str, tokens: Sequence[_Token]) -> tuple[Word, ...]:
    """Every word with the highest probability of the tokens that overlap it; 0 where the model saw none of it."""
    found = []
    first = 0
    for start, end in word_bounds(text, language).tolist():
        while first < len(tokens) and tokens[first].end <= start:
            first += 1
        errors = [token.error for token in tokens[first:] if token.start < end and token.end > start]
        found.append(Word(start, end, round(max(errors, default=0.0), DIGITS)))
    return tuple(found)

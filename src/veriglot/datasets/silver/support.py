"""Whether the evidence supports what was put in: held against by a detector, or asked of a model.

A check is a conversation: it yields the requests that it needs answered, if any, and returns its verdicts. So the
same work does with a detector, which asks nobody, and with a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from veriglot.datasets.generation import replies_of
from veriglot.datasets.silver.injection import injection_version, support_prompt
from veriglot.llm.client import AnswerError, Message, Request, Settings
from veriglot.llm.output_parser import decode_answer, schema_of
from veriglot.records import Status
from veriglot.signatures import signature
from veriglot.text.segmentation import sentences

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from veriglot.datasets.silver.check import Change
    from veriglot.llm.pool import Answer
    from veriglot.records import Detector, Sample

__all__ = [
    "DetectorSupport",
    "ModelSupport",
    "Support",
    "SupportReason",
    "Verdict",
]


if TYPE_CHECKING:
    Asking = Generator[tuple[Request, ...], list[Answer], list["Verdict"]]


SupportReason = Literal["supported", "unsupported", "unchecked"]
_MARKED = 0.2  # share of a passage's code points that a detector may mark: none is without false alarms


class Verdict(msgspec.Struct, frozen=True):
    """What a check says: that all is well (no reason), or what is not.

    Attributes:
        reason: `supported` (an error that the evidence supports), `unsupported` (a passage that it does not support),
            `unchecked` (the check could not tell), or None.
        detail: the same in words.
    """

    reason: SupportReason | None = None
    detail: str = ""


class Support(Protocol):
    """Says of errors whether the evidence supports them after all, and of passages whether it does not."""

    @property
    def signature(self) -> str:
        """One line that says how it judges."""

    def errors(self, sample: Sample, changes: Sequence[Change]) -> Asking:
        """One verdict per error of a sample's response, in order: `supported` ones are none."""

    def passage(self, sample: Sample) -> Asking:
        """One verdict on the response, which ought to be supported."""


class DetectorSupport:
    """A detector holds the text against the evidence. An error has to be marked, if only in part.

    Args:
        detector: what judges. A detector that misses errors makes the data easier than the world: what it does not
            mark is rejected.
    """

    def __init__(self, detector: Detector) -> None:
        self._detector = detector
        self.signature = signature(support="detector", marked=_MARKED, detector=detector.signature)

    def errors(self, sample: Sample, changes: Sequence[Change]) -> Asking:
        """As `Support`; asks no model."""
        yield from ()
        (prediction,) = self._detector.predict([sample])
        if prediction.status != Status.SCORED:
            return [Verdict("unchecked", f"the detector did not judge it ({prediction.status})") for _ in changes]
        marked = [(span.start, span.end) for span in prediction.spans or ()]
        return [
            Verdict()
            if any(start < change.end and change.start < end for start, end in marked)
            else Verdict("supported", "the detector finds it supported")
            for change in changes
        ]

    def passage(self, sample: Sample) -> Asking:
        """As `Support`; a fifth may be marked."""
        yield from ()
        (prediction,) = self._detector.predict([sample])
        if prediction.status != Status.SCORED:
            return [Verdict("unchecked", f"the detector did not judge it ({prediction.status})")]
        share = sum(span.end - span.start for span in prediction.spans or ()) / len(sample.response)
        if share > _MARKED:
            return [Verdict("unsupported", f"the detector marks {share:.0%} of it")]
        return [Verdict()]


class SupportAnswer(msgspec.Struct, frozen=True):
    supported: bool


class ModelSupport:
    """A model says whether the evidence supports a statement: the sentences that an error stands in, or the passage.

    Args:
        model: as its server names it; better another one than the one that puts the errors in.
        settings: how it generates; greedy where nothing is said.
        seed: of the calls.
    """

    def __init__(self, model: str, *, settings: Settings | None = None, seed: int | None = None) -> None:
        self._model = model
        self._settings = settings or Settings(temperature=0.0)
        self._seed = seed
        self.signature = signature(support="model", model=model, seed=seed, prompt=injection_version())

    def errors(self, sample: Sample, changes: Sequence[Change]) -> Asking:
        """As `Support`; one call an error."""
        statements = [_sentences_around(sample, change) for change in changes]
        judgements = yield from self._asked(sample, statements)
        return [_verdict(judgement, "supported", wanted=False) for judgement in judgements]

    def passage(self, sample: Sample) -> Asking:
        """As `Support`; one call."""
        judgements = yield from self._asked(sample, [sample.response])
        return [_verdict(judgement, "unsupported", wanted=True) for judgement in judgements]

    def _asked(
        self, sample: Sample, statements: Sequence[str]
    ) -> Generator[tuple[Request, ...], list[Answer], list[bool | str]]:
        """What the model says of each statement: yes, no, or why that cannot be read."""
        reference = "\n\n".join(passage.text for passage in sample.evidence)
        requests = tuple(
            Request(
                self._model,
                (Message("user", support_prompt(sample.language or "", statement, sample.response, reference)),),
                seed=self._seed,
                settings=self._settings,
                schema=schema_of(SupportAnswer),
            )
            for statement in statements
        )
        answers = yield requests
        judgements: list[bool | str] = []
        for answer in replies_of(answers):
            try:
                judgements.append(decode_answer(answer, SupportAnswer).supported)
            except AnswerError as error:
                judgements.append(error.message)
        return judgements


def _verdict(judgement: bool | str, reason: SupportReason, *, wanted: bool) -> Verdict:
    if isinstance(judgement, str):
        return Verdict("unchecked", f"the check cannot be read: {judgement}")
    if judgement is wanted:
        return Verdict()
    return Verdict(
        reason, f"the model that checks says that the reference {'supports' if judgement else 'does not support'} it"
    )


def _sentences_around(sample: Sample, change: Change) -> str:
    """The sentences of the response that an error stands in."""
    touched = [
        (start, end)
        for start, end in sentences(sample.response, sample.language)
        if start < change.end and change.start < end
    ]
    if not touched:
        return sample.response[change.start : change.end].strip()
    return sample.response[touched[0][0] : touched[-1][1]].strip()

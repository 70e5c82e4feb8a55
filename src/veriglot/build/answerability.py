"""Whether a query can be answered from its reference: asked of a model, or tried and held against the detector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from veriglot.build.prompts import answer_messages, check_prompt, prompt_version
from veriglot.build.refusals import refusals_version, refuses
from veriglot.llm import AnswerError, Message, Request, Settings, decode_answer, schema_of
from veriglot.provenance import signature
from veriglot.records import Sample, Status, Task

if TYPE_CHECKING:
    from veriglot.build.references import Reference
    from veriglot.llm import Reply
    from veriglot.records import Detector

__all__ = ["AnswerabilityCheck", "DetectorCheck", "ModelCheck", "Verdict"]

_QUOTED = 0.8  # share of the quote's words that have to stand in the reference: models copy almost letter by letter
_MARKED = 0.2  # share of the answer's code points that the detector may mark


class Verdict(NamedTuple):
    """Whether a query is answerable; if not, why; and what is kept of the check in the query's `meta`."""

    answerable: bool
    detail: str
    notes: dict[str, Any]


class AnswerabilityCheck(Protocol):
    """Asks a model one thing about a query and judges by what it says."""

    @property
    def signature(self) -> str:
        """One line that says how it judges."""

    def request(self, reference: Reference, question: str) -> Request:
        """What to ask."""

    def verdict(self, reference: Reference, question: str, reply: Reply) -> Verdict:
        """What follows from the reply."""


class _Said(msgspec.Struct, frozen=True):
    answerable: bool
    quote: str


class ModelCheck:
    """A model says whether the reference answers the query, and quotes the passage; the quote has to stand there.

    Args:
        model: as its server names it.
        settings: how it generates; greedy where nothing is said.
        seed: of the calls.
    """

    def __init__(self, model: str, *, settings: Settings | None = None, seed: int | None = None) -> None:
        self._model = model
        self._settings = settings or Settings(temperature=0.0)
        self._seed = seed
        self.signature = signature(check="model", model=model, prompt=prompt_version("queries"), quoted=_QUOTED)

    def request(self, reference: Reference, question: str) -> Request:
        """Asks for a verdict and a quote, as JSON."""
        message = Message("user", check_prompt(reference.language, question, reference.text))
        return Request(self._model, (message,), seed=self._seed, settings=self._settings, schema=schema_of(_Said))

    def verdict(self, reference: Reference, question: str, reply: Reply) -> Verdict:  # noqa: ARG002
        """Answerable if the model says so and its quote stands in the reference."""
        try:
            said = decode_answer(reply, _Said)
        except AnswerError as error:
            return Verdict(False, f"the check cannot be read: {error.message}", {})
        if not said.answerable:
            return Verdict(False, "the model that checks says that the text does not answer it", {})
        share = _share_quoted(said.quote, reference)
        if share < _QUOTED:
            return Verdict(False, f"the passage that is said to answer it does not stand there: {said.quote!r}", {})
        return Verdict(True, "", {"quote": said.quote})


class DetectorCheck:
    """A model answers the query from the reference, and a detector looks whether the reference supports the answer.

    Args:
        detector: what judges; a fifth of the answer may be marked, since no detector is without false alarms.
        model: what answers, as its server names it.
        settings: how it generates.
        seed: of the calls.
    """

    def __init__(
        self, detector: Detector, model: str, *, settings: Settings | None = None, seed: int | None = None
    ) -> None:
        self._detector = detector
        self._model = model
        self._settings = settings or Settings(temperature=0.0, max_tokens=256)
        self._seed = seed
        self.signature = signature(
            check="detector",
            model=model,
            prompt=prompt_version("answer"),
            refusals=refusals_version(),
            marked=_MARKED,
            detector=detector.signature,
        )

    def request(self, reference: Reference, question: str) -> Request:
        """Asks for an answer from the reference."""
        messages = answer_messages("open", reference.language, question, reference.text)
        return Request(self._model, messages, seed=self._seed, settings=self._settings)

    def verdict(self, reference: Reference, question: str, reply: Reply) -> Verdict:
        """Answerable if the answer is one and the detector finds it supported."""
        if not reply.text.strip() or refuses(reply.text, reference.language):
            return Verdict(False, f"the model finds no answer in the text: {reply.text[:200]!r}", {})
        sample = Sample(
            "check", reply.text, Task.QA, reference.language, question=question, evidence=(reference.evidence,)
        )
        (prediction,) = self._detector.predict([sample])
        if prediction.status != Status.SCORED:
            return Verdict(False, f"the detector did not judge the answer ({prediction.status})", {})
        marked = sum(span.end - span.start for span in prediction.spans or ()) / len(reply.text)
        if marked > _MARKED:
            return Verdict(False, f"the text does not support {marked:.0%} of an answer: {reply.text[:200]!r}", {})
        return Verdict(True, "", {"answer": reply.text, "marked": round(marked, 4)})


def _share_quoted(quote: str, reference: Reference) -> float:
    """Share of the words of a quote that stand in the reference; 0 for a quote without words."""
    from veriglot.text import fold, words

    text, said = fold(reference.text), fold(quote)
    held = {text[start:end] for start, end in words(text, reference.language)}
    quoted = [said[start:end] for start, end in words(said, reference.language)]
    return sum(word in held for word in quoted) / len(quoted) if quoted else 0.0

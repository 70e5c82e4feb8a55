"""The judge of facts: whether the evidence supports each atomic fact of a response, contradicts it, or does not say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import msgspec

from veriglot.detectors.judge.answers import (
    DIGITS,
    Mark,
    Quote,
    label_probabilities,
    locate,
    location_notes,
    read_answer,
    spans_of,
)
from veriglot.detectors.judge.base import Asked, Case, Outcome, Passages, Question, WindowedJudge
from veriglot.detectors.judge.prompts import load_prompt, passage_blocks, question_block, tagged
from veriglot.errors import UnknownNameError
from veriglot.judging.base import NotScored, without_words
from veriglot.judging.language import has_fact_rules
from veriglot.judging.nli import Claim
from veriglot.llm.client import AnswerError
from veriglot.llm.output_parser import schema_of
from veriglot.records import JudgedUnit, Status, Word
from veriglot.text.facts import facts
from veriglot.text.segmentation import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.llm.client import Reply

__all__ = ["FactJudge"]


Range = tuple[int, int]


class _Claimed(msgspec.Struct, frozen=True):
    claim: str
    text: str
    before: str = ""


class Answered(msgspec.Struct, frozen=True):
    """The facts that a model parted a response into."""

    facts: tuple[_Claimed, ...]


def claims_by_rules(response: str, language: str) -> tuple[list[Claim], tuple[str, ...]]:
    """The atomic facts of a response, which hold each of its words once, and what to note.

    Args:
        response: the text.
        language: BCP 47 tag; without rules for it each sentence is one fact, which the note `facts:sentences` says.
    """
    claims = [Claim(fact.text(response), fact.kind, fact.parts) for fact in facts(response, language)]
    return claims, () if has_fact_rules(language) else ("facts:sentences",)


def claims_of_model(response: str, language: str, answered: Answered) -> tuple[list[Claim], tuple[str, ...]]:
    """The facts that a model found, in order of their places, and what to note.

    A fact whose words do not stand in the response is left out and noted; so is how many words of the response stand
    in no fact, which nobody checks.
    """
    quotes = [Quote(fact.text, fact.before) for fact in answered.facts]
    locations = locate(response, quotes, language)
    notes = location_notes(quotes, locations)
    claims = [
        Claim(fact.claim.strip() or fact.text, "claim", ((location.start, location.end),))
        for fact, location in zip(answered.facts, locations, strict=True)
        if location is not None
    ]
    held = {offset for claim in claims for start, end in claim.parts for offset in range(start, end)}
    outside = sum(start not in held for start, _ in words(response, language))
    if outside:
        notes = (*notes, f"facts:{outside} words in no fact")
    return sorted(claims, key=lambda claim: claim.parts), notes


def decomposition_schema() -> dict[str, Any]:
    """The JSON schema of the answer of a model that parts a response."""
    text = {"type": "string"}
    fields = {"claim": text, "before": text, "text": text}
    fact = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    listed = {"type": "array", "items": fact}
    return {"type": "object", "properties": {"facts": listed}, "required": ["facts"], "additionalProperties": False}


Verdict = Literal["supported", "contradicted", "unverified"]

_AT_ONCE = 20  # claims in one question: longer lists make models skip some
_DECOMPOSING = ("rules", "model")
_DECOMPOSITION_FIELDS = frozenset({"language", "response"})


class _Judged(msgspec.Struct, frozen=True):
    claim: int
    verdict: Verdict


class _Answer(msgspec.Struct, frozen=True):
    verdicts: tuple[_Judged, ...]


@dataclass(frozen=True)
class _Opinion:
    """A verdict per claim and the probability that it is unsupported; None where these are not known."""

    verdicts: tuple[Verdict, ...]
    probabilities: tuple[float, ...] | None


class FactJudge(WindowedJudge):
    """`judge:facts`: a verdict per atomic fact, in `units`; what is not supported is marked.

    Args:
        decompose: `rules` for the facts of `veriglot.text.facts`, `model` to have the model part the response first.
        decompose_prompt: a TOML file in place of the shipped prompt for that.
        options: of `WindowedJudge` and `Judge`.
    """

    kind: ClassVar[str] = "facts"
    taxonomy = "support"
    prompt_name: ClassVar[str] = "facts"
    fields: ClassVar[frozenset[str]] = frozenset({"language", "question", "evidence", "facts"})

    def __init__(self, *, decompose: str = "rules", decompose_prompt: str | None = None, **options: Any) -> None:
        if decompose not in _DECOMPOSING:
            raise UnknownNameError("way to decompose", decompose, _DECOMPOSING)
        super().__init__(**options)
        self._by_model = decompose == "model"
        self._parting = load_prompt("decompose", _DECOMPOSITION_FIELDS, decompose_prompt)

    @classmethod
    def _own_options(cls) -> tuple[str, ...]:
        return ("decompose", "decompose_prompt", *super()._own_options())

    def _parts(self) -> dict[str, object]:
        return {**super()._parts(), "facts": self._parting.signature if self._by_model else "rules", "unit": "fact"}

    def _prepared(self, cases: list[Case]) -> Sequence[Case | NotScored]:
        return self._parted_by_model(cases) if self._by_model else [self._parted_by_rules(case) for case in cases]

    def _parted_by_rules(self, case: Case) -> Case | NotScored:
        claims, notes = claims_by_rules(case.sample.response, case.resolved.tag)
        if not claims:
            return without_words(case.sample)
        return replace(case, state=claims, notes=(*case.notes, *notes))

    def _parted_by_model(self, cases: list[Case]) -> list[Case | NotScored]:
        questions = [[self._parting_question(case)] for case in cases]
        settings = self._asking.generation(self._parting.max_tokens)
        answers = self._asked(questions, self._asking.seeds[:1], settings)
        return [self._with_claims(case, answer[0][0]) for case, answer in zip(cases, answers, strict=True)]

    def _parting_question(self, case: Case) -> Question:
        response = tagged("response", case.sample.response)
        return Question(self._parting.filled(language=case.language, response=response), decomposition_schema())

    def _with_claims(self, case: Case, answer: Asked) -> Case | NotScored:
        if answer.reply is None:
            return self._failed([answer.error or AnswerError("The judge gave no reply.")])
        try:
            answered = read_answer(answer.reply, Answered)
        except AnswerError as error:
            return self._failed([error])
        claims, notes = claims_of_model(case.sample.response, case.resolved.tag, answered)
        if not claims:
            reason = f"none of the {len(answered.facts)} facts that the judge found stands in the response"
            return NotScored(Status.FAILED, reason)
        return replace(case, state=claims, notes=(*case.notes, *notes))

    def _questions(self, case: Case) -> list[Question]:
        """All lists of claims about the first window, then all about the next."""
        lists = [_numbered(case.state, first) for first in range(0, len(case.state), _AT_ONCE)]
        texts = [self._filled(case, window, listed) for window in self._windows(case) for listed in lists]
        return [Question(text, schema_of(_Answer)) for text in texts]

    def _filled(self, case: Case, window: Passages, listed: str) -> str:
        sample = case.sample
        return self._prompt.filled(
            language=case.language,
            question=question_block(sample),
            evidence=passage_blocks(window, listed, sample.question or ""),
            facts=tagged("claims", listed, *(passage.text for passage in sample.evidence)),
        )

    def _opinion(self, case: Case, replies: list[Reply]) -> _Opinion:
        lists = -(-len(case.state) // _AT_ONCE)
        windows = [_read(replies[first : first + lists], len(case.state)) for first in range(0, len(replies), lists)]
        return windows[0] if len(windows) == 1 else _over_windows(windows)

    def _outcome(self, case: Case, opinions: list[_Opinion]) -> Outcome:
        confidence, shares = _shares(opinions)
        types = [_type([opinion.verdicts[n] for opinion in opinions]) for n in range(len(shares))]
        known = confidence != "verdict"
        marks = [
            Mark(start, end, type_, share if known else None)
            for claim, type_, share in zip(case.state, types, shares, strict=True)
            for start, end in claim.parts
            if share >= self._threshold
        ]
        spans, _ = spans_of(case.sample.response, marks)
        if confidence == "samples":
            score = sum(set(opinion.verdicts) != {"supported"} for opinion in opinions) / len(opinions)
        else:
            score = max(shares)
        words_ = None if self._by_model or not known else _words(case, shares)
        windows = len(self._windows(case))
        notes = (f"evidence:{windows} windows",) if windows > 1 else ()
        return Outcome(round(score, DIGITS), spans, confidence, words_, _units(case.state, shares), notes)


def _numbered(claims: list[Claim], first: int) -> str:
    lines = (" ".join(claim.text.split()) for claim in claims[first : first + _AT_ONCE])
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, first + 1))


def _read(replies: list[Reply], claims: int) -> _Opinion:
    """The verdicts on all claims by one window of the evidence."""
    verdicts: list[Verdict] = []
    supported: list[float] | None = []
    for reply in replies:
        answers = read_answer(reply, _Answer).verdicts
        _check_complete([answer.claim for answer in answers], len(verdicts) + 1, min(_AT_ONCE, claims - len(verdicts)))
        names = [answer.verdict for answer in answers]
        known = label_probabilities(reply, "verdict", names, get_args(Verdict))
        if supported is None or known is None:
            supported = None
        else:
            supported += [_of_support(shares, name) for shares, name in zip(known, names, strict=True)]
        verdicts += names
    return _Opinion(tuple(verdicts), None if supported is None else tuple(1.0 - share for share in supported))


def _of_support(shares: dict[str, float], verdict: Verdict) -> float:
    """The probability that a claim is supported; where only that of another verdict is known, all that it leaves."""
    if "supported" in shares:
        return shares["supported"]
    return 1.0 - shares[verdict] if len(shares) == 1 else 0.0


def _over_windows(windows: list[_Opinion]) -> _Opinion:
    """Support by any window is support; of those that do not support a claim, one that contradicts it says more."""
    ranks: tuple[Verdict, ...] = ("supported", "contradicted", "unverified")
    by_claim = zip(*(window.verdicts for window in windows), strict=True)
    verdicts = tuple(min(of_windows, key=ranks.index) for of_windows in by_claim)
    known = [window.probabilities for window in windows if window.probabilities is not None]
    if len(known) < len(windows):
        return _Opinion(verdicts, None)
    return _Opinion(verdicts, tuple(map(min, zip(*known, strict=True))))


def _check_complete(numbers: list[int], first: int, count: int) -> None:
    """Every claim has exactly one verdict, in order; a claim without one was not checked."""
    if numbers != list(range(first, first + count)):
        wanted = f"{first} to {first + count - 1}" if count > 1 else str(first)
        raise AnswerError(f"The judge was asked for verdicts on claims {wanted}, in order, and gave them on {numbers}.")


def _shares(opinions: list[_Opinion]) -> tuple[str, list[float]]:
    """Where confidences come from, and per claim the probability that it is unsupported."""
    if len(opinions) > 1:
        votes = zip(*(opinion.verdicts for opinion in opinions), strict=True)
        counts = [sum(verdict != "supported" for verdict in verdicts) for verdicts in votes]
        return "samples", [round(count / len(opinions), DIGITS) for count in counts]
    (opinion,) = opinions
    if opinion.probabilities is not None:
        return "token_probabilities", [round(p, DIGITS) for p in opinion.probabilities]
    return "verdict", [float(verdicts != "supported") for verdicts in opinion.verdicts]


def _type(verdicts: list[Verdict]) -> str:
    """What most of those say that do not support it; the weaker claim, `unverified`, where as many say either."""
    contradicted, unverified = verdicts.count("contradicted"), verdicts.count("unverified")
    return "contradicted" if contradicted > unverified else "unverified"


def _words(case: Case, shares: list[float]) -> tuple[Word, ...]:
    """Every word with the probability of the fact that it stands in."""
    by_place = {
        offset: share
        for claim, share in zip(case.state, shares, strict=True)
        for start, end in claim.parts
        for offset in range(start, end)
    }
    bounds = words(case.sample.response, case.resolved.tag)
    return tuple(Word(start, end, by_place[start]) for start, end in bounds)


def _units(claims: list[Claim], shares: list[float]) -> tuple[JudgedUnit, ...]:
    units = []
    for claim, share in zip(claims, shares, strict=True):
        parts = claim.parts if len(claim.parts) > 1 else ()
        units.append(JudgedUnit(claim.parts[0][0], claim.parts[-1][1], claim.kind, share, parts))
    return tuple(units)

"""The judge of facts: whether the evidence supports each atomic fact of a response, contradicts it, or does not say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import msgspec

from veriglot.detectors.judge.claims import (
    Answered,
    Claim,
    claims_by_rules,
    claims_of_model,
    decomposition_schema,
)
from veriglot.detectors.judge.judge import Case, Outcome, Question
from veriglot.detectors.judge.marking import DIGITS, Mark, spans_of
from veriglot.detectors.judge.probabilities import label_probabilities
from veriglot.detectors.judge.prompts import load_prompt, passage_blocks, question_block, tagged
from veriglot.detectors.judge.reading import read_answer
from veriglot.detectors.judge.windows import Passages, WindowedJudge
from veriglot.errors import UnknownNameError
from veriglot.llm import AnswerError, schema_of
from veriglot.records import JudgedUnit, Prediction, Status, Word
from veriglot.text import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.llm import Reply

__all__ = ["FactJudge"]

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
        self._options |= {"decompose": decompose, "decompose_prompt": decompose_prompt}
        self._by_model = decompose == "model"
        self._parting = load_prompt("decompose", _DECOMPOSITION_FIELDS, decompose_prompt)

    @classmethod
    def _own_options(cls) -> tuple[str, ...]:
        return ("decompose", "decompose_prompt", *super()._own_options())

    def _parts(self) -> dict[str, object]:
        return {**super()._parts(), "facts": self._parting.signature if self._by_model else "rules", "unit": "fact"}

    def _prepared(self, found: list[Case | Prediction]) -> list[Case | Prediction]:
        return self._parted_by_model(found) if self._by_model else [self._parted_by_rules(case) for case in found]

    def _parted_by_rules(self, case: Case | Prediction) -> Case | Prediction:
        if isinstance(case, Prediction):
            return case
        claims, notes = claims_by_rules(case.sample.response, case.spoken.tag)
        if not claims:
            return self._not_scored(case.sample, Status.FAILED, "the response holds no word, only marks or symbols")
        return replace(case, state=claims, notes=(*case.notes, *notes))

    def _parted_by_model(self, found: list[Case | Prediction]) -> list[Case | Prediction]:
        cases = [case for case in found if isinstance(case, Case)]
        questions = [[self._parting_question(case)] for case in cases]
        settings = self._asking.generation(self._parting.max_tokens)
        asked = iter(self._asked(questions, self._asking.seeds[:1], settings))
        return [case if isinstance(case, Prediction) else self._with_claims(case, next(asked)[0]) for case in found]

    def _parting_question(self, case: Case) -> Question:
        response = tagged("response", case.sample.response)
        return Question(self._parting.filled(language=case.language, response=response), decomposition_schema())

    def _with_claims(self, case: Case, asked: Sequence[Any]) -> Case | Prediction:
        (answer,) = asked
        if answer.error is not None:
            return self._failed(case.sample, [answer.error])
        try:
            said = read_answer(answer.reply, Answered)
        except AnswerError as error:
            return self._failed(case.sample, [error])
        claims, notes = claims_of_model(case.sample.response, case.spoken.tag, said)
        if not claims:
            reason = f"none of the {len(said.facts)} facts that the judge found stands in the response"
            return self._not_scored(case.sample, Status.FAILED, reason)
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
        said = read_answer(reply, _Answer).verdicts
        _check_complete([one.claim for one in said], len(verdicts) + 1, min(_AT_ONCE, claims - len(verdicts)))
        names = [one.verdict for one in said]
        known = label_probabilities(reply, "verdict", names, get_args(Verdict))
        if supported is None or known is None:
            supported = None
        else:
            supported += [_of_support(one, name) for one, name in zip(known, names, strict=True)]
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
    verdicts = tuple(min(said, key=ranks.index) for said in zip(*(one.verdicts for one in windows), strict=True))
    known = [one.probabilities for one in windows if one.probabilities is not None]
    if len(known) < len(windows):
        return _Opinion(verdicts, None)
    return _Opinion(verdicts, tuple(min(said) for said in zip(*known, strict=True)))


def _check_complete(numbers: list[int], first: int, count: int) -> None:
    """Every claim has exactly one verdict, in order; a claim without one was not checked."""
    if numbers != list(range(first, first + count)):
        wanted = f"{first} to {first + count - 1}" if count > 1 else str(first)
        raise AnswerError(f"The judge was asked for verdicts on claims {wanted}, in order, and gave them on {numbers}.")


def _shares(opinions: list[_Opinion]) -> tuple[str, list[float]]:
    """Where confidences come from, and per claim the probability that it is unsupported."""
    if len(opinions) > 1:
        votes = zip(*(opinion.verdicts for opinion in opinions), strict=True)
        return "samples", [round(sum(one != "supported" for one in said) / len(said), DIGITS) for said in votes]
    (opinion,) = opinions
    if opinion.probabilities is not None:
        return "token_probabilities", [round(p, DIGITS) for p in opinion.probabilities]
    return "verdict", [float(said != "supported") for said in opinion.verdicts]


def _type(verdicts: list[Verdict]) -> str:
    """What most of those say that do not support it; the weaker claim, `unverified`, where as many say either."""
    contradicted, unverified = verdicts.count("contradicted"), verdicts.count("unverified")
    return "contradicted" if contradicted > unverified else "unverified"


def _words(case: Case, shares: list[float]) -> tuple[Word, ...]:
    """Every word with the probability of the fact that it stands in."""
    by_place = {
        place: share
        for claim, share in zip(case.state, shares, strict=True)
        for start, end in claim.parts
        for place in range(start, end)
    }
    bounds = words(case.sample.response, case.spoken.tag)
    return tuple(Word(start, end, by_place[start]) for start, end in bounds)


def _units(claims: list[Claim], shares: list[float]) -> tuple[JudgedUnit, ...]:
    units = []
    for claim, share in zip(claims, shares, strict=True):
        parts = claim.parts if len(claim.parts) > 1 else ()
        units.append(JudgedUnit(claim.parts[0][0], claim.parts[-1][1], claim.kind, share, parts))
    return tuple(units)

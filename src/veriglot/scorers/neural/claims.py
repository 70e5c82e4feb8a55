"""Judges of faithfulness: each claim of a response against every window of the evidence; support by any is support."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Literal, NamedTuple

from veriglot.errors import UsageError
from veriglot.records import Status
from veriglot.scorers.against_evidence import Measured, Unmeasured
from veriglot.scorers.neural.pairs import Pair, PairScorer
from veriglot.text import facts, sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.entailment.tokens import Tokens

__all__ = ["UNITS", "ClaimScorer", "Level"]

Level = Literal["response", "sentence", "fact"]
UNITS = ("response", "sentence", "fact")
_FEWEST = 16  # tokens of evidence that a claim leaves room for


class _Judged(NamedTuple):
    evidence: str
    claim: str


class ClaimScorer(PairScorer):
    """The mean, over the claims of a response, of the best probability that any window of the evidence supports each.

    `parts` holds `claims` (how many), `least` (of the claim that is supported least) and `windows` (of the evidence,
    at most, for a claim). A claim that leaves no room for evidence makes the sample `too_long`.

    Args:
        tokens: the model's tokenizer.
        room: tokens of evidence and claim together, special ones and words of the prompt not counted.
        level: what is one claim: the whole response, each sentence, or each atomic fact.

    Raises:
        UsageError: no such level, or no room.
    """

    def __init__(self, tokens: Tokens, room: int, level: Level) -> None:
        if level not in UNITS:
            raise UsageError(f"There is no level {level!r}.", remedy=f"Give one of {', '.join(UNITS)}.")
        if room < 2 * _FEWEST:
            raise UsageError(f"The model has room for {room} tokens, which is too few.", remedy="Raise max_length.")
        self._tokens, self._room, self._level = tokens, room, level

    @abstractmethod
    def probabilities(self, judged: Sequence[tuple[str, str]]) -> list[float]:
        """The probability, for each (evidence, claim), that the one supports the other; none is longer than `room`."""

    def measure(self, pairs: Sequence[Pair]) -> list[Measured | Unmeasured]:
        """See `PairScorer`."""
        plans = [self._plan(pair) for pair in pairs]
        asked = [plan for plan in plans if not isinstance(plan, Unmeasured)]
        distinct = list(dict.fromkeys(one for plan in asked for claim in plan for one in claim))
        known = dict(zip(distinct, self.probabilities(distinct) if distinct else [], strict=True))
        return [plan if isinstance(plan, Unmeasured) else _measured(plan, known) for plan in plans]

    def _plan(self, pair: Pair) -> list[list[_Judged]] | Unmeasured:
        """For each claim, the windows that it is held against."""
        claims = self._claims(pair)
        if not claims:
            return Unmeasured(Status.NOTHING_TO_COMPARE, f"the response holds no {self._level}")
        plan = []
        for claim in claims:
            left = self._room - self._tokens.count(claim)
            if left < _FEWEST:
                return Unmeasured(Status.TOO_LONG, self._too_long(claim))
            windows = self._tokens.stretches(pair.source, left, overlap=True)
            plan.append([_Judged(pair.source[start:end], claim) for start, end in windows])
        return plan

    def _claims(self, pair: Pair) -> list[str]:
        text = pair.response
        if self._level == "response":
            return [text]
        if self._level == "sentence":
            return [text[start:end] for start, end in sentences(text, pair.language)]
        return [fact.text(text) for fact in facts(text, pair.language)]

    def _too_long(self, claim: str) -> str:
        advice = " (level=sentence judges it in parts)" if self._level == "response" else ""
        return (
            f"a {self._level} of {self._tokens.count(claim):,} tokens leaves no room for evidence"
            f" among {self._room:,}{advice}"
        )


def _measured(plan: list[list[_Judged]], known: dict[_Judged, float]) -> Measured:
    best = [max(known[one] for one in windows) for windows in plan]
    parts = {"claims": float(len(best)), "least": min(best), "windows": float(max(len(one) for one in plan))}
    return Measured(sum(best) / len(best), parts)

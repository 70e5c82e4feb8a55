"""The NLI metrics of Kang et al.: how far the evidence entails or contradicts the claims of a response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

from veriglot.errors import UnknownNameError, UsageError
from veriglot.judging.base import UNKNOWN_LANGUAGE, NotScored, has_evidence, has_fact_rules, text_language
from veriglot.judging.nli import ClaimReader, Claims, Entailment, Support
from veriglot.records import Direction, Sample, Status
from veriglot.scorers.base import BaseScorer, RawScore, answered
from veriglot.signatures import digest, signature

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from veriglot.arrays import Numbers

__all__ = []

Value = Literal["ent", "con", "diff", "unv"]
Summary = Literal["mean", "worst"]

_RULE = 1  # version of claims and premises; raise it if a score may change
_DIGITS = 6
_WORSE = {"con", "unv"}


class NLI(BaseScorer):
    """ENT, CON, DIFF or UNV of a response: SummaC's zero-shot method with max, after Kang et al. (section 2.2).

    Every claim is compared with every premise of the evidence. A response's score is the mean over its claims. For
    the pairwise setting of Kang et al. use the name `pairwise:nli:MODEL`.

    `parts` has all four metrics (only `ent` and `unv` for a model without contradiction), the number of `claims`
    and `premises`, and `facts_are_sentences` (1) if facts were requested in a language without rules for them.
    If the language cannot be identified, or the model is not declared for it, the status is
    `unsupported_language`.

    Args:
        model: a folder, a name that `veriglot models` lists, or a name on the hub; or an entailment model.
        value: `ent` or `diff` (higher is better), `con` or `unv` (higher is worse).
        claim: `sentence` or `fact`: the units of the response that are compared with the evidence.
        summary: `mean` over the claims, or the `worst` of them.
        premise_sentences: sentences of the evidence per premise; 0 for whole passages.
        question: whether to put the sample's question before each claim, for answers that are unclear without it.
        options: of the entailment model; see `veriglot.judging.nli.load_entailment`.

    Raises:
        MissingExtraError: the packages of the model are not installed.
        WeightsError: it cannot be loaded, or its labels cannot be mapped.
        UnknownNameError: no such value, claim or summary.
        UsageError: an invalid option, or `con` or `diff` for a model without a contradiction class.
    """

    one_process = True  # its network uses all cores by itself

    def __init__(
        self,
        model: str | Path | Entailment,
        *,
        value: str = "ent",
        claim: str = "sentence",
        summary: str = "mean",
        premise_sentences: int = 1,
        question: bool = False,
        **options: Any,
    ) -> None:
        for kind, name, known in (("value", value, Value), ("summary", summary, Summary)):
            if name not in get_args(known):
                raise UnknownNameError(kind, name, get_args(known))
        self._value, self._summary = value, summary
        self._reader = ClaimReader(model, claim, premise_sentences, question=question, **options)
        self._entailment = self._reader.entailment
        self.direction = Direction.HIGHER_IS_WORSE if value in _WORSE else Direction.HIGHER_IS_BETTER
        if "contradiction" not in self._entailment.labels and value in {"con", "diff"}:
            raise UsageError(
                f"The model tells {' and '.join(self._entailment.labels)} apart, and {value!r} needs contradiction.",
                "Take value 'ent', or a model with three labels.",
            )
        self.name = f"nli-{value}@{_RULE}-{self._entailment.revision[:8]}"
        settings = self._reader.settings()
        settings = {"claim": settings.pop("claim"), "summary": summary, **settings}
        self.signature = signature(scorer=self.name, model=digest([self._entailment.signature])[:12], **settings)

    def _measured(self, samples: Sequence[Sample]) -> list[RawScore | NotScored]:
        plans = [self._plan(sample) for sample in samples]
        return answered(plans, lambda claims: map(self._numbers, claims, self._reader.judge(claims)))

    def _plan(self, sample: Sample) -> Claims | NotScored:
        if not has_evidence(sample):
            return NotScored(Status.NO_EVIDENCE, self.no_evidence)
        if not sample.response.strip():
            return NotScored(Status.NOTHING_TO_COMPARE, "the response is empty")
        try:
            tag = text_language(sample.response, sample.language)
            claims = UNKNOWN_LANGUAGE if tag is None else self._reader.read(sample, tag)
        except Exception as error:  # one sample's failure must not lose the batch
            return NotScored.failed(error)
        if isinstance(claims, NotScored):
            return claims
        if not claims.premises:
            return NotScored(Status.NO_EVIDENCE, "the evidence has no word, only marks or symbols")
        if not claims.claims:
            return NotScored(Status.NOTHING_TO_COMPARE, "the response has no word, only marks or symbols")
        return claims

    def _numbers(self, claims: Claims, support: Support | NotScored) -> RawScore | NotScored:
        if isinstance(support, NotScored):
            return support
        numbers = {"ent": support.entailment, "unv": support.unverified}
        if "contradiction" in self._entailment.labels:
            numbers.update(con=support.contradiction, diff=support.difference)
        parts = {name: self._of_response(name, values) for name, values in numbers.items()}
        value = parts[self._value]
        parts.update(claims=float(len(claims.claims)), premises=float(len(claims.premises)))
        if self._reader.level == "fact" and not has_fact_rules(claims.language):
            parts["facts_are_sentences"] = 1.0
        return RawScore(value, parts, claims.language)

    def _of_response(self, name: str, values: Numbers) -> float:
        if self._summary == "mean":
            return round(float(values.mean()), _DIGITS)
        return round(float(values.max() if name in _WORSE else values.min()), _DIGITS)

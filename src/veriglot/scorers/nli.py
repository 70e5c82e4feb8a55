"""The NLI metrics of kang: how far the evidence entails or contradicts what a response says."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from veriglot.entailment import claims_of, hold, load_entailment, premises_of
from veriglot.entailment.reading import check_reading, declared_for, has_rules
from veriglot.errors import UnknownNameError, UsageError
from veriglot.provenance import digest, signature
from veriglot.records import Direction, Score, Status
from veriglot.scorers.against_evidence import language_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.entailment import Claim, Entailment, Premise, Support
    from veriglot.entailment.reading import Level
    from veriglot.records import Sample

__all__ = ["NLI", "ClaimScore"]

Value = Literal["ent", "con", "diff", "unv"]
Summary = Literal["mean", "worst"]

_RULE = 1  # how claims and premises are made; rises when a score may change
_DIGITS = 6
_WORSE = {"con", "unv"}


@dataclass(frozen=True)
class ClaimScore:
    """The four metrics of one sentence or fact.

    Attributes:
        parts: its own places in the response, half-open code point ranges.
        kind: `sentence`, or the kind of fact.
        ent: the greatest entailment by any premise, 0 to 1.
        con: the greatest contradiction, 0 to 1.
        diff: `ent - con`, -1 to 1.
        unv: `1 - max(ent, con)`, 0 to 1.
    """

    parts: tuple[tuple[int, int], ...]
    kind: str
    ent: float
    con: float
    diff: float
    unv: float


@dataclass(frozen=True)
class _Held:
    sample: Sample
    language: str
    claims: list[Claim]
    premises: list[Premise]


@dataclass(frozen=True)
class _Unmeasured:
    status: Status
    reason: str


class NLI:
    """ENT, CON, DIFF or UNV of a response: SummaC's zero-shot method with max, after kang (section 2.2).

    Every claim is held against every premise of the evidence. A response's number is the mean over its claims. For
    kang's pairwise setting name it `pairwise:nli:MODEL`.

    Args:
        model: a folder, a name that `veriglot models` lists, or a name on the hub; or an entailment model.
        value: `ent` or `diff` (higher is better), `con` or `unv` (higher is worse).
        claim: `sentence` or `fact`: what of the response is held against the evidence, piece by piece.
        summary: `mean` over the claims, or the `worst` of them.
        premise_sentences: sentences of the evidence that make a premise; 0 for whole passages.
        question: whether the sample's question stands before each claim, for answers that say little by themselves.
        options: of the entailment model; see `veriglot.entailment.load_entailment`.

    Raises:
        MissingExtraError: the packages of the model are not installed.
        WeightsError: it cannot be loaded, or its labels do not say what they mean.
        UnknownNameError: no such value, claim or summary.
        UsageError: an option that makes no sense, or `con` or `diff` of a model that tells no contradiction apart.
    """

    one_process = True  # it holds a network, which takes every core by itself

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
        check_reading(claim, premise_sentences)
        self._options: dict[str, Any] = {
            "model": model, "value": value, "claim": claim, "summary": summary,
            "premise_sentences": premise_sentences, "question": question, **options,
        }  # fmt: skip
        self._value, self._summary = value, summary
        self._level = cast("Level", claim)
        self._size = premise_sentences
        self._question = question
        self._entailment = load_entailment(model, **options) if isinstance(model, str | Path) else model
        self.direction = Direction.HIGHER_IS_WORSE if value in _WORSE else Direction.HIGHER_IS_BETTER
        if "contradiction" not in self._entailment.labels and value in {"con", "diff"}:
            raise UsageError(
                f"The model tells {' and '.join(self._entailment.labels)} apart, and {value!r} needs contradiction.",
                remedy="Take value 'ent', or a model with three labels.",
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """A scorer travels to another process as its options; the model is loaded there."""
        return _remade, (self._options,)

    @cached_property
    def name(self) -> str:
        """`nli-` and the value, the version of the rules, and the beginning of the model's revision."""
        return f"nli-{self._value}@{_RULE}-{self._entailment.revision[:8]}"

    @cached_property
    def signature(self) -> str:
        """Name, model and settings in one line."""
        return signature(
            scorer=self.name,
            model=digest([self._entailment.signature])[:12],
            claim=self._level,
            summary=self._summary,
            premise=f"sentences-{self._size}" if self._size else "passage",
            question="before each claim" if self._question else None,
        )

    def score(self, samples: Sequence[Sample]) -> list[Score]:
        """One score a sample, in order.

        `parts` holds all four metrics (only `ent` and `unv` for a model without contradiction), the number of `claims`
        and `premises`, and `facts_are_sentences` (1) where facts were asked for in a language without rules for them.
        Without evidence the status is `no_evidence`; where the language cannot be told, or is none that the model is
        declared for, `unsupported_language`.
        """
        return [self._score(sample, found) for sample, found in zip(samples, self._measured(samples), strict=True)]

    def claims(self, samples: Sequence[Sample]) -> list[list[ClaimScore] | None]:
        """The metrics of each sentence or fact of each sample, in order; None for a sample that is not scored."""
        return [None if isinstance(found, _Unmeasured) else _claim_scores(*found) for found in self._measured(samples)]

    def _measured(self, samples: Sequence[Sample]) -> list[tuple[_Held, Support] | _Unmeasured]:
        read = [self._read(sample) for sample in samples]
        held = [one for one in read if isinstance(one, _Held)]
        supports = iter(self._supports(held))
        found: list[tuple[_Held, Support] | _Unmeasured] = []
        for one in read:
            support = next(supports) if isinstance(one, _Held) else one
            found.append(support if isinstance(support, _Unmeasured) else (cast("_Held", one), support))
        return found

    def _read(self, sample: Sample) -> _Held | _Unmeasured:
        if not any(passage.text.strip() for passage in sample.evidence):
            return _Unmeasured(Status.NO_EVIDENCE, "there is no evidence to hold the response against")
        if not sample.response.strip():
            return _Unmeasured(Status.NOTHING_TO_COMPARE, "the response is empty")
        try:
            tag = language_of(sample)
            if tag is None:
                reason = "the language of the response was not recognised; give it as `language`"
                return _Unmeasured(Status.UNSUPPORTED_LANGUAGE, reason)
            if not declared_for(self._entailment, tag):
                reason = f"the model is declared for {', '.join(sorted(self._entailment.languages))} only"
                return _Unmeasured(Status.UNSUPPORTED_LANGUAGE, reason)
            claims = claims_of(sample.response, tag, self._level, sample.question if self._question else None)
            premises = premises_of(sample.evidence, self._size)
        except Exception as error:  # one sample's failure must not lose the batch; it is said, not hidden
            return _failed(error)
        if not premises:
            return _Unmeasured(Status.NO_EVIDENCE, "the evidence holds no word, only marks or symbols")
        if not claims:
            return _Unmeasured(Status.NOTHING_TO_COMPARE, "the response holds no word, only marks or symbols")
        return _Held(sample, tag, claims, premises)

    def _supports(self, held: list[_Held]) -> list[Support | _Unmeasured]:
        """What each sample's claims got; where the batch fails, each by itself, with what failed."""
        tasks = [([claim.text for claim in one.claims], [premise.text for premise in one.premises]) for one in held]
        try:
            return list(hold(self._entailment, tasks))
        except Exception:
            return [self._alone(task) for task in tasks]

    def _alone(self, task: tuple[list[str], list[str]]) -> Support | _Unmeasured:
        try:
            return hold(self._entailment, [task])[0]
        except Exception as error:
            return _failed(error)

    def _score(self, sample: Sample, found: tuple[_Held, Support] | _Unmeasured) -> Score:
        if isinstance(found, _Unmeasured):
            return Score(sample.id, found.status, self.name, reason=found.reason, signature=self.signature)
        held, support = found
        numbers = {"ent": support.entailment, "unv": support.unverified}
        if "contradiction" in self._entailment.labels:
            numbers.update(con=support.contradiction, diff=support.difference)
        parts = {name: self._of_response(name, values) for name, values in numbers.items()}
        value = parts[self._value]
        parts.update(claims=float(len(held.claims)), premises=float(len(held.premises)))
        if self._level == "fact" and not has_rules(held.language):
            parts["facts_are_sentences"] = 1.0
        return Score(
            sample.id, Status.SCORED, self.name, value=value, parts=parts, language=held.language,
            signature=self.signature,
        )  # fmt: skip

    def _of_response(self, name: str, values: NDArray[Any]) -> float:
        if self._summary == "mean":
            return round(float(values.mean()), _DIGITS)
        return round(float(values.max() if name in _WORSE else values.min()), _DIGITS)


def _failed(error: Exception) -> _Unmeasured:
    return _Unmeasured(Status.FAILED, f"{type(error).__name__}: {error}")


def _claim_scores(held: _Held, support: Support) -> list[ClaimScore]:
    columns = (support.entailment, support.contradiction, support.difference, support.unverified)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [ClaimScore(claim.parts, claim.kind, *row) for claim, row in zip(held.claims, rows, strict=True)]


def _remade(options: dict[str, Any]) -> NLI:
    return NLI(**options)

"""What all judges share: a sample's way from questions to opinions to one prediction, whatever the model does."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from veriglot.detectors.admission import Refusal, admitted, without_words
from veriglot.detectors.judge.asking import Asked, Asking, ask
from veriglot.detectors.judge.probabilities import ALTERNATIVES
from veriglot.detectors.judge.prompts import load_prompt
from veriglot.errors import UnknownNameError, UsageError, VeriglotError
from veriglot.llm import Limits, Message, ModelError, Request
from veriglot.provenance import signature
from veriglot.records import Prediction, Status
from veriglot.records.languages import language

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.detectors.grounding.language import Spoken
    from veriglot.detectors.judge.prompts import Prompt
    from veriglot.llm import Client, Reply, Settings
    from veriglot.llm.limits import Spent
    from veriglot.records import JudgedUnit, Sample, Span, Word

__all__ = ["Case", "Judge", "Outcome", "Question", "language_name"]

_HALF = 0.5
_TOO_LONG = re.compile(
    r"context (?:length|window|size)|maximum context|the context of|too many tokens"
    r"|(?:prompt|input|request) is too long",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Question:
    """One question to the model: what is said, and the JSON schema of the answer."""

    text: str
    schema: dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A sample that can be judged.

    Attributes:
        sample: the sample.
        spoken: its language.
        notes: what a reader of the prediction must know.
        state: what a judge finds out of it before it asks.
        questions: what is asked about it.
    """

    sample: Sample
    spoken: Spoken
    notes: tuple[str, ...] = ()
    state: Any = None
    questions: tuple[Question, ...] = ()

    @property
    def language(self) -> str:
        """Name of the language, for a prompt."""
        return language_name(self.spoken.tag)


@dataclass(frozen=True)
class Outcome:
    """What the opinions of one sample come to; see `Prediction` for the attributes."""

    score: float
    spans: tuple[Span, ...]
    confidence: str
    words: tuple[Word, ...] | None = None
    units: tuple[JudgedUnit, ...] | None = None
    notes: tuple[str, ...] = field(default=())


class Judge(ABC):
    """A language model that is asked about each sample. See `docs/judges.md`.

    Args:
        threshold: confidence from which something is marked, 0 to 1; None for the judge's own. A verdict without a
            confidence counts as 0 or 1.
        words: whether predictions carry every word, where its confidence is known.
        prompt: a TOML file of the user's own in place of the shipped prompt.
        options: of `Asking`.

    Raises:
        UsageError: options that make no sense, or no model.
        InputError: the prompt cannot be used.
        MissingExtraError: the client's packages are not installed.
    """

    kind: ClassVar[str]
    taxonomy: str
    prompt_name: ClassVar[str]
    fields: ClassVar[frozenset[str]]

    def __init__(
        self, *, threshold: float | None = None, words: bool = False, prompt: str | None = None, **options: Any
    ) -> None:
        self._options = {"threshold": threshold, "words": words, "prompt": prompt, **options}
        known = Asking.__dataclass_fields__
        for name in options:
            if name not in known:
                raise UnknownNameError(f"option of the judge {self.kind!r}", name, [*known, *self._own_options()])
        self._asking = Asking(**options)
        self._threshold = self._default_threshold() if threshold is None else threshold
        self._words = words
        self._prompt: Prompt = load_prompt(self.prompt_name, self.fields, prompt)
        self._settings = self._asking.generation(self._prompt.max_tokens)
        self._limits = Limits(self._asking.max_calls, self._asking.max_tokens_spent)
        self._client: Client = self._asking.connected(self._limits)

    @classmethod
    def _own_options(cls) -> tuple[str, ...]:
        """The options that only this judge has."""
        return ("threshold", "words", "prompt")

    def _default_threshold(self) -> float:
        """The threshold where the user sets none."""
        return _HALF

    def __reduce__(self) -> tuple[Any, ...]:
        """A judge travels to another process as its options, and connects there."""
        if not isinstance(self._asking.client, str):
            raise UsageError(
                "A judge with a client of its own cannot travel to another process.",
                remedy="Name the client and give its options, or use one process.",
            )
        return _remade, (type(self), self._options)

    @property
    def spent(self) -> Spent:
        """What its calls cost so far; what a cache held costs nothing, and a client made before is not counted."""
        return self._limits.spent

    @cached_property
    def name(self) -> str:
        """The kind of judge, the version of its prompt, and the model: `judge:spans@1+some-model`."""
        model = re.sub(r"\s+", "-", self._asking.model_name.rstrip("/").rpartition("/")[2])
        return f"judge:{self.kind}@{self._prompt.version}+{model}"

    @property
    def threshold(self) -> float:
        """Confidence from which something is marked."""
        return self._threshold

    @cached_property
    def signature(self) -> str:
        """Name, prompt, model, client and settings in one line; the client as a digest of its own signature."""
        return signature(
            detector=self.name,
            prompt=self._prompt.signature,
            **self._parts(),
            **self._asking.parts(self._client, self._prompt.max_tokens),
            threshold=self._threshold,
        )

    def _parts(self) -> dict[str, object]:
        """What else the signature holds."""
        return {}

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        """Judge a batch, several calls at a time: one prediction per sample, in order. No sample makes it raise."""
        found = self._prepared([self._started(sample) for sample in samples])
        asked = [self._with_questions(case) if isinstance(case, Case) else case for case in found]
        cases = [case for case in asked if isinstance(case, Case)]
        answers = iter(self._asked([case.questions for case in cases]))
        return [case if isinstance(case, Prediction) else self._judged(case, next(answers)) for case in asked]

    def _started(self, sample: Sample) -> Case | Prediction:
        try:
            spoken = admitted(sample)
            if not isinstance(spoken, Refusal) and not _has_words(sample):
                spoken = without_words(sample)
        except Exception as error:  # one sample's failure must not lose the batch; it is said, not hidden
            return self._failed(sample, [error])
        if isinstance(spoken, Refusal):
            return self._not_scored(sample, spoken.status, spoken.reason)
        return Case(sample, spoken, spoken.notes)

    def _with_questions(self, case: Case) -> Case | Prediction:
        try:
            return replace(case, questions=tuple(self._questions(case)))
        except Exception as error:  # as above
            return self._failed(case.sample, [error])

    def _prepared(self, found: list[Case | Prediction]) -> list[Case | Prediction]:
        """The cases with what has to be known before the questions; a judge may ask the model for it."""
        return found

    @abstractmethod
    def _questions(self, case: Case) -> list[Question]:
        """What is asked about a case, at least one question."""

    @abstractmethod
    def _opinion(self, case: Case, replies: list[Reply]) -> Any:
        """What the replies to all questions of a case say.

        Raises:
            ModelError: they cannot be read.
        """

    @abstractmethod
    def _outcome(self, case: Case, opinions: list[Any]) -> Outcome:
        """What one opinion, or several, come to.

        Raises:
            VeriglotError: nothing that can be relied on.
        """

    def _asked(
        self,
        questions: Sequence[Sequence[Question]],
        seeds: Sequence[int | None] = (),
        settings: Settings | None = None,
    ) -> list[list[list[Asked]]]:
        """The answers, per case, sample and question; all of the batch is asked together."""
        seeds = seeds or self._asking.seeds
        requests = [
            self._request(one, seed, settings or self._settings)
            for asked in questions
            for seed in seeds
            for one in asked
        ]
        answers = iter(ask(self._client, requests, self._asking.jobs))
        return [[[next(answers) for _ in asked] for _ in seeds] for asked in questions]

    def _request(self, question: Question, seed: int | None, settings: Settings) -> Request:
        said = [Message("user", question.text)]
        if self._prompt.system:  # not every model has that role, so the shipped prompts do without
            said.insert(0, Message("system", self._prompt.system.strip()))
        return Request(
            self._asking.model_name,
            tuple(said),
            seed=seed,
            settings=settings,
            schema=question.schema if self._asking.schema else None,
            logprobs=self._asking.probabilities,
            alternatives=ALTERNATIVES if self._asking.probabilities else 0,
        )

    def _judged(self, case: Case, asked: list[list[Asked]]) -> Prediction:
        opinions, errors = self._opinions(case, asked)
        if 2 * len(opinions) <= len(asked):
            return self._failed(case.sample, errors)
        if errors:
            case = replace(case, notes=(*case.notes, f"samples:{len(opinions)} of {len(asked)}"))
        try:
            return self._scored(case, self._outcome(case, opinions))
        except Exception as error:  # one sample's failure must not lose the batch; it is said, not hidden
            return self._failed(case.sample, [error])

    def _opinions(self, case: Case, asked: list[list[Asked]]) -> tuple[list[Any], list[Exception]]:
        opinions: list[Any] = []
        errors: list[Exception] = []
        for answers in asked:
            missing = next((answer.error for answer in answers if answer.error is not None), None)
            if missing is not None:
                errors.append(missing)
                continue
            try:
                opinions.append(self._opinion(case, [answer.reply for answer in answers if answer.reply is not None]))
            except Exception as error:  # as above
                errors.append(error)
        return opinions, errors

    def _scored(self, case: Case, outcome: Outcome) -> Prediction:
        notes = (*case.notes, *outcome.notes, f"confidence:{outcome.confidence}")
        if outcome.confidence != "verdict":
            notes = (*notes, "calibration:none")
        return Prediction(
            id=case.sample.id,
            status=Status.SCORED,
            detector=self.name,
            score=outcome.score,
            spans=outcome.spans,
            words=outcome.words if self._words else None,
            language=case.spoken.tag,
            notes=notes,
            signature=self.signature,
            units=outcome.units,
        )

    def _failed(self, sample: Sample, errors: Sequence[Exception]) -> Prediction:
        first = errors[0]
        said = str(first) if isinstance(first, VeriglotError) else f"{type(first).__name__}: {first}"
        others = f" (and {len(errors) - 1} further samples failed)" if len(errors) > 1 else ""
        too_long = isinstance(first, ModelError) and _TOO_LONG.search(first.message) is not None
        return self._not_scored(sample, Status.TOO_LONG if too_long else Status.FAILED, said + others)

    def _not_scored(self, sample: Sample, status: Status, reason: str) -> Prediction:
        return Prediction(
            id=sample.id, status=status, detector=self.name, reason=reason, signature=self.signature,
            language=sample.language,
        )  # fmt: skip


def _has_words(sample: Sample) -> bool:
    """Whether both texts say anything: marks and symbols alone cannot be judged."""
    passages = (any(map(str.isalnum, passage.text)) for passage in sample.evidence)
    return any(map(str.isalnum, sample.response)) and any(passages)


def language_name(tag: str) -> str:
    """The English name of a language for a prompt; the tag itself where the language table lacks it."""
    try:
        return language(tag).name
    except UnknownNameError:
        return tag


def _remade(kind: type[Judge], options: dict[str, Any]) -> Judge:
    return kind(**options)

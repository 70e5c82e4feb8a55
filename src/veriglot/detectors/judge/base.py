"""Shared by judges: prompts, requests to the model, and aggregation of its replies into a prediction."""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from veriglot.detectors.judge.answers import resolve_overlaps
from veriglot.errors import UnknownNameError, UsageError, VeriglotError
from veriglot.judging.base import BaseDetector, NotScored, ResolvedLanguage, check_sample, no_words
from veriglot.llm.client import Answer, Client, Message, ModelError, Reply, Request, Settings, ask_all
from veriglot.llm.client import preset as preset_settings
from veriglot.llm.registry import Limits, connect
from veriglot.plugins import read_package_data
from veriglot.records import JudgedUnit, Prediction, Sample, Span, Status, Word
from veriglot.records.languages import language_name
from veriglot.records.settings import StrictRecord, check_placeholders, errors_of, read_toml_records
from veriglot.signatures import digest, signature

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from veriglot.storage.checkpoint import Usage

__all__ = ["Case", "Judge", "Outcome", "load_prompt", "tagged"]


_NEEDED = frozenset({"evidence", "facts", "response"})  # a prompt needs these of its fields


class Prompt(StrictRecord):
    """A prompt template."""

    user: str  # user message with `{fields}`; literal braces are doubled
    version: str = "own"  # as stated in the file
    max_tokens: int = 0  # most tokens of a reply by default; 0 for that of the package's prompt
    system: str = ""  # system message, without fields; empty for none
    name: str = ""  # name of the file, without suffix

    @property
    def signature(self) -> str:
        """Name, version and digest of the text, such as `spans@1.0f3a...`."""
        return f"{self.name}@{self.version}.{digest([self.system, self.user])[:12]}"

    def filled(self, **fields: str) -> str:
        """The text with its fields filled in. Values may contain braces."""
        return self.user.strip().format(**fields)


def load_prompt(name: str, fields: frozenset[str], own: str | None) -> Prompt:
    """A prompt of the package, or the user's own.

    Args:
        name: of a file in `prompts/`.
        fields: its placeholders. Those for evidence, and for response or facts, are required.
        own: a TOML file with `user`, and optionally `version`, `max_tokens` and `system`.

    Raises:
        InputError: the file cannot be read or has an unknown key; or it names missing or unknown placeholders.
    """
    default = read_package_data(__package__, f"prompts/{name}.toml", Prompt)
    if own is None:
        return msgspec.structs.replace(default, name=name)
    path = Path(own)
    with errors_of(path):
        prompt = read_toml_records(path, Prompt, "prompt")
        check_placeholders(prompt.user, fields, fields & _NEEDED, field="user")
    return msgspec.structs.replace(prompt, name=path.stem, max_tokens=prompt.max_tokens or default.max_tokens)


def tagged(tag: str, text: str, *others: str) -> str:
    """A text between tags that occur in no text of the prompt, so that no text can close the tag of another."""
    number, name = 1, tag
    while any(f"{name}>" in known for known in (text, *others)):
        number += 1
        name = f"{tag}-{number}"
    return f"<{name}>\n{text}\n</{name}>"


@dataclass(frozen=True, kw_only=True)
class _ModelOptions:
    """Options of the model: client, generation and spending limits."""

    model: str | None = None
    client: str | Client = "openai"
    url: str | None = None
    key: str | None = None
    rules: str | None = None
    client_options: Mapping[str, Any] = field(default_factory=dict)
    cache: str | None = None
    max_calls: int | None = None
    max_tokens_spent: int | None = None
    jobs: int = 8
    samples: int = 1
    probabilities: bool = False
    seed: int | None = None
    temperature: float | str | None = None
    max_tokens: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    preset: str | None = None
    schema: bool = True

    def __post_init__(self) -> None:
        if not self.model and self.client != "scripted":
            raise UsageError("No model is named.", remedy="Set model=NAME (--set), as its server names it.")
        if self.samples < 1 or self.jobs < 1:
            raise UsageError("The options samples and jobs are at least 1.")
        if isinstance(self.temperature, str) and self.temperature != "server":
            raise UsageError(f"The temperature is a number or 'server', not {self.temperature!r}.")
        if self.generation(1).temperature == 0 and self.samples > 1:
            raise UsageError(
                f"{self.samples} samples at temperature 0 are the same one.", remedy="Leave the temperature out."
            )
        if self.client == "openai" and self.url is None and "base_url" not in self.client_options:
            raise UsageError("No server is named.", remedy="Set the option url to http://HOST:PORT/v1.")
        if self.client == "scripted" and self.rules is None:
            raise UsageError("The scripted client needs its rules.", remedy="Set the option rules to their file.")

    @property
    def model_name(self) -> str:
        """The name of the model in requests."""
        return str(self.model or "scripted")

    @property
    def seeds(self) -> tuple[int | None, ...]:
        """The seed of each sample."""
        if self.samples == 1:
            return (self.seed,)
        return tuple((self.seed or 0) + n for n in range(self.samples))

    def connected(self, limits: Limits) -> Client:
        """The client, with cache and limits; a given client object keeps its own."""
        if not isinstance(self.client, str):
            return self.client
        given = {"base_url": self.url, "key": self.key, "rules": self.rules}
        options = {name: value for name, value in given.items() if value is not None} | dict(self.client_options)
        if self.client == "transformers":
            options.setdefault("model", self.model)
        return connect(self.client, cache=self.cache, limits=limits, **options)

    def generation(self, bound: int) -> Settings:
        """Generation settings; `bound` is the limit of reply tokens if the user set none."""
        own = {"max_tokens": self.max_tokens, "temperature": self._temperature()}
        given = {name: value for name, value in own.items() if value is not None} | dict(self.settings)
        try:
            settings = msgspec.convert(given, Settings)
        except msgspec.ValidationError as error:
            raise UsageError(f"A generation setting cannot be used: {error}.") from error
        if self.preset is not None:
            settings = settings.with_defaults(preset_settings(self.preset))
        return settings.with_defaults(Settings(max_tokens=bound))

    def _temperature(self) -> float | None:
        if isinstance(self.temperature, str) or "temperature" in self.settings:
            return None
        if self.temperature is not None:
            return self.temperature
        if self.preset is not None and preset_settings(self.preset).temperature is not None:
            return None
        return 0.0 if self.samples == 1 else 1.0

    def parts(self, client: Client, bound: int) -> dict[str, object]:
        """The options for a judge's signature."""
        return {
            "model": self.model_name,
            "client": digest([client.signature])[:12],
            "settings": msgspec.json.encode(self.generation(bound), order="deterministic").decode(),
            "samples": self.samples if self.samples > 1 else None,
            "seed": self.seeds[0],
            "probabilities": "tokens" if self.probabilities else None,
            "schema": None if self.schema else "words",
        }


class _FailingByRequest(Client):
    """Wraps a client: every error is that of one request, except those that would stop all other requests too."""

    def __init__(self, client: Client) -> None:
        self.name, self.signature = client.name, client.signature
        self._client = client

    def ask(self, request: Request) -> Reply:
        try:
            return self._client.ask(request)
        except ModelError:
            raise
        except VeriglotError as error:
            raise ModelError(error.message, remedy=error.remedy) from error
        except Exception as error:  # clients of other packages may raise anything
            raise ModelError(f"The client {self.name} raised {type(error).__name__}: {error}") from error


def _answers(client: Client, requests: Sequence[Request], jobs: int) -> Iterator[Answer]:
    """The answers to all requests, in order, with several requests at a time; never raises.

    If every further request would fail too (a refused key, a spending limit, a server that is down), all requests
    without an answer get that error.
    """
    done = 0
    try:
        for answer in ask_all(_FailingByRequest(client), requests, jobs=max(1, min(jobs, len(requests)))):
            done += 1
            yield answer
    except ModelError as error:
        yield from (Answer(request, error=error) for request in requests[done:])


_HALF = 0.5
_ALTERNATIVES = 5  # top log probabilities per token: as many as every server gives
_TOO_LONG = re.compile(
    r"context (?:length|window|size)|maximum context|the context of|too many tokens"
    r"|(?:prompt|input|request) is too long",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Case:
    """A sample that can be judged.

    Attributes:
        sample: the sample.
        resolved: its language.
        notes: for the prediction.
        state: what a judge prepares before its questions, such as claims.
        questions: the requests about it.
    """

    sample: Sample
    resolved: ResolvedLanguage
    notes: tuple[str, ...] = ()
    state: Any = None
    questions: Sequence[Request] = ()


@dataclass(frozen=True)
class Outcome:
    """The aggregate of the opinions on a sample: see `Prediction`; `marks` are spans that may still overlap."""

    score: float
    marks: Sequence[Span]
    confidence: str
    words: tuple[Word, ...] | None = None
    units: tuple[JudgedUnit, ...] | None = None
    notes: tuple[str, ...] = field(default=())


_Asked = tuple[Case, list[list[Answer]]]  # a case, and its answers by sample and question


class Judge(BaseDetector[Case, _Asked]):
    """A detector that asks a language model about each sample. See `docs/judges.md`.

    Args:
        threshold: confidence from which something is marked, 0 to 1; None for the judge's default. A verdict without
            a confidence counts as 0 or 1.
        words: whether predictions include every word, if its confidence is known.
        prompt: a TOML file with a prompt that replaces the package's.
        model: its name on the server; for the client `transformers` its folder or its name on the hub.
        client: `openai` (any server with OpenAI's API), `transformers` (in this process), `scripted` (replies by
            rules), the name of another package's client, or a client object.
        url: address of the server, with the version, such as `http://127.0.0.1:8000/v1`.
        key: name of the environment variable with the server's API key; None for no key.
        rules: file of rules for the client `scripted`.
        client_options: further options of the client, such as `{"rate": 2}`, as a mapping or as JSON text.
        cache: folder that caches finished calls, so that none is paid twice; None for no cache.
        max_calls: most paid calls; None for no limit.
        max_tokens_spent: most tokens of prompts and replies together; None for no limit.
        jobs: number of parallel calls.
        samples: number of replies to each question, with consecutive seeds. From 2 on, confidences are shares of the
            replies.
        probabilities: request log probabilities, and compute confidences from those of the label tokens.
        seed: of the first call; None leaves it to the server if `samples` is 1.
        temperature: at least 0, or `server` to leave it to the server; None for 0 with one sample, and for 1 with
            several, whose shares then estimate the model's own probability.
        max_tokens: most tokens of a reply; None for the prompt's limit.
        settings: further generation settings, such as `{"top_p": 1.0}`, which override the preset; a mapping or JSON.
        preset: name of generation settings, which all other options override.
        schema: whether to send the form of the answer as a JSON schema, besides the description in the prompt.

    Raises:
        UsageError: no model, or options that exclude each other or are out of range.
        InputError: the prompt is invalid.
        MissingExtraError: the client's packages are not installed.
    """

    kind: ClassVar[str]
    fields: ClassVar[frozenset[str]]

    def __init__(
        self, *, threshold: float | None = None, words: bool = False, prompt: str | None = None, **options: Any
    ) -> None:
        known = _ModelOptions.__dataclass_fields__
        for name in options:
            if name not in known:
                makers = [vars(kind)["__init__"] for kind in type(self).__mro__ if "__init__" in vars(kind)]
                own = {option for maker in makers for option in getattr(maker, "__kwdefaults__", None) or ()}
                raise UnknownNameError(f"option of the judge {self.kind!r}", name, {*known, *own})
            if name in ("client_options", "settings") and isinstance(options[name], str):
                try:
                    options[name] = msgspec.json.decode(options[name], type=dict[str, Any])
                except msgspec.MsgspecError as error:
                    raise UsageError(f"The option {name} is no JSON object: {options[name]!r}.") from error
        self._model_options = _ModelOptions(**options)
        super().__init__(self._default_threshold() if threshold is None else threshold, words=words)
        self._prompt = load_prompt(self.kind.replace("-", "_"), self.fields, prompt)
        self._limits = Limits(self._model_options.max_calls, self._model_options.max_tokens_spent)
        self._client = self._model_options.connected(self._limits)

    def _default_threshold(self) -> float:
        """The default threshold."""
        return _HALF

    def __reduce__(self) -> tuple[Any, ...]:
        """A judge is pickled as its options and connects in the other process."""
        if not isinstance(self._model_options.client, str):
            raise UsageError(
                "A judge with a client object cannot be sent to another process.",
                remedy="Name the client and give its options, or use one process.",
            )
        return super().__reduce__()

    @property
    def spent(self) -> Usage:
        """The cost of its calls so far; cached calls cost nothing, and a given client object is not counted."""
        return self._limits.spent

    @cached_property
    def name(self) -> str:
        """The kind of judge, the version of its prompt, and the model: `judge:spans@1+some-model`."""
        model = re.sub(r"\s+", "-", self._model_options.model_name.rstrip("/").rpartition("/")[2])
        return f"judge:{self.kind}@{self._prompt.version}+{model}"

    @cached_property
    def signature(self) -> str:
        """Name, prompt, model, client and settings in one line; the client as a digest of its own signature."""
        return signature(
            detector=self.name,
            prompt=self._prompt.signature,
            **self._parts(),
            **self._model_options.parts(self._client, self._prompt.max_tokens),
            threshold=self._threshold,
        )

    def _parts(self) -> dict[str, object]:
        """Further parts of the signature."""
        return {}

    def _plan(self, sample: Sample) -> Case | NotScored:
        resolved = check_sample(sample)
        if isinstance(resolved, NotScored):
            return resolved
        for text in (sample.response, "".join(passage.text for passage in sample.evidence)):
            if not any(map(str.isalnum, text)):
                return no_words(sample)
        return Case(sample, resolved, resolved.notes)

    def _run(self, plans: Sequence[tuple[Sample, Case]]) -> Iterator[_Asked | NotScored]:
        def asking(case: Case) -> Case:
            return replace(case, questions=self._questions(case))

        prepared = self._prepared([case for _, case in plans])
        cases = [self._guarded(asking, case) if isinstance(case, Case) else case for case in prepared]
        answers = iter(self._asked([case.questions for case in cases if isinstance(case, Case)]))
        return ((case, next(answers)) if isinstance(case, Case) else case for case in cases)

    def _prepared(self, cases: list[Case]) -> Sequence[Case | NotScored]:
        """Hook to set `state` of the cases before the questions; a judge may ask the model for it."""
        return cases

    @abstractmethod
    def _questions(self, case: Case) -> list[Request]:
        """The questions about a case, at least one."""

    @abstractmethod
    def _opinion(self, case: Case, replies: list[Reply]) -> Any:
        """Parse the replies to all questions of a case.

        Raises:
            ModelError: a reply cannot be parsed.
        """

    @abstractmethod
    def _outcome(self, case: Case, opinions: list[Any]) -> Outcome:
        """Aggregate the opinions, one for each sample.

        Raises:
            VeriglotError: they give no reliable result.
        """

    def _asked(
        self, questions: Sequence[Sequence[Request]], seeds: Sequence[int | None] = ()
    ) -> list[list[list[Answer]]]:
        """The answers by case, sample and question; the whole batch is sent together."""
        seeds = seeds or self._model_options.seeds
        requests = [
            msgspec.structs.replace(question, seed=seed) for asked in questions for seed in seeds for question in asked
        ]
        answers = iter([*_answers(self._client, requests, self._model_options.jobs)])
        return [[[next(answers) for _ in asked] for _ in seeds] for asked in questions]

    def _question(self, text: str, schema: dict[str, Any], prompt: Prompt | None = None) -> Request:
        """A request with a text and the JSON schema of its answer; the limit of tokens is that of `prompt`."""
        messages = [Message("user", text)]
        if self._prompt.system:  # not every model supports this role, so the package's prompts do not use it
            messages.insert(0, Message("system", self._prompt.system.strip()))
        return Request(
            self._model_options.model_name,
            tuple(messages),
            settings=self._model_options.generation((prompt or self._prompt).max_tokens),
            schema=schema if self._model_options.schema else None,
            logprobs=self._model_options.probabilities,
            alternatives=_ALTERNATIVES if self._model_options.probabilities else 0,
        )

    def _filled(
        self, case: Case, passages: Iterable[tuple[str, str]], *, tags: tuple[str, str] = ("evidence", "response"),
        others: Sequence[str] = (), **fields: str,
    ) -> str:  # fmt: skip
        """The filled prompt for a case, with its texts between tags.

        Args:
            case: the case.
            passages: title (or an empty string) and text of each passage.
            tags: names of the tags for a passage and for the response.
            others: further texts of the prompt.
            fields: fields besides language, question, evidence and response.
        """
        sample, question = case.sample, case.sample.question or ""
        evidence = sample.passages
        texts = [f"{title}\n\n{text}" if title else text for title, text in passages]
        asked = tagged("question", question, sample.response, *evidence) + "\n\n" if question.strip() else ""
        return self._prompt.filled(
            language=language_name(case.resolved.tag),
            question=asked,
            evidence="\n\n".join(tagged(tags[0], text, *texts, sample.response, question, *others) for text in texts),
            response=tagged(tags[1], sample.response, *evidence),
            **fields,
        )

    def _scored(self, sample: Sample, plan: Case, result: _Asked) -> Prediction | NotScored:  # noqa: ARG002
        case, asked = result
        opinions: list[Any] = []
        errors: list[Exception] = []
        for answers in asked:
            missing = next((answer.error for answer in answers if answer.error is not None), None)
            if missing is not None:
                errors.append(missing)
                continue
            try:
                opinions.append(self._opinion(case, [answer.reply for answer in answers if answer.reply is not None]))
            except Exception as error:  # `_failed` reports it
                errors.append(error)
        if 2 * len(opinions) <= len(asked):
            return self._failed(errors)
        notes = [*case.notes, *([f"samples:{len(opinions)} of {len(asked)}"] if errors else [])]
        outcome = self._outcome(replace(case, notes=tuple(notes)), opinions)
        notes += [*outcome.notes, f"confidence:{outcome.confidence}"]
        if outcome.confidence != "verdict":
            notes.append("calibration:none")
        return self._prediction(
            sample,
            score=outcome.score,
            spans=resolve_overlaps(sample.response, outcome.marks)[0],
            words=outcome.words if self._words else None,
            language=case.resolved.tag,
            notes=notes,
            units=outcome.units,
        )

    def _failure(self, error: Exception) -> NotScored:
        return self._failed([error])

    def _failed(self, errors: Sequence[Exception]) -> NotScored:
        first = errors[0]
        reason = str(first) if isinstance(first, VeriglotError) else f"{type(first).__name__}: {first}"
        others = f" (and {len(errors) - 1} further samples failed)" if len(errors) > 1 else ""
        too_long = isinstance(first, ModelError) and _TOO_LONG.search(first.message) is not None
        return NotScored(Status.TOO_LONG if too_long else Status.FAILED, reason + others)

"""Clients of language models: requests, settings, replies, usage, and concurrent calls."""

from __future__ import annotations

import json
import math
import queue
import re
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from concurrent.futures import Future
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import msgspec
from msgspec.structs import replace

from veriglot.errors import UnknownNameError, UsageError, VeriglotError
from veriglot.plugins import read_package_data
from veriglot.records.settings import Record, StrictRecord
from veriglot.signatures import digest
from veriglot.storage.checkpoint import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "Answer",
    "AnswerError",
    "Client",
    "Message",
    "ModelError",
    "Reply",
    "Request",
    "Settings",
    "Token",
    "ask_all",
    "estimate_tokens",
    "preset",
    "presets",
    "schema_of",
    "split_thoughts",
]

T = TypeVar("T")


class ModelError(VeriglotError):
    """A model call without a reply.

    Attributes:
        retryable: whether the same request may succeed later.
        fatal: whether every other request would fail too (a refused key, an unknown model), so that it is useless to
            continue.
        status: the HTTP status if there was one, otherwise None.
    """

    def __init__(
        self, message: str, remedy: str = "", *, retryable: bool = False, fatal: bool = False, status: int | None = None
    ) -> None:
        super().__init__(message, remedy, retryable=retryable)
        self.fatal = fatal
        self.status = status


class AnswerError(ModelError):
    """A reply that does not have the requested form: not JSON, or not of the schema."""


# Requests and replies.


_KEY_VERSION = "1"
_EXCERPT = 200
_BOUNDS = read_package_data("veriglot.llm", "bounds.toml", dict[str, tuple[int | float, int | float, bool]])


class Message(Record):
    """One turn of a conversation.

    Attributes:
        role: the speaker.
        content: the text.
    """

    role: Literal["system", "user", "assistant"]
    content: str


class Settings(StrictRecord, omit_defaults=True):
    """Generation settings. None is the default of the server, or of the model's own generation configuration.

    Attributes:
        max_tokens: maximum tokens of a reply, at least 1.
        temperature: at least 0; 0 is greedy decoding.
        top_p: share of the probability mass, in (0, 1].
        top_k: number of candidates, at least 1 (0 or -1 for all, depending on the server).
        min_p: share of the most likely candidate's probability, 0 to 1.
        typical_p: share of the mass of locally typical candidates, in (0, 1].
        repetition_penalty: above 0; 1 for none.
        frequency_penalty: -2 to 2; 0 for none.
        presence_penalty: -2 to 2; 0 for none.
        stop: texts that end the reply, and are not part of it.
        do_sample: sample (True) or decode greedily (False).
        extra: further parameters of a server or library, sent unchanged.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repetition_penalty: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    stop: tuple[str, ...] = ()
    do_sample: bool | None = None
    extra: dict[str, Any] = {}

    def __post_init__(self) -> None:
        for name, (low, high, included) in _BOUNDS.items():
            value = getattr(self, name)
            if value is not None and (not low <= value <= high or (value == low and not included)):
                lower = f"at least {low}" if included else f"above {low}"
                upper = "" if high == math.inf else f" and at most {high}"
                raise ValueError(f"{name} is {value}; it has to be {lower}{upper}")

    def given(self) -> dict[str, Any]:
        """The settings that are not None, without `extra`."""
        pairs = ((name, getattr(self, name)) for name in self.__struct_fields__ if name != "extra")
        return {name: value for name, value in pairs if value is not None and value != ()}

    def with_defaults(self, below: Settings) -> Settings:
        """These settings, with those of `below` as defaults."""
        return Settings(**(below.given() | self.given()), extra=below.extra | self.extra)


# Named settings, as used in papers.


class _Preset(StrictRecord):
    settings: Settings
    family: str
    source: str


@cache
def presets() -> dict[str, _Preset]:
    """Every preset by its name."""
    return read_package_data("veriglot.llm", "presets.json", dict[str, _Preset])


def preset(name: str) -> Settings:
    """The settings of a preset.

    Raises:
        UnknownNameError: no such preset; the error suggests the most similar ones.
    """
    try:
        return presets()[name].settings
    except KeyError:
        raise UnknownNameError("preset", name, presets()) from None


class Request(Record, omit_defaults=True):
    """One request to one model.

    Attributes:
        model: the model, as its server names it.
        messages: a conversation, for chat models.
        prompt: a text to complete; exactly one of `messages` and `prompt` is set.
        seed: for the random numbers; the same request with the same seed is the same call, and is paid once. For
            several samples, use several seeds.
        settings: how to generate.
        schema: a JSON schema for the answer, or None.
        logprobs: whether to return the log probability of each token.
        alternatives: number of most likely tokens to return at each position, with `logprobs`; 0 for none.
    """

    model: str
    messages: tuple[Message, ...] = ()
    prompt: str | None = None
    seed: int | None = None
    settings: Settings = Settings()
    schema: dict[str, Any] | None = None
    logprobs: bool = False
    alternatives: int = 0

    def __post_init__(self) -> None:
        if bool(self.messages) == (self.prompt is not None):
            raise ValueError("a request has either messages or a prompt")

    def key(self, signature: str) -> str:
        """The key of the call in the cache and for a gateway (`Idempotency-Key`), from the client and the request."""
        return digest([_KEY_VERSION, signature, msgspec.json.encode(self, order="deterministic")])

    @property
    def text(self) -> str:
        """The whole input: the prompt, or the messages joined by line breaks."""
        return self.prompt if self.prompt is not None else "\n".join(message.content for message in self.messages)

    @property
    def tokens(self) -> int:
        """Estimated number of input tokens, see `estimate_tokens`."""
        return estimate_tokens(self.text) + _TOKENS_A_MESSAGE * len(self.messages)

    def in_words(self) -> Request:
        """The same with its schema, if any, as text: in the user's last message, or after the prompt."""
        if self.schema is None:
            return self
        schema = json.dumps(self.schema, ensure_ascii=False, sort_keys=True)
        wish = f"\n\nAnswer with one JSON value that follows this JSON schema, and with nothing else:\n{schema}"
        if self.prompt is not None:
            return replace(self, prompt=f"{self.prompt}{wish}\n", schema=None)
        last = max((n for n, message in enumerate(self.messages) if message.role == "user"), default=-1)
        messages = list(self.messages)
        if last < 0:
            messages.append(Message("user", wish.strip()))
        else:
            messages[last] = Message("user", messages[last].content + wish)
        return replace(self, messages=tuple(messages), schema=None)


class Token(Record, array_like=True):
    """A token of a reply.

    Attributes:
        text: as the server writes it.
        logprob: natural logarithm of its probability, at most 0; None if the server did not return it.
        alternatives: the most likely tokens at its position, maybe with itself, with their log probabilities; empty if
            not requested or not returned.
    """

    text: str
    logprob: float | None
    alternatives: tuple[tuple[str, float], ...] = ()


class Reply(Record, omit_defaults=True):
    """The reply of a model.

    Attributes:
        text: the reply, without the prompt.
        finish: why it ended: `stop` (by itself, or at a stop text), `length` (truncated at `max_tokens` or at the end
            of the context), `filter` (blocked by the provider), `unknown`, or the server's own word.
        tokens_in: tokens of the prompt, or None if the server did not return it.
        tokens_out: tokens of the reply, or None.
        logprobs: the tokens with their log probabilities, or None.
        model: the model, as named in the server's answer.
        settings: the parameters that were sent, or used by a local model.
        reasoning: the thoughts of a reasoning model, if the server separates them.
    """

    text: str
    finish: str = "stop"
    tokens_in: int | None = None
    tokens_out: int | None = None
    logprobs: tuple[Token, ...] | None = None
    model: str = ""
    settings: dict[str, Any] = {}
    reasoning: str | None = None

    @property
    def answer(self) -> str:
        """The text after the thoughts of a reasoning model (`split_thoughts`)."""
        return split_thoughts(self.text)[1]

    def usage(self, request: Request) -> Usage:
        """The usage of the call, estimated if the server did not return it."""
        tokens_in = self.tokens_in if self.tokens_in is not None else request.tokens
        return Usage(1, tokens_in, self.tokens_out if self.tokens_out is not None else estimate_tokens(self.text))

    def decode(self, type_: type[T]) -> T:
        """Parse the value in the reply as a type.

        It is JSON, or one JSON value in a fenced block, or one object or array with words before and after it.

        Raises:
            AnswerError: there is no such value, or it has another type; the message says where.
        """
        trouble = ""
        for candidate in _candidates(self.text):
            try:
                return msgspec.json.decode(candidate, type=type_)
            except msgspec.ValidationError as error:
                trouble = trouble or f"its JSON is not as asked: {error}"
            except msgspec.DecodeError:
                continue
        text = " ".join(self.text.split())
        shown = text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]} ..."
        cut = " The reply was cut at its length." if self.finish == "length" else ""
        raise AnswerError(
            f"The reply is not what was asked for: {trouble or 'it holds no JSON'}.{cut} It begins: {shown!r}",
            "Raise max_tokens." if cut else "Ask again with another seed, or ask a model that follows schemas.",
        )


class Client(ABC):
    """A client of models. Threads may share it; a context manager.

    Attributes:
        name: the kind of client, such as `openai`.
        signature: one line that identifies the server, without secrets; a cached call is reused only if signature and
            request are the same.
    """

    name: str
    signature: str

    @abstractmethod
    def ask(self, request: Request) -> Reply:
        """Send a request once.

        Raises:
            ModelError: there is no reply; `retryable` tells whether a retry may help.
        """

    def close(self) -> None:  # noqa: B027  most clients have nothing to release
        """Release connections and memory; calls in progress may fail."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# Estimated number of tokens, for plans and limits, without a tokenizer.


_BYTES_A_TOKEN = 4
_TOKENS_A_MESSAGE = 4  # role and separators of usual chat templates


def estimate_tokens(text: str) -> int:
    """Estimated number of tokens: a quarter of the UTF-8 bytes, rounded up.

    Multilingual byte-level tokenizers have about 4 bytes per token in languages that they cover well: 4 Latin letters
    or 1.3 Chinese characters; in other languages there are two or three times as many tokens. Only for planning, not
    for billing.
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_A_TOKEN)


# Answers as JSON: the schema of a type, and candidates for the value in a text.


_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL | re.IGNORECASE)


def schema_of(type_: Any) -> dict[str, Any]:
    """The JSON schema of a msgspec type, in the form for strict servers.

    No references; every object lists all its properties as required and allows no others.
    """
    (schema,), parts = msgspec.json.schema_components([type_], ref_template="{name}")
    flat: dict[str, Any] = _flat(schema, parts, ())
    return flat


def _flat(node: Any, parts: dict[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_flat(item, parts, inside) for item in node]
    if not isinstance(node, dict):
        return node
    name = node.get("$ref")
    if isinstance(name, str):
        if name in inside:
            raise ValueError(f"{name} holds itself, which a schema without references cannot say")
        return _flat(parts[name], parts, (*inside, name))
    flat = {key: _flat(value, parts, inside) for key, value in node.items() if key not in ("title", "default")}
    if isinstance(node.get("properties"), dict):
        flat["properties"] = {key: _flat(value, parts, inside) for key, value in node["properties"].items()}
        flat["required"] = list(node["properties"])
        flat["additionalProperties"] = False
    return flat


def _candidates(text: str) -> list[str]:
    """The parts of a text that may be the value, the most likely first."""
    candidates = [text.strip(), *(block.strip() for block in _FENCED.findall(text))]
    starts = [start for start in (text.find("{"), text.find("[")) if start >= 0]
    if starts:
        start = min(starts)
        end = text.rfind("}" if text[start] == "{" else "]")
        candidates.append(text[start : end + 1])
    return [candidate for candidate in candidates if candidate]


# A reasoning model's thoughts between `<think>` tags, and its answer.


_OPENED = re.compile(r"\s*<think(?:ing)?>(?P<thought>.*?)(?:</think(?:ing)?>|\Z)\s*", re.DOTALL)
_CLOSED = re.compile(r"(?P<thought>.*)</think(?:ing)?>\s*", re.DOTALL)


def split_thoughts(text: str) -> tuple[str, str]:
    """The thoughts at the beginning, and the text after them (empty if they never end).

    Some chat templates put the opening tag into the prompt, so that the reply has only the closing one.
    """
    match = _OPENED.match(text) or _CLOSED.match(text)
    return (match["thought"].strip(), text[match.end() :]) if match else ("", text)


# Concurrent requests with answers in order, and bounded memory.


_AHEAD = 4
_GIVE_UP = 10
_LAST_CALLS = 10.0


class _Workers:
    """Threads that call one client.

    They are daemons, unlike those of `ThreadPoolExecutor`: otherwise a server that never answers would block an
    interrupted program until all time-outs and retries have passed.
    """

    def __init__(self, client: Client, count: int) -> None:
        self._client = client
        self._queue: queue.SimpleQueue[tuple[Request, Future[Reply]] | None] = queue.SimpleQueue()
        self._stopping = False
        self._threads = [
            threading.Thread(target=self._work, name=f"veriglot-ask-{n}", daemon=True) for n in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, request: Request) -> Future[Reply]:
        """Send a request when a thread is free."""
        future = Future[Reply]()
        self._queue.put((request, future))
        return future

    def stop(self, timeout: float | None = None) -> None:
        """Stop new requests, and wait for calls in progress: for so many seconds, or without limit (None)."""
        self._stopping = True
        for _ in self._threads:
            self._queue.put(None)
        deadline = None if timeout is None else time.monotonic() + timeout
        for thread in self._threads:
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            request, future = job
            if self._stopping:
                future.cancel()
                continue
            try:
                future.set_result(self._client.ask(request))
            except BaseException as error:
                future.set_exception(error)


class Answer(Record):
    """The result of a request: a reply, or an error.

    Attributes:
        request: the original request.
        reply: the model's reply, or None.
        error: the error, or None.
    """

    request: Request
    reply: Reply | None = None
    error: ModelError | None = None


def ask_all(client: Client, requests: Iterable[Request], *, jobs: int = 8) -> Iterator[Answer]:
    """Send all requests, several at a time.

    Requests are taken as threads become free, at most `4 * jobs` ahead of the next answer, which also limits the stored
    answers. If the caller stops early, or after Ctrl-C, it waits up to 10 seconds for calls in progress, so that a
    cache stores the replies that are paid for.

    Args:
        client: the client.
        requests: any number; read lazily.
        jobs: number of concurrent calls, at least 1.

    Yields:
        One answer per request, in order. A failed request is an answer too. Retryable failures are delayed until a
        later request has another result, or there is none: if the server is down, they do not become answers, and a
        restart sends them all again.

    Raises:
        ModelError: an error that every further request would have: a spending limit, a refused key, a server that is
            down (10 retryable failures in a row). All earlier answers were yielded, except for the delayed ones.
        UsageError: `jobs` is below 1.
    """
    if jobs < 1:
        raise UsageError(f"{jobs} jobs are fewer than 1.")
    waiting = deque[tuple[Request, Future[Reply]]]()
    pending = []  # retryable failures, until it is clear that not every request has them
    workers = _Workers(client, jobs)
    patience: float | None = None

    def next_answers() -> list[Answer]:
        request, future = waiting.popleft()
        try:
            answer = Answer(request, reply=future.result())
        except ModelError as failure:
            if failure.fatal:
                raise
            answer = Answer(request, error=failure)
        pending.append(answer)
        error = answer.error
        if error is None or not error.retryable:
            ready = pending.copy()
            pending.clear()
            return ready
        if len(pending) >= _GIVE_UP:
            raise ModelError(
                f"{len(pending)} requests in a row got no reply; the last: {error.message}",
                error.remedy or "Check the server, and start again: what is finished is kept.",
                retryable=True,
                fatal=True,
                status=error.status,
            ) from error
        return []

    try:
        for request in requests:
            waiting.append((request, workers.submit(request)))
            if len(waiting) >= _AHEAD * jobs:
                yield from next_answers()
        while waiting:
            yield from next_answers()
        yield from pending
    except (KeyboardInterrupt, GeneratorExit):  # Ctrl-C in the caller's loop arrives as GeneratorExit
        patience = _LAST_CALLS
        raise
    finally:
        workers.stop(patience)

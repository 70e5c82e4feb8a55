"""The protocol of clients of language models: messages, settings, replies, errors, and the key and cost of a call."""

from __future__ import annotations

import math
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, runtime_checkable

import msgspec

from veriglot.errors import UnknownNameError, VeriglotError
from veriglot.signatures import digest
from veriglot.storage.checkpoint import Usage

if TYPE_CHECKING:
    from types import TracebackType

__all__ = [
    "AnswerError",
    "CacheError",
    "Client",
    "Closing",
    "Message",
    "ModelError",
    "Reply",
    "Request",
    "Settings",
    "SpendingLimitError",
    "Token",
    "canonical",
    "estimate_request",
    "estimate_tokens",
    "preset",
    "presets",
    "request_key",
    "usage_of",
]


class ModelError(VeriglotError):
    """A model that was asked and gave no reply.

    Attributes:
        retryable: whether the same request may be answered later.
        fatal: whether every other request would fail likewise (a key that is refused, a model that is not there), so
            that going on is of no use.
        status: the HTTP status where there was one, otherwise None.
    """

    def __init__(
        self,
        message: str,
        *,
        remedy: str = "",
        retryable: bool = False,
        fatal: bool = False,
        status: int | None = None,
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.retryable = retryable
        self.fatal = fatal
        self.status = status


class AnswerError(ModelError):
    """A reply that arrived and is not what was asked for: no JSON, or not of the schema."""


class SpendingLimitError(ModelError):
    """The calls or tokens that may be spent are spent; what was paid for is kept."""

    def __init__(self, message: str) -> None:
        super().__init__(
            message,
            remedy="What is finished is kept: raise the limit and start again to go on.",
            retryable=True,
            fatal=True,
        )


class CacheError(VeriglotError):
    """The folder of finished calls cannot be read or written."""


# What goes to a model and what comes back.


Role = Literal["system", "user", "assistant"]


_BOUNDS: dict[str, tuple[float, float, bool]] = {  # lowest, highest, whether the lowest itself is allowed
    "max_tokens": (1, math.inf, True),
    "temperature": (0, math.inf, True),
    "top_p": (0, 1, False),
    "top_k": (-1, math.inf, True),
    "min_p": (0, 1, True),
    "typical_p": (0, 1, False),
    "repetition_penalty": (0, math.inf, False),
    "frequency_penalty": (-2, 2, True),
    "presence_penalty": (-2, 2, True),
}


class Message(msgspec.Struct, frozen=True):
    """One turn of a conversation.

    Attributes:
        role: who speaks.
        content: what they say.
    """

    role: Role
    content: str


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a model generates. None is the default of the server, or of the model's own generation configuration.

    Attributes:
        max_tokens: the most tokens of a reply, at least 1.
        temperature: at least 0; 0 is greedy.
        top_p: share of the probability mass, above 0 to 1.
        top_k: number of candidates, at least 1 (0 or -1 for all, as the server has it).
        min_p: share of the likeliest candidate's probability, 0 to 1.
        typical_p: share of the mass of locally typical candidates, above 0 to 1.
        repetition_penalty: above 0; 1 is none.
        frequency_penalty: -2 to 2; 0 is none.
        presence_penalty: -2 to 2; 0 is none.
        stop: texts that end the reply; they are not part of it.
        do_sample: draw (True) or take the likeliest (False).
        extra: further parameters of one server or library, sent as they are.
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
    extra: dict[str, Any] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, (low, high, included) in _BOUNDS.items():
            value = getattr(self, name)
            if value is not None and (not low <= value <= high or (value == low and not included)):
                lower = f"at least {low}" if included else f"above {low}"
                upper = "" if high == math.inf else f" and at most {high}"
                raise ValueError(f"{name} is {value}; it has to be {lower}{upper}")

    def given(self) -> dict[str, Any]:
        """The settings that are not left to the server, `extra` not among them."""
        pairs = ((name, getattr(self, name)) for name in self.__struct_fields__ if name != "extra")
        return {name: value for name, value in pairs if value is not None and value != ()}

    def over(self, below: Settings) -> Settings:
        """These settings, and those of `below` where these leave a value to the server."""
        merged = {**below.given(), **self.given()}
        return Settings(**merged, extra={**below.extra, **self.extra})


# Settings with names, as papers used them.


class _Preset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    settings: Settings
    family: str
    source: str


@cache
def presets() -> dict[str, _Preset]:
    """Every preset by its name."""
    data = files("veriglot.llm").joinpath("presets.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, _Preset])


def preset(name: str) -> Settings:
    """The settings of a preset.

    Raises:
        UnknownNameError: no such preset; the error suggests the nearest.
    """
    try:
        return presets()[name].settings
    except KeyError:
        raise UnknownNameError("preset", name, presets()) from None


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """One question to one model.

    Attributes:
        model: the model, as its server names it.
        messages: a conversation, for models that chat.
        prompt: a text to go on from, for completion; exactly one of `messages` and `prompt` is given.
        seed: of the random numbers; the same request with the same seed is the same call, and is paid once. Whoever
            wants several samples gives several seeds.
        settings: how to generate.
        schema: a JSON schema that the answer has to follow, or None.
        logprobs: whether the log probability of each token is wanted.
        alternatives: how many of the likeliest tokens at each place are wanted too, with `logprobs`; 0 for none.
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

    @property
    def digest(self) -> str:
        """SHA-256 of everything in it, in hexadecimal; the same on every machine."""
        return digest([canonical(self)])

    @property
    def text(self) -> str:
        """All that is sent: the prompt, or the messages one below the other."""
        return self.prompt if self.prompt is not None else "\n".join(message.content for message in self.messages)


class Token(msgspec.Struct, frozen=True, array_like=True):
    """A token of a reply.

    Attributes:
        text: as the server writes it.
        logprob: natural logarithm of its probability, at most 0; None where the server did not say.
        alternatives: the likeliest tokens at its place, itself perhaps among them, with their log probabilities; empty
            where they were not asked for or the server did not say.
    """

    text: str
    logprob: float | None
    alternatives: tuple[tuple[str, float], ...] = ()


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a model said.

    Attributes:
        text: the reply, without the prompt.
        finish: why it ended: `stop` (by itself, or at a stop text), `length` (cut at `max_tokens` or at the end of the
            context), `filter` (the provider held it back), `unknown`, or the server's own word.
        tokens_in: tokens of the prompt, or None where the server did not say.
        tokens_out: tokens of the reply, or None.
        logprobs: the tokens with their log probabilities, or None.
        model: the model, as the server calls it in its answer.
        settings: what was really sent, or used by a local model, beside the text.
        reasoning: what a model that thinks first thought, where the server tells it apart.
    """

    text: str
    finish: str = "stop"
    tokens_in: int | None = None
    tokens_out: int | None = None
    logprobs: tuple[Token, ...] | None = None
    model: str = ""
    settings: dict[str, Any] = msgspec.field(default_factory=dict)
    reasoning: str | None = None


def canonical(record: Any) -> bytes:
    """A record as JSON whose keys are sorted, so that equal records give equal bytes."""
    return msgspec.json.encode(record, order="deterministic")


_KEY_VERSION = "1"


@runtime_checkable
class Client(Protocol):
    """Asks models. Safe to share between threads.

    Attributes:
        name: of the kind of client, such as `openai`.
        signature: one line that says who answers, without anything secret; a finished call is only used again
            where signature and request are the same.
    """

    name: str
    signature: str

    def ask(self, request: Request) -> Reply:
        """Ask once.

        Raises:
            ModelError: there is no reply; `retryable` says whether there may be one later.
        """
        ...

    def close(self) -> None:
        """Let go of connections and memory; calls under way may fail."""
        ...


class Closing:
    """A client that is a context manager, for clients to inherit from."""

    def close(self) -> None:
        """Nothing to let go of."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def request_key(signature: str, request: Request) -> str:
    """What a call is known by, in the cache and to a gateway (`Idempotency-Key`): SHA-256 of who is asked, and what."""
    return digest([_KEY_VERSION, signature, canonical(request)])


# How many tokens a text may have, for plans and limits, before any tokenizer has seen it.


_BYTES_A_TOKEN = 4
_TOKENS_A_MESSAGE = 4  # role and separators of usual chat templates


def estimate_tokens(text: str) -> int:
    """A rough number of tokens: a quarter of the UTF-8 bytes, rounded up.

    Multilingual byte-level tokenizers cut about 4 bytes a token in languages that they know, which is 4 letters of
    Latin and 1.3 characters of Chinese; a language that they hardly know takes two or three times as many. A plan,
    not a bill.
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_A_TOKEN)


def estimate_request(request: Request) -> int:
    """A rough number of the tokens of what is sent, as `estimate_tokens` has it."""
    return estimate_tokens(request.text) + _TOKENS_A_MESSAGE * len(request.messages)


def usage_of(request: Request, reply: Reply) -> Usage:
    """What one call cost, estimated where the server did not say."""
    tokens_in = reply.tokens_in if reply.tokens_in is not None else estimate_request(request)
    tokens_out = reply.tokens_out if reply.tokens_out is not None else estimate_tokens(reply.text)
    return Usage(1, tokens_in, tokens_out)

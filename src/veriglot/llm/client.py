"""The protocol of clients of language models: messages, settings, replies, errors, and the key of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, runtime_checkable

import msgspec

from veriglot.errors import VeriglotError
from veriglot.signatures import digest

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
    "request_key",
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


def _within(
    name: str, value: float | None, low: float, high: float = float("inf"), *, open_below: bool = False
) -> None:
    if value is None:
        return
    if not low <= value <= high or (open_below and value == low):
        bounds = f"above {low}" if open_below else f"at least {low}"
        upper = "" if high == float("inf") else f" and at most {high}"
        raise ValueError(f"{name} is {value}; it has to be {bounds}{upper}")


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
        _within("max_tokens", self.max_tokens, 1)
        _within("temperature", self.temperature, 0)
        _within("top_p", self.top_p, 0, 1, open_below=True)
        _within("top_k", self.top_k, -1)
        _within("min_p", self.min_p, 0, 1)
        _within("typical_p", self.typical_p, 0, 1, open_below=True)
        _within("repetition_penalty", self.repetition_penalty, 0, open_below=True)
        _within("frequency_penalty", self.frequency_penalty, -2, 2)
        _within("presence_penalty", self.presence_penalty, -2, 2)

    def given(self) -> dict[str, Any]:
        """The settings that are not left to the server, `extra` not among them."""
        pairs = ((name, getattr(self, name)) for name in self.__struct_fields__ if name != "extra")
        return {name: value for name, value in pairs if value is not None and value != ()}

    def over(self, below: Settings) -> Settings:
        """These settings, and those of `below` where these leave a value to the server."""
        merged = {**below.given(), **self.given()}
        return Settings(**merged, extra={**below.extra, **self.extra})


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

"""The one protocol that every client follows, and what a call is known by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

from veriglot.llm.records import canonical
from veriglot.provenance import digest

if TYPE_CHECKING:
    from types import TracebackType

    from veriglot.llm.records import Reply, Request

__all__ = ["Client", "Closing", "request_key"]

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

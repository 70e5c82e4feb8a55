"""What can go wrong with a source of texts."""

from __future__ import annotations

from veriglot.errors import VeriglotError

__all__ = ["SourceError"]


class SourceError(VeriglotError):
    """A server answered, and what it says is that it cannot or will not.

    Attributes:
        code: the server's own word for it, such as `maxlag`; empty where it has none.
        retryable: whether the same request may succeed later.
        wait: seconds that the server asks to wait, or None.
    """

    def __init__(
        self, message: str, *, remedy: str = "", code: str = "", retryable: bool = False, wait: float | None = None
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.code = code
        self.retryable = retryable
        self.wait = wait

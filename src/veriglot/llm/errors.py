"""What can go wrong when a model is asked."""

from __future__ import annotations

from veriglot.errors import VeriglotError

__all__ = ["AnswerError", "CacheError", "ModelError", "SpendingLimitError"]


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

"""What can go wrong in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.errors import UsageError, VeriglotError

if TYPE_CHECKING:
    from veriglot.annotate.layers import Layer
    from veriglot.annotate.store.rows import State

__all__ = ["Conflict", "NotFound", "Refused", "StoreError"]


class StoreError(VeriglotError):
    """The database cannot be used: it is not there, damaged, newer than this version, or not for this project."""


class NotFound(UsageError):  # noqa: N818  # reads as what happened, like Conflict
    """There is no such row, or it belongs to somebody else; which of the two is not said."""

    def __init__(self, what: str) -> None:
        super().__init__(f"There is no such {what}.")


class Refused(UsageError):  # noqa: N818
    """A rule speaks against it; nothing was changed."""


class Conflict(VeriglotError):  # noqa: N818
    """An event came too late: the assignment has changed, or is no longer open. What it held is kept as an event.

    Attributes:
        version: the assignment's version now.
        state: its state now.
        layer: its layer now.
        reason: `version` or `state`.
    """

    def __init__(self, version: int, state: State, layer: Layer, reason: str) -> None:
        message = (
            "This was changed elsewhere since it was opened here."
            if reason == "version"
            else f"This is {state.value} and takes no such change."
        )
        super().__init__(message, remedy="Look at what is there now; what was sent is kept in the history.")
        self.version = version
        self.state = state
        self.layer = layer
        self.reason = reason

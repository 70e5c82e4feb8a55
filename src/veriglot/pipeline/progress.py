"""What long work tells while it runs; the command line shows it, and tests may listen."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Silent", "Watch"]


class Watch(Protocol):
    """Is told how far the work is."""

    def begin(self, step: str, total: int | None) -> None:
        """A step begins: what it does in a few words, and of how many rows where that is known."""

    def advance(self) -> None:
        """One more row of the step is done."""

    def say(self, text: str) -> None:
        """Something that a person should know, in one sentence."""


class Silent:
    """Shows nothing."""

    def begin(self, step: str, total: int | None) -> None:
        """Nothing."""

    def advance(self) -> None:
        """Nothing."""

    def say(self, text: str) -> None:
        """Nothing."""

"""Spending limits: calls and tokens, over all threads, that stop before the call that would pass them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec

from veriglot.errors import UsageError
from veriglot.llm.client import Closing
from veriglot.llm.errors import SpendingLimitError
from veriglot.llm.estimates import estimate_request, estimate_tokens

if TYPE_CHECKING:
    from veriglot.llm.client import Client
    from veriglot.llm.records import Reply, Request

__all__ = ["Limited", "Limits", "Spent"]


class Spent(msgspec.Struct, frozen=True):
    """What calls cost.

    Attributes:
        calls: calls that were answered.
        tokens_in: tokens of their prompts; estimated where the server did not say.
        tokens_out: tokens of their replies; estimated where the server did not say.
    """

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def tokens(self) -> int:
        """Both together, which is what a limit counts."""
        return self.tokens_in + self.tokens_out

    def plus(self, request: Request, reply: Reply) -> Spent:
        """With one more call."""
        used_in = reply.tokens_in if reply.tokens_in is not None else estimate_request(request)
        used_out = reply.tokens_out if reply.tokens_out is not None else estimate_tokens(reply.text)
        return Spent(self.calls + 1, self.tokens_in + used_in, self.tokens_out + used_out)


class Limits:
    """What may be spent; share one object between clients that spend from the same purse.

    A call first sets aside what it may cost (the estimated prompt and `max_tokens`), waits while calls under way hold
    what it would need, and is refused when they have all ended and it still does not fit. From the first refusal on,
    all are refused. Without `max_tokens` only the prompt can be set aside, and calls under way can pass the limit by
    their replies.

    Args:
        calls: the most calls; None for no bound.
        tokens: the most tokens of prompts and replies together; None for no bound.
        spent: what was spent before, such as `Cached.spent()` of a run that goes on.

    Raises:
        UsageError: a limit below 0.
    """

    def __init__(self, calls: int | None = None, tokens: int | None = None, *, spent: Spent | None = None) -> None:
        if (calls is not None and calls < 0) or (tokens is not None and tokens < 0):
            raise UsageError("A spending limit below 0 cannot be kept.", remedy="Leave it out for no bound.")
        self.calls = calls
        self.tokens = tokens
        self._spent = spent or Spent()
        self._held: dict[int, int] = {}
        self._refused = ""
        self._changed = threading.Condition()

    @property
    def spent(self) -> Spent:
        """What was spent so far, calls under way not counted."""
        return self._spent

    def ask(self, client: Client, request: Request) -> Reply:
        """Ask, if it may be paid for.

        Raises:
            SpendingLimitError: it may not.
            ModelError: as the client raises; a call without a reply costs nothing.
        """
        ticket = self._hold(estimate_request(request) + (request.settings.max_tokens or 0))
        try:
            reply = client.ask(request)
            with self._changed:
                self._spent = self._spent.plus(request, reply)
            return reply
        finally:
            with self._changed:
                del self._held[ticket]
                self._changed.notify_all()

    def _hold(self, cost: int) -> int:
        with self._changed:
            while True:
                if self._refused:
                    raise SpendingLimitError(self._refused)
                lacking = self._lacking(cost)
                if not lacking:
                    ticket = max(self._held, default=0) + 1
                    self._held[ticket] = cost
                    return ticket
                if not self._held:
                    self._refused = lacking
                    self._changed.notify_all()
                else:
                    self._changed.wait()

    def _lacking(self, cost: int) -> str:
        """Why a call of this cost cannot start now; empty where it can."""
        if self.calls is not None and self._spent.calls + len(self._held) >= self.calls:
            return f"The limit of {self.calls:,} calls is reached ({self._spent.calls:,} made)"
        after = self._spent.tokens + sum(self._held.values()) + cost
        if self.tokens is not None and after > self.tokens:
            return (
                f"The limit of {self.tokens:,} tokens is reached "
                f"({self._spent.tokens:,} spent, and the next call may take {cost:,})"
            )
        return ""


class Limited(Closing):
    """A client that spends within limits.

    Put it inside `Cached`, not around it: what is in the cache costs nothing.
    """

    def __init__(self, client: Client, limits: Limits) -> None:
        self.name = client.name
        self.signature = client.signature
        self.limits = limits
        self._client = client

    def ask(self, request: Request) -> Reply:
        """As the client, and `SpendingLimitError` where the limit is reached."""
        return self.limits.ask(self._client, request)

    def close(self) -> None:
        """Close the client."""
        self._client.close()

"""Spending limits: calls and tokens, over all threads, that stop before the call that would pass them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from veriglot.errors import UsageError
from veriglot.llm.client import Closing, SpendingLimitError
from veriglot.storage.checkpoint import Usage

if TYPE_CHECKING:
    from veriglot.llm.client import Client, Reply, Request

__all__ = ["Limited", "Limits", "estimate_request", "estimate_tokens", "usage_of"]


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

    def __init__(self, calls: int | None = None, tokens: int | None = None, *, spent: Usage | None = None) -> None:
        if (calls is not None and calls < 0) or (tokens is not None and tokens < 0):
            raise UsageError("A spending limit below 0 cannot be kept.", remedy="Leave it out for no bound.")
        self.calls = calls
        self.tokens = tokens
        self._spent = spent or Usage()
        self._held: dict[int, int] = {}
        self._refused = ""
        self._changed = threading.Condition()

    @property
    def spent(self) -> Usage:
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
                self._spent = self._spent + usage_of(request, reply)
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

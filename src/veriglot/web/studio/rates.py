"""How often one caller may call, counted in this process."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from veriglot.web.studio.failures import TooOften

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Rates"]


class Rates:
    """Counters of calls. A kind without a limit is not counted."""

    def __init__(self, rates: Mapping[str, str]) -> None:
        """Take limits by kind, in the notation of `limits`, such as `30/minute`."""
        self._limits = {kind: parse(rate) for kind, rate in rates.items()}
        self._counter = SlidingWindowCounterRateLimiter(MemoryStorage())

    def count(self, kind: str, caller: str) -> None:
        """Count a call.

        Raises:
            TooOften: it is one too many.
        """
        limit = self._limits.get(kind)
        if limit is not None and not self._counter.hit(limit, kind, caller):
            reset = self._counter.get_window_stats(limit, kind, caller).reset_time
            raise TooOften(max(1, math.ceil(reset - time.time())))

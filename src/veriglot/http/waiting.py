"""How long to wait before asking again, and how to keep to a rate."""

from __future__ import annotations

import math
import threading
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Pace", "retry_after"]


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """The seconds to wait that `Retry-After` names, as a number or as a date (RFC 9110, section 10.2.3).

    Args:
        headers: by lower-case name.
        now: the time that a date is held against; the server's own `Date` where it sent one, so that clocks that
            disagree do no harm, and otherwise this machine's.

    Returns:
        Seconds, at least 0; None where there is no such header or it cannot be read.
    """
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        until = _date(value)
        if until is None:
            return None
        now = now or _date(headers.get("date", "")) or datetime.now(UTC)
        seconds = (until - now).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


class Pace:
    """Lets requests go no faster than a rate, over all threads, and all of them wait where a server asks for it.

    Args:
        rate: requests a second, above 0; None for no bound.
        stopped: set when waiting has to end at once.
    """

    def __init__(self, rate: float | None, stopped: threading.Event) -> None:
        self._gap = 1.0 / rate if rate else 0.0
        self._next = 0.0
        self._stopped = stopped
        self._lock = threading.Lock()

    def hold(self, seconds: float) -> None:
        """No request goes out for so many seconds."""
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)

    def wait(self) -> None:
        """Return when this thread's turn has come, or when waiting has to end.

        A hold that came while this thread waited is waited for too, and the turn is taken at the end of the wait.
        """
        while not self._stopped.is_set():
            with self._lock:
                now = time.monotonic()
                remaining = self._next - now
                if remaining <= 0:
                    self._next = now + self._gap
                    return
            self._stopped.wait(remaining)

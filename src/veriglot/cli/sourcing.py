"""What `veriglot build articles` and `people` share: whom they ask, and an output that is written as a whole."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["Output", "Servers", "say"]


@dataclass(frozen=True)
class Servers:
    """Where to ask, and how.

    Attributes:
        contact: see `sources.user_agent`.
        rate: requests a second; None for what each service takes well.
        cache: the folder of fetched answers.
        wiki, english, wikidata, views: other addresses than Wikimedia's own.
    """

    contact: str | None
    rate: float | None
    cache: Path
    wiki: str | None = None
    english: str | None = None
    wikidata: str | None = None
    views: str | None = None

    def pace(self, usual: float) -> float:
        """The rate that was asked for, or the usual one."""
        return self.rate if self.rate is not None else usual


class Output:
    """A file of JSON lines that is written as a whole, beside it `<name>.report.json` with what it was made by.

    Args:
        path: the file.
        order: what makes it.
        restart: write it anew, whatever is there.

    Raises:
        UsageError: something else is there.
    """

    def __init__(self, path: Path, order: msgspec.Struct, *, restart: bool) -> None:
        self.path = path
        self.report_path = path.with_name(f"{path.name}.report.json")
        self._order = msgspec.to_builtins(order)
        self.finished: dict[str, Any] | None = None
        if path.exists() and not restart:
            self.finished = self._earlier()
            if self.finished is None:
                raise UsageError(
                    f"{path} is there already, and was not made by this command with these options.",
                    remedy="Name another file, or add --restart to make it anew.",
                )

    def write(self, rows: Iterable[msgspec.Struct], account: dict[str, Any]) -> None:
        """Write the rows and the account; the file appears when it is whole."""
        partial = self.path.with_name(f"{self.path.name}.partial")
        partial.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            for row in rows:
                file.write(msgspec.json.encode(row) + b"\n")
        self.path.unlink(missing_ok=True)  # first: the new account must at no moment stand beside an older output
        told = {"made_by": self._order, **account}
        self.report_path.write_bytes(msgspec.json.format(msgspec.json.encode(told), indent=2) + b"\n")
        partial.replace(self.path)

    def _earlier(self) -> dict[str, Any] | None:
        """The account of a finished output, if this order made it."""
        try:
            told = msgspec.json.decode(self.report_path.read_bytes())
        except (OSError, msgspec.DecodeError):
            return None
        same = isinstance(told, dict) and told.get("made_by") == msgspec.json.decode(msgspec.json.encode(self._order))
        return told if same else None


def say(text: str) -> None:
    """A line on standard error."""
    print(f"veriglot: {text}", file=sys.stderr)

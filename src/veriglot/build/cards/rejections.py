"""What a file of rejections says: rows that were set aside, and replies or tries that were not taken.

One row may have several lines in it: translations say of each line what it was of (`what`), silver data and pairs which
row it would have been part of (`seed` is theirs alone). A line of any other step is a row, query or response.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Rejected", "rejected_in"]

_ROW = "row"
_NOT_SAID = "not said"
_OF_SEED = re.compile(r"/s\d+$")  # of a row that is one sentence of its seed, which has tries too


class Rejected(NamedTuple):
    """What stands in a file of rejections.

    Attributes:
        rows: rows that were set aside; None where there is no such file.
        reasons: of these, by reason; a row may have several.
        tries: lines that are no row of their own, by what they were of and reason, such as `response: loop`.
    """

    rows: int | None = None
    reasons: dict[str, int] = {}  # noqa: RUF012  nobody writes into it
    tries: dict[str, int] = {}  # noqa: RUF012


def rejected_in(path: Path, output: Path | None = None) -> Rejected:
    """Count what was rejected, line by line; of rows that had several tries memory holds the ids.

    Args:
        path: the file of rejections.
        output: the file of the rows that were taken: a row that stands there was not set aside, whatever its tries.
    """
    if not path.is_file():
        return Rejected()
    reasons, tries = Counter[str](), Counter[str]()
    rows = 0
    of_row: dict[str, list[tuple[str, str]]] = {}  # what and reason of every try, by row
    for line in _lines(path):
        said = _reasons(line)
        what, name = line.get("what"), line.get("id")
        if "seed" in line and isinstance(name, str):
            of_row.setdefault(name, []).append((str(line.get("type", "")), said[0]))
        elif isinstance(what, str) and what != _ROW:
            tries[f"{what}: {said[0]}"] += 1
        else:
            rows += 1
            reasons.update(said)
    taken = _taken(output, of_row) if output is not None and of_row else set()
    for name, tried in of_row.items():
        if name not in taken:
            rows += 1
            tried, last = _parted(tried)
            reasons[last] += 1
        tries.update(f"{of}: {reason}" for of, reason in tried)
    return Rejected(rows, dict(reasons.most_common()), dict(tries.most_common()))


def _parted(tried: list[tuple[str, str]]) -> tuple[list[tuple[str, str]], str]:
    """The tries of a row that was set aside, and why it was: what is said of the row itself, else of its last try."""
    at = max((n for n, (of, _) in enumerate(tried) if of == _ROW), default=len(tried) - 1)
    return tried[:at] + tried[at + 1 :], tried[at][1]


def _reasons(line: dict[str, Any]) -> list[str]:
    said = line.get("reasons", line.get("reason"))
    if isinstance(said, list):
        return list(map(str, said)) or [_NOT_SAID]
    return [said] if isinstance(said, str) else [_NOT_SAID]


def _taken(output: Path, wanted: dict[str, Any]) -> set[str]:
    if not output.is_file():
        return set()
    names = (str(line.get("id")) for line in _lines(output))
    return {one for name in names for one in (name, _OF_SEED.sub("", name)) if one in wanted}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Every line; an empty mapping for one that cannot be read."""
    with path.open("rb") as file:
        for line in file:
            try:
                row = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                row = None
            yield row if isinstance(row, dict) else {}

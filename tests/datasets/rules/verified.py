"""A second, independent span check: plain JSON and Unicode's tables, without Veriglot.

    python tests/datasets/rules/verified.py SILVER.jsonl

prints the number of checked rows, all faults, and the shares of the types.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PIECE = 8  # code points: quoted parts of a passage are longer, except the last
_LATER = ("CJK", "HIRAGANA", "KATAKANA", "THAI")  # scripts without spaces between words
_BRACKETS = re.compile(r"\s*[(（][^()（）]*[)）]")  # a quotation may omit these
_LEFT_OVER = re.compile(r"[{}]|</?\w+>")


def faults(row: dict[str, Any]) -> Iterator[str]:
    """All faults of one row of silver data made by rule."""
    text, silver = row["response"], row["meta"]["silver"]
    (layer,) = row["annotations"]
    spans, changes, passage = layer["spans"], silver["changes"], silver["passage"]
    if len(spans) != len(changes):
        yield f"{len(changes)} changes make {len(spans)} spans"
    yield from _misplaced(text, spans)
    yield from _misread(text, passage, changes, spans)
    evidence = "\n".join(one["text"] for one in row["evidence"])
    yield from _strange(passage, [evidence, _BRACKETS.sub("", evidence)])
    if not spans and text != passage:
        yield "a clean row is not its passage"
    for span, change in zip(spans, changes, strict=False):
        yield from _unsound(span, passage, evidence)
        for place, old in ((span["start"], change["old_start"]), (span["end"], change["old_end"])):
            if _joined(text, place) and not _joined(passage, old):
                yield f"words run together at the edge of {text[max(0, place - 8) : place + 8]!r}"


def _strange(passage: str, sources: list[str]) -> Iterator[str]:
    """Whether the passage consists of parts of the evidence, with any white space."""
    passage, *sources = (" ".join(one.split()) for one in (passage, *sources))
    read = 0
    while read < len(passage):
        if not passage[read].isalnum():  # a mark between two quoted parts
            read += 1
            continue
        short, long = 0, len(passage) - read
        while short < long:  # if a part is in the evidence, so is every shorter one
            middle = (short + long + 1) // 2
            piece = passage[read : read + middle]
            short, long = (middle, long) if any(piece in one for one in sources) else (short, middle - 1)
        whole = any(passage[max(0, read - _PIECE) : read + short] in one for one in sources)  # parts may overlap
        if short < _PIECE and not whole and any(char.isalnum() for char in passage[read + short :]):
            yield f"the evidence lacks {passage[read : read + 40]!r}"
            return
        read += max(1, short)


def _misplaced(text: str, spans: list[dict[str, Any]]) -> Iterator[str]:
    read = 0
    for span in spans:
        if not read <= span["start"] < span["end"] <= len(text):
            yield f"a span is out of place: {span['start']}, {span['end']}"
        if text[span["start"] : span["end"]] != span["text"]:
            yield f"a span says {span['text']!r} and marks something else"
        if not span.get("type"):
            yield "a span has no type"
        read = span["end"]


def _misread(text: str, passage: str, changes: list[dict[str, Any]], spans: list[dict[str, Any]]) -> Iterator[str]:
    """Whether the text is the passage with only these changes, and each change is a span (apart from white space)."""
    read = old = 0
    for change, span in zip(changes, spans, strict=False):
        if text[read : change["start"]] != passage[old : change["old_start"]]:
            yield f"outside its spans the text differs before {change['start']}"
        new, before = text[change["start"] : change["end"]], passage[change["old_start"] : change["old_end"]]
        if new.strip() != span["text"] or change["type"] != span["type"]:
            yield f"a change is not its span: {new!r}"
        if new.split() == before.split() or new.casefold() == before.casefold():
            yield f"a span says what stood there before: {new!r}"
        read, old = change["end"], change["old_end"]
    if text[read:] != passage[old:]:
        yield "outside its spans the text differs at its end"


def _unsound(span: dict[str, Any], passage: str, evidence: str) -> Iterator[str]:
    said = span["text"]
    if not any(char.isalnum() for char in said):
        yield f"a span without a letter or digit: {said!r}"
    if _LEFT_OVER.search(said):
        yield f"something is left over in {said!r}"
    letters = Counter(_script(char) for char in said if char.isalpha())
    expected = {_script(char) for char in passage + evidence if char.isalpha()}
    foreign = sum(number for script, number in letters.items() if script not in expected)
    if foreign > letters.total() / 2:
        yield f"{said!r} is in another script"


def _joined(text: str, place: int) -> bool:
    """Whether two letters or digits touch at an offset, in scripts with spaces between words."""
    if not 0 < place < len(text) or not (text[place - 1].isalnum() and text[place].isalnum()):
        return False
    return not any(unicodedata.name(char, "").startswith(_LATER) for char in text[place - 1 : place + 1])


def _script(char: str) -> str:
    return unicodedata.name(char, "?").split()[0]


def verify(rows: Iterable[dict[str, Any]]) -> tuple[int, list[str], Counter[str]]:
    """Number of rows, their faults, and the types of their spans."""
    number, found, types = 0, list[str](), Counter[str]()
    for row in rows:
        number += 1
        found += [f"{row['id']}: {fault}" for fault in faults(row)]
        types.update(span["type"] for span in row["annotations"][0]["spans"])
    return number, found, types


if __name__ == "__main__":
    with Path(sys.argv[1]).open(encoding="utf-8") as lines:
        count, wrong, kinds = verify(json.loads(line) for line in lines)
    print(f"{count:,} rows, {len(wrong):,} faults")
    for fault in wrong[:40]:
        print(" ", fault)
    for kind, times in sorted(kinds.items()):
        print(f"{kind:14} {times:7,} {times / kinds.total():.4f}")

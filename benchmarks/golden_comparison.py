"""Compares two records of golden outputs: `golden.py compare` says what differs, and what counts as equal."""

from __future__ import annotations

import csv
import io
import json
import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

SHOWN = 5  # differences of a case that are printed

# Keys of JSON and columns of tables whose values are compared as a class. Versions of assignments are numbers, and
# compare; those of software are texts.
CLASSES = (
    ("signature", re.compile(r"(^|_)signatures?$|^made$"), str),
    ("hash", re.compile(r"(^|_)(sha256|digest|hash)$"), str),
    ("version", re.compile(r"(^|_)version$"), str),
    ("time", re.compile(r"^(wall|cpu|seconds|elapsed|duration)$|_seconds?$"), object),
    ("secret", re.compile(r"^(token|csrf|link|event_id)$"), str),
)
TABLE = re.compile(r"\w+(,\w+)+\r?\n.*,")
PROSE = {"reason", "message", "remedy", "notes", "warnings", "methods", "assumptions", "description", "consent"}
TIMED = re.compile(r"\b(seconds?|CPU|wall|time|minutes?|ms|s/row)\b", re.IGNORECASE)  # heads of columns
STRUCTURE = {
    "h1", "h2", "h3", "h4", "table", "thead", "tbody", "tfoot", "tr", "th", "td", "svg", "circle", "rect", "path",
    "section", "article", "figure", "details", "mark", "option", "nav", "form", "input", "button", "script",
}  # fmt: skip
DRAWN = {"x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "d", "points", "transform"}
FIGURE = re.compile(r"(?<![\w.,#-])[-−+]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?")
IN_TEXT = (
    (re.compile(r"\b\w+:[^|\s<>\"']*(?:\|\w+:[^|\s<>\"']*)+"), "<signature>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<hash>"),
    (re.compile(r"(?<![A-Za-z\d.])([0-9a-f]{12}|(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{13,64})(?![A-Za-z\d])"), "<hash>"),
    (re.compile(r"\bveriglot[ /@-]v?\d+\.\d+(\.\d+)?\w*"), "veriglot <version>"),
    (re.compile(r"(?<=127\.0\.0\.1:)\d+"), "<port>"),
    (re.compile(r"\b\d[\d.,]*\s?(ms|s|min|seconds|minutes)\b"), "<time>"),
)


@dataclass(frozen=True)
class Side:
    """One record, and the names by which its own are replaced."""

    folder: Path
    about: dict[str, Any]
    names: Mapping[str, str]

    @classmethod
    def of(cls, folder: Path, names: Mapping[str, str]) -> Side:
        """A record of `record`."""
        try:
            return cls(folder, json.loads((folder / "golden.json").read_text("utf-8")), names)
        except OSError as error:
            raise SystemExit(f"{folder} is no record: {error}") from error

    def name(self, text: str) -> str:
        """A name as the new code has it."""
        return self.names.get(text, text)

    def files(self, case: str) -> dict[str, Path]:
        """What is compared of a case, by its path; hashes in it are masked, and those that are then alike numbered."""
        folder = self.folder / case
        found = {p for pattern in self.about["cases"][case]["outputs"] for p in folder.glob(pattern) if p.is_file()}
        named: dict[str, list[Path]] = {}
        for path in sorted(found):
            parts = (self.name(self.text(part)) for part in path.relative_to(folder).parts)
            named.setdefault("/".join(parts), []).append(path)
        numbered = {}
        for name, paths in named.items():
            for number, path in enumerate(sorted(paths, key=lambda p: (p.stat().st_size, p.read_bytes()))):
                numbered[f"{name}#{number}" if number else name] = path
        return numbered

    def text(self, text: str) -> str:
        """A text without what differs between two records of one code."""
        for root, name in sorted(self.about["roots"].items(), key=lambda one: -len(one[0])):
            text = text.replace(root, name)
        for pattern, name in IN_TEXT:
            text = pattern.sub(name, text)
        return text

    def value(self, value: Any, key: str = "") -> Any:
        """JSON with classes for what differs, and new names."""
        if isinstance(value, dict):
            return {self.name(self.text(k)): self.value(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [self.value(one, key) for one in value]
        for name, pattern, kind in CLASSES:
            if value is not None and isinstance(value, kind) and pattern.search(key):
                return f"<{name}>"
        if not isinstance(value, str) or isinstance(value, Literal):
            return value
        if TABLE.match(value):  # pages hold their tables as CSV
            return self.value(list(csv.DictReader(io.StringIO(value, newline=""))))
        if key in PROSE and " " in value:
            return figures(self.text(value))
        return self.name(self.text(self.name(value)))


class Literal(str):
    """A number as it is written in JSON; it equals no text."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and str.__eq__(self, other)

    __hash__ = str.__hash__


def loaded(text: str) -> Any:
    """JSON whose numbers stay as they are written, so that 0.1 and 0.10 differ."""
    return json.loads(text, parse_float=Literal)


def figures(text: str) -> list[str]:
    """The numbers of a text, in order."""
    return [match.group().replace("−", "-") for match in FIGURE.finditer(text)]


class Page(HTMLParser):
    """The figures and the structure of a page."""

    def __init__(self, side: Side) -> None:
        super().__init__(convert_charrefs=True)
        self.side = side
        self.tags: Counter[str] = Counter()
        self.figures: list[str] = []
        self.drawn: list[str] = []
        self.marks: list[str] = []
        self.embedded: list[Any] = []
        self.inside: list[str] = []  # script, style, mark: what the text that comes belongs to
        self.heads: dict[int, str] = {}
        self.column = 0
        self.timed = False
        self.data: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Count it, read its drawing, and see which column of a table it is."""
        if tag in STRUCTURE:
            self.tags[tag] += 1
        self.drawn += [f"{n}={value}" for n, value in attrs if n in DRAWN and tag not in {"img", "meta", "input"}]
        if tag in {"script", "style", "mark", "template"}:
            self._flush()
            self.inside.append(tag)
        elif tag == "thead" or tag == "table":
            self.heads = {}
        elif tag == "tr":
            self.column = 0
        elif tag in {"td", "th"}:
            self._flush()
            self.inside.append(tag)
            self.timed = bool(TIMED.search(self.heads.get(self.column, "")))
            self.column += int(dict(attrs).get("colspan") or 1)

    def handle_endtag(self, tag: str) -> None:
        """Take in the text of what ends."""
        if tag in self.inside:
            self._flush()
            while self.inside.pop() != tag:
                pass
            if tag in {"td", "th"}:
                self.timed = False

    def handle_data(self, data: str) -> None:
        """Keep it until it is clear what it belongs to."""
        self.data.append(data)

    def close(self) -> None:
        """The end of the page."""
        super().close()
        self._flush()

    def _flush(self) -> None:
        text, self.data = "".join(self.data), []
        within = self.inside[-1] if self.inside else ""
        if within in {"script", "style"}:
            if within == "script" and text.lstrip()[:1] in {"{", "["}:
                self.embedded.append(self.side.value(loaded(text)))
            return
        if within == "th":
            self.heads[self.column - 1] = self.heads.get(self.column - 1, "") + text
        if "mark" in self.inside:
            self.marks.append(text)
        if not self.timed:
            self.figures += figures(self.side.text(text))

    def all(self) -> dict[str, Any]:
        """What is compared."""
        return {"embedded": self.embedded, "tags": dict(self.tags), "marks": self.marks, "figures": self.figures,
                "drawn": self.drawn}  # fmt: skip


def _html(side: Side, path: Path) -> Any:
    page = Page(side)
    page.feed(path.read_text("utf-8"))
    page.close()
    return page.all()


def _csv(side: Side, path: Path) -> Any:
    return side.value(list(csv.DictReader(io.StringIO(path.read_text("utf-8"), newline=""))))


def _lines(side: Side, path: Path) -> Any:
    return [side.value(loaded(line)) for line in path.read_text("utf-8").split("\n") if line.strip()]


def _prose(side: Side, path: Path) -> Any:
    """Figures line by line where there are tables, without the columns of times."""
    found: list[str] = []
    cells: list[int] = []
    timed: set[int] = set()
    separator = {".md": "|", ".tex": "&"}.get(path.suffix, "│")
    above = 0
    for line in path.read_text("utf-8").splitlines():
        parts = re.split(rf"(?<!\\){re.escape(separator)}", line)
        if len(parts) > 1:
            cells.append(len(parts))
            if above != len(parts):  # the head of a table
                timed = {n for n, part in enumerate(parts) if TIMED.search(part)}
            parts = [part for n, part in enumerate(parts) if n not in timed]
        above = len(parts) + len(timed) if len(parts) > 1 else 0
        for part in parts:
            found += figures(side.text(part))
    return {"figures": found, "cells": cells}


def _parquet(side: Side, path: Path) -> Any:
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(path).to_pylist()
    return side.value(loaded(json.dumps(rows, ensure_ascii=False, default=str)))


READERS = {
    ".json": lambda side, path: side.value(loaded(path.read_text("utf-8"))),
    ".toml": lambda side, path: side.value(tomllib.loads(path.read_text("utf-8"))),
    ".jsonl": _lines, ".csv": _csv, ".html": _html, ".md": _prose, ".tex": _prose, ".txt": _prose, ".parquet": _parquet,
}  # fmt: skip


def differences(old: Any, new: Any, where: str = "") -> Iterator[str]:
    """Where two values differ, each as a line."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            if key not in old or key not in new:
                yield f"{where}.{key}: only in {'OLD' if key in old else 'NEW'}"
            else:
                yield from differences(old[key], new[key], f"{where}.{key}")
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{where}: {len(old)} in OLD, {len(new)} in NEW"
        for number, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from differences(one, other, f"{where}[{number}]")
    elif type(old) is not type(new) or old != new:
        yield f"{where}: {_short(old)} in OLD, {_short(new)} in NEW"


def _short(value: Any) -> str:
    text = str(value) if isinstance(value, Literal) else repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def of_files(old: tuple[Side, Path], new: tuple[Side, Path]) -> Iterator[str]:
    """The differences of two files."""
    (before, first), (after, second) = old, new
    if not before.names and first.read_bytes() == second.read_bytes():
        return
    reader = READERS.get(second.suffix)
    if reader is None:
        if first.read_bytes() != second.read_bytes():
            yield ": other bytes"
        return
    yield from differences(reader(before, first), reader(after, second))


def of_case(old: Side, new: Side, case: str) -> Iterator[str]:
    """The differences of a case."""
    before, after = old.files(case), new.files(case)
    for name in sorted({*before, *after}):
        if name not in before or name not in after:
            yield f"{name}: only in {'OLD' if name in before else 'NEW'}"
        else:
            yield from (f"{name}{line}" for line in of_files((old, before[name]), (new, after[name])))


def compare(before: Path, after: Path, names: Mapping[str, str], only: Sequence[str]) -> int:
    """Print what differs, case by case; 1 if anything does."""
    old, new = Side.of(before, names), Side.of(after, {})
    differs = False
    for case, about in old.about["cases"].items():
        if only and case not in only:
            continue
        other = new.about["cases"].get(case)
        if about["skipped"] or (other and other["skipped"]):
            differs |= not about["skipped"]
            print(f"{case}: not compared, {about['skipped'] or other['skipped']}")
            continue
        found = list(of_case(old, new, case)) if other else ["not recorded in NEW"]
        differs |= bool(found)
        print(f"{case}: " + (f"{len(found)} differences" if found else "equal"))
        for line in found[:SHOWN]:
            print(f"  {line}")
    return int(differs)

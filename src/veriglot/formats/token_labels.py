"""Token labels of translations in parallel files (Zhou et al. 2021): a line of 0 and 1 for each translation.

`NAME.label` holds a label a token, 1 for what the source does not support; `NAME.target` and `NAME.source` beside it
hold the texts, line by line, and `NAME.ref` a reference, if there is one. Tokens are what white space parts, so
punctuation belongs to its word. Runs of marked tokens become spans of type `hallucination` (taxonomy `hat`); the
reference goes to `meta.reference`. The target is the response and the source the evidence.

The languages are identified from the files' beginnings, as neither file nor name says them.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError
from veriglot.formats.base import Format, Reading, Sniff
from veriglot.formats.containers import BadRow, TooLongError, iter_lines
from veriglot.formats.language import TEXTS_LOOKED_AT, pair_of
from veriglot.records import Annotation, Evidence, Generator, Kind, Sample, Span, Task

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from veriglot.formats.containers import Head, Records

__all__ = []

_LABEL_LINE = re.compile(r"[01](?: [01])*")
_TOKEN = re.compile(r"[^ \t]+")
_TARGET, _SOURCE, _REFERENCE = ".target", ".source", ".ref"
_BESIDE = (".source.tok", ".tok", _TARGET, _SOURCE, _REFERENCE)  # the first two are segmentations of the source
_LINES_LOOKED_AT = 20


class TokenLabels(Format):
    """Lines of token labels, with the texts in files beside them."""

    name = "token-labels"
    summary = "token labels of translations, in parallel files .label, .target, .source"
    containers = ("text",)
    companions = tuple(f"*{ending}" for ending in _BESIDE)
    writable = False

    def sniff(self, head: Head) -> Sniff | None:
        """By lines that hold nothing but 0 and 1."""
        lines = [line for line in head.text.split("\n")[:_LINES_LOOKED_AT] if line.strip()]
        if lines and all(_LABEL_LINE.fullmatch(line.rstrip()) for line in lines[:-1] or lines):
            return Sniff(0.9, "lines of 0 and 1 alone")
        return None

    def reads_beside(self, file: Path) -> bool:
        """A text with labels beside it; without them any file may be called `.source`."""
        ending = next((ending for ending in _BESIDE if file.name.endswith(ending)), None)
        return ending is not None and file.with_name(file.name.removesuffix(ending) + ".label").is_file()

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:
        """One sample a line."""
        texts = _texts(reading)
        if not texts[_TARGET].exists:
            name = f"{reading.source.stem}{_TARGET}"
            raise InputError(f"these labels belong to a text that is not here: {name!r}", remedy="Put it beside them.")
        target, source, reference = (texts[ending].line(line) for ending in (_TARGET, _SOURCE, _REFERENCE))
        source_tag, target_tag = pair_of(_beginning(reading), reading)
        spans = _spans(str(data).split(), target or "")
        yield Sample(
            id=f"{reading.source.stem}-{line}",
            response=target or "",
            task=Task.TRANSLATION,
            language=target_tag,
            evidence=(Evidence(source, language=source_tag),) if source else (),
            generator=Generator(reading.source.stem),
            annotations=(Annotation(annotator="gold", kind=Kind.HUMAN, taxonomy="hat", spans=tuple(spans)),),
            meta={"reference": reference} if reference else {},
        )

    def rows(self, records: Records, reading: Reading) -> Iterator[Sample | BadRow]:
        """Samples and bad rows; translations that have no labels are bad rows too, wherever they stand."""
        after = 1
        for row in records:
            yield from _unlabelled(after, row.line, reading)
            yield from super().rows(iter([row]), reading)
            after = row.line + 1
        yield from _unlabelled(after, None, reading)


class _Parallel:
    """A file of lines, read forward by number in step with the labels; absent, it has no lines."""

    def __init__(self, file: Path | None) -> None:
        self.exists = file is not None and file.is_file()
        self._lines = _lines(file) if file is not None and self.exists else iter(())
        self._number = 0
        self._content: bytes | TooLongError = b""

    def line(self, number: int) -> str | None:
        """The line of that number, without its end; None beyond the last. Numbers never go down.

        Raises:
            InputError: the line is too long, or no UTF-8.
        """
        while self._number < number:
            following = next(self._lines, None)
            if following is None:
                return None
            self._number, self._content = following
        if self._number > number:
            return None
        if isinstance(self._content, TooLongError):
            raise self._content
        try:
            return self._content.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise InputError(f"the text of this line is not valid UTF-8 at its byte {error.start}") from error


def _lines(file: Path) -> Iterator[tuple[int, bytes | TooLongError]]:
    with file.open("rb") as stream:
        yield from iter_lines(stream)


def _beside(reading: Reading, ending: str) -> _Parallel:
    file = reading.source.file
    return _Parallel(file.with_name(file.stem + ending) if file is not None else None)


def _texts(reading: Reading) -> dict[str, _Parallel]:
    if "texts" not in reading.state:
        texts = {ending: _beside(reading, ending) for ending in (_TARGET, _SOURCE, _REFERENCE)}
        if not texts[_SOURCE].exists:
            reading.report.notes["without_source_file"] += 1
        reading.state["texts"] = texts
    parallel: dict[str, _Parallel] = reading.state["texts"]
    return parallel


def _beginning(reading: Reading) -> Iterator[tuple[str, str]]:
    target, source = _beside(reading, _TARGET), _beside(reading, _SOURCE)
    for number in range(1, TEXTS_LOOKED_AT + 1):
        try:
            yield source.line(number) or "", target.line(number) or ""
        except InputError:  # it is reported with its row
            continue


def _unlabelled(start: int, end: int | None, reading: Reading) -> Iterator[BadRow]:
    """Lines of the target from `start` up to `end` (or its last) that have no line of labels, unless they are empty."""
    path, target = reading.source.path, _texts(reading)[_TARGET]
    number = start
    while end is None or number < end:
        try:
            text = target.line(number)
        except InputError as error:
            yield BadRow(path, number, error.at(path=path, line=number))
        else:
            if text is None:
                return
            if text.strip():
                yield BadRow(path, number, InputError("this translation has no labels", path=path, line=number), text)
            else:
                reading.report.notes["empty_lines"] += 1
        number += 1


def _spans(labels: list[str], target: str) -> Iterator[Span]:
    tokens = [match.span() for match in _TOKEN.finditer(target)]
    if len(tokens) != len(labels):
        raise InputError(f"there are {len(labels)} labels for the {len(tokens)} tokens of the target")
    wrong = next((label for label in labels if label not in {"0", "1"}), None)
    if wrong is not None:
        raise InputError(f"a label is 0 or 1, not {wrong!r}")
    for label, run in groupby(zip(labels, tokens, strict=True), key=lambda pair: pair[0]):
        ranges = [offsets for _, offsets in run]
        if label == "1":
            yield Span(ranges[0][0], ranges[-1][1], "hallucination")

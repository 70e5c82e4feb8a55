"""One sample on the terminal: the response with its spans marked, and the pointed passages of the evidence below.

Colours show the type; without colours, brackets do, as in `[1978]{entity .91}`, so that nothing is lost in a pipe or
with NO_COLOR. Right-to-left text stays in logical order, as terminals with bidirectional layout, copying and searching
need it. It has its own lines, which start with a right-to-left mark, and our labels in it are in left-to-right
isolates, which have no width on terminals without bidirectional layout.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from rich.cells import cell_len, chop_cells
from rich.style import Style
from rich.text import Text

from veriglot.metrics.reference import check_pair
from veriglot.records import Pointer, Prediction, Sample, Span, Status
from veriglot.records.languages import language_name
from veriglot.report.palette import UNTYPED, palette, slot_of
from veriglot.report.text_layout import (
    count,
    direction,
    excerpt,
    hundredths,
    is_in_passage,
    likelihood,
    misplaced_parts,
    note_words,
    printable,
    segments,
    status_words,
    task_words,
    unit_rows,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console


__all__ = ["render_terminal"]


# Line breaks for a terminal: at spaces, and between wide characters, which are written without spaces.


_WIDE = (
    "\u2e80-\u2fff\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_NEVER_FIRST = "、。，．！？；：）」』】》〉〕…～ー々%％,.!?;:)\\]}”’"
_TOKEN = re.compile(rf"\s+|[{_WIDE}][{_NEVER_FIRST}]*|[^\s{_WIDE}]+")


def line_breaks(text: str, width: int) -> list[int]:
    """Offsets, in code points, at which to break `text` into lines of at most `width` cells.

    Spaces at the end of a line may exceed the width. A word wider than a line is broken between characters. Wide
    characters count as two cells, combining marks and joiners as none.
    """
    breaks: list[int] = []
    room = width
    for match in _TOKEN.finditer(text):
        token, at = match.group(), match.start()
        cells = cell_len(token)
        if token.isspace() or cells <= room:
            room -= cells
            continue
        if at and not (breaks and breaks[-1] == at):
            breaks.append(at)
        room = width - cells
        if cells > width:
            for part in (parts := chop_cells(token, width))[:-1]:
                at += len(part)
                breaks.append(at)
            room = width - cell_len(parts[-1])
    return breaks


_RLM, _LRI, _PDI = "\u200f", "\u2066", "\u2069"
_ON_TINT = "#161616"
_POINTERS_SHOWN = 2
_INDENT = 5
_SPACES = re.compile(r"\s+")
_DIM = Style(dim=True)
_WARNING = Style(bold=True, reverse=True)


def render_terminal(sample: Sample, prediction: Prediction, console: Console) -> None:
    """Print one sample with its prediction.

    Args:
        sample: the sample.
        prediction: the prediction for it.
        console: where to print. Without colours (NO_COLOR, a pipe) spans are in brackets; in a pipe no line is wrapped.

    Raises:
        InputError: the prediction is for another sample.
    """
    check_pair(sample, prediction)
    _Drawing(sample, prediction, console).show()


def any_cross(spans: Sequence[Span]) -> bool:
    """Whether two spans overlap without one containing the other."""
    enclosing: list[int] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        while enclosing and enclosing[-1] <= span.start:
            enclosing.pop()
        if enclosing and span.end > enclosing[-1]:
            return True
        enclosing.append(span.end)
    return False


def share(value: float) -> str:
    """A confidence with two digits and without the leading zero: `.91`, `1.00`."""
    return f"{hundredths(value) / 100:.2f}".removeprefix("0")


class _Drawing:
    """The shared state of the parts of one sample's output."""

    def __init__(self, sample: Sample, prediction: Prediction, console: Console) -> None:
        self.sample = sample
        self.prediction = prediction
        self.console = console
        self.plain = console.no_color or console.color_system is None
        self.spans = prediction.spans or ()
        self.language = prediction.language or sample.language
        self.rtl = direction(sample.response, self.language) == "rtl"

    def show(self) -> None:
        self._lines(self._title())
        self._lines(self._verdict())
        for problem in misplaced_parts(self.sample, self.prediction):
            self._lines(Text(f"! {_one_line(problem)}", _WARNING))
        self._line(Text())
        self._lines(self._response(), self.rtl)
        if self.spans:
            self._line(Text())
            self._list()
            self._lines(self._legend())
        self._units()
        for note in self.prediction.notes:
            self._lines(Text(f"Note: {_one_line(note_words(note))}", _DIM))

    def _title(self) -> Text:
        title = Text.assemble((_one_line(self.sample.id), Style(bold=True)))
        facts = [task_words(self.sample.task), language_name(self.language), self.prediction.detector]
        if self.sample.generator is not None:
            facts.append(f"response by {self.sample.generator.name}")
        return title.append("".join(f" · {_one_line(fact)}" for fact in facts if fact), _DIM)

    def _verdict(self) -> Text:
        prediction = self.prediction
        if prediction.status is not Status.SCORED:
            words = " · ".join(filter(None, (status_words(prediction.status), _one_line(prediction.reason or ""))))
            return Text.assemble((" NOT CHECKED ", _WARNING), f" {words}")
        verdict = count(len(self.spans), "unsupported span") if self.spans else "no unsupported span found"
        return Text(f"{verdict} · {likelihood(prediction.score or 0.0)} likely that any part is unsupported")

    def _response(self) -> Text:
        response = self.sample.response
        if not response:
            return Text("(the response is empty)", _DIM)
        text = Text()
        base = Style() if self.prediction.status is Status.SCORED else _DIM
        numbered = self.plain and any_cross(self.spans)
        before: tuple[int, ...] = ()
        for start, end, covering in segments(len(response), self.spans):
            self._close(text, before, covering, numbered)
            if self.plain:
                text.append("".join(f"[{i + 1}:" if numbered else "[" for i in covering if i not in before))
            text.append(self._literal(response[start:end]), self._style(covering) if covering else base)
            before = covering
        self._close(text, before, (), numbered)
        return text

    def _close(self, text: Text, before: tuple[int, ...], after: tuple[int, ...], numbered: bool) -> None:
        """Write the label of each span that ends here, innermost first."""
        for index in reversed(before):
            if index in after:
                continue
            span = self.spans[index]
            parts = [str(index + 1)] if numbered else []
            parts += [_name(span)] if self.plain else []
            parts += [share(span.confidence)] if span.confidence is not None else []
            if parts:
                label = f"{{{self._literal(' '.join(parts))}}}"
                text.append("]" if self.plain else "")
                text.append(f"{_LRI}{label}{_PDI}" if self.rtl else label, _DIM)

    def _literal(self, text: str) -> str:
        text = printable(text)
        return text.replace("]{", "]\\{") if self.plain else text  # hostile text must not look like a mark

    def _style(self, covering: tuple[int, ...]) -> Style:
        """The innermost span gives the background; underlined if other spans cover the same text."""
        if self.plain:
            return Style()
        return self._tint(self.spans[covering[-1]].type) + Style(underline=len(covering) > 1)

    def _tint(self, type_: str | None) -> Style:
        shades = palette().slots[slot_of(type_)].terminal
        if self.console.color_system in {"standard", "windows"}:
            return Style(color="black", bgcolor=shades.ansi)
        return Style(color=_ON_TINT, bgcolor=shades.background)

    def _list(self) -> None:
        passages = {passage.id or "": passage for passage in self.sample.evidence}
        for number, span in enumerate(self.spans, 1):
            line = Text.assemble(f"{number:>3}  ", (f" {_name(span)} ", self._style((number - 1,))))
            line.append(f" {share(span.confidence)}" if span.confidence is not None else "")
            self._lines(line)
            quoted = excerpt(self.sample.response, span.start, min(span.end, len(self.sample.response)), around=0)
            if quoted.quoted:
                self._lines(Text(f"“{_one_line(quoted.quoted)}”"), self.rtl, _INDENT)
            for pointer in span.evidence[:_POINTERS_SHOWN]:
                passage = passages.get(pointer.id)
                if passage is not None and is_in_passage(pointer, len(passage.text)):
                    rtl = direction(passage.text, passage.language) == "rtl"
                    self._lines(self._snippet(pointer, passage.text, rtl, quoted.quoted), rtl, _INDENT)
            more = len(span.evidence) - _POINTERS_SHOWN
            if more > 0:
                self._line(Text(f"       and {more} more place{'s' * (more > 1)}", _DIM))

    def _units(self) -> None:
        """The sentences or facts with their scores, if the prediction has them."""
        rows = unit_rows(self.sample, self.prediction)
        if rows:
            self._line(Text())
        for row in rows:
            self._line(Text.assemble(f"{share(row.score):>4}  ", (_one_line(row.kind), _DIM)))
            self._lines(Text(f"“{_one_line(row.text)}”"), self.rtl, _INDENT + 1)

    def _snippet(self, pointer: Pointer, passage: str, rtl: bool, mark: str) -> Text:
        before, quoted, after = (
            _SPACES.sub(" ", printable(part)) for part in excerpt(passage, pointer.start, pointer.end, mark=mark)
        )
        name = f"{_one_line(pointer.id)}:"
        text = Text.assemble((f"{_LRI}{name}{_PDI}" if rtl else name, _DIM), " ", (before, _DIM))
        if self.plain:
            text.append(f"[{quoted}]")
        else:
            text.append(quoted, Style(bold=True, underline=True))
        return text.append(after, _DIM)

    def _legend(self) -> Text:
        counts = Counter((span.type, _name(span)) for span in self.spans)
        if self.plain:
            return Text("types: " + ", ".join(f"{name} {times}" for (_, name), times in counts.items()))
        legend = Text.assemble(("types  ", _DIM))
        for (type_, name), times in counts.items():
            legend.append(f" {name} ", self._tint(type_)).append(f" {times}   ")
        return legend

    def _lines(self, text: Text, rtl: bool = False, indent: int = 0) -> None:
        """Print sample text; each right-to-left line starts with a mark of its direction."""
        lead = Text((_RLM if rtl else "") + " " * indent)
        for paragraph in text.split("\n", allow_blank=True):
            for line in self._wrapped(paragraph, indent):
                self._line(lead + line)

    def _wrapped(self, paragraph: Text, indent: int) -> Iterable[Text]:
        if not self.console.is_terminal:
            return [paragraph]
        breaks = line_breaks(paragraph.plain, max(2, self.console.width - indent))
        lines = paragraph.divide(breaks)
        for line in lines:
            line.rstrip()
        return lines

    def _line(self, text: Text) -> None:
        self.console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)


def _name(span: Span) -> str:
    return _one_line(span.type) if span.type else UNTYPED


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())

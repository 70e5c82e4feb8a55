"""The table, and its renderers: terminal, HTML, Markdown, LaTeX, CSV, JSON."""

from __future__ import annotations

import csv
import re
import sys
from dataclasses import dataclass
from io import StringIO
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from veriglot.plugins import read_package_data
from veriglot.report.text_layout import printable
from veriglot.storage.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

__all__ = ["Cell", "Table", "Value", "escape_latex", "escape_markdown", "open_console", "write_csv"]

_PLAIN_WIDTH = 200  # assumed columns of output that is not a terminal; it would report 80
_GAP = 3  # spaces between two columns of a table
_WIDEST = 40  # a text is wrapped beyond so many columns

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Cell:
    """A value with its presentation.

    Attributes:
        text: the value as it is printed.
        detail: its interval, or what it is a share of; fainter. Shown below if it begins with a line break.
        kind: `strong`, `best` (of LaTeX), `doubtful`, `absent`, `watch` (needs attention), `seen` (trained on) or
            `right` (the diagonal).
        value: sort key on a page.
        heat: from 0 (pale) to 1 (dark), the background on a page.
        hint: more about it, a tooltip on a page.
    """

    text: str
    detail: str = ""
    kind: str = ""
    value: float | None = None
    heat: float | None = None
    hint: str | None = None

    @property
    def class_(self) -> str:
        """CSS classes of the cell."""
        step = "" if self.heat is None else f"heat-cell heat-{min(max(int(self.heat * 10), 0), 9)}"
        return f"{step or 'number'} {self.kind}".rstrip()

    @property
    def sort(self) -> str | None:
        """Sort key on a page: the value, empty for a missing figure, None for text."""
        return "" if self.kind == "absent" else None if self.value is None else repr(self.value)

    def __str__(self) -> str:
        return " ".join(f"{self.text} {self.detail}".split())


@dataclass(frozen=True, slots=True)
class Table:
    """One table.

    Attributes:
        title: its content, in words.
        columns: heads of the columns; the first names the rows.
        rows: a `Value` or a `Cell` for each column. Shares are between 0 and 1 unless they are already text.
        totals: number of rows at the end that summarize those above.
        lead: number of columns that are repeated if a terminal is too narrow for all.
        look: CSS classes of the table.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    totals: int = 0
    lead: int = 1
    look: str = "sortable"

    @classmethod
    def of(cls, title: str, records: Iterable[object], fields: str, columns: str | None = None) -> Table:
        """A row for each record, with its fields as values; several values in one are separated by semicolons.

        Args:
            title: of the table.
            records: the rows.
            fields: names of fields, also of nested ones (`cost.wall`), separated by spaces.
            columns: their heads, likewise; None for the names themselves.
        """
        values = attrgetter(*fields.split())
        return cls.named(title, columns or fields, [tuple(map(_value, values(record))) for record in records])

    @classmethod
    def named(cls, title: str, columns: str, rows: Sequence[Sequence[Any]]) -> Table:
        """A table from rows, with single words as heads of columns, as for `Table.of`."""
        return cls(title, tuple(columns.split()), rows)

    @property
    def numeric(self) -> list[bool]:
        """Whether each column has figures, which are right-aligned; never the first."""
        texts = [[_plain(row[index]) for row in self.rows] for index in range(len(self.columns))]
        return [
            index > 0 and any(map(_DIGIT, column)) and all(map(_FIGURE, column)) for index, column in enumerate(texts)
        ]

    def records(self) -> list[dict[str, Any]]:
        """The rows as objects with the columns as keys, for JSON."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def to_csv(self) -> str:
        r"""The table as CSV (RFC 4180, `\n` between rows): numbers at full precision, None is empty.

        Text that a spreadsheet would run as a formula (it begins with `=`, `+`, `-` or `@`) gets a `'` in front, since
        responses and names are untrusted.
        """
        file = StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_csv_field(value) for value in row] for row in self.rows)
        return file.getvalue()

    def to_markdown(self) -> str:
        """The table without its title, with a line break at the end."""
        head, *rows = ([escape_markdown(_plain(value)) for value in row] for row in (self.columns, *self.rows))
        rule = ["---:" if right else "---" for right in self.numeric]
        return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, rule, *rows))

    def to_latex(self) -> str:
        """`tabular`s for booktabs with as many columns as fit a page; `longtable`s if they are longer than a page."""
        rows = [[_plain(value) for value in row] for row in (self.columns, *self.rows)]
        wide = [max(map(len, column)) > _WIDEST for column in zip(*rows, strict=True)]
        kind = "longtable" if sum(1 + max(map(len, row)) // _WIDEST for row in rows) > _PAGE else "tabular"
        lines = self._needs(kind)
        for indices in self._groups(_PAPER):
            head, *body = (
                _latex_row((_breakable if wide[index] else escape_latex)(row[index]) for index in indices)
                for row in rows
            )
            columns = "".join("p{5.5cm}" if wide[index] else "l" for index in indices)
            lines += [rf"\begin{{{kind}}}{{{columns}}}", r"\toprule", head, r"\midrule"]
            lines += [
                *[r"\endhead"] * (kind == "longtable"),
                *body,
                r"\bottomrule",
                rf"\end{{{kind}}}",
                r"\bigskip",
                "",
            ]
        return "\n".join(lines)

    def to_latex_float(self, title: str, caption: str, label: str) -> str:
        """`table*`s of centred columns for the package booktabs that fit a page; a cell's detail is below it."""
        end = len(self.rows) - self.totals
        starts = range(0, max(end, 1), _LANGUAGES)
        blocks = [
            (columns, self.rows[at : len(self.rows) if at == starts[-1] else at + _LANGUAGES])
            for columns in self._groups(_PAPER_OF_TWO, below=True)
            for at in starts
        ]
        text = ""
        for number, (columns, rows) in enumerate(blocks, 1):
            part, mark = (f", part {number} of {len(blocks)}", f"-{number}") if len(blocks) > 1 else ("", "")
            heading = escape_latex(f"{title}{part}. {caption}")
            lines = [*self._needs("tabular", heading), r"\begin{table*}", r"\centering", r"\small"]
            lines += [*self._float(columns, rows), rf"\caption{{{heading}}}", rf"\label{{{label}{mark}}}"]
            text += "\n".join([*lines, r"\end{table*}", ""])
        return text

    def _float(self, columns: Sequence[int], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
        yield rf"\begin{{tabular}}{{l{'c' * len(columns[1:])}}}"
        yield from (r"\toprule", _latex_row(escape_latex(self.columns[index]) for index in columns), r"\midrule")
        for row in rows:
            if row is not rows[0]:  # less space between the two lines of a row than between rows
                yield r"\midrule" if row in self.rows[len(self.rows) - self.totals :] else r"\addlinespace[2pt]"
            cells = [value if isinstance(value, Cell) else Cell(_plain(value)) for value in (row[i] for i in columns)]
            yield _latex_row(_LATEX_KINDS.get(cell.kind, "{}").format(escape_latex(cell.text)) for cell in cells)
            details = [escape_latex(cell.detail) for cell in cells]
            yield _latex_row(rf"{{\scriptsize {detail}}}" if detail else "" for detail in details)
        yield from (r"\bottomrule", r"\end{tabular}")

    def _needs(self, kind: str, caption: str = "") -> list[str]:
        """Comments: required packages, and the engine if pdfLaTeX lacks letters for a name."""
        text = "".join([caption, *map(str, self.columns), *(str(value) for row in self.rows for value in row)])
        other = any(char.isalpha() and char > "\u024f" for char in text)
        long = ",longtable", r" and one column: \onecolumn before it in a paper of two"
        package, page = long if kind == "longtable" else ("", "")
        return [rf"% needs \usepackage{{booktabs{package}}}{page}", *_OTHER_SCRIPTS * other]

    def print(self, console: Console | None = None) -> None:
        """Print the table with its title, as several if the terminal is too narrow for all columns.

        Args:
            console: where to print; None for standard output.
        """
        from rich.text import Text

        console = console or open_console()
        if self.title:
            console.print(Text(printable(self.title), style="bold"))
        for indices in self._groups(console.width):
            console.print(self._rich(indices))

    def _groups(self, width: int, *, below: bool = False) -> Iterator[list[int]]:
        """Columns that fit next to each other, details next to them or below; every group has the leading ones."""
        from rich.cells import cell_len

        def width_of(value: Value | Cell) -> int:
            if below and isinstance(value, Cell):  # details are printed smaller
                return max(cell_len(value.text), cell_len(value.detail) * 3 // 4)
            return max(map(cell_len, _lines(value)))

        def needed(index: int) -> int:
            return min(max(width_of(row[index]) for row in (self.columns, *self.rows)), _WIDEST) + _GAP

        lead = list(range(min(self.lead, len(self.columns))))
        used = room = sum(map(needed, lead))
        group: list[int] = []
        for index in range(len(lead), len(self.columns)):
            used += needed(index)
            if group and used > width:
                yield lead + group
                group, used = [], room + needed(index)
            group.append(index)
        yield lead + group

    def _rich(self, indices: Sequence[int]) -> RichTable:
        from rich import box
        from rich.table import Table as RichTable

        table = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        numeric = self.numeric
        for index in indices:
            head = _styled(self.columns[index])
            right = numeric[index]
            table.add_column(head, justify="right" if right else "left", no_wrap=right, overflow="fold")
        for number, row in enumerate(self.rows):
            if number and number == len(self.rows) - self.totals:
                table.add_section()
            table.add_row(*(_styled(row[index]) for index in indices))
        return table


def write_csv(tables: Mapping[str, Table], folder: str | Path) -> list[Path]:
    """Write tables as `NAME.csv` into a folder, which is created if it does not exist.

    Returns:
        The files that were written.

    Raises:
        OSError: a file cannot be written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.csv" for name in tables]
    for path, table in zip(paths, tables.values(), strict=True):
        write_whole(path, table.to_csv().encode())
    return paths


def as_json(data: Any) -> str:
    """Any record as indented JSON with a line break at the end."""
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode() + "\n"


def open_console(file: TextIO | None = None) -> Console:
    """A console for tables and lines, printed unchanged; 200 columns wide if it is not a terminal.

    Args:
        file: where to print; None for standard output.
    """
    from rich.console import Console

    console = Console(file=file or sys.stdout, markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = max(console.width, _PLAIN_WIDTH)
    return console


_DIGIT = re.compile(r"\d").search
_FIGURE = re.compile(r"(?!.{49})(about )?[(\[]?[<>+\N{MINUS SIGN}-]?\.?\d|[–-]?$").match
_STYLES = {"strong": "bold", "doubtful": "bold yellow", "absent": "dim", "watch": "bold", "right": "bold"}


def _value(field: object) -> Value:
    if isinstance(field, dict):
        field = tuple(f"{key}={item}" for key, item in field.items())
    return "; ".join(field) or None if isinstance(field, tuple) else field  # type: ignore[return-value]


def _plain(value: Value | Cell) -> str:
    """A value as text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _lines(value: Value | Cell) -> list[str]:
    text = f"{value.text} {value.detail}" if isinstance(value, Cell) else _plain(value)
    return [line.strip() for line in text.split("\n")]


def _styled(value: Value | Cell) -> Text:
    from rich.text import Text

    if not isinstance(value, Cell):
        return Text(printable(_plain(value)))
    text = Text(printable(value.text), style=_STYLES.get(value.kind, ""))
    if value.detail:
        text = Text.assemble(text, ("" if value.detail.startswith("\n") else " "), (printable(value.detail), "dim"))
    return text


_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a formula in a spreadsheet."""


def _csv_field(value: Value | Cell) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    text = _plain(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#])")
_LATEX = read_package_data(__package__, "latex.json", dict[str, str])
_LATEX_KINDS = {"best": r"\textbf{{{}}}", "doubtful": r"\emph{{{}}}"}
_OTHER_SCRIPTS = [
    r"% compile with LuaLaTeX, as pdfLaTeX lacks letters for these names: \usepackage[english,bidi=basic]{babel}, then",
    r"% for each script: \babelprovide[import,onchar=ids fonts]{arabic} \babelfont[arabic]{rm}{Amiri}",
]
_PAGE = 40  # lines of a table per page
_LANGUAGES = 18  # rows of a float with details
_PAPER, _PAPER_OF_TWO = 66, 88  # letters per line in a paper, and, smaller, over both columns of a two-column paper
_PIECES = re.compile(r"[^|/_:;,.+=-]{1,24}[|/_:;,.+=-]?|.")


def escape_markdown(text: str) -> str:
    """Text on one line of Markdown, with all markup escaped."""
    return _MARKDOWN.sub(r"\\\1", " ".join(printable(text).split()))


def escape_latex(text: str) -> str:
    """Text on one line of LaTeX."""
    return "".join(_LATEX.get(char, char) for char in " ".join(printable(text).split()))


def _breakable(text: str) -> str:
    """Text in LaTeX with possible line breaks in anything longer than a word, such as a signature."""
    words = (_PIECES.findall(word) if len(word) > 24 else [word] for word in printable(text).split())
    return " ".join(r"\allowbreak{}".join(map(escape_latex, pieces)) for pieces in words)


def _latex_row(cells: Iterable[str]) -> str:
    """A row of a `tabular` from LaTeX cells; nothing in it is read as an argument of the `\\\\` before it."""
    row = " & ".join(cells)
    return ("{}" if row.startswith(("[", "*")) else "") + row + r" \\"

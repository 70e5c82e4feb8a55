"""A study's tables as text for papers and programs: CSV, JSON, Markdown, LaTeX."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.errors import UnknownNameError
from veriglot.report.assembly import opened
from veriglot.report.study.delimited import csv_text
from veriglot.report.study.matrix import latex_escaped, latex_matrix, markdown_escaped, markdown_matrix
from veriglot.report.study.tables import Table, study_tables
from veriglot.report.study.view import View

if TYPE_CHECKING:
    from collections.abc import Callable

    from veriglot.report.study.tables import Value
    from veriglot.study.results import StudyResults

__all__ = ["FORMATS", "study_table", "write_tables"]

FORMATS = ("csv", "json", "markdown", "latex")


def study_table(results: StudyResults, format: str, *, table: str | None = None) -> str:  # noqa: A002  # as in the CLI
    """One table of a study, or what a format shows where none is named.

    Args:
        results: the study's results.
        format: `csv` (without a name: `rates`), `json` (without a name: an object with every table), `markdown` or
            `latex` (without a name: rates, languages by models, as a paper prints them).
        table: the name of a table: `rates`, `models`, `languages`, `ranks`, `comparisons`, `correlations`, `types`,
            `coverage`, `quality`, `cells`, `replicates`, `settings`, `examples`.

    Raises:
        UnknownNameError: no such format, or the study has no such table.
    """
    if format not in FORMATS:
        raise UnknownNameError("format of a table", format, FORMATS)
    tables = study_tables(results)
    if table is not None and table not in tables:
        raise UnknownNameError("table of this study", table, tables)
    if format == "json":
        return _json(results, tables, table)
    if format == "csv":
        return csv_text(tables[table or "rates"]) if tables else ""
    if table is None:
        return (markdown_matrix if format == "markdown" else latex_matrix)(View(results))
    return (_markdown if format == "markdown" else _latex)(tables[table])


def write_tables(results: StudyResults, folder: str | Path) -> list[Path]:
    """Write every table of a study as `NAME.csv` into a folder, which is made where there is none.

    Returns:
        The files that were written.

    Raises:
        OSError: a file cannot be written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for table in study_tables(results).values():
        path = folder / f"{table.name}.csv"
        with opened(path) as file:
            file.write(csv_text(table))
        written.append(path)
    return written


def _json(results: StudyResults, tables: dict[str, Table], wanted: str | None) -> str:
    def listed(table: Table) -> list[dict[str, Any]]:
        return [dict(zip(table.columns, row, strict=True)) for row in table.rows]

    data: Any
    if wanted is not None:
        data = listed(tables[wanted])
    else:
        data = {
            "title": results.title,
            "unit": results.unit,
            "estimator": results.estimator,
            "confidence": results.confidence,
            "warnings": results.warnings,
            "signature": results.signature,
            "tables": {name: listed(table) for name, table in tables.items()},
        }
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode("utf-8") + "\n"


def _markdown(table: Table) -> str:
    lines = [_bars(table.columns), _bars("---" for _ in table.columns)]
    lines += [_bars(_cell(value, markdown_escaped) for value in row) for row in table.rows]
    return "\n".join([*lines, ""])


def _bars(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _latex(table: Table) -> str:
    rows = [" & ".join(_cell(value, latex_escaped) for value in row) + r" \\" for row in table.rows]
    head = " & ".join(latex_escaped(column) for column in table.columns) + r" \\"
    lines = [
        r"% needs \usepackage{booktabs}", rf"\begin{{tabular}}{{{'l' * len(table.columns)}}}", r"\toprule", head,
        r"\midrule", *rows, r"\bottomrule", r"\end{tabular}", "",
    ]  # fmt: skip
    return "\n".join(lines)


def _cell(value: Value, escaped: Callable[[str], str]) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = escaped(f"{value:.4g}" if isinstance(value, float) else str(value))
    return f"{{}}{text}" if escaped is latex_escaped and text.startswith("[") else text  # not an argument of `\\\\`

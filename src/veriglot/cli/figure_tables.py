"""Figures as tables for people: a row per language, the mean and the pooled figures below, intervals under values."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from veriglot.metrics.figure import MEAN, POOLED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.bench.evaluate import Evaluation
    from veriglot.metrics.figure import Figure

__all__ = ["show"]

_PLAIN_WIDTH = 200  # columns where no terminal says how many there are: enough for every table
_LEAD_WIDTH, _COLUMN_WIDTH = 46, 12
_MISSING = "-"
_LEGEND = (
    "n: responses that were labelled and scored; scored: their share of the labelled ones. mean: over languages;"
    " pooled: all counts added. prevalence: share that the labels call unsupported; figures at one prevalence do not"
    " carry over to another."
)
_INTERVALS = " Under each value: its 95% interval, from a bootstrap that draws whole texts."
_GAP = re.compile(r"undefined in \d+ of (\d+) resamples")


class _Column(NamedTuple):
    head: str
    level: str
    name: str


class _Layout(NamedTuple):
    """One table: its title, what is counted in it, its columns, all of one level."""

    title: str
    counted: str
    columns: tuple[_Column, ...]


_RATES = (("precision", "precision"), ("recall", "recall"), ("F1", "f1"), ("FPR", "fpr"))
_RANKING = (("AP", "average_precision"), ("AUROC", "auroc"))
_CALIBRATION = (("ECE", "ece"), ("ECE, equal mass", "ece_equal_mass"), ("Brier", "brier"))
_TYPED = (("macro", "f1_macro"), ("micro", "f1_micro"), ("type right", "type_accuracy"))
_SPANS = (("exact", "exact_f1"), ("overlap", "overlap_f1"), ("partial", "partial_f1"), ("typed", "typed_overlap_f1"))
_SUPPORTED = (("AP, supported", "average_precision_supported"),)
_SUPPORT = (
    ("by labels", "support"),
    ("not marked", "support_found"),
    ("by scores", "support_expected"),
    ("mean error", "support_error"),
    ("correlation", "support_correlation"),
)
_CHARACTERS = (("IoU", "iou"), ("soft-label correlation", "soft_correlation"))


def _layouts(unit: str) -> list[_Layout]:
    table = (
        (f"Units ({unit}), unsupported or not", unit, "unit", (*_RATES, ("MCC", "mcc"), ("accuracy", "accuracy"))),
        (f"Confidence of units ({unit})", unit, "unit", (*_RANKING, *_CALIBRATION)),
        (f"Units ({unit}) with their type, F1", unit, "category", _TYPED),
        ("Spans, F1", "spans", "span", _SPANS),
        ("Characters", "characters", "char", _CHARACTERS),
        ("Atomic facts", "facts", "fact", (*_RATES, *_RANKING, *_SUPPORTED, *_CALIBRATION[:1])),
        ("Share of a response's facts that is supported", "responses", "fact", _SUPPORT),
        ("Sentences", "sentences", "sentence", (*_RATES, *_RANKING, *_SUPPORTED)),
        ("Responses", "responses", "response", (*_RATES, *_RANKING, *_CALIBRATION[:1])),
    )
    return [
        _Layout(title, counted, tuple(_Column(head, level, name) for head, name in names))
        for title, counted, level, names in table
    ]


def _fitting(layout: _Layout, width: int) -> Iterator[_Layout]:
    """The layout in as many tables as it takes to cut nothing off."""
    most = max(1, (width - _LEAD_WIDTH) // _COLUMN_WIDTH)
    for start in range(0, len(layout.columns), most):
        yield layout._replace(columns=layout.columns[start : start + most])


def _number(value: float | None, digits: int = 3) -> str:
    return _MISSING if value is None else f"{value:.{digits}f}"


def _short(value: float) -> str:
    """Two digits without the zero in front: `.34`, `-.02`, `1.0`."""
    text = f"{value:.2f}"
    return {"1.00": "1.0", "-0.00": ".00"}.get(text, text.replace("0.", ".", 1))


def _share(value: float | None) -> str:
    return _MISSING if value is None else f"{100 * value:.1f}%"


def _cell(figure: Figure | None) -> Text:
    if figure is None or figure.value is None:
        return Text(_MISSING)
    text = Text(_number(figure.value))
    if figure.low is not None and figure.high is not None:
        text.append(f"\n{_short(figure.low)} {_short(figure.high)}", style="dim")
    return text


def _frame(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)


def _table(found: Evaluation, layout: _Layout, by_key: dict[tuple[str, str, str], Figure]) -> Table | None:
    languages = list(dict.fromkeys(figure.language for figure in found.figures))
    if len(languages) == 3:  # of one language, the mean and the pooled figures say the same once more
        languages = languages[:1]
    present = [c for c in layout.columns if any((c.level, c.name, tag) in by_key for tag in languages)]
    if not present:
        return None
    table = _frame(layout.title)
    for head in ("language", "n", "scored", layout.counted, "prevalence", *(c.head for c in present)):
        table.add_column(head, justify="left" if head == "language" else "right", no_wrap=True)
    for tag in languages:
        first = by_key[present[0].level, present[0].name, tag]
        if tag == MEAN:
            table.add_section()
        table.add_row(
            tag,
            f"{first.n_responses:,}",
            _share(first.coverage),
            f"{first.n_units:,}",
            _share(first.prevalence),
            *(_cell(by_key.get((c.level, c.name, tag))) for c in present),
        )
    return table


def _types(found: Evaluation, by_key: dict[tuple[str, str, str], Figure]) -> Table | None:
    """A row per type: one against the rest, over all languages."""
    names = [name for name in found.counts.types if (f"type:{name}", "f1", POOLED) in by_key]
    if not names:
        return None
    table = _frame(f"Units ({found.counts.unit}), each type against the rest, pooled")
    for head in ("type", found.counts.unit, "prevalence", "precision", "recall", "F1", "FPR", "mean F1"):
        table.add_column(head, justify="left" if head == "type" else "right", no_wrap=True)
    for name in names:
        level = f"type:{name}"
        f1 = by_key[level, "f1", POOLED]
        cells = [_cell(by_key[level, measure, POOLED]) for measure in ("precision", "recall", "f1", "fpr")]
        table.add_row(name, f"{f1.n_units:,}", _share(f1.prevalence), *cells, _cell(by_key[level, "f1", MEAN]))
    return table


def _reliability(found: Evaluation) -> Table | None:
    rows = [row for row in found.reliability()[POOLED] if row.units]
    if not rows:
        return None
    table = _frame(f"Confidence of units ({found.counts.unit}) against labels, pooled")
    for head in ("from", "below", found.counts.unit, "mean confidence", "unsupported"):
        table.add_column(head, justify="right")
    for row in rows:
        shares = (_number(row.confidence), _number(row.positive))
        table.add_row(_number(row.low), _number(row.high), f"{row.units:,}", *shares)
    return table


def _reasons(shown: Sequence[Figure]) -> Iterator[str]:
    """Why values or intervals are missing, each reason once; with few texts most resamples differ in the count."""
    by_reason: dict[str, list[str]] = {}
    for figure in shown:
        if figure.reason:
            reason = _GAP.sub(r"undefined in part of the \1 resamples; --json says in how many", figure.reason)
            by_reason.setdefault(reason, []).append(f"{figure.level}.{figure.name} ({figure.language})")
    for reason, places in by_reason.items():
        more = f" and {len(places) - 3} more" if len(places) > 3 else ""
        yield f"{', '.join(places[:3])}{more}: {reason}"


def _print(console: Console, table: Table | None) -> None:
    if table is not None:
        console.print(table)


def show(found: Evaluation, levels: Sequence[str] | None = None) -> None:
    """Print the tables of an evaluation on standard output.

    Args:
        found: the evaluation.
        levels: the levels that were asked for; the reliability table comes with `unit`.
    """
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else _PLAIN_WIDTH, highlight=False)
    if all(figure.coverage is None for figure in found.figures):  # nothing was labelled: every table would be empty
        _close(console, found, [])
        return
    by_key = {(figure.level, figure.name, figure.language): figure for figure in found.figures}
    shown: list[Figure] = []
    for layout in _layouts(found.counts.unit):
        if levels is None and layout.columns[0].level == "category" and len(found.counts.types) == 1:
            continue  # one type says what "unsupported or not" said
        for part in _fitting(layout, console.width):
            _print(console, _table(found, part, by_key))
        if (layout.columns[0].level, layout.columns[0].name, POOLED) in by_key:
            wanted = {(column.level, column.name) for column in layout.columns}
            shown += [figure for figure in found.figures if (figure.level, figure.name) in wanted]
        if layout.columns[0].level == "category":
            _print(console, _types(found, by_key))
    reliability = _reliability(found) if levels is None or "unit" in levels else None
    _print(console, reliability)
    intervals = _INTERVALS if any(figure.low is not None for figure in shown) else ""
    console.print(f"{_LEGEND}{intervals}", style="dim", soft_wrap=True)
    _close(console, found, [*_reasons(shown)])


def _close(console: Console, found: Evaluation, reasons: Sequence[str]) -> None:
    for line in (*found.notes, *reasons):
        console.print(f"Note: {line}", soft_wrap=True, markup=False)
    console.print(f"Signature: {found.signature}", soft_wrap=True, markup=False)

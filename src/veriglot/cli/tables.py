"""Tables for the terminal: figures by language, agreement of annotators, the state and the plan of a study."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from veriglot.metrics.estimate import FEWEST_TEXTS, MEAN, POOLED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from veriglot.bench.evaluation import Evaluation
    from veriglot.metrics.estimate import MetricResult
    from veriglot.studio.agreement import AgreementReport, AgreementRow
    from veriglot.study.run import Rehearsal, Status

__all__ = ["print_rehearsal", "print_status", "show_agreement", "show_figures"]


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


def _cell(figure: MetricResult | None) -> Text:
    if figure is None or figure.value is None:
        return Text(_MISSING)
    text = Text(_number(figure.value))
    if figure.low is not None and figure.high is not None:
        text.append(f"\n{_short(figure.low)} {_short(figure.high)}", style="dim")
    return text


def _frame(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)


def _table(evaluation: Evaluation, layout: _Layout, by_key: dict[tuple[str, str, str], MetricResult]) -> Table | None:
    languages = list(dict.fromkeys(figure.language for figure in evaluation.figures))
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


def _types(evaluation: Evaluation, by_key: dict[tuple[str, str, str], MetricResult]) -> Table | None:
    """A row per type: one against the rest, over all languages."""
    names = [name for name in evaluation.counts.types if (f"type:{name}", "f1", POOLED) in by_key]
    if not names:
        return None
    table = _frame(f"Units ({evaluation.counts.unit}), each type against the rest, pooled")
    for head in ("type", evaluation.counts.unit, "prevalence", "precision", "recall", "F1", "FPR", "mean F1"):
        table.add_column(head, justify="left" if head == "type" else "right", no_wrap=True)
    for name in names:
        level = f"type:{name}"
        f1 = by_key[level, "f1", POOLED]
        cells = [_cell(by_key[level, measure, POOLED]) for measure in ("precision", "recall", "f1", "fpr")]
        table.add_row(name, f"{f1.n_units:,}", _share(f1.prevalence), *cells, _cell(by_key[level, "f1", MEAN]))
    return table


def _reliability(evaluation: Evaluation) -> Table | None:
    rows = [row for row in evaluation.reliability()[POOLED] if row.units]
    if not rows:
        return None
    table = _frame(f"Confidence of units ({evaluation.counts.unit}) against labels, pooled")
    for head in ("from", "below", evaluation.counts.unit, "mean confidence", "unsupported"):
        table.add_column(head, justify="right")
    for row in rows:
        shares = (_number(row.confidence), _number(row.positive))
        table.add_row(_number(row.low), _number(row.high), f"{row.units:,}", *shares)
    return table


def _reasons(shown: Sequence[MetricResult]) -> Iterator[str]:
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


def show_figures(evaluation: Evaluation, levels: Sequence[str] | None = None) -> None:
    """Print the tables of an evaluation on standard output.

    Args:
        evaluation: what was measured.
        levels: the levels that were asked for; the reliability table comes with `unit`.
    """
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else _PLAIN_WIDTH, highlight=False)
    # Where nothing was labelled, every table would be empty.
    if all(figure.coverage is None for figure in evaluation.figures):
        _close(console, evaluation, [])
        return
    by_key = {(figure.level, figure.name, figure.language): figure for figure in evaluation.figures}
    shown: list[MetricResult] = []
    for layout in _layouts(evaluation.counts.unit):
        if levels is None and layout.columns[0].level == "category" and len(evaluation.counts.types) == 1:
            continue  # one type says what "unsupported or not" said
        for part in _fitting(layout, console.width):
            _print(console, _table(evaluation, part, by_key))
        if (layout.columns[0].level, layout.columns[0].name, POOLED) in by_key:
            wanted = {(column.level, column.name) for column in layout.columns}
            shown += [figure for figure in evaluation.figures if (figure.level, figure.name) in wanted]
        if layout.columns[0].level == "category":
            _print(console, _types(evaluation, by_key))
    reliability = _reliability(evaluation) if levels is None or "unit" in levels else None
    _print(console, reliability)
    intervals = _INTERVALS if any(figure.low is not None for figure in shown) else ""
    console.print(f"{_LEGEND}{intervals}", style="dim", soft_wrap=True)
    _close(console, evaluation, [*_reasons(shown)])


def _close(console: Console, evaluation: Evaluation, reasons: Sequence[str]) -> None:
    for line in (*evaluation.notes, *reasons):
        console.print(f"Note: {line}", soft_wrap=True, markup=False)
    console.print(f"Signature: {evaluation.signature}", soft_wrap=True, markup=False)


if TYPE_CHECKING:
    Key = Callable[[AgreementRow], tuple[str, ...]]


_AGREEMENT_WIDTH = 160  # columns where no terminal says how many there are: enough for every table
_ALL = "all"
_HEADS = {
    "kappa": "kappa",
    "pi": "pi",
    "alpha": "alpha",
    "span_f1": "span F1",
    "span_f1_exact": "exact",
    "gamma": "gamma",
}
_TITLES = {
    "people": "People with each other",
    "silver": "People with silver labels",
    "models": "Models with each other",
}
_AGREEMENT_LEGEND = (
    "kappa (pi): of pairs, averaged; alpha, gamma: of all annotators of a text at once. span F1: spans with an"
    " intersection over union of at least 0.5; exact: with the same ends. typed: of the same type as well."
    " 0 is chance for kappa, pi, alpha and gamma; 1 is full agreement."
)
_FEW = f" too few: fewer than {FEWEST_TEXTS} texts, which give no interval."


def show_agreement(report: AgreementReport) -> None:
    """Print agreement on standard output."""
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else _AGREEMENT_WIDTH, highlight=False)
    for among, title in _TITLES.items():
        rows = [row for row in report.rows if row.among == among]
        whole = [row for row in rows if row.between == (_ALL, _ALL)]
        parts = [row for row in rows if row.between != (_ALL, _ALL)]
        if whole:
            console.print(_agreement_table(title, whole, lambda row: (row.language or "?",), ("language",)))
        if len({row.between for row in parts}) > 1:
            names = ("language", "annotator", "and")
            console.print(
                _agreement_table(f"{title}, each pair", parts, lambda row: (row.language or "?", *row.between), names)
            )
    intervals = _INTERVALS if any(row.low is not None for row in report.rows) else ""
    few = _FEW if any(_is_few(row) for row in report.rows) else ""
    console.print(f"{_AGREEMENT_LEGEND}{intervals}{few}", style="dim", soft_wrap=True)
    _close_agreement(console, report)


def _close_agreement(console: Console, report: AgreementReport) -> None:
    people = ", ".join(f"{name} ({count:,})" for name, count in report.annotators.items())
    console.print(
        f"{report.texts:,} texts, {report.shared:,} of them with two people or more"
        + (f"; {people}" if people else ""),
        soft_wrap=True,
        markup=False,
    )
    for language, name in report.best.items():
        console.print(f"Best with silver in {language or '?'}: {name}", soft_wrap=True, markup=False)
    reasons = {
        f"{row.measure} ({row.scope}) in {row.language}: {row.reason}"
        for row in report.rows
        if row.reason and row.between == (_ALL, _ALL) and not _is_few(row)
    }
    for line in (*report.notes, *sorted(reasons)):
        console.print(f"Note: {line}", soft_wrap=True, markup=False)
    console.print(f"Signature: {report.signature}", soft_wrap=True, markup=False)


def _agreement_table(title: str, rows: Sequence[AgreementRow], key: Key, heads: Sequence[str]) -> Table:
    columns = [
        (scope, measure)
        for scope in ("binary", "typed")
        for measure in _HEADS
        if any(row.scope == scope and row.measure == measure for row in rows)
    ]
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        table.add_column(head, no_wrap=True)
    for head in ("texts", *(_HEADS[measure] + ("\ntyped" if scope == "typed" else "") for scope, measure in columns)):
        table.add_column(head, justify="right", no_wrap=True)
    by_name: dict[tuple[str, ...], list[AgreementRow]] = {}
    for row in rows:
        by_name.setdefault(key(row), []).append(row)
    for name, cells in by_name.items():
        values = {(row.scope, row.measure): row for row in cells}
        if name == (_ALL,):
            table.add_section()
        table.add_row(
            *name,
            f"{max(row.texts for row in cells):,}",
            *(_agreement_cell(values.get(column)) for column in columns),
        )
    return table


def _agreement_cell(row: AgreementRow | None) -> Text:
    if row is None or row.value is None:
        return Text("–")
    text = Text(f"{row.value:.3f}")
    if row.low is not None and row.high is not None:
        text.append(f"\n{row.low:.2f} {row.high:.2f}", style="dim")
    elif _is_few(row):
        text.append("\ntoo few", style="dim")
    return text


def _is_few(row: AgreementRow) -> bool:
    """Whether a figure stands without an interval since it is of too few texts."""
    return row.value is not None and row.texts < FEWEST_TEXTS


def print_status(status: Status) -> None:
    """One line for each output of a run, then what is still missing."""
    console = Console()
    table = _study_table("", "of", "done", "planned", "failed", "")
    for step in status.steps:
        of = step.model if step.detector is None else f"{step.model}, by {step.detector}"
        planned = "?" if step.planned is None else f"{step.planned:,}"
        state = "finished" if step.finished else "not begun" if not step.done else "under way"
        table.add_row(step.what, of, f"{step.done:,}", planned, f"{step.failed:,}" if step.failed else "", state)
    for name, there in (("rates", status.rates), ("results", status.results), ("report", status.report)):
        table.add_row(name, "", "", "", "", "finished" if there else "not made yet")
    console.print(status.title, style="bold", markup=False, highlight=False)
    console.print(table)
    if status.running:
        console.print("A process is at work in the folder.")
    elif not status.finished:
        console.print("No process is at work: `veriglot study run` with the same study file and folder goes on.")


def print_rehearsal(rehearsal: Rehearsal) -> None:
    """What each model would take, and all together."""
    console = Console()
    table = _study_table("model", "responses", "calls to make", "prompt tokens", "reply tokens at most", "cost at most")
    for model in rehearsal.models:
        table.add_row(
            model.model,
            f"{sum(model.languages.values()):,}",
            f"{max(0, model.calls - model.done):,}",
            f"about {model.tokens_in:,}" if model.calls else "",
            ("no bound" if model.tokens_out is None else f"{model.tokens_out:,}") if model.calls else "",
            "" if model.cost is None else f"{model.cost:,.2f}",
        )
    console.print(rehearsal.title, style="bold", markup=False, highlight=False)
    console.print(table)
    languages = sorted({tag for model in rehearsal.models for tag in model.languages})
    console.print(
        f"{rehearsal.calls:,} calls to make, {rehearsal.judgements:,} judgements,"
        f" {len(languages)} {'language' if len(languages) == 1 else 'languages'}:"
        f" {', '.join(languages)}. Prompt tokens are estimated from the length of the texts.",
        highlight=False,
    )
    impossible = sum(model.impossible for model in rehearsal.models)
    if impossible:
        console.print(f"{impossible:,} planned queries cannot be asked; the run says why.", highlight=False)
    if rehearsal.unreadable:
        console.print(f"{rehearsal.unreadable:,} rows cannot be read.", highlight=False)
    if rehearsal.enough is False:
        console.print("The limits of the study file stop it before it is finished.", style="bold")
    elif rehearsal.enough is None:
        console.print("Whether the token limit lasts is not known: set max_tokens in the settings of every model.")


def _study_table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False)
    for number, name in enumerate(columns):
        table.add_column(name, justify="left" if number == 0 or not name or name == "of" else "right")
    return table

"""Plans: how many responses or labels an interval of a wanted half-width takes, as JSON, CSV and a table."""

from __future__ import annotations

import csv
import dataclasses
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.rates import Plan
    from veriglot.records import Estimator

__all__ = ["Planned", "show_plans"]


@dataclass(frozen=True)
class Planned:
    """The plans of one model in one language; None where the data are too few to plan with."""

    model: str | None
    language: str
    responses: Plan | None
    labels: Plan | None


def show_plans(
    plans: Sequence[Planned], *, half_width: float, estimator: Estimator, form: Literal["table", "json", "csv"]
) -> None:
    """Print them."""
    if form == "json":
        rows = [{**dataclasses.asdict(plan), "estimator": str(estimator)} for plan in plans]
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(rows), indent=1) + b"\n")
        sys.stdout.buffer.flush()
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(("model", "language", "estimator", "half_width", "now", "responses", "labelled"))
        for plan in plans:
            now = plan.responses.now if plan.responses else ""
            numbers = ("" if one is None or one.responses is None else one.responses for one in _both(plan))
            writer.writerow((plan.model or "", plan.language, estimator, half_width, now, *numbers))
    else:
        _print(plans, half_width, estimator)


def _both(plan: Planned) -> tuple[Plan | None, Plan | None]:
    return plan.responses, plan.labels


def _print(plans: Sequence[Planned], half_width: float, estimator: Estimator) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("model", overflow="fold")
    table.add_column("language")
    for name in ("half-width now", "responses needed", "or labelled"):
        table.add_column(name, justify="right")
    for plan in plans:
        now = f"{plan.responses.now:.2%}" if plan.responses else "-"
        table.add_row(plan.model or "-", plan.language, now, *(_needed(one) for one in _both(plan)))
    console.print(f"Intervals of at most {half_width:.2%} to either side, by {estimator}", highlight=False)
    console.print(table)
    console.print(
        "Responses: with the labels that there are. Labelled: with the responses that there are. Both count those that"
        " there are already. 'never' says which half-width remains however many are added.",
        highlight=False,
    )


def _needed(plan: Plan | None) -> str:
    if plan is None:
        return "too few to say"
    if plan.responses is None:
        return f"never: {plan.least:.2%}"
    return f"{plan.responses:,}"

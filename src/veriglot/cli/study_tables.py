"""The tables of `veriglot study status` and of `--dry-run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from veriglot.study.rehearsal import Rehearsal
    from veriglot.study.status import Status

__all__ = ["print_rehearsal", "print_status"]


def print_status(status: Status) -> None:
    """One line for each output of a run, then what is still missing."""
    console = Console()
    table = _table("", "of", "done", "planned", "failed", "")
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


def print_rehearsal(found: Rehearsal) -> None:
    """What each model would take, and all together."""
    console = Console()
    table = _table("model", "responses", "calls to make", "prompt tokens", "reply tokens at most", "cost at most")
    for model in found.models:
        table.add_row(
            model.model,
            f"{sum(model.languages.values()):,}",
            f"{max(0, model.calls - model.done):,}",
            f"about {model.tokens_in:,}" if model.calls else "",
            ("no bound" if model.tokens_out is None else f"{model.tokens_out:,}") if model.calls else "",
            "" if model.cost is None else f"{model.cost:,.2f}",
        )
    console.print(found.title, style="bold", markup=False, highlight=False)
    console.print(table)
    languages = sorted({tag for model in found.models for tag in model.languages})
    console.print(
        f"{found.calls:,} calls to make, {found.judgements:,} judgements,"
        f" {len(languages)} {'language' if len(languages) == 1 else 'languages'}:"
        f" {', '.join(languages)}. Prompt tokens are estimated from the length of the texts.",
        highlight=False,
    )
    impossible = sum(model.impossible for model in found.models)
    if impossible:
        console.print(f"{impossible:,} planned queries cannot be asked; the run says why.", highlight=False)
    if found.unreadable:
        console.print(f"{found.unreadable:,} rows cannot be read.", highlight=False)
    if found.enough is False:
        console.print("The limits of the study file stop it before it is finished.", style="bold")
    elif found.enough is None:
        console.print("Whether the token limit lasts is not known: set max_tokens in the settings of every model.")


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False)
    for number, name in enumerate(columns):
        table.add_column(name, justify="left" if number == 0 or not name or name == "of" else "right")
    return table

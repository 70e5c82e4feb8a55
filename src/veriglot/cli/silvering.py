"""What `veriglot build silver` does with a model, and how it shows what came of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from veriglot.cli.building import print_json, say, tell
from veriglot.cli.inputs import count_rows
from veriglot.cli.progress import Bar
from veriglot.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.build.injection import Account, Injector, LanguageAccount, Order, Support
    from veriglot.cli.building import Queries
    from veriglot.cli.model_options import Connection

__all__ = ["Prices", "dry_run_of", "inject", "prices_of", "show_account", "support_of", "types_of"]


class Prices(NamedTuple):
    """What a million tokens of prompts and of replies cost, in one currency."""

    tokens_in: float
    tokens_out: float


def prices_of(tokens_in: float | None, tokens_out: float | None) -> Prices | None:
    """The prices, or None where none is given.

    Raises:
        UsageError: one is given without the other.
    """
    if tokens_in is None and tokens_out is None:
        return None
    if tokens_in is None or tokens_out is None:
        raise UsageError("A cost needs both prices.", remedy="Give --price-in and --price-out.")
    return Prices(tokens_in, tokens_out)


def types_of(order: str | None) -> tuple[tuple[str, ...], Order]:
    """The types that are named, none for all, and how they are ordered.

    Raises:
        UsageError: the list is empty.
    """
    if order is None:
        return (), "given"
    if order.strip().lower() == "shuffled":
        return (), "shuffled"
    types = tuple(part.strip() for part in order.split(",") if part.strip())
    if not types:
        raise UsageError(f"--order {order!r} names no type.")
    return types, "given"


def support_of(kind: str, detector: str, model: str, seed: int) -> Support | None:
    """The check that was asked for."""
    from veriglot.build.injection import DetectorSupport, ModelSupport

    if kind == "none":
        return None
    if kind == "model":
        return ModelSupport(model, seed=seed)
    from veriglot.detectors import load_detector

    return DetectorSupport(load_detector(detector))


def inject(
    source: Queries,
    injector: Injector,
    connection: Connection,
    output: Path,
    *,
    support: Support | None,
    also: str | None,
    order: Order,
    clean: float,
    restart: bool,
    retry: bool,
    json: bool,
    quiet: bool,
    prices: Prices | None,
) -> int:
    """Make the silver rows, and say what came of it.

    Args:
        also: another model that is going to be asked, or None.

    Returns:
        The exit code.
    """
    from veriglot.build.injection import load_account, silver

    models = [injector.model, *([also] if also else [])]
    with (
        connection.open(output, models) as client,
        Bar(shown=not quiet, total=lambda: count_rows(source.inputs)) as bar,
    ):
        tally = silver(
            output,
            source.rows(),
            injector,
            client,
            support=support,
            order=order,
            clean=clean,
            inputs=source.paths,
            options={**source.options},
            jobs=connection.jobs,
            restart=restart,
            retry=retry,
            seen=lambda _: bar.advance(),
        )
    if not quiet:
        show_account(load_account(output), output, json=json, prices=prices)
    return tell(output, tally, what="seeds")


def dry_run_of(
    source: Queries, injector: Injector, *, order: Order, clean: float, checked: bool, prices: Prices | None
) -> None:
    """Calls and tokens, roughly: each error once, no passage longer than what is known of it."""
    from veriglot.build.injection import Edited, Task, tasks
    from veriglot.llm import estimate_request, estimate_tokens
    from veriglot.text import sentences

    calls = unusable = tokens_in = tokens_out = 0
    turns = injector.per_sentence
    for row in tasks(source.rows(), injector.all_types, turns=turns, order=order, clean=clean, seed=injector.seed):
        if not isinstance(row, Task):
            unusable += 1
            continue
        given = row.seed.response.strip()
        passage = given or " ".join(row.seed.evidence[0].text.split()[:80])  # a passage of usual length, to count by
        reference = sum(estimate_tokens(one.text) for one in row.seed.evidence)
        if not given:
            calls += 1
            tokens_in += estimate_request(injector.passage_request(row.seed, 1))
            tokens_out += estimate_tokens(passage)
        texts = [passage[s:e] for s, e in sentences(passage, row.seed.language)] if turns else [passage]
        rounds = [(text, type_) for text in texts for type_ in (row.types[:1] if turns else row.types)]
        for text, type_ in rounds:
            calls += 1
            tokens_in += estimate_request(injector.request(row, Edited.of(text), type_, 1))
            tokens_out += estimate_tokens(text)
        if checked:
            calls += 1 + len(rounds)
            tokens_in += (1 + len(rounds)) * (reference + estimate_tokens(passage))
    plan: dict[str, Any] = {
        "calls": calls,
        "seeds_that_cannot_be_used": unusable,
        "tokens_in": tokens_in,
        "tokens_out": tokens_out,
    }
    if prices is not None:
        plan["money"] = round((tokens_in * prices.tokens_in + tokens_out * prices.tokens_out) / 1e6, 4)
    print_json(plan)


def show_account(account: Account, output: Path, *, json: bool, prices: Prices | None = None) -> None:
    """The yield per language and type on standard output; why the rest was rejected on standard error."""
    from veriglot.build import rejected_path

    if json:
        import msgspec

        data = msgspec.to_builtins(account)
        if prices is not None:
            data["money"] = round(account.money(*prices), 4)
        print_json(data)
        return
    _table(account)
    total = account.total
    spent = f" {total.calls:,} calls, {total.tokens_in:,} tokens of prompts, {total.tokens_out:,} of replies"
    if prices is not None:
        spent += f", {account.money(*prices):,.2f} at the prices given"
    say("Percentages: how much of what was tried was taken.")
    say(f"{output}: {total.rows:,} rows, {total.clean:,} of them clean.{f'{spent}.' if total.calls else ''}")
    rejected = sum(sum(one.values()) for one in _reasons(total).values())
    if rejected:
        say(f"{rejected:,} rejections stand in {rejected_path(output)}:")
    for what, reasons in _reasons(total).items():
        if reasons:
            say(f"  {what}: " + ", ".join(f"{reason} {number:,}" for reason, number in reasons.items()))


def _reasons(one: LanguageAccount) -> dict[str, dict[str, int]]:
    found = {"passage": one.passages.reasons, **{type_: each.reasons for type_, each in one.types.items()}}
    return {**found, "row": one.row_reasons}


def _table(account: Account) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("language")
    for name in ("seeds", "rows", "clean", "passages", *account.total.types):
        table.add_column(name, justify="right")
    rows = [*account.languages.items()]
    if len(rows) != 1:
        rows.append(("all", account.total))
    for tag, one in rows:
        counts = [f"{number:,}" for number in (one.seeds, one.rows, one.clean)]
        yields = ["-" if each.share is None else f"{each.share:.0%}" for each in (one.passages, *one.types.values())]
        table.add_row(tag, *counts, *yields)
    Console(width=None if sys.stdout.isatty() else 140).print(table)

"""What `veriglot build halluverse` does, and how it shows what came of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from veriglot.cli.building import print_json, say, tell
from veriglot.cli.progress import Bar
from veriglot.errors import InputError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.build.halluverse import FactSettings, LanguageSummary, Page, Seed, Summary
    from veriglot.build.injection import Support
    from veriglot.cli.halluverse_pages import Found
    from veriglot.cli.model_options import Connection
    from veriglot.cli.silvering import Prices
    from veriglot.llm import Settings
    from veriglot.run import Tally

__all__ = ["Making", "csv_path", "make_set", "page_path", "plan_set"]


class Making(NamedTuple):
    """A set that is to be made."""

    output: Path
    found: Found
    facts: FactSettings
    types: tuple[str, ...]
    seed: int
    restart: bool
    retry: bool
    json: bool
    quiet: bool
    prices: Prices | None


def csv_path(output: Path) -> Path:
    """Where the pairs are in HalluVerse's format."""
    return output.with_name(output.name + ".csv")


def page_path(output: Path) -> Path:
    """Where the page is."""
    return output.with_name(output.name + ".html")


def make_set(
    making: Making,
    connection: Connection | None,
    *,
    model: str,
    settings: Settings,
    attempts: int,
    support: Support | None,
    also: str | None,
) -> int:
    """Make the set, with a model or (without a connection) by rule, and say what came of it.

    Args:
        also: another model that is going to be asked, or None.

    Returns:
        The exit code.
    """
    _known_types(making.types)
    pages = _pages(making)
    steps = _Steps(making, pages)
    if connection is None:
        facts, pairs = steps.by_rule()
    else:
        models = [model, *([also] if also else [])]
        with connection.open(making.output, models) as client:
            facts, pairs = steps.by_model(
                client, model, settings, attempts=attempts, support=support, jobs=connection.jobs
            )
    return _finish(making, facts, pairs)


class _Steps:
    """The two steps of a set."""

    def __init__(self, making: Making, pages: dict[str, Page]) -> None:
        from veriglot.build.halluverse import facts_path

        self._making = making
        self._pages = pages
        self._facts = facts_path(making.output)

    def by_rule(self) -> tuple[Tally, Tally]:
        from veriglot.build.halluverse import TYPES, RuledSet

        making = self._making
        ruled = RuledSet(self._pages.values(), making.facts, making.seed)
        with self._bar(len(self._pages)) as bar:
            facts = ruled.choose(
                self._facts,
                making.found.rows(),
                inputs=making.found.inputs,
                restart=making.restart,
                seen=lambda _: bar.advance(),
            )
        seeds = self._seeds()
        with self._bar(len(seeds)) as bar:
            pairs = ruled.pairs(
                making.output,
                seeds,
                types=making.types or TYPES,
                inputs=[str(self._facts)],
                restart=making.restart or making.retry,
                seen=lambda _: bar.advance(),
            )
        return facts, pairs

    def by_model(
        self, client: object, model: str, settings: Settings, *, attempts: int, support: Support | None, jobs: int
    ) -> tuple[Tally, Tally]:
        from veriglot.build.halluverse import Chooser, choose_facts, inject_pairs
        from veriglot.build.injection import Injector
        from veriglot.run.stage import Progress

        making = self._making
        failed = making.retry and Progress.of(self._facts).failed > 0
        with self._bar(len(self._pages)) as bar:
            facts = choose_facts(
                self._facts,
                making.found.rows(),
                Chooser(model, settings, making.seed, attempts),
                client,  # type: ignore[arg-type]
                making.facts,
                inputs=making.found.inputs,
                jobs=jobs,
                restart=making.restart,
                retry=making.retry,
                seen=lambda _: bar.advance(),
            )
        seeds = self._seeds()
        with self._bar(len(seeds)) as bar:
            pairs = inject_pairs(
                making.output,
                seeds,
                Injector(model, "halluverse", making.types, "plain", settings, making.seed, attempts),
                client,  # type: ignore[arg-type]
                support=support,
                inputs=[str(self._facts)],
                jobs=jobs,
                restart=making.restart or failed,  # other facts: another set, of which the cache keeps what was paid
                retry=making.retry,
                seen=lambda _: bar.advance(),
            )
        return facts, pairs

    def _seeds(self) -> list[Seed]:
        from veriglot.build.halluverse import read_facts, seeds_of

        seeds = seeds_of(read_facts(self._facts), self._pages)
        if not seeds:
            raise InputError(
                f"No page gave a factual sentence; {self._facts} says why.",
                remedy="Lower --least, or add --any-subject.",
            )
        return seeds

    def _bar(self, total: int) -> Bar:
        return Bar(shown=not self._making.quiet, total=lambda: total)


def _pages(making: Making) -> dict[str, Page]:
    """The pages that can be read, by id."""
    from veriglot.run import FailedRow

    pages = {row.id: row for row in making.found.rows() if not isinstance(row, FailedRow)}
    if not pages:
        raise InputError("There is no page that can be read.", remedy="Name files of `veriglot build articles`.")
    return pages


def _known_types(types: tuple[str, ...]) -> None:
    from veriglot.build.halluverse import TYPES
    from veriglot.errors import UnknownNameError

    for type_ in types:
        if type_ not in TYPES:
            raise UnknownNameError("type of error", type_, TYPES)
    if len(set(types)) < len(types):
        raise UsageError("A type of error is named twice.")


def _finish(making: Making, facts: Tally, pairs: Tally) -> int:
    """Write what stands beside the pairs, and say what came of it; returns the exit code."""
    from veriglot.build.halluverse import facts_path, samples_of, summary_of
    from veriglot.formats import write
    from veriglot.report.halluverse import write_set

    output = making.output
    summary = summary_of(output, making.found.people, fact_failures=facts.failed)
    write(samples_of(output), csv_path(output), format="halluverse")
    write_set(summary, output.name, page_path(output))
    if not making.quiet:
        _show(making, summary)
    return max(tell(facts_path(output), facts, what="pages"), tell(output, pairs, what="sentences"))


def plan_set(making: Making, model: str, settings: Settings, *, checked: bool) -> None:
    """Print calls and tokens, roughly: each page and each error once, no fact longer than sentences of its page are."""
    from veriglot.build.halluverse import Chooser, page_sentences, unfit
    from veriglot.build.injection import Edited, Injector, Task
    from veriglot.llm import estimate_request, estimate_tokens
    from veriglot.records import Sample

    _known_types(making.types)
    chooser = Chooser(model, settings, making.seed)
    injector = Injector(model, "halluverse", making.types, "plain", settings, making.seed)
    calls = unused = tokens_in = tokens_out = 0
    for page in _pages(making).values():
        if unfit(page, least=making.facts.least, known=making.facts.known) is not None:
            unused += 1
            continue
        calls += 1
        tokens_in += estimate_request(chooser.request(page, making.facts.count))
        listed = sorted(page_sentences(page.reference.text, page.language), key=len)
        text = listed[len(listed) // 2]
        tokens_out += making.facts.count * estimate_tokens(text)
        task = Task(page.id, Sample(page.id, text, language=page.language), ())
        asked = estimate_request(injector.request(task, Edited.of(text), injector.all_types[0], 1))
        again = 2 * (estimate_tokens(page.reference.text) + estimate_tokens(text)) if checked else 0
        calls += making.facts.count * (3 if checked else 1)
        tokens_in += making.facts.count * (asked + again)
        tokens_out += making.facts.count * estimate_tokens(text)
    plan: dict[str, int | float] = {
        "calls": calls,
        "pages_that_cannot_be_used": unused,
        "tokens_in": tokens_in,
        "tokens_out": tokens_out,
    }
    if making.prices is not None:
        prices = making.prices
        plan["money"] = round((tokens_in * prices.tokens_in + tokens_out * prices.tokens_out) / 1e6, 4)
    print_json(plan)


def _show(making: Making, summary: Summary) -> None:
    """Yields per language on standard output; reasons and cost on standard error."""
    if making.json:
        import msgspec

        data = msgspec.to_builtins(summary)
        if making.prices is not None:
            data["money"] = round(summary.money(*making.prices), 4)
        print_json(data)
        return
    _table(summary)
    total = summary.total
    spent = f"{total.calls:,} calls, {total.tokens_in:,} tokens of prompts, {total.tokens_out:,} of replies"
    if making.prices is not None:
        spent += f", {summary.money(*making.prices):,.2f} at the prices given"
    say(f"{making.output}: {total.pairs:,} pairs about {total.people:,} people. {spent}.")
    reasons = {
        "pages": total.unfit,
        "facts": total.fact_reasons,
        "sentences": total.sentence_reasons,
        **{type_: one.reasons for type_, one in total.types.items()},
    }
    for what, found in reasons.items():
        if found:
            say(f"  not taken, {what}: " + ", ".join(f"{reason} {number:,}" for reason, number in found.items()))
    say(f"As HalluVerse CSV: {csv_path(making.output)}; yields and diversity: {page_path(making.output)}.")


def _table(summary: Summary) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("language")
    for name in ("pages", "used", "facts", "pairs", *summary.total.types, "balance", "people"):
        table.add_column(name, justify="right")
    rows = [*summary.languages.items()]
    if len(rows) != 1:
        rows.append(("all", summary.total))
    for tag, one in rows:
        table.add_row(tag, *_cells(one))
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def _cells(one: LanguageSummary) -> list[str]:
    counts = (one.pages, one.pages - sum(one.unfit.values()), one.facts, one.pairs)
    types = [f"{each.taken:,} of {each.asked:,}" for each in one.types.values()]
    return [
        *(f"{n:,}" for n in counts),
        *types,
        "-" if one.balance is None else f"{one.balance:.3f}",
        f"{one.people:,}",
    ]

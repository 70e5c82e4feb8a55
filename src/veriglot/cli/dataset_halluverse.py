"""`veriglot dataset halluverse`: the set of HalluVerse25 in any language, from people or pages to pairs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from veriglot.cli.command import Help, Setting, command
from veriglot.cli.generation import print_json, say, tell
from veriglot.cli.options import (
    AccountJson,
    Checks,
    Connection,
    Cost,
    DryRun,
    Languages,
    OptionalCount,
    OptionalModel,
    Output,
    Overwrite,
    People,
    Quiet,
    Retry,
    Seed,
    Wikidata,
    language_tags,
)
from veriglot.cli.progress import Bar
from veriglot.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.cli.options import Prices
    from veriglot.datasets.halluverse.facts import FactSettings, Page
    from veriglot.datasets.halluverse.summary import LanguageSummary, Summary
    from veriglot.datasets.silver.job import Support
    from veriglot.llm.client import Settings
    from veriglot.records import Sample
    from veriglot.storage.checkpoint import FailedRow, Tally
    from veriglot.wikipedia.wikidata import Person

__all__ = ["halluverse"]


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
    """Where the pairs are in HalluVerse25's format."""
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
                client, model, settings, attempts=attempts, support=support, jobs=connection.concurrency
            )
    return _finish(making, facts, pairs)


class _Steps:
    """The two steps of a set."""

    def __init__(self, making: Making, pages: dict[str, Page]) -> None:
        from veriglot.datasets.halluverse.facts import facts_path

        self._making = making
        self._pages = pages
        self._facts = facts_path(making.output)

    def by_rule(self) -> tuple[Tally, Tally]:
        from veriglot.datasets.halluverse.pairs import TYPES, RuledSet

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
        from veriglot.datasets.halluverse.facts import Chooser, choose_facts
        from veriglot.datasets.halluverse.pairs import inject_pairs
        from veriglot.datasets.silver.injection import Injector
        from veriglot.storage.checkpoint import Progress

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

    def _seeds(self) -> list[Sample]:
        from veriglot.datasets.halluverse.pairs import read_facts, seeds_of

        seeds = seeds_of(read_facts(self._facts), self._pages)
        if not seeds:
            raise InputError(
                f"No page gave a factual sentence; {self._facts} says why.",
                remedy="Lower min_sentences, or set any_subject.",
            )
        return seeds

    def _bar(self, total: int) -> Bar:
        return Bar(shown=not self._making.quiet, total=lambda: total)


def _pages(making: Making) -> dict[str, Page]:
    """The pages that can be read, by id."""
    from veriglot.storage.checkpoint import FailedRow

    pages = {row.id: row for row in making.found.rows() if not isinstance(row, FailedRow)}
    if not pages:
        raise InputError("There is no page that can be read.", remedy="Name files of `veriglot dataset articles`.")
    return pages


def _known_types(types: tuple[str, ...]) -> None:
    from veriglot.datasets.halluverse.pairs import TYPES
    from veriglot.errors import UnknownNameError

    for type_ in types:
        if type_ not in TYPES:
            raise UnknownNameError("type of error", type_, TYPES)
    if len(set(types)) < len(types):
        raise UsageError("A type of error is named twice.")


def _finish(making: Making, facts: Tally, pairs: Tally) -> int:
    """Write what stands beside the pairs, and say what came of it; returns the exit code."""
    from veriglot.datasets.halluverse.facts import facts_path
    from veriglot.datasets.halluverse.summary import samples_of, summary_of
    from veriglot.formats.writer import write
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
    from veriglot.datasets.halluverse.facts import Chooser, page_sentences, unfit
    from veriglot.datasets.silver.injection import Edited, Injector, Task
    from veriglot.llm.client import estimate_request, estimate_tokens
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
        asked = estimate_request(injector.request(task, Edited(text, text), injector.all_types[0], 1))
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
            data["money"] = round(summary.total.money(*making.prices), 4)
        print_json(data)
        return
    _table(summary)
    total = summary.total
    spent = f"{total.calls:,} calls, {total.tokens_in:,} tokens of prompts, {total.tokens_out:,} of replies"
    if making.prices is not None:
        spent += f", {summary.total.money(*making.prices):,.2f} at the prices given"
    say(f"{making.output}: {total.pairs:,} pairs about {total.people:,} people. {spent}.")
    reasons = {
        "pages": total.unfit,
        "facts": total.fact_reasons,
        "sentences": total.sentence_reasons,
        **{type_: tally.reasons for type_, tally in total.types.items()},
    }
    for what, counts in reasons.items():
        if counts:
            say(f"  not taken, {what}: " + ", ".join(f"{reason} {number:,}" for reason, number in counts.items()))
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
    for tag, summary_of_language in rows:
        table.add_row(tag, *_cells(summary_of_language))
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def _cells(summary: LanguageSummary) -> list[str]:
    counts = (summary.pages, summary.pages - sum(summary.unfit.values()), summary.facts, summary.pairs)
    types = [f"{each.taken:,} of {each.asked:,}" for each in summary.types.values()]
    return [
        *(f"{n:,}" for n in counts),
        *types,
        "-" if summary.balance is None else f"{summary.balance:.3f}",
        f"{summary.people:,}",
    ]


@command
def halluverse(
    pages: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PAGES]...",
            show_default=False,
            help="Pages about people as JSON lines, such as `veriglot dataset articles --people` writes. Default: they"
            " are fetched, with the people, in the languages of --languages.",
        ),
    ] = None,
    *,
    output: Annotated[Output, Help("The pairs, as JSON lines.")],
    people: Annotated[
        People, Help("Pages about others are left out. Default: nobody is known, and every page is used.")
    ] = None,
    languages: Annotated[Languages, Help("Of the pages to fetch. Default: those of HalluVerse25, en,ar,tr.")] = None,
    count: Annotated[OptionalCount, Help("People to fetch. Default: 500.")] = None,
    model: Annotated[OptionalModel, Help("It chooses facts and puts errors in. Default: none, with --rules.")] = None,
    rules: Annotated[
        bool, typer.Option("--rules", help="Ask no model: choose facts and make errors by rule. Default: off.")
    ] = False,
    facts: Annotated[int, Setting("Facts a page.", 1, 50)] = 5,
    min_sentences: Annotated[int, Setting("Sentences that a page has to have.", 1)] = 20,
    any_subject: Annotated[bool, Setting("Take sentences too that do not name whom the page is about.")] = False,
    types: Annotated[str | None, Setting("Types of errors. Default: all, entity,relation,sentence.")] = None,
    checks: Checks,
    seed: Annotated[Seed, Help("Default: 1.")] = 1,
    cost: Cost,
    wikidata: Wikidata,
    connection: Connection,
    overwrite: Overwrite = False,
    retry: Retry = False,
    dry_run: DryRun = False,
    json: AccountJson = False,
    quiet: Quiet = False,
) -> None:
    """Make a set as HalluVerse25 is: factual sentences about people, each with one error of a type, in any language.

    A model chooses five sentences a page and edits each; what it chose is looked up on the page, what it edited is
    checked as by `veriglot dataset silver`. Types are drawn so that what passes is even. Beside OUTPUT stand facts, the
    rejections, the pairs as HalluVerse CSV, and a page with yields and the diversity of the people.

    \b
    From files: veriglot dataset halluverse en.jsonl tr.jsonl --people people.jsonl -m gpt --base-url URL -o set.jsonl
    All of it:  veriglot dataset halluverse -l en,ar,tr --contact me@example.org -m gpt --base-url URL -o set.jsonl
    No model:   veriglot dataset halluverse en.jsonl tr.jsonl --people people.jsonl --rules -o set.jsonl
    """
    from veriglot.cli.generation import support_of, types_of
    from veriglot.datasets.halluverse.facts import FactSettings

    if rules and (model is not None or dry_run or checks.support != "none"):
        raise UsageError("Rules ask no model.", remedy="Leave out --model, support and --dry-run, or --rules.")
    if not rules and model is None:
        raise UsageError("Nobody is named who makes the set.", remedy="Name a model with --model, or give --rules.")
    source = given_pages(
        Path(output), pages or [], people, languages, count, wikidata, seed=seed, restart=overwrite, quiet=quiet
    )
    making = Making(
        Path(output),
        source,
        FactSettings(facts, min_sentences, known=source.people is not None, named=not any_subject),
        types_of(types)[0],
        seed,
        restart=overwrite,
        retry=retry,
        json=json,
        quiet=quiet,
        prices=cost.prices,
    )
    if dry_run:
        plan_set(making, model or "", connection.settings, checked=checks.support == "model")
        return
    code = make_set(
        making,
        connection if model is not None else None,
        model=model or "",
        settings=connection.settings,
        attempts=checks.attempts,
        support=support_of(checks, model or "", seed),
        also=checks.support_model if checks.support == "model" else None,
    )
    if code:
        raise typer.Exit(code)


# The people and pages of `veriglot dataset halluverse`: from files, or fetched into files beside the set.


_LANGUAGES = "en,ar,tr"  # of HalluVerse25
_PEOPLE = 500


class Found(NamedTuple):
    """The files of a set.

    Attributes:
        pages: JSON lines of articles.
        people_files: JSON lines of people.
        people: their people by item, or None.
    """

    pages: tuple[str, ...]
    people_files: tuple[str, ...]
    people: dict[str, Person] | None

    @property
    def inputs(self) -> list[str]:
        """All files."""
        return [*self.pages, *self.people_files]

    def rows(self) -> Iterator[Page | FailedRow]:
        """Every page with whom it is about, in order; what cannot be read as failed rows."""
        from veriglot.cli.dataset_queries import references
        from veriglot.datasets.halluverse.facts import pages_of

        return pages_of(references(list(self.pages), "text"), self.people)


def given_pages(
    output: Path,
    pages: Sequence[str],
    people: Sequence[str] | None,
    languages: str | None,
    count: int | None,
    servers: Wikidata,
    *,
    seed: int,
    restart: bool,
    quiet: bool,
) -> Found:
    """The pages and people: those that are named, or else fetched.

    Raises:
        UsageError: pages are named, and something to fetch too.
        InputError: a file that is not there, or not of people.
        HttpError: a server that does not give what it should.
    """
    if pages:
        if languages is not None or count is not None:
            raise UsageError(
                "Pages are named, and others are to be fetched.", remedy="Leave out --languages and --count, or PAGES."
            )
        for name in (*pages, *(people or ())):
            if not Path(name).is_file():
                raise InputError("there is no such file", path=name, remedy="Check the path.")
        return Found(tuple(pages), tuple(people or ()), _people(people) if people else None)
    if people and count is not None:
        raise UsageError("The people are named, and others are to be fetched.", remedy="Leave out --count or --people.")
    tags = language_tags(languages or _LANGUAGES)
    return _fetched(output, people, tags, count or _PEOPLE, servers, seed, restart=restart, quiet=quiet)


def _people(paths: Sequence[str]) -> dict[str, Person]:
    import msgspec

    from veriglot.wikipedia.wikidata import Person

    people = {}
    for path in paths:
        for number, line in enumerate(Path(path).read_bytes().splitlines(), 1):
            try:
                person = msgspec.json.decode(line, type=Person)
            except msgspec.MsgspecError as error:
                raise InputError(
                    f"this is no person ({error})",
                    path=path,
                    line=number,
                    remedy="Rows are those of `veriglot dataset people`; `id` and `sitelinks` are needed.",
                ) from error
            people[person.id] = person
    return people


def _fetched(
    output: Path,
    people: Sequence[str] | None,
    tags: tuple[str, ...],
    count: int,
    servers: Wikidata,
    seed: int,
    *,
    restart: bool,
    quiet: bool,
) -> Found:
    """Fetch people, and the pages about them; what an earlier call fetched with the same options is taken."""
    from veriglot.cli.wikipedia import (
        ArticleOrder,
        Output,
        PeopleOrder,
        Servers,
        fetch_articles,
        fetch_people,
        titles_of,
    )

    folder = output.with_name(f"{output.name}.fetched")
    if not people:
        path = output.with_name(f"{output.name}.people.jsonl")
        people = [str(path)]
        order = PeopleOrder(
            tags, None, count, count, 1, seed, (), "2022-01-01", "2023-01-01", (servers.wikidata_server, None)
        )
        out = Output(path, order, restart=restart)
        if out.finished is None:
            with Bar(shown=not quiet, total=lambda: None) as bar:
                out.write(*fetch_people(order, Servers.of(servers, folder), bar.advance))
            say(f"{path}: people in {', '.join(tags)}.")
    paths = []
    for tag in tags:
        pages = output.with_name(f"{output.name}.{tag}.jsonl")
        wiki = Servers.of(servers, folder, tag)
        titles = tuple(title for path in people for title in titles_of(Path(path), tag)[0])
        article_order = ArticleOrder(
            language=tag, count=None, most_pages=None, seed=seed, min_characters=0, min_depth=0, min_edits=0, kinds=(),
            learn=False, strict=False, titles=titles, servers=(wiki.wiki, None),
        )  # fmt: skip
        out = Output(pages, article_order, restart=restart)
        if out.finished is None:
            with Bar(shown=not quiet, total=lambda: None) as bar:
                articles, report, warnings = fetch_articles(article_order, wiki, bar.advance)
            out.write(articles, {"report": report, "warnings": warnings})
            absent = "".join(f", {number:,} {reason}" for reason, number in sorted(report.absent.items()))
            say(f"{pages}: {len(articles):,} pages about {len(titles):,} people{absent}.")
        paths.append(str(pages))
    return Found(tuple(paths), tuple(people), _people(people))

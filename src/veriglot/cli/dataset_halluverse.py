"""`veriglot dataset halluverse`: the set of HalluVerse25 in any language, from people or pages to pairs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from veriglot.cli.command import Options, command
from veriglot.cli.console import say
from veriglot.cli.dataset_articles import (
    ArticleRequest,
    PeopleRequest,
    Wikidata,
    articles_about,
    find_articles,
    find_people,
    read_people,
    written_once,
)
from veriglot.cli.dataset_silver import types_of
from veriglot.cli.generation import Checks, Connection, Cost, Run, print_plan, references, show_account, tell
from veriglot.cli.inputs import language_tags, require_files
from veriglot.datasets.halluverse.facts import Chooser, FactSettings, Page, choose_facts, facts_path, pages_of
from veriglot.datasets.halluverse.pairs import (
    TYPES,
    LanguageSummary,
    RuledSet,
    Summary,
    inject_pairs,
    read_facts,
    samples_of,
    seeds_of,
    summary_of,
)
from veriglot.datasets.prompts import use_prompts
from veriglot.datasets.silver.check import Edited
from veriglot.datasets.silver.injection import Injector, Task
from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.formats.writer import write
from veriglot.llm.client import estimate_tokens
from veriglot.records import Sample
from veriglot.storage.checkpoint import FailedRow, Progress, Tally
from veriglot.storage.files import beside

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.wikipedia.wikidata import Person


_LANGUAGES = "en,ar,tr"  # of HalluVerse25
_PEOPLE = 500


class HalluverseOptions(Options):
    """The options of `veriglot dataset halluverse`."""

    pages: tuple[str, ...] = ()
    output: str
    people: tuple[str, ...] = ()
    languages: str | None = None
    count: int | None = None
    model: str | None = None
    rules: bool = False
    facts: int = 5
    min_sentences: int = 20
    any_subject: bool = False
    types: str | None = None
    prompt: str | None = None
    checks: Checks
    seed: int = 0
    cost: Cost
    wikidata: Wikidata
    connection: Connection
    run: Run
    dry_run: bool = False
    json: bool = False

    @property
    def path(self) -> Path:
        """The file of pairs."""
        return Path(self.output)

    @property
    def error_types(self) -> tuple[str, ...]:
        """The chosen types of errors; empty for all."""
        types = types_of(self.types)[0]
        for type_ in types:
            if type_ not in TYPES:
                raise UnknownNameError("type of error", type_, TYPES)
        if len(set(types)) < len(types):
            raise UsageError("A type of error is named twice.")
        return types


@command
def halluverse(options: HalluverseOptions) -> int:
    """Make a set like HalluVerse25: factual sentences about people, each with one error, in any language.

    A model chooses five sentences of each page and edits each of them. The command looks up each chosen sentence on the
    page, and checks each edit as `veriglot dataset silver` does. It draws the types so that the passing pairs are
    balanced. Next to OUTPUT it writes the facts, the rejected rows, the pairs as HalluVerse CSV, and a page with the
    yields and the diversity of the people.

    \b
    From files: veriglot dataset halluverse en.jsonl tr.jsonl --people people.jsonl -m gpt --base-url URL -o set.jsonl
    All of it:  veriglot dataset halluverse -l en,ar,tr --contact me@example.org -m gpt --base-url URL -o set.jsonl
    No model:   veriglot dataset halluverse en.jsonl tr.jsonl --people people.jsonl --rules -o set.jsonl
    """
    asks = (
        options.model is not None or options.prompt is not None or options.dry_run or options.checks.support != "none"
    )
    if options.rules and asks:
        raise UsageError("--rules uses no model.", "Leave out --model, prompt, support and --dry-run, or --rules.")
    if not options.rules and options.model is None:
        raise UsageError("Neither a model nor --rules is given.", "Name a model with --model, or give --rules.")
    if options.prompt is not None:
        use_prompts(options.prompt, "facts", "injection")
    source = _source(options)
    pages = source.readable()
    known = source.people is not None
    facts = FactSettings(options.facts, options.min_sentences, known=known, named=not options.any_subject)
    if options.dry_run:
        _plan(options, pages, facts)
        return 0
    make = _by_rule if options.rules else _by_model
    return _finish(options, source, *make(options, source, pages, facts))


class _Source(NamedTuple):
    """The files of a set: JSON lines of articles and of people, and people by item, if known."""

    pages: tuple[str, ...]
    people_files: tuple[str, ...]
    people: dict[str, Person] | None

    @property
    def inputs(self) -> list[str]:
        return [*self.pages, *self.people_files]

    def rows(self) -> Iterator[Page | FailedRow]:
        """Every page with its person, in order; unreadable rows as failed rows."""
        return pages_of(references(self.pages, "text"), self.people)

    def readable(self) -> dict[str, Page]:
        """The readable pages, by id."""
        pages = {row.id: row for row in self.rows() if not isinstance(row, FailedRow)}
        if not pages:
            raise InputError("There is no page that can be read.", "Name files of `veriglot dataset articles`.")
        return pages


def _by_rule(
    options: HalluverseOptions, source: _Source, pages: dict[str, Page], settings: FactSettings
) -> tuple[Tally, Tally]:
    types = options.error_types or TYPES
    ruled, run = RuledSet(pages.values(), settings, options.seed), options.run
    chosen = facts_path(options.path)
    with run.progress(lambda: len(pages)) as progress:
        del progress["retry"]
        facts = ruled.choose(chosen, source.rows(), inputs=source.inputs, **progress)
    seeds = _seeds(chosen, pages)
    with run.progress(lambda: len(seeds)) as progress:
        progress["restart"] |= progress.pop("retry")
        pairs = ruled.pairs(options.path, seeds, types=types, inputs=[str(chosen)], **progress)
    return facts, pairs


def _by_model(
    options: HalluverseOptions, source: _Source, pages: dict[str, Page], settings: FactSettings
) -> tuple[Tally, Tally]:
    model, seed = options.model or "", options.seed
    injector = _injector(options)
    chosen, jobs = facts_path(options.path), options.connection.concurrency
    support = options.checks.support_check(model, seed)
    failed = options.run.retry and Progress.of(chosen).failed > 0
    with options.connection.open(options.path, options.checks.models(model)) as client:
        chooser = Chooser(model, injector.settings, seed, injector.attempts)
        with options.run.progress(lambda: len(pages)) as progress:
            facts = choose_facts(
                chosen, source.rows(), chooser, client, settings, inputs=source.inputs, jobs=jobs, **progress
            )
        seeds = _seeds(chosen, pages)
        with options.run.progress(lambda: len(seeds)) as progress:
            progress["restart"] |= failed  # other facts make another set; the cache has the paid replies
            pairs = inject_pairs(
                options.path, seeds, injector, client, support=support, inputs=[str(chosen)], jobs=jobs, **progress
            )
    return facts, pairs


def _injector(options: HalluverseOptions) -> Injector:
    return Injector(
        options.model or "",
        options.connection.settings,
        options.seed,
        taxonomy="halluverse",
        types=options.error_types,
        form="plain",
        attempts=options.checks.attempts,
    )


def _seeds(facts: Path, pages: dict[str, Page]) -> list[Any]:
    seeds = seeds_of(read_facts(facts), pages)
    if not seeds:
        raise InputError(
            f"No page gave a factual sentence; {facts} says why.", "Lower min_sentences, or set any_subject."
        )
    return seeds


def _finish(options: HalluverseOptions, source: _Source, facts: Tally, pairs: Tally) -> int:
    """Write the files beside the pairs, and print the results; returns the exit code."""
    from veriglot.report.halluverse import write_set

    output = options.path
    summary = summary_of(output, source.people, fact_failures=facts.failed)
    write(samples_of(output), beside(output, ".csv"), format="halluverse")
    write_set(summary, output.name, beside(output, ".html"))
    if not options.run.quiet:
        _show(options, summary)
    return max(tell(facts_path(output), facts, what="pages"), tell(output, pairs, what="sentences"))


def _plan(options: HalluverseOptions, pages: dict[str, Page], settings: FactSettings) -> None:
    """Print estimated calls and tokens: one call per page and error, facts as long as the page's sentences."""
    injector = _injector(options)
    chooser = Chooser(injector.model, injector.settings, options.seed)
    checked = options.checks.support == "model"
    calls = unused = tokens_in = tokens_out = 0
    for page in pages.values():
        if settings.unfit(page) is not None:
            unused += 1
            continue
        by_length = sorted(page.sentences, key=len)
        text = by_length[len(by_length) // 2]
        task = Task(page.id, Sample(page.id, text, language=page.language), ())
        asked = injector.request(task, Edited(text, text), injector.all_types[0], 1).tokens
        check_tokens = 2 * (estimate_tokens(page.reference.text) + estimate_tokens(text)) if checked else 0
        calls += 1 + settings.count * (3 if checked else 1)
        tokens_in += chooser.request(page, settings.count).tokens + settings.count * (asked + check_tokens)
        tokens_out += 2 * settings.count * estimate_tokens(text)
    print_plan(
        options.cost.prices, calls=calls, pages_that_cannot_be_used=unused, tokens_in=tokens_in, tokens_out=tokens_out
    )


def _show(options: HalluverseOptions, summary: Summary) -> None:
    """The yield per language, reasons for rejections, and the cost."""
    total, output = summary.total, options.path

    def cells(part: LanguageSummary) -> Iterator[tuple[str, str]]:
        used = part.pages - sum(part.unfit.values())
        for head, number in (("pages", part.pages), ("used", used), ("facts", part.facts), ("pairs", part.pairs)):
            yield head, f"{number:,}"
        for type_, each in part.types.items():
            yield type_, f"{each.taken:,} of {each.asked:,}"
        yield "balance", "-" if part.balance is None else f"{part.balance:.3f}"
        yield "people", f"{part.people:,}"

    by_type = {type_: tally.reasons for type_, tally in total.types.items()}
    show_account(
        summary,
        cells,
        done=f"{output}: {total.pairs:,} pairs about {total.people:,} people.",
        reasons={"pages": total.unfit, "facts": total.fact_reasons, "sentences": total.sentence_reasons, **by_type},
        rejected="Not taken:",
        prices=options.cost.prices,
        json=options.json,
    )
    if not options.json:
        say(f"As HalluVerse CSV: {beside(output, '.csv')}; yields and diversity: {beside(output, '.html')}.")


# The people and pages of a set: from files, or fetched into files beside it.


def _source(options: HalluverseOptions) -> _Source:
    pages, people = options.pages, options.people
    if pages:
        if options.languages is not None or options.count is not None:
            raise UsageError("PAGES exclude --languages and --count.", "Leave out --languages and --count, or PAGES.")
        require_files((*pages, *people))
        return _Source(pages, people, _by_item(people) if people else None)
    if people and options.count is not None:
        raise UsageError("--people and --count exclude each other.", "Leave out one of them.")
    tags = language_tags(options.languages or _LANGUAGES)
    options.wikidata.server(tags[0])  # reject a wrong address before fetching
    people = people or (_fetch_people(options, tags),)
    return _Source(tuple(_fetch_pages(options, people, tag) for tag in tags), people, _by_item(people))


def _by_item(paths: Sequence[str]) -> dict[str, Person]:
    return {person.id: person for path in paths for person in read_people(Path(path))}


def _fetch_people(options: HalluverseOptions, tags: tuple[str, ...]) -> str:
    """A file of people, fetched unless an earlier call did it with the same options."""
    path, count = beside(options.path, ".people.jsonl"), options.count or _PEOPLE
    request = PeopleRequest(tags, count, count, options.seed, (options.wikidata.wikidata_server, None))
    make = partial(find_people, request, options.wikidata, beside(options.path, ".fetched"), quiet=options.run.quiet)
    if written_once(path, request, make, restart=options.run.overwrite)[1]:
        say(f"{path}: people in {', '.join(tags)}.")
    return str(path)


def _fetch_pages(options: HalluverseOptions, people: Sequence[str], tag: str) -> str:
    """A file of the pages about people in a language, fetched unless an earlier call did it."""
    path = beside(options.path, f".{tag}.jsonl")
    titles = articles_about(people, tag)
    request = ArticleRequest(tag, options.seed, (options.wikidata.server(tag), None), titles=titles)
    make = partial(find_articles, request, options.wikidata, beside(options.path, ".fetched"), quiet=options.run.quiet)
    account, is_new = written_once(path, request, make, restart=options.run.overwrite)
    if is_new:
        report = account["report"]
        absent = "".join(f", {number:,} {reason}" for reason, number in sorted(report.absent.items()))
        say(f"{path}: {report.written:,} pages about {len(titles):,} people{absent}.")
    return str(path)

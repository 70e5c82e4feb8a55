"""The work of `veriglot dataset biographies`: people and articles, prompts, responses, the sets and their account."""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from veriglot.cli.generation import Queries, ask, print_json, records_of, say, tell
from veriglot.cli.progress import Bar
from veriglot.cli.wikipedia import Output, PeopleOrder, fetch_people
from veriglot.datasets.factual import Spread
from veriglot.errors import EXIT_ROWS_FAILED, InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.cli.options import Connection, Prices
    from veriglot.cli.wikipedia import Servers, WikiServers
    from veriglot.datasets.factual import (
        ArticleSource,
        Candidate,
        ChoiceAccount,
        FactualManifest,
        Labels,
        RejectedPerson,
        SetFiles,
    )
    from veriglot.datasets.queries import Reference
    from veriglot.datasets.responses import Respondent
    from veriglot.records import Sample
    from veriglot.storage.checkpoint import FailedRow

__all__ = ["FactualJob", "dry_run", "make", "order_of", "show"]


class SetOrder(msgspec.Struct, frozen=True):
    """Which people and articles are wanted; everything in it changes them.

    Attributes:
        languages: of the set.
        count: how many people.
        spread, groups, seed: see `in_order`.
        at_least: in how many languages there has to be an article; None for all.
        part: what of an article is the reference.
        min_characters: shorter articles count as none.
        cross: the language whose articles every response is held against too; None for no such set.
        found: how the candidates are found; None where files name them.
        people, articles: SHA-256 of the files that name people and hold articles.
        wikis: other servers than Wikimedia's, as they were given.
    """

    languages: tuple[str, ...]
    count: int
    spread: Spread
    groups: int
    seed: int
    at_least: int | None
    part: Literal["lead", "text"]
    min_characters: int
    cross: str | None
    found: PeopleOrder | None = None
    people: tuple[str, ...] = ()
    articles: tuple[str, ...] = ()
    wikis: tuple[str, ...] = ()


def order_of(
    languages: tuple[str, ...] | None,
    count: int,
    *,
    spread: Spread | None,
    groups: int,
    seed: int,
    at_least: int | None,
    part: Literal["lead", "text"],
    min_characters: int,
    cross: str | None,
    people: Sequence[str],
    articles: Sequence[str],
    candidates: int | None,
    views_in: tuple[str, ...] | None,
    period: tuple[str, str],
    servers: tuple[str | None, ...],
    wikis: Sequence[str],
) -> SetOrder:
    """The order that the command line gives; arguments as the options have them.

    Raises:
        UsageError: options that do not go together.
        InputError: a file that is not there.
    """
    from veriglot.datasets.prompts import biography_languages

    tags = tuple(languages or biography_languages())
    if spread == "given" and not people:
        raise UsageError("There is no given order of people who are yet to be found.", remedy="Add --people FILE.")
    if articles and not people:
        raise UsageError("Articles of files are about people of a file.", remedy="Add --people FILE.")
    if at_least is not None and at_least > len(tags):
        raise UsageError(f"Articles in {at_least} of {len(tags)} languages cannot be asked for.")
    counted = (("en",) if "en" in tags else tags[:1]) if views_in is None else views_in
    if not set(counted) <= set(tags):
        raise UsageError("`views_in` names a language that is not among --languages.")
    wanted = max(candidates or 10 * count, count)
    search = None
    if not people:  # all of them are described and counted, and chosen from later
        search = PeopleOrder(tags, at_least, wanted, wanted, 1, seed, counted, *period, servers)
    if tags == (cross,):
        cross = None  # every response is held against it already
    way: Spread = spread or ("given" if people else "diverse")
    return SetOrder(
        tags,
        count,
        way,
        groups,
        seed,
        at_least,
        part,
        min_characters,
        cross,
        search,
        _hashes(people),
        _hashes(articles),
        tuple(wikis),
    )


def _hashes(paths: Sequence[str]) -> tuple[str, ...]:
    from veriglot.signatures import file_sha256

    for path in paths:
        if not Path(path).is_file():
            raise InputError("there is no such file", path=path, remedy="Check the path.")
    return tuple(map(file_sha256, paths))


def choose_people(
    order: SetOrder,
    out: Output,
    servers: Servers,
    wikis: WikiServers,
    *,
    people: Sequence[str],
    articles: Sequence[str],
    restart: bool,
    quiet: bool,
) -> dict[str, Any]:
    """Choose people and write their articles into `out`, and who they are beside it.

    Args:
        order: what is wanted.
        out: the file of articles, which appears last.
        servers, wikis: whom to ask.
        people: files of candidates; none to find them in Wikidata.
        articles: files of articles; none to fetch them.
        restart: find the candidates anew.
        quiet: no progress bar.

    Returns:
        The account that stands beside `out`.
    """
    from veriglot.datasets.factual import ChoiceAccount, choose, in_order
    from veriglot.wikipedia.api import AnswerCache

    root, account = out.path.parent, ChoiceAccount()
    told: dict[str, Any] = {}
    with ExitStack() as stack:
        cache = None if people and articles else stack.enter_context(AnswerCache(servers.cache))
        candidates, counts = _candidates(order, root, servers, people, account.set_aside, restart=restart, quiet=quiet)
        ordered = in_order(candidates, order.count, spread=order.spread, groups=order.groups, seed=order.seed)
        if articles:
            source = _given(order, articles, stack, account.set_aside)
        else:
            source = _wikis(order, servers, wikis, cache, stack)
        bar = stack.enter_context(Bar(shown=not quiet, total=lambda: order.count))
        also = [order.cross] if order.cross is not None else []

        def rows() -> Iterator[Reference]:
            chosen: list[Candidate] = []
            for choice in choose(
                ordered, source, order.languages, order.count, account,
                at_least=order.at_least, also=also, min_characters=order.min_characters, seen=bar.advance,
            ):  # fmt: skip
                chosen.append(choice.person)
                yield from choice.articles.values()
            _write(root / "people.jsonl", map(_person, chosen))
            _write(root / "people.set_aside.jsonl", account.set_aside)
            told.update(_told(counts, account))

        out.write(rows(), told)
    return {"made_by": msgspec.to_builtins(order), **told}


def _told(counts: dict[str, int], account: ChoiceAccount) -> dict[str, Any]:
    aside = [person for person in account.set_aside if person.reason in ("articles", "unusable")]
    reasons = {"too_few_articles": sum(person.reason == "articles" for person in aside)}
    reasons["unusable_rows"] = len(aside) - reasons["too_few_articles"]
    people = {**counts, "looked_up": account.looked_up, "chosen": account.chosen, **reasons}
    return {
        "people": people,
        "articles": {tag: dict(sorted(lacking.items())) for tag, lacking in account.lacking.items()},
    }


def _candidates(
    order: SetOrder,
    root: Path,
    servers: Servers,
    people: Sequence[str],
    aside: list[RejectedPerson],
    *,
    restart: bool,
    quiet: bool,
) -> tuple[list[Candidate], dict[str, int]]:
    """Who may come into the set, and how many were found and described."""
    from veriglot.datasets.factual import Candidate, RejectedPerson, candidate_from

    told: dict[str, int] = {}
    files = list(people)
    if not people:
        assert order.found is not None
        out = Output(root / "candidates.jsonl", order.found, restart=restart)
        account = out.finished
        if account is None:
            with Bar(shown=not quiet, total=lambda: None) as bar:
                persons, account = fetch_people(order.found, servers, bar.advance)
            out.write(persons, account)
        told = {name: account[name] for name in ("found", "described", "without_views")}
        files = [str(out.path)]
    candidates: list[Candidate] = []
    for row in records_of(files, candidate_from):
        if isinstance(row, Candidate):
            candidates.append(row)
        else:
            position = f"{row.path}, line {row.line}: " if row.line is not None else ""
            aside.append(RejectedPerson("", "unusable", detail=f"{position}{row.message}"))
    return candidates, {**told, "candidates": len(candidates)}


def _wikis(order: SetOrder, servers: Servers, wikis: WikiServers, cache: Any, stack: ExitStack) -> ArticleSource:
    from veriglot.datasets.factual import wiki_articles
    from veriglot.wikipedia.api import Wikipedia, wikipedia_session

    def wiki(tag: str) -> Wikipedia:
        session = wikipedia_session(tag, contact=servers.contact, server=wikis.of(tag), rate=servers.pace(5.0))
        return Wikipedia(tag, stack.enter_context(session), cache=cache)

    return wiki_articles(wiki, part=order.part)


def _given(order: SetOrder, articles: Sequence[str], stack: ExitStack, aside: list[RejectedPerson]) -> ArticleSource:
    from veriglot.cli.dataset_queries import references
    from veriglot.datasets.factual import RejectedPerson, given_articles
    from veriglot.datasets.queries import Reference
    from veriglot.wikipedia.api import AnswerCache

    def note(row: FailedRow | Reference) -> None:
        if isinstance(row, Reference):
            why = "there is one about them in this language already" if "item" in row.meta else "it names no `item`"
            aside.append(
                RejectedPerson(row.meta.get("item", ""), "unusable", {}, row.language, f"article {row.id}: {why}")
            )
        else:
            position = f"{row.path}, line {row.line}: " if row.line is not None else ""
            aside.append(RejectedPerson("", "unusable", detail=f"{position}{row.message}"))

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="veriglot-")))
    shelf = stack.enter_context(AnswerCache(folder))
    return given_articles(references(list(articles), order.part), shelf, note)


def _person(candidate: Candidate) -> dict[str, Any]:
    named = candidate.named
    return {"id": named.id, "names": named.names, "titles": candidate.titles, **named.meta}


def _write(path: Path, rows: Any) -> None:
    from veriglot.storage.files import write_whole

    write_whole(path, b"".join(msgspec.json.encode(row) + b"\n" for row in rows))


@dataclass(frozen=True)
class FactualJob:
    """Everything that the command line says.

    Attributes:
        root: the folder of the set.
        order: which people and articles.
        respondents: the models; none for a set of prompts only.
        samples: responses a prompt.
        servers, wikis: whom to ask for people and articles.
        people, articles, labels: files.
        prices: of tokens.
        restart, retry, quiet: how the run goes on.
    """

    root: Path
    order: SetOrder
    respondents: Sequence[Respondent]
    samples: int
    servers: Servers
    wikis: WikiServers
    people: Sequence[str] = ()
    articles: Sequence[str] = ()
    labels: Sequence[str] = ()
    prices: Prices | None = None
    restart: bool = False
    retry: bool = False
    quiet: bool = False

    @property
    def seeds(self) -> list[int | None]:
        """One a response."""
        return [*range(1, self.samples + 1)]

    @property
    def sets(self) -> SetFiles:
        """Where the sets go."""
        from veriglot.datasets.factual import SetFiles

        cross = self.order.cross
        return SetFiles(
            self.root / "reference.jsonl",
            self.root / f"{cross}.jsonl" if cross is not None else None,
            self.root / "pairs.jsonl",
            self.root / "rejected.jsonl",
        )

    def settings(self) -> dict[str, Any]:
        """What the sets are made by, beside people and articles."""
        from veriglot.datasets.prompts import prompt_version
        from veriglot.datasets.quality import refusals_version

        return {
            "models": [msgspec.to_builtins(respondent) for respondent in self.respondents],
            "samples": self.samples,
            "prompt": prompt_version("biography"),
            "refusals": refusals_version(),
            "prices": self.prices,
        }


def make(job: FactualJob, connection: Connection | None) -> tuple[FactualManifest | None, int]:
    """Make the set, or what is missing of it.

    Args:
        job: what is wanted.
        connection: whom to ask; None makes people, articles and prompts only.

    Returns:
        The manifest (None without responses), and the exit code.

    Raises:
        UsageError: the folder was begun otherwise, or another process is making it.
        HttpError, ModelError: a server that does not give what it should; what is done is kept.
    """
    from veriglot.storage.files import Lock

    job.root.mkdir(parents=True, exist_ok=True)
    lock = Lock(job.root / "manifest.json")
    try:
        told = _choose(job)
        code = _prompts(job)
        if connection is None:
            return None, code
        tallies = ask(
            Queries([str(job.root / "prompts.jsonl")], format_name="jsonl"),
            job.respondents, connection, job.root / "responses", design="runs", seeds=job.seeds,
            restart=job.restart, retry=job.retry, quiet=job.quiet,
        )  # fmt: skip
        code = max(code, *(tell(path, tally) for path, tally in tallies.items()))
        responses = dict(zip((respondent.name for respondent in job.respondents), tallies, strict=True))
        return _sets(job, responses, told), code
    finally:
        lock.release()


def _choose(job: FactualJob) -> dict[str, Any]:
    """People and articles; returns their account."""
    out = Output(job.root / "articles.jsonl", job.order, restart=job.restart)
    if out.finished is not None:
        told = out.finished
    else:
        told = choose_people(
            job.order, out, job.servers, job.wikis, people=job.people, articles=job.articles, restart=job.restart,
            quiet=job.quiet,
        )  # fmt: skip
    people = told["people"]
    if people["chosen"] < job.order.count:
        say(f"{people['chosen']:,} of the {job.order.count:,} people that were asked for have the articles it takes.")
    if not job.quiet:
        say(
            f"{people['looked_up']:,} people looked up, {people['chosen']:,} taken; who was not, and what is lacking,"
            f" stands in {job.root / 'people.set_aside.jsonl'}."
        )
    if not people["chosen"]:
        raise _nobody(told, job.root / "people.set_aside.jsonl")
    return told


def _nobody(told: dict[str, Any], aside: Path) -> InputError:
    """What to say where there is no set to make: why, in numbers, and where each reason stands."""
    lacking = [
        f"{reason} in {tag} {count:,}" for tag, reasons in told["articles"].items() for reason, count in reasons.items()
    ]
    if told["people"]["unusable_rows"]:
        lacking.append(f"rows of people or articles that cannot be used {told['people']['unusable_rows']:,}")
    why = f" ({', '.join(lacking)})" if lacking else ""
    return InputError(f"nobody can be taken into the set{why}", remedy=f"See {aside}, mend, and add --overwrite.")


def _prompts(job: FactualJob) -> int:
    """A prompt for every person in every language in which there is an article; returns the exit code."""
    from veriglot.datasets.factual import ArticleStore
    from veriglot.datasets.prompts import prompt_version
    from veriglot.datasets.queries import biographies, person_from
    from veriglot.storage.checkpoint import Checkpoint, FailedRow

    people, articles, output = (job.root / name for name in ("people.jsonl", "articles.jsonl", "prompts.jsonl"))

    def rows(shelf: ArticleStore) -> Iterator[Sample | FailedRow]:
        for person in records_of([str(people)], person_from):
            if isinstance(person, FailedRow):
                yield person
                continue
            tags = [tag for tag in job.order.languages if f"{person.id}-{tag}" in shelf]
            yield from biographies([person], tags)

    stage = Checkpoint(
        output,
        signature=prompt_version("biography"),
        inputs=[str(people), str(articles)],
        options={"languages": ",".join(job.order.languages)},
        restart=job.restart,
        maker="prompt",
    )
    with ArticleStore(articles) as shelf:
        return tell(output, stage.run(rows(shelf), lambda asked: asked), what="prompts")


def _sets(job: FactualJob, responses: dict[str, Path], told: dict[str, Any]) -> FactualManifest:
    """The sets of all responses, and the manifest; what was made from the same is left as it is."""
    from veriglot.datasets.factual import (
        ArticleStore,
        FactualManifest,
        load_manifest,
        made_from,
        write_sets,
    )
    from veriglot.scorers.pairwise import with_sisters
    from veriglot.storage.files import write_json

    path, settings = job.root / "manifest.json", job.settings()
    failed = [path.with_name(f"{path.name}.failed.jsonl") for path in responses.values()]
    sources = [job.root / "articles.jsonl", *responses.values(), *failed, *_files(job.labels)]
    key = made_from(sources, {**settings, "order": msgspec.to_builtins(job.order)})
    before = load_manifest(path)
    if before is not None and before.made_from == key and before.describes(job.root):
        return before
    path.unlink(missing_ok=True)  # first: an old account must at no moment stand beside new sets
    with ArticleStore(job.root / "articles.jsonl") as shelf:
        sets = write_sets(
            job.sets, responses, shelf, job.order.languages, with_sisters=with_sisters, cross=job.order.cross,
            labels=_labels(job.labels),
        )  # fmt: skip
    manifest = FactualManifest.of(
        sets,
        job.sets.all,
        made_by={**told["made_by"], **settings},
        made_from=key,
        people=told["people"],
        articles=told["articles"],
        prices=job.prices,
    )
    _example(job.root / "bench.toml")
    write_json(path, manifest)
    return manifest


def _files(labels: Sequence[str]) -> list[Path]:
    from pathlib import Path

    return [Path(file.path) for file in Queries(labels).inputs] if labels else []


def _labels(names: Sequence[str]) -> Labels:
    """The labels of files in any readable format; rows that cannot be read are counted on standard error."""
    from veriglot.datasets.factual import Labels
    from veriglot.storage.checkpoint import FailedRow

    unreadable = 0

    def samples() -> Iterator[Sample]:
        nonlocal unreadable
        for row in Queries(names).rows():
            if isinstance(row, FailedRow):
                unreadable += 1
            else:
                yield row

    labels = Labels(samples() if names else ())
    if unreadable:
        say(f"{unreadable:,} rows of labels could not be read.")
    return labels


def _example(path: Path) -> None:
    """A bench file beside the sets, unless there is one."""
    if path.exists():
        return
    from importlib.resources import files

    from veriglot.storage.files import write_whole

    write_whole(path, files("veriglot.datasets").joinpath("biographies_bench.toml").read_bytes())


def show(manifest: FactualManifest, root: Path, *, json: bool) -> None:
    """The counts by model and language on standard output; what was set aside and the cost on standard error."""
    if json:
        print_json(manifest)
        return
    from rich.console import Console
    from rich.table import Table

    from veriglot.datasets.factual import cells_table

    head, *rows = cells_table(manifest.cells)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in head:
        table.add_column(name, justify="left" if name in ("model", "language") else "right")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    total = manifest.total
    cost = f"{total['tokens_in']:,} tokens of prompts, {total['tokens_out']:,} of replies"
    if manifest.money is not None:
        cost += f", {manifest.money:,.2f} at the prices given"
    say(f"{root}: {total['kept']:,} responses against the article, {total['pairs']:,} pairs of sisters. {cost}.")
    aside = manifest.files["rejected.jsonl"].rows
    if aside:
        say(f"{aside:,} responses were set aside, whole and with the reason, in {root / 'rejected.jsonl'}.")
    if manifest.without_cross:
        say(f"{manifest.without_cross:,} responses have no article in the other language to be held against.")
    labels = manifest.labels
    if labels["given"]:
        say(
            f"{labels['used']:,} of {labels['given']:,} labels used; {labels['of_another_text']:,} are of another text,"
            f" {labels['of_no_row']:,} of no row."
        )


def dry_run(job: FactualJob) -> int:
    """How many calls and tokens it would take at most, roughly; asks nothing and writes nothing."""
    from veriglot.datasets.factual import candidate_from
    from veriglot.datasets.queries import NamedPerson, biographies
    from veriglot.datasets.responses import budget
    from veriglot.storage.checkpoint import FailedRow

    tags, bad = job.order.languages, 0
    named: list[NamedPerson] = []
    for row in records_of(job.people, candidate_from):
        if isinstance(row, FailedRow):
            bad += 1
        else:
            named.append(row.named)
    if not job.people:  # who they are is not known yet: names of usual length, to count by
        named = [NamedPerson(str(number), dict.fromkeys(tags, "Maria Example")) for number in range(job.order.count)]
    plan = {
        respondent.name: budget(biographies(named[: job.order.count], tags), respondent, design="runs", seeds=job.seeds)
        for respondent in job.respondents
    }
    print_json(plan)
    if bad:
        say(f"{bad:,} rows of people could not be read.")
    return EXIT_ROWS_FAILED if bad else 0

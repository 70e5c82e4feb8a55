"""`veriglot dataset biographies`: the set of Kang et al., biographies in many languages."""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import ExitStack
from functools import cached_property, partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.cli.command import Options, command
from veriglot.cli.console import ProgressBar, print_json, say
from veriglot.cli.dataset_articles import PeopleRequest, Popularity, Wikidata, find_people, written_once
from veriglot.cli.dataset_responses import ask, named_models
from veriglot.cli.generation import Connection, Cost, Queries, Reading, Run, records_of, references, tell
from veriglot.cli.inputs import language_tags, readable, require_files
from veriglot.datasets.factual import (
    ArticleSource,
    ArticleStore,
    ChoiceAccount,
    FactualManifest,
    RejectedPerson,
    Spread,
    choose,
    given_articles,
    order_people,
    wiki_articles,
    write_sets,
)
from veriglot.datasets.prompts import prompt_version, use_prompts
from veriglot.datasets.quality import Quality, refusals_version
from veriglot.datasets.queries import NamedPerson, Part, Reference, biography_languages, person_from
from veriglot.datasets.queries import biographies as prompts_of
from veriglot.datasets.responses import Respondent, budget
from veriglot.errors import EXIT_ROWS_FAILED, InputError, UsageError
from veriglot.http.session import checked_address
from veriglot.llm.client import Settings
from veriglot.records.settings import Record
from veriglot.report.tables import Table
from veriglot.signatures import file_sha256
from veriglot.storage.checkpoint import Checkpoint, FailedRow
from veriglot.storage.files import Lock, write_whole
from veriglot.wikipedia.api import AnswerCache

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.records import Sample


class _SetRequest(Record):
    """Which people and articles are wanted; everything in it changes them."""

    languages: tuple[str, ...]
    count: int
    spread: Spread
    groups: int
    seed: int
    at_least: int | None
    part: Part
    min_characters: int
    cross: str | None
    people_request: PeopleRequest | None = msgspec.field(name="found", default=None)
    people: tuple[str, ...] = ()
    articles: tuple[str, ...] = ()
    wikis: tuple[str, ...] = ()


class BiographiesOptions(Options):
    """The options of `veriglot dataset biographies`."""

    output: str
    model: tuple[str, ...] = ()
    languages: str | None = None
    count: int = 500
    people: tuple[str, ...] = ()
    articles: tuple[str, ...] = ()
    samples: int = 5
    temperature: float | None = None
    spread: Spread | None = None
    part: Part = "text"
    min_characters: int = 0
    cross: str = "en"
    labels: tuple[str, ...] = ()
    prompt: str | None = None
    prompts_only: bool = False
    popularity: Popularity
    seed: int = 0
    wikidata: Wikidata
    cost: Cost
    revision: str | None = None
    connection: Connection
    run: Run
    dry_run: bool = False
    json: bool = False

    @property
    def root(self) -> Path:
        """The folder of the set."""
        return Path(self.output)

    @property
    def seeds(self) -> list[int | None]:
        """The files of responses, one per response."""
        return [*range(1, self.samples + 1)]

    @cached_property
    def request(self) -> _SetRequest:
        """Specification of people and articles."""
        tags = tuple(biography_languages()) if self.languages is None else language_tags(self.languages)
        if self.spread == "given" and not self.people:
            raise UsageError("The spread 'given' needs a file of people.", "Add --people FILE.")
        if self.articles and not self.people:
            raise UsageError("Files of articles need a file of people.", "Add --people FILE.")
        min_editions = self.popularity.at_least
        if min_editions is not None and min_editions > len(tags):
            raise UsageError(f"An article in {min_editions} of {len(tags)} languages is not possible.")
        counted = self.popularity.counted_in(tags, usual=("en",) if "en" in tags else tags[:1])
        search = None
        if not self.people:  # all are described and counted, and selected later
            wanted = max(self.popularity.candidates or 10 * self.count, self.count)
            search = PeopleRequest(
                tags,
                wanted,
                wanted,
                self.seed,
                (self.wikidata.wikidata_server, self.wikidata.views_server),
                min_editions,
                views_in=counted,
                views_from=self.popularity.views_from,
                views_to=self.popularity.views_to,
            )
        cross = None if self.cross == "none" else language_tags(self.cross)[0]
        return _SetRequest(
            languages=tags,
            count=self.count,
            spread=self.spread or ("given" if self.people else "diverse"),
            groups=self.popularity.groups,
            seed=self.seed,
            at_least=min_editions,
            part=self.part,
            min_characters=self.min_characters,
            cross=cross if tags != (cross,) else None,  # otherwise every response is compared with it already
            people_request=search,
            people=_hashes(self.people),
            articles=_hashes(self.articles),
            wikis=self.wikidata.wiki_servers,
        )


@command
def biographies(options: BiographiesOptions) -> int:
    """Make the set of Kang et al.: people with an article in every language, models' biographies, and their pairs.

    Each response in the right language is paired with the article in its language (reference.jsonl), with the English
    article (en.jsonl), and with the other responses to its prompt (pairs.jsonl, also in reference.jsonl). Responses in
    another language are in rejected.jsonl. Rerun the command to resume; no call is paid for twice.

    \b
    All of it:  veriglot dataset biographies --contact me@example.org -m bloomz --base-url URL -o set
    From files: veriglot dataset biographies -l en,de --people p.jsonl --articles a.jsonl -m m --base-url URL -o set
    """
    connection, wikidata = options.connection, options.wikidata
    for address in filter(None, (connection.base_url, wikidata.wikidata_server, wikidata.views_server)):
        checked_address(address)  # before planning or writing
    wikidata.server("en")  # likewise
    if options.prompt is not None:
        use_prompts(options.prompt, "biography")
    usual = Settings(temperature=1.0, top_p=0.9, do_sample=True if connection.client == "transformers" else None)
    settings = Settings(temperature=options.temperature).with_defaults(connection.settings).with_defaults(usual)
    respondents = named_models(options.model, options.revision, settings)
    if not respondents and not options.prompts_only:
        raise UsageError("No model is named.", "Add --model MODEL, or set prompts_only.")
    factual_set = _FactualSet(options, respondents)
    if options.dry_run:
        return factual_set.plan()
    if not options.prompts_only:
        connection.check()  # report missing packages before people are fetched
    manifest, code = factual_set.make()
    if manifest is not None and not options.run.quiet:
        _show(manifest, options.root, json=options.json)
    return code


def _hashes(paths: Sequence[str]) -> tuple[str, ...]:
    require_files(paths)
    return tuple(map(file_sha256, paths))


class _FactualSet:
    """The steps of a set; each runs once."""

    def __init__(self, options: BiographiesOptions, respondents: Sequence[Respondent]) -> None:
        self._options = options
        self._root = options.root
        self._prices = options.cost.prices
        self._request = options.request
        self._run = options.run
        self._respondents = respondents
        self._wikidata, self._fetched = options.wikidata, self._root / "fetched"

    def make(self) -> tuple[FactualManifest | None, int]:
        """Make the set, or its missing parts."""
        lock = Lock(self._root / "manifest.json")
        try:
            account = self._chosen()
            code = self._prompts()
            if self._options.prompts_only:
                return None, code
            tallies = ask(
                Queries([str(self._root / "prompts.jsonl")], Reading(format="jsonl")),
                self._respondents, self._options.connection, self._root / "responses", design="runs",
                seeds=self._options.seeds, run=self._run,
            )  # fmt: skip
            code = max(code, *(tell(path, tally) for path, tally in tallies.items()))
            responses = dict(zip((respondent.name for respondent in self._respondents), tallies, strict=True))
            return self._sets(responses, account), code
        finally:
            lock.release()

    def _chosen(self) -> dict[str, Any]:
        """Choose people and articles; returns their counts."""
        articles, aside = self._root / "articles.jsonl", self._root / "people.set_aside.jsonl"
        results: dict[str, Any] = {}
        account, _ = written_once(
            articles, self._request, lambda: (self._choose(results), results), restart=self._run.overwrite
        )
        people = account["people"]
        if people["chosen"] < self._request.count:
            say(f"{people['chosen']:,} of the {self._request.count:,} requested people have the required articles.")
        if not self._run.quiet:
            looked_up, chosen = people["looked_up"], people["chosen"]
            say(
                f"People looked up: {looked_up:,}, taken: {chosen:,}. {aside} lists the others, and why each is"
                " missing."
            )
        if not people["chosen"]:
            raise _no_person(account, aside)
        return account

    def _choose(self, results: dict[str, Any]) -> Iterator[Reference]:
        """The articles; their people are written beside them at the end, and `results` is filled."""
        request, account = self._request, ChoiceAccount()
        with ExitStack() as stack:
            candidates, counts = self._candidates(account.set_aside)
            ordered = order_people(
                candidates, request.count, spread=request.spread, groups=request.groups, seed=request.seed
            )
            if self._options.articles:
                source = _given(request, self._options.articles, stack, account.set_aside)
            else:
                cache = stack.enter_context(self._wikidata.answers(self._fetched))
                source = wiki_articles(lambda tag: self._wikidata.wikipedia(tag, stack, cache), part=request.part)
            bar = stack.enter_context(ProgressBar(shown=not self._run.quiet, total=lambda: request.count))
            chosen = []
            for person, articles in choose(
                ordered, source, request.languages, request.count, account, at_least=request.at_least,
                also=[request.cross] if request.cross is not None else [], min_characters=request.min_characters,
            ):  # fmt: skip
                bar.advance()
                chosen.append(person)
                yield from articles.values()
        people = [{"id": who.id, "names": who.names, "titles": who.titles, **who.meta} for who in chosen]
        _write(self._root / "people.jsonl", people)
        _write(self._root / "people.set_aside.jsonl", account.set_aside)
        aside = Counter(person.reason for person in account.set_aside)
        reasons = {"too_few_articles": aside["articles"], "unusable_rows": aside["unusable"]}
        results["people"] = {**counts, "looked_up": account.looked_up, "chosen": account.chosen, **reasons}
        results["articles"] = {tag: dict(sorted(lacking.items())) for tag, lacking in account.lacking.items()}

    def _candidates(self, aside: list[RejectedPerson]) -> tuple[list[NamedPerson], dict[str, int]]:
        """The possible people, and how many exist and were described."""
        counts: dict[str, int] = {}
        files: Sequence[str] = self._options.people
        if not files:
            request = self._request.people_request
            assert request is not None
            path = self._root / "candidates.jsonl"
            make = partial(find_people, request, self._wikidata, self._fetched, quiet=self._run.quiet)
            account, _ = written_once(path, request, make, restart=self._run.overwrite)
            counts = {name: account[name] for name in ("found", "described", "without_views")}
            files = [str(path)]
        candidates = []
        for row in records_of(files, person_from):
            if isinstance(row, NamedPerson):
                candidates.append(row)
            else:
                aside.append(_unusable(row))
        return candidates, {**counts, "candidates": len(candidates)}

    def _prompts(self) -> int:
        """A prompt for every person in every language with an article; returns the exit code."""
        people, articles, output = (self._root / name for name in ("people.jsonl", "articles.jsonl", "prompts.jsonl"))

        def rows(store: ArticleStore) -> Iterator[Sample | FailedRow]:
            for person in records_of([str(people)], person_from):
                if isinstance(person, FailedRow):
                    yield person
                    continue
                tags = [tag for tag in self._request.languages if f"{person.id}-{tag}" in store]
                yield from prompts_of([person], tags)

        stage = Checkpoint(
            output,
            signature=prompt_version("biography"),
            inputs=[str(people), str(articles)],
            options={"languages": ",".join(self._request.languages)},
            restart=self._run.overwrite,
            maker="prompt",
        )
        with ArticleStore(articles) as store:
            return tell(output, stage.run(rows(store), lambda asked: asked), what="prompts")

    def _sets(self, responses: dict[str, Path], account: dict[str, Any]) -> FactualManifest:
        """The sets of all responses, and the manifest; finished ones with the same inputs do not change."""
        files = Queries(self._options.labels) if self._options.labels else None
        settings = {
            "models": [msgspec.to_builtins(respondent) for respondent in self._respondents],
            "samples": self._options.samples,
            "prompt": prompt_version("biography"),
            "refusals": refusals_version(),
            "prices": self._prices,
        }
        manifest = write_sets(
            self._root,
            responses,
            account,
            settings,
            cross=self._request.cross,
            labels=() if files is None else readable(files.rows(), "rows of labels could not be read."),
            labelled=[] if files is None else [Path(name) for name in files.paths],
            prices=self._prices,
        )
        _example(self._root / "bench.toml")
        return manifest

    def plan(self) -> int:
        """Print an estimate of the maximum calls and tokens; calls nothing and writes nothing."""
        tags, count = self._request.languages, self._request.count
        rows = list(records_of(self._options.people, person_from))
        named = [row for row in rows if not isinstance(row, FailedRow)]
        bad = len(rows) - len(named)
        if not self._options.people:  # people are unknown yet: use names of average length
            named = [NamedPerson(str(number), dict.fromkeys(tags, "Maria Example")) for number in range(count)]
        seeds = self._options.seeds
        print_json(
            {
                respondent.name: budget(prompts_of(named[:count], tags), respondent, design="runs", seeds=seeds)
                for respondent in self._respondents
            }
        )
        if bad:
            say(f"Rows of people that could not be read: {bad:,}.")
        return EXIT_ROWS_FAILED if bad else 0


def _unusable(row: FailedRow) -> RejectedPerson:
    position = f"{row.path}, line {row.line}: " if row.line is not None else ""
    return RejectedPerson("", "unusable", detail=f"{position}{row.message}")


def _given(
    request: _SetRequest, articles: Sequence[str], stack: ExitStack, aside: list[RejectedPerson]
) -> ArticleSource:
    def note(row: FailedRow | Reference) -> None:
        if not isinstance(row, Reference):
            aside.append(_unusable(row))
            return
        why = (
            "an earlier row has an article on this person in this language"
            if "item" in row.meta
            else "it names no `item`"
        )
        aside.append(RejectedPerson(row.meta.get("item", ""), "unusable", {}, row.language, f"article {row.id}: {why}"))

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="veriglot-")))
    return given_articles(references(articles, request.part), stack.enter_context(AnswerCache(folder)), note)


def _write(path: Path, rows: Any) -> None:
    write_whole(path, b"".join(msgspec.json.encode(row) + b"\n" for row in rows))


def _no_person(summary: dict[str, Any], aside: Path) -> InputError:
    """The message if there is no set to make: the reasons, with numbers and files."""
    lacking = [
        f"{reason} in {tag} {count:,}"
        for tag, reasons in summary["articles"].items()
        for reason, count in reasons.items()
    ]
    if summary["people"]["unusable_rows"]:
        lacking.append(f"rows of people or articles that cannot be used {summary['people']['unusable_rows']:,}")
    why = f" ({', '.join(lacking)})" if lacking else ""
    return InputError(
        f"no person can be taken into the set{why}", f"See {aside}, correct the data, and add --overwrite."
    )


def _example(path: Path) -> None:
    """Write a bench file beside the sets, unless it exists."""
    if not path.exists():
        write_whole(path, resources.files("veriglot.datasets").joinpath("biographies_bench.toml").read_bytes())


def _show(manifest: FactualManifest, root: Path, *, json: bool) -> None:
    """The counts by model and language on standard output; exclusions and cost on standard error."""
    if json:
        print_json(manifest)
        return
    total = manifest.total
    heads = ("model", "language", *(name.replace("language_wrong", "wrong language") for name in _COLUMNS))
    rows = [
        (cell.model, cell.language, *(f"{counts[name]:,}" for name in _COLUMNS), *_shown(cell.quality))
        for cell, counts in zip(manifest.cells, msgspec.to_builtins(manifest.cells), strict=True)
    ]
    if len(rows) > 1:
        rows.append(("all", "", *(f"{total[name]:,}" for name in _COLUMNS), "", "", ""))
    Table("", (*heads, "right", "most in", "words"), rows, lead=2).print()
    cost = f"{total['tokens_in']:,} tokens of prompts, {total['tokens_out']:,} of replies"
    if manifest.money is not None:
        cost += f", {manifest.money:,.2f} at the prices given"
    say(f"{root}: {total['kept']:,} responses against the article, {total['pairs']:,} pairs of responses. {cost}.")
    aside = manifest.files["rejected.jsonl"].rows
    if aside:
        say(f"Responses rejected, with reasons in {root / 'rejected.jsonl'}: {aside:,}.")
    if manifest.without_cross:
        say(f"Responses without an article in the other language to be compared with: {manifest.without_cross:,}.")
    labels = manifest.labels
    if labels["given"]:
        say(
            f"{labels['used']:,} of {labels['given']:,} labels used; for another text: {labels['of_another_text']:,},"
            f" for no row: {labels['of_no_row']:,}."
        )


_COLUMNS = ("asked", "failed", "responses", "kept", "empty", "undetected", "language_wrong", "alone", "pairs", "cross")


def _shown(quality: Quality | None) -> tuple[str, ...]:
    """The share in the right language, of responses with a detectable one, the most frequent language, and words."""
    if quality is None:
        return ("-", "-", "-")
    right = "-" if quality.right_language is None else f"{quality.right_language:.1%}"
    return (right, quality.most_frequent_language or "-", f"{quality.words:.1f}")

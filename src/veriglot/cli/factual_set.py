"""What `veriglot build factual` does: people and their articles, prompts, responses, sets, and the account of all."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.cli.building import Queries, ask, print_json, records_of, say, tell
from veriglot.cli.factual_people import SetOrder, choose_people
from veriglot.cli.sourcing import Output
from veriglot.errors import EXIT_ROWS_FAILED, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from veriglot.build import Respondent
    from veriglot.build.factual import Labels, SetFiles
    from veriglot.build.factual.manifest import FactualManifest
    from veriglot.cli.factual_people import WikiServers
    from veriglot.cli.model_options import Connection
    from veriglot.cli.silvering import Prices
    from veriglot.cli.sourcing import Servers
    from veriglot.records import Sample
    from veriglot.run import FailedRow

__all__ = ["FactualJob", "dry_run", "make", "show"]


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
        from veriglot.build.factual import SetFiles

        cross = self.order.cross
        return SetFiles(
            self.root / "reference.jsonl",
            self.root / f"{cross}.jsonl" if cross is not None else None,
            self.root / "pairs.jsonl",
            self.root / "rejected.jsonl",
        )

    def settings(self) -> dict[str, Any]:
        """What the sets are made by, beside people and articles."""
        from veriglot.build import prompt_version, refusals_version

        return {
            "models": [msgspec.to_builtins(one) for one in self.respondents],
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
        HttpError, SourceError, ModelError: a server that does not give what it should; what is done is kept.
    """
    from veriglot.run.lock import Lock

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
        responses = dict(zip((one.name for one in job.respondents), tallies, strict=True))
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
    lacking = [f"{reason} in {tag} {count:,}" for tag, one in told["articles"].items() for reason, count in one.items()]
    if told["people"]["unusable_rows"]:
        lacking.append(f"rows of people or articles that cannot be used {told['people']['unusable_rows']:,}")
    why = f" ({', '.join(lacking)})" if lacking else ""
    return InputError(f"nobody can be taken into the set{why}", remedy=f"See {aside}, mend, and add --restart.")


def _prompts(job: FactualJob) -> int:
    """A prompt for every person in every language in which there is an article; returns the exit code."""
    from veriglot.build import biographies, named_from, prompt_version
    from veriglot.build.factual import Shelf
    from veriglot.run import FailedRow, Stage

    people, articles, output = (job.root / name for name in ("people.jsonl", "articles.jsonl", "prompts.jsonl"))

    def rows(shelf: Shelf) -> Iterator[Sample | FailedRow]:
        for person in records_of([str(people)], named_from):
            if isinstance(person, FailedRow):
                yield person
                continue
            tags = [tag for tag in job.order.languages if f"{person.id}-{tag}" in shelf]
            yield from biographies([person], tags)

    stage: Stage[Sample] = Stage(
        output,
        signature=prompt_version("biography"),
        inputs=[str(people), str(articles)],
        options={"languages": ",".join(job.order.languages)},
        restart=job.restart,
        maker="prompt",
    )
    with Shelf(articles) as shelf:
        return tell(output, stage.run(rows(shelf), lambda asked: asked), what="prompts")


def _sets(job: FactualJob, responses: dict[str, Path], told: dict[str, Any]) -> FactualManifest:
    """The sets of all responses, and the manifest; what was made from the same is left as it is."""
    from veriglot.build.factual import Shelf, write_sets
    from veriglot.build.factual.manifest import FactualManifest, load_manifest, made_from, save_manifest
    from veriglot.scorers.sisters import with_sisters

    path, settings = job.root / "manifest.json", job.settings()
    failed = [one.with_name(f"{one.name}.failed.jsonl") for one in responses.values()]
    sources = [job.root / "articles.jsonl", *responses.values(), *failed, *_files(job.labels)]
    key = made_from(sources, {**settings, "order": msgspec.to_builtins(job.order)})
    before = load_manifest(path)
    if before is not None and before.made_from == key and before.describes(job.root):
        return before
    path.unlink(missing_ok=True)  # first: an old account must at no moment stand beside new sets
    with Shelf(job.root / "articles.jsonl") as shelf:
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
    save_manifest(path, manifest)
    return manifest


def _files(labels: Sequence[str]) -> list[Path]:
    from pathlib import Path

    return [Path(one.path) for one in Queries(labels).inputs] if labels else []


def _labels(names: Sequence[str]) -> Labels:
    """The labels of files in any readable format; rows that cannot be read are counted on standard error."""
    from veriglot.build.factual import Labels
    from veriglot.run import FailedRow

    unreadable = 0

    def samples() -> Iterator[Sample]:
        nonlocal unreadable
        for row in Queries(names).rows():
            if isinstance(row, FailedRow):
                unreadable += 1
            else:
                yield row

    found = Labels(samples() if names else ())
    if unreadable:
        say(f"{unreadable:,} rows of labels could not be read.")
    return found


def _example(path: Path) -> None:
    """A bench file beside the sets, unless there is one."""
    if path.exists():
        return
    from importlib.resources import files

    from veriglot.run.manifest import write_whole

    write_whole(path, files("veriglot.build.factual").joinpath("bench.toml").read_bytes())


def show(manifest: FactualManifest, root: Path, *, json: bool) -> None:
    """The counts by model and language on standard output; what was set aside and the cost on standard error."""
    if json:
        print_json(manifest)
        return
    from rich.console import Console
    from rich.table import Table

    from veriglot.build.factual import cells_table

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
    from veriglot.build import Named, biographies, budget
    from veriglot.build.factual import candidate_from
    from veriglot.run import FailedRow

    tags, bad = job.order.languages, 0
    named: list[Named] = []
    for row in records_of(job.people, candidate_from):
        if isinstance(row, FailedRow):
            bad += 1
        else:
            named.append(row.named)
    if not job.people:  # who they are is not known yet: names of usual length, to count by
        named = [Named(str(number), dict.fromkeys(tags, "Maria Example")) for number in range(job.order.count)]
    plan = {
        one.name: budget(biographies(named[: job.order.count], tags), one, design="runs", seeds=job.seeds)
        for one in job.respondents
    }
    print_json(plan)
    if bad:
        say(f"{bad:,} rows of people could not be read.")
    return EXIT_ROWS_FAILED if bad else 0

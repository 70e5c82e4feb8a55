"""`veriglot dataset silver` and `rules`: typed errors put into texts by a model, or by rule."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from veriglot.cli.command import Help, Setting, command
from veriglot.cli.options import (
    AccountJson,
    Checks,
    Connection,
    Cost,
    DryRun,
    InjectedTaxonomy,
    Model,
    OptionalCount,
    Output,
    Overwrite,
    Quiet,
    Reading,
    Retry,
    Seed,
)
from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.cli.generation import Queries
    from veriglot.datasets.rules.material import Articles
    from veriglot.datasets.rules.silver import RuleSettings

__all__ = ["rules", "silver"]


@command
def rules(
    seeds: Annotated[
        list[str],
        typer.Argument(
            metavar="SEEDS...",
            show_default=False,
            help="Samples in any readable format, or articles of `veriglot dataset articles`, whose evidence is"
            " quoted.",
        ),
    ],
    *,
    output: Annotated[Output, Help("JSON lines.")],
    count: Annotated[OptionalCount, Help("Rows, as many in each language. Default: 1000.")] = None,
    taxonomy: Annotated[InjectedTaxonomy, Help("Default: fava.")] = "fava",
    clean: Annotated[float, Setting("Share of rows that stay without errors.", 0, 1)] = 0.3,
    shares: Annotated[
        str | None,
        Setting(
            'What part of the errors each type is, such as "entity=2,relation=1"; types that are not named get none.'
            " Default: all the same."
        ),
    ] = None,
    errors: Annotated[str, Setting('Errors in a row that has any, such as "2" or "1-3", 6 at most.')] = "1-3",
    reworded: Annotated[
        float, Setting("Share of the sentences that are quoted without what they have in brackets.", 0, 1)
    ] = 0.4,
    articles: Annotated[
        int, Setting("Articles of a language that are quoted at the most, drawn by the seed.", 2)
    ] = 1000,
    seed: Annotated[Seed, Help("Default: 1.")] = 1,
    reading: Reading,
    overwrite: Overwrite = False,
    json: AccountJson = False,
    quiet: Quiet = False,
) -> None:
    """Make silver data by rule: quotes from evidence, and errors with exact spans that no model puts into them.

    \b
    Such as:  veriglot dataset rules articles.jsonl -n 10000 -o silver.jsonl
    """
    from veriglot.datasets.rules.silver import RuleSettings

    fewest, most = _range(errors)
    settings = RuleSettings(
        rows=count or 1000,
        taxonomy=taxonomy,
        shares=_shares(shares),
        clean=clean,
        fewest=fewest,
        most=most,
        reworded=reworded,
        articles=articles,
        seed=seed,
    )
    code = make_by_rule(
        seeds, output, settings, format_name=reading.format, language=reading.language, restart=overwrite, json=json,
        quiet=quiet,
    )  # fmt: skip
    if code:
        raise typer.Exit(code)


def make_by_rule(
    seeds: list[str],
    output: str,
    settings: RuleSettings,
    *,
    format_name: str | None,
    language: str | None,
    restart: bool,
    json: bool,
    quiet: bool,
) -> int:
    """Make silver rows by rule and say what came of it; returns the exit code."""
    from veriglot.cli.generation import Queries, say, show_account, tell
    from veriglot.cli.progress import Bar
    from veriglot.datasets.rules.silver import rule_silver
    from veriglot.datasets.silver.job import load_account

    source = Queries(seeds, format_name=format_name, language=language)
    articles = _articles(source, settings, format_name, language)
    path = Path(output)
    with Bar(shown=not quiet, total=lambda: settings.rows) as bar:
        tally = rule_silver(
            path,
            articles,
            settings,
            inputs=source.paths,
            options={**source.options},
            restart=restart,
            seen=lambda _: bar.advance(),
        )
    account = load_account(path)
    if not quiet:
        show_account(account, path, json=json)
        _say_unsupported(articles, settings)
    unmade = account.total.seeds - account.total.rows
    if unmade:
        say(f"{unmade:,} rows that were planned could not be made; {path}.rejected.jsonl says why.")
    return tell(path, tally, what="planned rows")


def _shares(text: str | None) -> dict[str, float]:
    shares: dict[str, float] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        name, _, number = part.partition("=")
        try:
            shares[name.strip()] = float(number)
        except ValueError:
            raise UsageError(
                f"`shares` has {part.strip()!r}.",
                remedy="Write it as entity=2,relation=1, with a number for each type.",
            ) from None
    return shares


def _range(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    try:
        return int(first), int(last or first)
    except ValueError:
        raise UsageError(f"`errors` is {text!r}, which is no range.", remedy="Write it as 2 or as 1-3.") from None


def _articles(source: Queries, settings: RuleSettings, format_name: str | None, language: str | None) -> Articles:
    """The passages of the seeds: of samples in any readable format, and of what `veriglot dataset articles` writes."""
    from veriglot.cli.dataset_queries import references
    from veriglot.cli.generation import Queries, say
    from veriglot.datasets.queries import Reference
    from veriglot.datasets.rules.material import Articles
    from veriglot.storage.checkpoint import FailedRow

    articles = Articles(settings.articles, settings.seed)
    unreadable = 0
    for path in source.paths:
        plain = format_name is None and not _holds_samples(path)
        queries = Queries([path], format_name=format_name, language=language)
        for row in references([path], "lead") if plain else queries.rows():
            if isinstance(row, FailedRow):
                unreadable += 1
            elif isinstance(row, Reference):
                articles.add_reference(row)
            else:
                articles.add(row)
    if unreadable:
        say(f"{unreadable:,} seeds could not be read.")
    for reason, number in sorted(articles.left_out.items()):
        say(f"{number:,} seeds are left out: {reason}.")
    return articles


def _holds_samples(path: str) -> bool:
    """Whether a file is in a format of samples; JSON lines that are in none may be articles."""
    from veriglot.errors import InputError
    from veriglot.formats.reader import guess

    if not path.endswith(".jsonl"):
        return True
    try:
        guess(path)
    except InputError:
        return False
    return True


def _say_unsupported(articles: Articles, settings: RuleSettings) -> None:
    """Name the languages that lack types that were asked for, or are left out."""
    from veriglot.cli.generation import say
    from veriglot.datasets.rules.silver import quotable_languages, supported_types

    languages = quotable_languages(articles)
    missing: dict[tuple[str, ...], list[str]] = {}
    for tag in languages:
        can = supported_types(tag, settings.taxonomy)
        types = tuple(type_ for type_, weight in settings.weights().items() if weight and type_ not in can)
        missing.setdefault(types, []).append(tag)
    for types, tags in missing.items():
        if types:
            say(f"Rules make no errors of {_listed(types)} in {_listed(tags)}: the other types have their share there.")
    alone = [tag for tag in articles.languages() if tag not in languages]
    if alone:
        say(f"No rows in {_listed(alone)}: there is one article only.")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


@command
def silver(
    seeds: Annotated[
        list[str],
        typer.Argument(
            metavar="SEEDS...",
            show_default=False,
            help="Samples in any readable format. The response of one that has a response is the passage that errors"
            " go into; for one that has none, the model first answers its question, or retells its text, from its"
            " evidence.",
        ),
    ],
    *,
    output: Annotated[Output, Help("JSON lines.")],
    model: Annotated[Model, Help("It puts the errors in.")],
    taxonomy: Annotated[
        InjectedTaxonomy,
        Help(
            "fava: passages that get errors of its six types one after another. halluverse: one sentence a row, with"
            " one of its three types, drawn at random and balanced. Default: fava."
        ),
    ] = "fava",
    order: Annotated[
        str | None,
        Setting(
            'Types in the order they are put in, such as "entity,subjective" (those that are not named are left out);'
            " or shuffled, drawn for each passage. Default: all types, in the order of the taxonomy."
        ),
    ] = None,
    form: Annotated[
        Literal["tags", "plain"] | None,
        Setting(
            "How the model says what it changed. tags: with tags around it. plain: by writing the edited text, and"
            " spans are where it differs. Default: tags for fava, plain for halluverse."
        ),
    ] = None,
    clean: Annotated[float, Setting("Share of seeds that stay without errors.", 0, 1)] = 0.0,
    checks: Checks,
    seed: Annotated[Seed, Help("Default: 1.")] = 1,
    cost: Cost,
    connection: Connection,
    reading: Reading,
    overwrite: Overwrite = False,
    retry: Retry = False,
    dry_run: DryRun = False,
    json: AccountJson = False,
    quiet: Quiet = False,
) -> None:
    """Make silver data: passages, and errors with exact spans that a model puts into them.

    Every row is checked: outside its spans it is the passage, nothing is glued, each span says something else than
    before, in the right language and script. What does not pass stands with its reason in OUTPUT.rejected.jsonl, the
    yield per type and language and the cost in OUTPUT.account.json.

    \b
    Passages:   veriglot dataset silver queries.jsonl -m gpt --base-url https://host/v1 -o silver.jsonl
    Sentences:  veriglot dataset silver facts.jsonl --taxonomy halluverse -m gpt --base-url https://host/v1 -o out.jsonl
    Settings:   veriglot dataset silver --write-config > silver.toml, then --config silver.toml
    """
    from veriglot.cli.generation import Queries, dry_run_of, inject, support_of, types_of
    from veriglot.datasets.silver.injection import Injector

    types, way = types_of(order)
    injector = Injector(
        model,
        taxonomy,
        types,
        form or ("plain" if taxonomy == "halluverse" else "tags"),
        connection.settings,
        seed,
        checks.attempts,
    )
    source = Queries(seeds, format_name=reading.format, language=reading.language)
    if dry_run:
        dry_run_of(source, injector, order=way, clean=clean, checked=checks.support == "model", prices=cost.prices)
        return
    code = inject(
        source,
        injector,
        connection,
        Path(output),
        support=support_of(checks, model, seed),
        also=checks.support_model if checks.support == "model" else None,
        order=way,
        clean=clean,
        restart=overwrite,
        retry=retry,
        json=json,
        quiet=quiet,
        prices=cost.prices,
    )
    if code:
        raise typer.Exit(code)

"""`veriglot build silver --rules`: the options of rules, and what they do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.build.perturbation import Articles, RuleSettings
    from veriglot.cli.building import Queries

__all__ = ["Errors", "MostArticles", "Reworded", "Rows", "Rules", "Shares", "make_by_rule", "rule_settings"]

Rules = Annotated[
    bool,
    typer.Option(
        "--rules", help="Make the rows by rule, without a model, from the evidence of the seeds. Default: off."
    ),
]
Rows = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="With --rules: rows to make, as many in each language. Default: 1000."),
]
Shares = Annotated[
    str | None,
    typer.Option(
        metavar="LIST",
        help="With --rules: what part of the errors each type is, such as entity=2,relation=1; types that are not named"
        " get none. Default: all the same.",
    ),
]
Errors = Annotated[
    str | None,
    typer.Option(
        metavar="N-M", help="With --rules: errors in a row that has any, such as 2 or 1-3, 6 at most. Default: 1-3."
    ),
]
Reworded = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        min=0.0,
        max=1.0,
        help="With --rules: share of the sentences that are quoted without what they have in brackets. Default: 0.4.",
    ),
]
MostArticles = Annotated[
    int | None,
    typer.Option(
        "--articles",
        metavar="N",
        min=2,
        help="With --rules: articles of a language that are quoted at the most, drawn by the seed. Default: 1000.",
    ),
]


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
    from veriglot.build.injection import load_account
    from veriglot.build.perturbation import rule_silver
    from veriglot.cli.building import Queries, say, tell
    from veriglot.cli.progress import Bar
    from veriglot.cli.silvering import show_account

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


def rule_settings(
    *,
    rows: int | None,
    taxonomy: str,
    shares: str | None,
    clean: float | None,
    errors: str | None,
    reworded: float | None,
    articles: int | None,
    seed: int,
) -> RuleSettings:
    """The settings that options stand for; None takes the default.

    Raises:
        UsageError: a list or range that cannot be read, or settings that contradict each other.
    """
    from veriglot.build.perturbation import RuleSettings

    given = {"rows": rows, "clean": clean, "reworded": reworded, "articles": articles}
    fewest, most = _range(errors)
    return RuleSettings(
        taxonomy=taxonomy,
        shares=_shares(shares),
        fewest=fewest,
        most=most,
        seed=seed,
        **{name: value for name, value in given.items() if value is not None},  # type: ignore[arg-type]
    )


def _shares(text: str | None) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        name, _, number = part.partition("=")
        try:
            found[name.strip()] = float(number)
        except ValueError:
            raise UsageError(
                f"--shares has {part.strip()!r}.",
                remedy="Write it as entity=2,relation=1, with a number for each type.",
            ) from None
    return found


def _range(text: str | None) -> tuple[int, int]:
    first, _, last = (text or "1-3").partition("-")
    try:
        return int(first), int(last or first)
    except ValueError:
        raise UsageError(f"--errors {text!r} is no range.", remedy="Write it as 2 or as 1-3.") from None


def _articles(source: Queries, settings: RuleSettings, format_name: str | None, language: str | None) -> Articles:
    """The passages of the seeds: of samples in any readable format, and of what `veriglot build articles` writes."""
    from veriglot.build import Reference
    from veriglot.build.perturbation import Articles
    from veriglot.cli.build_queries import references
    from veriglot.cli.building import Queries, say
    from veriglot.run import FailedRow

    articles = Articles(settings.articles, settings.seed)
    unreadable = 0
    for path in source.paths:
        plain = format_name is None and not _holds_samples(path)
        one = Queries([path], format_name=format_name, language=language)
        for row in references([path], "lead") if plain else one.rows():
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
    from veriglot.formats import guess

    if not path.endswith(".jsonl"):
        return True
    try:
        guess(path)
    except InputError:
        return False
    return True


def _say_unsupported(articles: Articles, settings: RuleSettings) -> None:
    """Name the languages that lack types that were asked for, or are left out."""
    from veriglot.build.perturbation import quotable_languages, supported_types
    from veriglot.cli.building import say

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

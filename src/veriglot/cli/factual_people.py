"""The people of `veriglot build factual` and their articles: found and fetched, or read from files."""

from __future__ import annotations

import re
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from veriglot.build.factual.candidates import Spread  # msgspec reads it at run time
from veriglot.cli.building import records_of
from veriglot.cli.people_fetching import PeopleOrder, fetch_people
from veriglot.cli.progress import Bar
from veriglot.cli.sourcing import Output
from veriglot.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.build import Reference
    from veriglot.build.factual import Candidate, Choosing, SetAside
    from veriglot.build.factual.articles import ArticleSource, Titles
    from veriglot.cli.sourcing import Servers
    from veriglot.run import FailedRow

__all__ = ["SetOrder", "WikiServers", "choose_people", "iso_date", "order_of"]


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
    from veriglot.build import biography_languages

    tags = tuple(languages or biography_languages())
    if spread == "given" and not people:
        raise UsageError("There is no given order of people who are yet to be found.", remedy="Add --people FILE.")
    if articles and not people:
        raise UsageError("Articles of files are about people of a file.", remedy="Add --people FILE.")
    if at_least is not None and at_least > len(tags):
        raise UsageError(f"Articles in {at_least} of {len(tags)} languages cannot be asked for.")
    counted = (("en",) if "en" in tags else tags[:1]) if views_in is None else views_in
    if not set(counted) <= set(tags):
        raise UsageError("--views-in names a language that is not among --languages.")
    wanted = max(candidates or 10 * count, count)
    found = None
    if not people:  # all of them are described and counted, and chosen from later
        found = PeopleOrder(tags, at_least, wanted, wanted, 1, seed, counted, *period, servers)
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
        found,
        _hashes(people),
        _hashes(articles),
        tuple(wikis),
    )


def _hashes(paths: Sequence[str]) -> tuple[str, ...]:
    from veriglot.provenance import file_sha256

    for path in paths:
        if not Path(path).is_file():
            raise InputError("there is no such file", path=path, remedy="Check the path.")
    return tuple(map(file_sha256, paths))


def iso_date(text: str) -> str:
    """A date as `2022-01-01`.

    Raises:
        UsageError: it is none.
    """
    from datetime import date

    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise UsageError(f"{text!r} is no date.", remedy="Write it as 2022-01-01.") from None


class WikiServers:
    """Which server has the Wikipedia of a language.

    Args:
        given: `TAG=URL` for one language, or a URL for all others, in which `{edition}` stands for the edition.

    Raises:
        UsageError: something else, or an address that holds a password.
    """

    def __init__(self, given: Sequence[str]) -> None:
        from veriglot.http import checked_address
        from veriglot.records.languages import language as known

        self._by_tag: dict[str, str] = {}
        self._pattern: str | None = None
        for one in given:
            found = re.fullmatch(r"([A-Za-z-]+)=(https?://.+)", one)
            checked_address((found[2] if found is not None else one).replace("{edition}", "edition"))
            if found is not None:
                self._by_tag[known(found[1]).tag] = found[2]
            elif re.match(r"https?://", one) and "{edition}" in one and self._pattern is None:
                self._pattern = one
            else:
                raise UsageError(
                    f"--wiki-server {one!r} says not which Wikipedia it is.",
                    remedy="Write it as de=URL, or once, for all others, as a URL with {edition} in it.",
                )

    def of(self, tag: str) -> str | None:
        """The address of a Wikipedia; None for Wikimedia's own."""
        from veriglot.sources import edition_of

        if tag in self._by_tag:
            return self._by_tag[tag]
        return self._pattern.replace("{edition}", edition_of(tag)) if self._pattern is not None else None


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
    from veriglot.build.factual import Choosing, choose, in_order
    from veriglot.sources import Kept

    root, account = out.path.parent, Choosing()
    told: dict[str, Any] = {}
    with ExitStack() as stack:
        kept = None if people and articles else stack.enter_context(Kept(servers.cache))
        candidates, found = _candidates(order, root, servers, people, account.set_aside, restart=restart, quiet=quiet)
        ordered = in_order(candidates, order.count, spread=order.spread, groups=order.groups, seed=order.seed)
        if articles:
            source = _given(order, articles, stack, account.set_aside)
        else:
            source = _wikis(order, servers, wikis, kept, stack)
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
            told.update(_told(found, account))

        out.write(rows(), told)
    return {"made_by": msgspec.to_builtins(order), **told}


def _told(found: dict[str, int], account: Choosing) -> dict[str, Any]:
    aside = [one for one in account.set_aside if one.reason in ("articles", "unusable")]
    reasons = {"too_few_articles": sum(one.reason == "articles" for one in aside)}
    reasons["unusable_rows"] = len(aside) - reasons["too_few_articles"]
    people = {**found, "looked_up": account.looked_up, "chosen": account.chosen, **reasons}
    return {"people": people, "articles": {tag: dict(sorted(one.items())) for tag, one in account.lacking.items()}}


def _candidates(
    order: SetOrder,
    root: Path,
    servers: Servers,
    people: Sequence[str],
    aside: list[SetAside],
    *,
    restart: bool,
    quiet: bool,
) -> tuple[list[Candidate], dict[str, int]]:
    """Who may come into the set, and how many were found and described."""
    from veriglot.build.factual import Candidate, SetAside, candidate_from

    told: dict[str, int] = {}
    files = list(people)
    if not people:
        assert order.found is not None
        out = Output(root / "candidates.jsonl", order.found, restart=restart)
        account = out.finished
        if account is None:
            with Bar(shown=not quiet, total=lambda: None) as bar:
                found, account = fetch_people(order.found, servers, bar.advance)
            out.write(found, account)
        told = {name: account[name] for name in ("found", "described", "without_views")}
        files = [str(out.path)]
    candidates: list[Candidate] = []
    for row in records_of(files, candidate_from):
        if isinstance(row, Candidate):
            candidates.append(row)
        else:
            place = f"{row.path}, line {row.line}: " if row.line is not None else ""
            aside.append(SetAside("", "unusable", detail=f"{place}{row.message}"))
    return candidates, {**told, "candidates": len(candidates)}


def _wikis(order: SetOrder, servers: Servers, wikis: WikiServers, kept: Any, stack: ExitStack) -> ArticleSource:
    from veriglot.build.factual import WikiArticles
    from veriglot.sources import Wikipedia, wikipedia_session

    def wiki(tag: str) -> Titles:
        session = wikipedia_session(tag, contact=servers.contact, server=wikis.of(tag), rate=servers.pace(5.0))
        return Wikipedia(tag, stack.enter_context(session), kept=kept)

    return WikiArticles(wiki, part=order.part)


def _given(order: SetOrder, articles: Sequence[str], stack: ExitStack, aside: list[SetAside]) -> ArticleSource:
    from veriglot.build import Reference
    from veriglot.build.factual import SetAside, given_articles
    from veriglot.cli.build_queries import references
    from veriglot.sources import Kept

    def note(row: FailedRow | Reference) -> None:
        if isinstance(row, Reference):
            why = "there is one about them in this language already" if "item" in row.meta else "it names no `item`"
            aside.append(SetAside(row.meta.get("item", ""), "unusable", {}, row.language, f"article {row.id}: {why}"))
        else:
            place = f"{row.path}, line {row.line}: " if row.line is not None else ""
            aside.append(SetAside("", "unusable", detail=f"{place}{row.message}"))

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="veriglot-")))
    shelf = stack.enter_context(Kept(folder))
    return given_articles(references(list(articles), order.part), shelf, note)


def _person(candidate: Candidate) -> dict[str, Any]:
    named = candidate.named
    return {"id": named.id, "names": named.names, "titles": candidate.titles, **named.meta}


def _write(path: Path, rows: Any) -> None:
    from veriglot.run.manifest import write_whole

    write_whole(path, b"".join(msgspec.json.encode(row) + b"\n" for row in rows))

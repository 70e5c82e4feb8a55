"""The people and pages of `veriglot build halluverse`: from files, or fetched into files beside the set."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from veriglot.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from veriglot.build.halluverse import Page
    from veriglot.run import FailedRow
    from veriglot.sources import Person

__all__ = ["Fetching", "Found", "given_pages"]

_LANGUAGES = "en,ar,tr"  # of HalluVerse25
_PEOPLE = 500


class Fetching(NamedTuple):
    """What is to be fetched, and from where; None takes the default."""

    languages: str | None
    number: int | None
    contact: str | None
    rate: float | None
    wikidata: str | None
    wikis: tuple[str, ...]


class Found(NamedTuple):
    """The files of a set.

    Attributes:
        pages: JSON lines of articles.
        people_file: JSON lines of people, or None.
        people: its people by item, or None.
    """

    pages: tuple[str, ...]
    people_file: str | None
    people: dict[str, Person] | None

    @property
    def inputs(self) -> list[str]:
        """All files."""
        return [*self.pages, *([self.people_file] if self.people_file is not None else [])]

    def rows(self) -> Iterator[Page | FailedRow]:
        """Every page with whom it is about, in order; what cannot be read as failed rows."""
        from veriglot.build.halluverse import pages_of
        from veriglot.cli.build_queries import references

        return pages_of(references(list(self.pages), "text"), self.people)


def given_pages(
    output: Path, pages: list[str], people: str | None, fetching: Fetching, *, seed: int, restart: bool, quiet: bool
) -> Found:
    """The pages and people: those that are named, or else fetched.

    Raises:
        UsageError: pages are named, and something to fetch too.
        InputError: a file that is not there, or not of people.
        HttpError, SourceError: a server that does not give what it should.
    """
    from pathlib import Path

    if pages:
        if fetching.languages is not None or fetching.number is not None:
            raise UsageError(
                "Pages are named, and others are to be fetched.", remedy="Leave out --languages and --count, or PAGES."
            )
        for name in (*pages, *([people] if people else [])):
            if not Path(name).is_file():
                raise InputError("there is no such file", path=name, remedy="Check the path.")
        return Found(tuple(pages), people, None if people is None else _people(Path(people)))
    if people is not None and fetching.number is not None:
        raise UsageError("The people are named, and others are to be fetched.", remedy="Leave out --count or --people.")
    return _fetched(output, people, fetching, seed, restart=restart, quiet=quiet)


def _people(path: Path) -> dict[str, Person]:
    import msgspec

    from veriglot.sources import Person

    found = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            person = msgspec.json.decode(line, type=Person)
        except msgspec.MsgspecError as error:
            raise InputError(
                f"this is no person ({error})",
                path=str(path),
                line=number,
                remedy="Rows are those of `veriglot build people`; `id` and `sitelinks` are needed.",
            ) from error
        found[person.id] = person
    return found


def _fetched(output: Path, people: str | None, fetching: Fetching, seed: int, *, restart: bool, quiet: bool) -> Found:
    """Fetch people, and the pages about them; what an earlier call fetched with the same options is taken."""
    from pathlib import Path

    from veriglot.cli.article_fetching import ArticleOrder, fetch_articles
    from veriglot.cli.people_fetching import PeopleOrder, fetch_people, titles_of
    from veriglot.cli.progress import Bar
    from veriglot.cli.source_options import parts
    from veriglot.cli.sourcing import Output, Servers, say
    from veriglot.records.languages import language as known

    tags = tuple(dict.fromkeys(known(part).tag for part in parts(fetching.languages or _LANGUAGES)))
    wikis = _servers(fetching.wikis)
    folder = output.with_name(f"{output.name}.fetched")
    path = Path(people) if people is not None else output.with_name(f"{output.name}.people.jsonl")
    if people is None:
        count = fetching.number or _PEOPLE
        order = PeopleOrder(
            tags, None, count, count, 1, seed, (), "2022-01-01", "2023-01-01", (fetching.wikidata, None)
        )
        out = Output(path, order, restart=restart)
        if out.finished is None:
            servers = Servers(fetching.contact, fetching.rate, folder, wikidata=fetching.wikidata)
            with Bar(shown=not quiet, total=lambda: None) as bar:
                out.write(*fetch_people(order, servers, bar.advance))
            say(f"{path}: people in {', '.join(tags)}.")
    found = []
    for tag in tags:
        pages = output.with_name(f"{output.name}.{tag}.jsonl")
        titles, _ = titles_of(path, tag)
        article_order = ArticleOrder(
            language=tag, count=None, most_pages=None, seed=seed, min_characters=0, min_depth=0, min_edits=0, kinds=(),
            learn=False, strict=False, titles=titles, servers=(wikis.get(tag), None),
        )  # fmt: skip
        out = Output(pages, article_order, restart=restart)
        if out.finished is None:
            servers = Servers(fetching.contact, fetching.rate, folder, wiki=wikis.get(tag))
            with Bar(shown=not quiet, total=lambda: None) as bar:
                articles, report, warnings = fetch_articles(article_order, servers, bar.advance)
            out.write(articles, {"report": report, "warnings": warnings})
            absent = "".join(f", {number:,} {reason}" for reason, number in sorted(report.absent.items()))
            say(f"{pages}: {len(articles):,} pages about {len(titles):,} people{absent}.")
        found.append(str(pages))
    return Found(tuple(found), str(path), _people(path))


def _servers(given: tuple[str, ...]) -> dict[str, str]:
    from veriglot.records.languages import language as known

    found = {}
    for one in given:
        tag, equals, url = one.partition("=")
        if not equals:
            raise UsageError(f"--wiki-server {one!r} names no language.", remedy="Write it as de=http://host.")
        found[known(tag.strip()).tag] = url.strip()
    return found

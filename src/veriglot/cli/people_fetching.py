"""What `veriglot build people` does: find people, describe some, count how often they are read, and draw a sample."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import date
    from pathlib import Path

    from veriglot.cli.sourcing import Servers
    from veriglot.sources import PageViews, Person

__all__ = ["PeopleOrder", "fetch_people", "titles_of"]


class PeopleOrder(msgspec.Struct, frozen=True):
    """Which people are wanted; everything in it changes the output."""

    languages: tuple[str, ...]
    at_least: int | None
    count: int
    candidates: int
    groups: int
    seed: int
    views_in: tuple[str, ...]
    views_from: str
    views_to: str
    servers: tuple[str | None, ...] = ()


def fetch_people(order: PeopleOrder, servers: Servers, seen: Callable[[], None]) -> tuple[list[Person], dict[str, Any]]:
    """The people of an order.

    Returns:
        The people, those most read first, and the account: how many there are, were described, counted and written.

    Raises:
        UsageError: wrong languages, numbers or dates, or no contact.
        HttpError, SourceError: a server that does not give what it should.
    """
    from datetime import date

    from veriglot.sources import Kept, PageViews, Wikidata, draw_diverse, page_views_session, wikidata_session

    start, end = date.fromisoformat(order.views_from), date.fromisoformat(order.views_to)
    with ExitStack() as stack:
        kept = stack.enter_context(Kept(servers.cache))
        session = wikidata_session(contact=servers.contact, server=servers.wikidata, rate=servers.pace(1.0))
        wikidata = Wikidata(stack.enter_context(session), kept=kept)
        found = list(wikidata.people(order.languages, at_least=order.at_least))
        drawn = draw_diverse(
            found, order.candidates, size=lambda _: 0, name=lambda person: person.id, groups=1, seed=order.seed
        )
        people = list(wikidata.describe(drawn, order.languages))
        if order.views_in:
            pace = servers.pace(10.0)
            counting = page_views_session(contact=servers.contact, server=servers.views, rate=pace)
            views = PageViews(stack.enter_context(counting), kept=kept)
            people = [_counted(person, views, order.views_in, start, end, seen) for person in people]
            chosen = draw_diverse(
                people,
                order.count,
                size=lambda person: person.all_views,
                name=lambda person: person.id,
                groups=order.groups,
                seed=order.seed,
            )
        else:
            chosen = draw_diverse(people, order.count, size=lambda _: 0, name=lambda person: person.id, groups=1)
    unknown = sum(all(count is None for count in person.views.values()) for person in people) if order.views_in else 0
    account = {"found": len(found), "described": len(people), "without_views": unknown, "written": len(chosen)}
    return chosen, account


def _counted(
    person: Person, views: PageViews, languages: Iterable[str], start: date, end: date, seen: Callable[[], None]
) -> Person:
    counts = {tag: views.of(tag, person.titles[tag], start, end) for tag in languages if tag in person.titles}
    seen()
    return msgspec.structs.replace(person, views=counts)


def titles_of(people: Path, language: str) -> tuple[tuple[str, ...], int]:
    """The titles of articles about the people of a file that `veriglot build people` wrote.

    Returns:
        The titles, and of how many people the file names none in this language.

    Raises:
        InputError: the file is not one of people.
    """
    from veriglot.sources import Person

    titles: list[str] = []
    without = 0
    for number, line in enumerate(people.read_bytes().splitlines(), 1):
        try:
            person = msgspec.json.decode(line, type=Person)
        except msgspec.MsgspecError as error:
            raise InputError(f"this is no person ({error})", path=str(people), line=number) from error
        if language in person.titles:
            titles.append(person.titles[language])
        else:
            without += 1
    return tuple(titles), without

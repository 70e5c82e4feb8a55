"""Calls of leads about items: lists, what people disagree on, histories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from sqlalchemy import func, select

from veriglot.annotate.adjudicating import disagreements
from veriglot.annotate.choosing import DONE
from veriglot.annotate.store import NotFound, Purpose
from veriglot.annotate.store.tables import assignments as assignments_table
from veriglot.annotate.store.tables import events as events_table
from veriglot.web.studio.lead_views import (
    AssignmentOf,
    Disagreements,
    DisagreementView,
    EventView,
    History,
    ItemLine,
    Items,
    SaidView,
)
from veriglot.web.studio.sessions import Leading  # noqa: TC001  FastAPI reads it
from veriglot.web.studio.wire import described, reply

if TYPE_CHECKING:
    from veriglot.annotate.store import Reading
    from veriglot.web.studio.showing import Shown

__all__ = ["router"]

router = APIRouter()
_MOST_EVENTS = 500  # of one history; exports have all
_Tag = Annotated[str | None, Query(max_length=64)]
_Limit = Annotated[int, Query(ge=1, le=500)]


@router.get("/api/lead/disagreements", **described(Disagreements, refusals=(401, 422)))
def differing(
    request: Request, caller: Leading, language: _Tag = None, settled: bool = False, limit: _Limit = 10
) -> Response:
    """What people said of one item, side by side; those items first that they are least alike on."""
    request.app.state.rates.count("heavy", caller.token)
    studio, shown = caller.studio, _shown(request)
    with studio.store.reading() as tx:
        found = disagreements(tx, studio.project, studio.id, language=language, settled=settled)
        names = _names(tx, studio.id)
    views = [
        DisagreementView(
            one.item.key,
            shown.item(studio, one.item.id),
            one.likeness,
            one.settled,
            [SaidView(said.assignment_id, names[said.person_id], said.layer, said.final) for said in one.said],
        )
        for one in found[:limit]
    ]
    return reply(Disagreements(len(found), views))


@router.get("/api/lead/items", **described(Items, refusals=(401, 422)))
def items(
    caller: Leading,
    language: _Tag = None,
    search: Annotated[str | None, Query(max_length=200)] = None,
    limit: _Limit = 50,
) -> Response:
    """The items, by language, and by a part of their id."""
    studio = caller.studio
    table = assignments_table
    with studio.store.reading() as tx:
        found = [
            item
            for item in tx.items(studio.id, language=language)
            if search is None or search.casefold() in item.key.casefold()
        ]
        done = (
            select(table.c.item_id, func.count())
            .where(table.c.project_id == studio.id, table.c.purpose == Purpose.ANNOTATE, table.c.state.in_(DONE))
            .group_by(table.c.item_id)
        )
        counts: dict[int, int] = {row[0]: row[1] for row in tx.connection.execute(done)}
    lines = [
        ItemLine(item.id, item.key, item.language, item.role, counts.get(item.id, 0), item.has_gold)
        for item in found[:limit]
    ]
    return reply(Items(len(found), lines))


@router.get("/api/lead/items/{number}/history", **described(History, refusals=(401, 422)))
def history(request: Request, caller: Leading, number: Annotated[int, Path(ge=1, le=2**31 - 1)]) -> Response:
    """Everything that was said of an item, and everything that happened to it."""
    studio = caller.studio
    view = _shown(request).item
    with studio.store.reading() as tx:
        item = tx.item(number)
        if item.project_id != studio.id:
            raise NotFound("item")
        names = _names(tx, studio.id)
        given = tx.assignments(studio.id, item_id=number)
        count = tx.count(select(events_table.c.id).where(events_table.c.item_id == number))
        last = (
            select(events_table.c.id)
            .where(events_table.c.item_id == number)
            .order_by(events_table.c.id.desc())
            .offset(_MOST_EVENTS)
            .limit(1)
        )
        after = tx.connection.execute(last).scalar() or 0
        events = list(tx.events(studio.id, item_id=number, after=after))
        gold, silver = tx.gold(number), tx.silver(number)
    said = [
        AssignmentOf(
            one.id,
            names[one.person_id],
            one.purpose,
            one.state,
            one.version,
            one.round,
            one.layer,
            one.message,
            one.seconds,
        )
        for one in given
    ]
    happened = [
        EventView(
            one.id,
            one.kind,
            None if one.person_id is None else names[one.person_id],
            one.assignment_id,
            one.layer,
            one.payload,
            one.seconds,
            one.at,
        )
        for one in events
    ]
    left_out = count - len(happened)
    return reply(History(item.key, view(studio, number), gold, silver, said, happened, left_out))


def _names(tx: Reading, project_id: int) -> dict[int, str]:
    """Public ids by ids."""
    return {person.id: person.public_id for person in tx.people(project_id)}


def _shown(request: Request) -> Shown:
    shown: Shown = request.app.state.shown
    return shown

"""The lead's list of items: which items exist, who has them, and bulk actions.

The database filters, sorts and counts, so that a page is fast even with 10,000 items. Bulk actions run in steps, so
that others can save in between.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from fastapi import Depends, Query
from sqlalchemy import ColumnElement, Select, Text, exists, func, or_, select, type_coerce

from veriglot.errors import UnknownNameError
from veriglot.records.settings import Record, StrictRecord
from veriglot.report.text_layout import excerpt
from veriglot.studio import tables as t
from veriglot.studio.assignment import assign_item, is_stale, withdraw
from veriglot.studio.review import after_exclusion
from veriglot.studio.store import ReadTransaction, WriteTransaction, transactional
from veriglot.studio.tables import (
    AT_WORK,
    DONE,
    WORK_ROLES,
    Assignment,
    BatchState,
    Item,
    ItemRole,
    NotFound,
    Person,
    Purpose,
    Refused,
    RowId,
    State,
)
from veriglot.studio.texts import Direction, direction
from veriglot.studio.web import Caller, Lead, LeadWriter, Router, Studio, Tag, view
from veriglot.text.normalization import fold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.studio.project import Project

__all__ = ["router"]

router = Router()
assignment_row, item_row = t.assignments.c, t.items.c  # in statements

_Name = Annotated[str, msgspec.Meta(max_length=200)]
_ItemState = Literal["free", "open", "returned", "submitted", "accepted", "skipped"]
_Order = Literal["position", "key", "language", "priority", "done", "changed"]
_PURPOSES = (Purpose.ANNOTATE, Purpose.REVIEW, Purpose.VALIDATE, Purpose.ADJUDICATE)
_AT_ONCE = 100  # items per transaction
_MOST_GIVEN = 1000  # maximum items assigned to one person at once
_SNIPPET = 60  # code points around the search term


class ItemFilter(StrictRecord):
    """A filter of items; fields without a value do not filter, except that excluded items need an explicit `role`.

    `person`, `state`, `type`, `flagged` and `stale` refer to one annotation: of that person, in that state, with a mark
    of that type, with a flag, not saved for that many hours. Nobody has or had `free` items.
    """

    language: _Name | None = None
    person: _Name | None = None
    state: _ItemState | None = None
    type: _Name | None = None
    gold: bool | None = None
    flagged: bool = False
    stale: Annotated[float, msgspec.Meta(gt=0, le=87_600)] | None = None
    role: ItemRole | None = None
    search: _Name | None = None


class Holder(Record):
    """A person who has an item, under their public id."""

    by: str
    purpose: Purpose
    state: State


class ItemLine(Record):
    """An item in a list.

    `snippet` is a part of the response, around the search term; `done` counts submitted annotations, of `wanted` (0 if
    everybody annotates the item, or it is not part of the work); `changed_at` is the time of the last work on it.
    """

    id: int
    key: str
    snippet: str
    direction: Direction
    language: str | None
    role: ItemRole
    priority: float
    done: int
    wanted: int
    holders: list[Holder]
    has_gold: bool
    changed_at: datetime | None


class Items(Record):
    """A page of items; `total` counts all matching items."""

    total: int
    items: list[ItemLine]


class ItemsBody(StrictRecord):
    """An action on items: those listed, or all that match the filter.

    `assign` gives them to `person` for annotation; `release` withdraws open work (only of the filter's person, or only
    stale work, if the filter says so); `priority` and `wanted` (people who annotate each) are set to `value`; `exclude`
    removes items from the work but keeps their annotations, and `include` puts them back.
    """

    action: Literal["assign", "release", "priority", "wanted", "exclude", "include"]
    items: Annotated[list[RowId], msgspec.Meta(max_length=1000)] | None = None
    where: ItemFilter = ItemFilter()
    person: _Name | None = None
    value: Annotated[int, msgspec.Meta(ge=-100, le=100)] | None = None


class ItemsChanged(Record):
    """How many items changed, and why others did not: `has_it`, `language`, `batch`, `not_work`, `unchanged`."""

    changed: int
    unchanged: dict[str, int]


def _filter(
    language: Tag = None,
    person: Tag = None,
    state: _ItemState | None = None,
    type: Tag = None,  # noqa: A002  # the name of the query parameter
    gold: bool | None = None,
    flagged: bool = False,
    stale: Annotated[float | None, Query(gt=0, le=87_600)] = None,
    role: ItemRole | None = None,
    search: Annotated[str | None, Query(max_length=200)] = None,
) -> ItemFilter:
    return ItemFilter(language, person, state, type, gold, flagged, stale, role, search)


@router.call("GET", "/api/lead/items")
def items(
    caller: Lead,
    where: Annotated[ItemFilter, Depends(_filter)],
    sort: _Order = "position",
    descending: bool = False,
    offset: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Items:
    """A page of the items that match a filter, each with a snippet and the people who have it."""
    studio = caller.studio
    with studio.store.reading() as tx:
        matching = _matching(tx, studio, where)
        column = _order(sort)
        order = (column.desc() if descending else column, item_row.position)
        ids = tx.ids(matching.order_by(*order).limit(limit).offset(offset))
        return Items(tx.count(matching), _lines(tx, studio, ids, where.search))


def _matching(tx: ReadTransaction, studio: Studio, where: ItemFilter) -> Select[Any]:
    """The ids of the items that match a filter."""
    wanted = [item_row.project_id == studio.id]
    wanted.append(item_row.role != ItemRole.EXCLUDED if where.role is None else item_row.role == where.role)
    if where.language is not None:
        wanted.append(item_row.language == where.language)
    if where.gold is not None:
        wanted.append(item_row.gold.is_not(None) if where.gold else item_row.gold.is_(None))
    wanted += [item_row.search.contains(word, autoescape=True) for word in _terms(where.search)]
    of_item = _of_item(where)
    if where.state == "free":
        if where.person or where.type or where.flagged or where.stale is not None:
            remedy = "Leave out `person`, `type`, `flagged` and `stale`, or ask for another `state`."
            raise Refused("Free items have no annotation, so nothing can be asked of one.", remedy)
        wanted.append(~exists().where(*of_item))
    elif where.person or where.state or where.flagged or where.stale is not None:
        wanted.append(exists().where(*of_item, *_annotation(tx, studio, where)))
    elif where.type is not None:
        annotated = exists().where(*of_item, *_annotation(tx, studio, where))
        wanted.append(or_(annotated, _marks(item_row.gold, where.type)))
    return select(item_row.id).where(*wanted)


def _terms(search: str | None) -> list[str]:
    """The search terms, normalised like the column `search`."""
    return fold((search or "").replace("\0", " ")).split()


def _of_item(where: ItemFilter) -> tuple[ColumnElement[bool], ...]:
    """Assignments of an item: annotations, and also reviews and others if a holder is searched."""
    any_purpose = where.person is not None or where.stale is not None
    purposes = _PURPOSES if any_purpose else (Purpose.ANNOTATE,)
    live = assignment_row.state != State.WITHDRAWN
    return assignment_row.item_id == item_row.id, assignment_row.purpose.in_(purposes), live


def _annotation(tx: ReadTransaction, studio: Studio, where: ItemFilter) -> list[ColumnElement[bool]]:
    """The conditions of a filter on one annotation."""
    wanted = []
    if where.person is not None:
        wanted.append(assignment_row.person_id == _person(tx, studio, where.person).id)
    if where.state not in {None, "free"}:
        wanted.append(assignment_row.state == where.state)
    if where.stale is not None:
        wanted.append(is_stale(where.stale))
    if where.type is not None:
        form = studio.project.form
        types = [choice.name for choice in (*form.types, *form.unit_labels, *form.labels)]
        if where.type not in types:
            raise UnknownNameError("type in this project", where.type, types)
        wanted.append(_marks(assignment_row.layer, where.type))
    if where.flagged:
        wanted.append(type_coerce(assignment_row.layer, Text).contains('flags":["', autoescape=True))
    return wanted


def _marks(layer: Any, name: str) -> ColumnElement[bool]:
    """Whether a layer's JSON has a type or label. Quotation marks in texts that people write are escaped."""
    text = type_coerce(layer, Text)
    return or_(*(text.contains(f'"{key}":"{name}"', autoescape=True) for key in ("type", "label")))


def _order(sort: _Order) -> ColumnElement[Any]:
    """The sort order of items; items that nobody worked on come first by change time."""
    of_item = assignment_row.item_id == item_row.id
    if sort == "done":
        done = (assignment_row.purpose == Purpose.ANNOTATE, assignment_row.state.in_(DONE))
        count = select(func.count()).select_from(t.assignments).where(of_item, *done)
        return count.correlate(t.items).scalar_subquery()
    if sort == "changed":
        live = (assignment_row.purpose.in_(_PURPOSES), assignment_row.state != State.WITHDRAWN)
        last = select(type_coerce(func.max(assignment_row.changed_at), Text)).where(of_item, *live)
        return func.coalesce(last.correlate(t.items).scalar_subquery(), "")
    if sort == "language":
        return func.coalesce(item_row.language, "")
    return item_row[sort]


def _lines(tx: ReadTransaction, studio: Studio, ids: list[int], search: str | None) -> list[ItemLine]:
    """Items as lines, in the order of their ids."""
    names, terms = tx.public_ids(studio.id), _terms(search)
    by_item = defaultdict[int, list[Assignment]](list)
    for row in tx.assignments(item_id=ids, purpose=_PURPOSES) if ids else ():
        if row.state is not State.WITHDRAWN:
            by_item[row.item_id].append(row)
    by_id = {item.id: item for item in tx.items(studio.id, id=ids)} if ids else {}
    lines = []
    for item in map(by_id.__getitem__, ids):
        rows, sample = by_item[item.id], tx.sample(item.id)
        lines.append(
            view(
                ItemLine,
                item,
                snippet=_snippet(sample.response, terms),
                direction=direction(sample.response, item.language),
                done=sum(row.purpose is Purpose.ANNOTATE and row.state in DONE for row in rows),
                wanted=item.people_wanted(studio.project) if item.role is ItemRole.NORMAL else 0,
                holders=[view(Holder, row, by=names[row.person_id]) for row in rows],
                changed_at=max((row.changed_at for row in rows), default=None),
            )
        )
    return lines


def _snippet(text: str, terms: list[str]) -> str:
    """The beginning of a text, or the part around the first term in it."""
    folded = fold(text)  # of the same length
    at = next((at for term in terms if (at := folded.find(term)) >= 0), 0)
    return " ".join("".join(excerpt(text, at, min(at + _SNIPPET, len(text)), around=_SNIPPET)).split())


def _person(tx: ReadTransaction, studio: Studio, public_id: str) -> Person:
    """A person of this project; people of others are not found."""
    person = tx.person_by(public_id=public_id)
    if person.project_id != studio.id:
        raise NotFound("person")
    return person


# Bulk actions.


@router.call("POST", "/api/lead/items")
def change_items(caller: LeadWriter, body: ItemsBody) -> ItemsChanged:
    """An action on items: assign, release, priority, wanted, exclude, include."""
    studio = caller.studio
    with studio.store.reading() as tx:
        person = None if body.person is None else _person(tx, studio, body.person)
        ids = _chosen(tx, studio, body)
    if (body.action == "assign") != (person is not None):
        raise Refused("Items are assigned to a person, and nothing else is.", "Send `person` with `assign`.")
    if (body.action in {"priority", "wanted"}) != (body.value is not None):
        raise Refused("A priority and a number of people have a `value`, and nothing else has.")
    if body.action == "wanted" and body.value is not None and body.value < 1:
        raise Refused("At least one person annotates an item.", "Exclude it if nobody is to.")
    if person is not None and not person.can_work(studio.project):
        raise Refused("Only an annotator who joined, and passed the exam if there is one, can be given items.")
    if person is not None and len(ids) > _MOST_GIVEN:
        raise Refused(f"One person can be given {_MOST_GIVEN:,} items at once.", "Choose fewer.")
    counts = Counter[str]()
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        counts.update(_change(studio.store, studio.project, caller, body, some, person))
    return ItemsChanged(counts.pop("changed", 0), dict(counts))


@transactional
def _change(
    tx: WriteTransaction, project: Project, caller: Caller, body: ItemsBody, ids: Sequence[int], person: Person | None
) -> list[str]:
    """Change some items; for each `changed`, or why not."""
    return [_change_item(tx, project, caller, body, tx.item(id_), person) or "changed" for id_ in ids]


def _chosen(tx: ReadTransaction, studio: Studio, body: ItemsBody) -> list[int]:
    """The ids of the chosen items, in order; items of other projects are ignored."""
    if body.items is None:
        return tx.ids(_matching(tx, studio, body.where).order_by(item_row.position))
    return [item.id for item in tx.items(studio.id, id=body.items)] if body.items else []


def _change_item(
    tx: WriteTransaction, project: Project, caller: Caller, body: ItemsBody, item: Item, person: Person | None
) -> str | None:
    by = caller.person.id
    match body.action:
        case "assign" if person is not None:
            return _assign(tx, project, item, person, by)
        case "release":
            return _release(tx, caller, item, body.where)
        case "priority" | "wanted":
            if getattr(item, body.action) == body.value:
                return "unchanged"
            tx.update_item(item, body.action, by=by, **{body.action: body.value})
        case "exclude":
            if item.role not in WORK_ROLES:
                return "not_work"
            _release(tx, caller, item, ItemFilter())
            tx.set_role(item, ItemRole.EXCLUDED, by=by)
            after_exclusion(tx, project, item, by=by)
        case "include":
            if item.role is not ItemRole.EXCLUDED:
                return "unchanged"
            row = t.events.c
            roles = select(row.payload).where(row.item_id == item.id, row.kind == "role").order_by(row.id.desc())
            last = tx.connection.execute(roles.limit(1)).scalar_one()
            tx.set_role(item, ItemRole(last["from"]), by=by)
    return None


def _assign(tx: WriteTransaction, project: Project, item: Item, person: Person, by: int) -> str | None:
    if item.role not in WORK_ROLES:
        return "not_work"
    if person.works_in is not None and item.language not in person.works_in:
        return "language"
    if item.batch_id is not None and tx.batch(item.batch_id).state in {BatchState.VALIDATING, BatchState.ACCEPTED}:
        return "batch"
    rows = tx.assignments(item_id=item.id, person_id=person.id, purpose=Purpose.ANNOTATE)
    if any(row.state is not State.WITHDRAWN for row in rows):
        return "has_it"
    assign_item(tx, project, item, person, by=by)
    return None


def _release(tx: WriteTransaction, caller: Caller, item: Item, where: ItemFilter) -> str | None:
    """Withdraw the open work on an item: of anybody, or of the filter's person, or stale work."""
    of_item = (
        assignment_row.item_id == item.id,
        assignment_row.purpose.in_(_PURPOSES),
        assignment_row.state.in_(AT_WORK),
    )
    asked = _annotation(tx, caller.studio, ItemFilter(person=where.person, stale=where.stale))
    ids = tx.ids(select(assignment_row.id).where(*of_item, *asked).order_by(assignment_row.id))
    for id_ in ids:
        withdraw(tx, id_, reason="lead", by=caller.person.id)
    return None if ids else "unchanged"

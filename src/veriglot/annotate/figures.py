"""Figures for the lead: how far the work is, who does what and how it goes, what it costs."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.annotate import exam, validating
from veriglot.annotate.choosing import AT_WORK, DONE, can_work
from veriglot.annotate.comparing import compare, likeness, marks_in
from veriglot.annotate.gathering import annotations_by_item, single_through
from veriglot.annotate.pace import Pace, Work, pace_of
from veriglot.annotate.people import numbers
from veriglot.annotate.reviewing import verdicts
from veriglot.annotate.store import ItemRole, Purpose, Role, State
from veriglot.annotate.suggesting import Suggested, tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.annotate.project import Project
    from veriglot.annotate.store import Assignment, Item, Person, Reading
    from veriglot.records import Sample

__all__ = [
    "BatchLine",
    "LanguageLine",
    "Overview",
    "PersonLine",
    "overview",
]

_WORK = (ItemRole.NORMAL, ItemRole.OVERLAP)


class LanguageLine(msgspec.Struct, frozen=True):
    """How far the work is in one language.

    Attributes:
        language: BCP 47 tag.
        items: to be annotated: shared ones and those for one person.
        shared: of these, shared ones.
        begun: items that somebody has or had.
        done: items that somebody handed in (and that were reviewed, where that is asked for).
        skipped: items that everybody who had them left out.
        gold: items with a gold layer: settled by a lead or a rule, or from the data.
        single: items without one whose only annotation is through: exports have it as gold.
        annotators: people who may annotate in it.
        wanted: annotations that are to be made by those who are there: shared items count once for each.
        made: of these, handed in.
        words: of the responses.
    """

    language: str
    items: int
    shared: int
    begun: int
    done: int
    skipped: int
    gold: int
    single: int
    annotators: int
    wanted: int
    made: int
    words: int


class PersonLine(msgspec.Struct, frozen=True):
    """Somebody with their figures.

    Attributes:
        id: public.
        name: that they chose, or None.
        role: annotator, reviewer or lead.
        number: among those of their role: reviewers know them as `Annotator 3`.
        stage: `invited`, `exam`, `work`, `out` or `revoked`.
        languages: that they work in; None for all.
        note: the lead's.
        joined_at: when they joined.
        last_at: when something of theirs changed last.
        exam_attempts: finished ones.
        exam: figures of the last attempt, or None.
        begun: assignments that wait for them.
        by_purpose: assignments handed in, by purpose.
        pace: of their annotations.
        confirmed: work of theirs that reviewers confirmed, `corrected`, `sent_back`: annotations by the layer that
            counts in the end, and what they passed as the first of two reviewers by what the second left of it.
        suggested: what became of suggestions in what they handed in; None where they were shown none.
        seconds: of all their work, the exam, reviews and withdrawn work too.
        cost: of that time; None where the project names no hourly pay.
    """

    id: str
    name: str | None
    role: str
    number: int
    stage: str
    languages: tuple[str, ...] | None
    note: str | None
    joined_at: datetime | None
    last_at: datetime | None
    exam_attempts: int
    exam: dict[str, Any] | None
    begun: int
    by_purpose: dict[str, int]
    pace: Pace
    confirmed: int
    corrected: int
    sent_back: int
    suggested: Suggested | None
    seconds: float
    cost: float | None


class BatchLine(msgspec.Struct, frozen=True):
    """A batch.

    Attributes:
        id: in the store.
        number: from 1.
        language: of its items.
        state: open, validating, accepted, returned.
        round: how often it was sent back.
        items: how many.
        ready: whether it can be validated.
        checks: annotations drawn for the validation under way.
        rounds: the figures of its validations, in order.
    """

    id: int
    number: int
    language: str | None
    state: str
    round: int
    items: int
    ready: bool
    checks: int
    rounds: list[dict[str, Any]]


class Overview(msgspec.Struct, frozen=True):
    """All of a project at a glance.

    Attributes:
        languages: progress by language.
        queue: purpose to state to how many assignments.
        people: everybody, in the order of their invitations.
        batches: all.
        disagreements: shared items that are handed in by two people or more and have no gold layer.
        seconds: of work of all.
        cost: of it; None where the project names no hourly pay.
        currency: of the cost.
        notes: what to know, such as exam items that are missing.
    """

    languages: list[LanguageLine]
    queue: dict[str, dict[str, int]]
    people: list[PersonLine]
    batches: list[BatchLine]
    disagreements: int
    seconds: float
    cost: float | None
    currency: str
    notes: list[str]


def overview(tx: Reading, project: Project) -> Overview:
    """All of a project at a glance, as it is in this transaction."""
    project_id = tx.project(project.slug).id
    items, people = tx.items(project_id), tx.people(project_id)
    rows = tx.assignments(project_id)
    by_item = annotations_by_item(tx, project_id)
    queue: dict[str, dict[str, int]] = {}
    for (purpose, state), count in sorted(tx.tally(project_id, "assignments", "purpose", "state").items()):
        queue.setdefault(purpose, {})[state] = count
    seconds = sum(row.seconds for row in rows)
    shared = [item for item in items if item.role in _WORK and len(by_item.get(item.id, ())) > 1]
    return Overview(
        languages=_languages(project, items, people, rows, by_item),
        queue=queue,
        people=_people(tx, project, items, people, rows, by_item),
        batches=_batches(tx, project, project_id, items),
        disagreements=sum(not item.has_gold for item in shared),
        seconds=seconds,
        cost=_cost(project, seconds),
        currency=project.entries.pace.currency,
        notes=_notes(tx, project, project_id),
    )


def _cost(project: Project, seconds: float) -> float | None:
    hourly = project.entries.pace.hourly
    return None if hourly is None else hourly * seconds / 3600


def _notes(tx: Reading, project: Project, project_id: int) -> list[str]:
    said = [f"The exam lacks items: {one}." for one in exam.lacks(tx, project, project_id)]
    roles = tx.tally(project_id, "people", "role")
    wanted, able = project.entries.work.reviews, sum(roles.get((role.value,), 0) for role in (Role.REVIEWER, Role.LEAD))
    if wanted and not able:
        said.append("Work is reviewed here, and nobody was invited who reviews.")
    elif able < wanted:
        said.append("Two people review each piece of work here, and only one was invited who reviews.")
    said += [
        f"Batch {number} waits for somebody who had no hand in it to check it."
        for number in validating.stuck(tx, project_id)
    ]
    return said


def _languages(
    project: Project,
    items: Sequence[Item],
    people: Sequence[Person],
    rows: Sequence[Assignment],
    by_item: dict[int, list[Assignment]],
) -> list[LanguageLine]:
    states: dict[int, list[State]] = {}
    for row in rows:
        if row.purpose is Purpose.ANNOTATE and row.state is not State.WITHDRAWN:
            states.setdefault(row.item_id, []).append(row.state)
    through = {State.ACCEPTED} if project.entries.work.reviews else {State.ACCEPTED, State.SUBMITTED}
    found = []
    for language in sorted({item.language or "" for item in items}):
        here = [item for item in items if (item.language or "") == language and item.role in _WORK]
        able = [p for p in people if can_work(p, project) and (p.works_in is None or language in p.works_in)]
        shared = [item for item in here if item.role is ItemRole.OVERLAP]
        had = [states.get(item.id, []) for item in here]
        found.append(
            LanguageLine(
                language,
                len(here),
                len(shared),
                sum(map(bool, had)),
                sum(bool(set(one) & through) for one in had),
                sum(bool(one) and set(one) == {State.SKIPPED} for one in had),
                sum(item.has_gold for item in here),
                sum(single_through(project, item, by_item.get(item.id, ())) is not None for item in here),
                len(able),
                len(here) - len(shared) + len(shared) * max(1, len(able)),
                sum(state in DONE for one in had for state in one),
                sum(item.words for item in here),
            )
        )
    return found


def _people(
    tx: Reading,
    project: Project,
    items: Sequence[Item],
    people: Sequence[Person],
    rows: Sequence[Assignment],
    by_item: dict[int, list[Assignment]],
) -> list[PersonLine]:
    works = _works(tx, project, {item.id: item for item in items}, by_item)
    reviewed = verdicts(tx, people[0].project_id) if people else {}
    checks = project.entries.checks
    called = numbers(people)
    found = []
    for person in people:
        mine = [row for row in rows if row.person_id == person.id]
        handed_in = [row for row in mine if row.state in DONE]
        seconds = sum(row.seconds for row in mine)
        found.append(
            PersonLine(
                id=person.public_id,
                name=person.name,
                role=person.role.value,
                number=called[person.id],
                stage=_stage(person, project),
                languages=person.works_in,
                note=person.note,
                joined_at=person.joined_at,
                last_at=max((row.changed_at for row in mine if row.version), default=person.joined_at),
                exam_attempts=person.exam_attempts,
                exam=person.exam_figures[-1] if person.exam_figures else None,
                begun=sum(row.state in AT_WORK for row in mine),
                by_purpose={p.value: n for p in Purpose if (n := sum(row.purpose is p for row in handed_in))},
                pace=pace_of(works.get(person.id, []), project.entries.pace, checks.threshold if checks else 0.0),
                confirmed=reviewed.get((person.id, "confirm"), 0),
                corrected=reviewed.get((person.id, "correct"), 0),
                sent_back=reviewed.get((person.id, "return"), 0),
                suggested=tally(row for row in handed_in if row.purpose is Purpose.ANNOTATE),
                seconds=seconds,
                cost=_cost(project, seconds),
            )
        )
    return found


def _stage(person: Person, project: Project) -> str:
    if person.revoked_at is not None:
        return "revoked"
    if person.joined_at is None:
        return "invited"
    if person.out_at is not None:
        return "out"
    return "exam" if exam.is_due(person, project) else "work"


def _works(
    tx: Reading, project: Project, items: dict[int, Item], by_item: dict[int, list[Assignment]]
) -> dict[int, list[Work]]:
    """What each person handed in, held against known answers and against others."""
    found: dict[int, list[Work]] = {}
    form = project.form
    for item_id, rows in by_item.items():
        item = items[item_id]
        is_check = item.role is ItemRole.CHECK
        sample = tx.sample(item_id) if is_check or len(rows) > 1 else None  # texts are many, and seldom needed
        gold = tx.gold(item_id) if is_check else None
        for row in rows:
            check = alike = None
            if sample is not None and gold is not None:
                f1 = compare(row.layer, gold, form, sample).f1
                check = 1.0 if f1 is None else f1
            elif sample is not None:
                alike = _alike(row, rows, project, sample)
            found.setdefault(row.person_id, []).append(
                Work(
                    row.submitted_at or row.changed_at,
                    item.words,
                    row.seconds,
                    marks_in(row.layer, form),
                    row.layer.skip is not None,
                    check,
                    alike,
                )
            )
    return found


def _alike(row: Assignment, rows: Sequence[Assignment], project: Project, sample: Sample) -> float | None:
    others = [other for other in rows if other.person_id != row.person_id]
    if not others:
        return None
    return sum(likeness(row.layer, other.layer, project.form, sample) for other in others) / len(others)


def _batches(tx: Reading, project: Project, project_id: int, items: Sequence[Item]) -> list[BatchLine]:
    sizes: dict[int | None, int] = {}
    for item in items:
        if item.role in _WORK:
            sizes[item.batch_id] = sizes.get(item.batch_id, 0) + 1
    through = validating.ready(tx, project, project_id)
    return [
        BatchLine(
            batch.id,
            batch.number,
            batch.language,
            batch.state.value,
            batch.round,
            sizes.get(batch.id, 0),
            batch.id in through,
            len((batch.figures or {}).get("drawn", [])),
            list((batch.figures or {}).get("rounds", [])),
        )
        for batch in tx.batches(project_id)
    ]

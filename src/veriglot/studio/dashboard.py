"""The lead's dashboard: agreement, pace, flags, languages, people and batches."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from datetime import datetime
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
from fastapi import Response  # noqa: TC002  # the router reads annotations

from veriglot.errors import InputError
from veriglot.metrics.estimate import FEWEST_TEXTS
from veriglot.records.settings import Record, StrictRecord, require
from veriglot.studio import exam, review
from veriglot.studio.adjudication import best_annotators, disagreements
from veriglot.studio.agreement import AgreementRow, agreement_rows
from veriglot.studio.comparison import (
    Comparison,
    Confusion,
    GoldOrigin,
    SuggestionCounts,
    annotations_by_item,
    confused_types,
    count_suggestions,
    final_single_annotation,
    final_states,
    gold_origins,
    texts_with_layers,
)
from veriglot.studio.figures import FigureCache, Pending, Progress, figure
from veriglot.studio.items import import_all
from veriglot.studio.layers import Layer
from veriglot.studio.review import count_verdicts
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
    Role,
    State,
)
from veriglot.studio.texts import item_view
from veriglot.studio.web import Lead, LeadWriter, Number, Router, Studio, Studios, Tag, view

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from veriglot.studio.project import PaceEntry, Project
    from veriglot.studio.store import ReadTransaction

__all__ = ["MOST_IMPORTED", "router"]


class ProjectAgreement(Record):
    """Agreement of the submitted annotations."""

    unit: str  # what is counted: `word`, `fact`, `sentence` or `response`
    shared: int  # items submitted by two or more people
    best: dict[str, AgreementRow]  # language to the kappa of the annotator used by the rule `best_with_silver`
    lines: list[AgreementRow]  # all results
    confusion: list[Confusion]  # type pairs chosen for the same units
    fewest_texts: int = FEWEST_TEXTS  # results of fewer items have no interval


_RESAMPLES = 200  # bootstrap samples of whole items, for intervals


def measure_agreement(
    tx: ReadTransaction,
    project: Project,
    *,
    language: str | None = None,
    gamma: int = 0,
    progress: Progress | None = None,
) -> ProjectAgreement:
    """Agreement of annotators with each other and with silver, over the submitted annotations."""
    people = texts_with_layers(tx, project, language=language, shared=True)
    silver = texts_with_layers(tx, project, language=language, silver=True)
    by_type = not project.form.has_spans
    how: dict[str, Any] = {"by_single_type": by_type, "gamma": gamma, "resamples": _RESAMPLES, "progress": progress}
    lines = agreement_rows(people, silver, **how, memory=tx.cached("agreement", f"{language} {gamma}", dict))
    unit = "word" if project.form.has_spans else project.form.unit or "response"
    best = best_annotators(tx, project, silver, resamples=_RESAMPLES)
    confused = Counter[tuple[str, str]]()
    for text in people:
        confused += tx.cached(text.id, "confused", partial(confused_types, text), stamp=text)
    ordered = sorted(confused.items(), key=lambda row: (-row[1], row[0]))
    return ProjectAgreement(unit, len(people), best, lines, [Confusion(*pair, count) for pair, count in ordered])


# Pace and drift: what deserves a look in a person's work, with reasons. It never judges the person.
#
# It observes seconds per item and per word of the response, work faster than anybody reads, agreement with hidden
# checks and with others, and differences between the newest and the earlier work. Each observation is a flag with its
# reason and its numbers; people decide what follows.


_TOO_FAST_SHARE = 0.1  # minimum share of too fast items for a flag
_DRIFT = 2.0  # minimum factor between newest and earlier work, in speed or number of marks
_FEWER = 0.15  # minimum drop of agreement in the newest work
_FEW = 5  # with fewer items there are no flags


class WorkedItem(NamedTuple):
    """One submitted item of a person."""

    at: datetime
    words: int  # of the response
    seconds: float  # working time as counted by the page; 0 if unknown
    marks: int  # spans, or units with a label that is not clean
    skipped: bool
    check: float | None = None  # F1 against the known answer, if it was a hidden check
    others: float | None = None  # mean similarity to others' layers, from 0 to 1; None if nobody else has the item


class Flag(Record):
    """A reason for a look: `fast`, `checks`, `faster`, `marks`, `drift` or `skips`, explained with numbers."""

    kind: str
    reason: str


class TrendPoint(Record):
    """A window of a person's work, in the order of submission; None if there is nothing to measure."""

    items: int
    seconds_per_word: float | None  # the median
    marks: float  # per item
    check_f1: float | None  # mean F1 on hidden checks
    others: float | None  # mean similarity to others


class Pace(Record):
    """Statistics of a person's work; None if there is nothing to measure."""

    items: int  # submitted, with skips
    skipped: int
    seconds: float  # of work on all of them
    seconds_per_item: float | None  # median over items with a time
    seconds_per_word: float | None  # median of seconds per word of the response
    too_fast: int  # items read faster than `pace.fastest` words per second
    checks: int  # submitted hidden checks
    check_f1: float | None  # mean F1 on them
    others: float | None  # mean similarity to others, over shared items
    flags: list[Flag]  # reasons for a look
    trend: list[TrendPoint]  # without skipped items, `pace.window` items per point


def measure_pace(work: Sequence[WorkedItem], entry: PaceEntry, check_threshold: float = 0.0) -> Pace:
    """Statistics of a person's work; mean F1 on hidden checks below `check_threshold` raises a flag."""
    rows = sorted(work, key=lambda item: item.at)
    done = [item for item in rows if not item.skipped]
    timed = [item for item in done if item.seconds > 0]
    fast = [item for item in timed if item.words / item.seconds > entry.fastest]
    checks = [item.check for item in rows if item.check is not None]
    flags = [*_flag_totals(rows, fast, timed, checks, entry, check_threshold), *_flag_drift(done, entry.window)]
    return Pace(
        items=len(rows),
        skipped=len(rows) - len(done),
        seconds=sum(item.seconds for item in rows),
        seconds_per_item=_median(item.seconds for item in timed),
        seconds_per_word=_seconds_per_word(timed),
        too_fast=len(fast),
        checks=len(checks),
        check_f1=_mean(checks),
        others=_mean(item.others for item in rows if item.others is not None),
        flags=flags,
        trend=[
            TrendPoint(
                len(part),
                _seconds_per_word(part),
                sum(item.marks for item in part) / len(part),
                _mean(item.check for item in part if item.check is not None),
                _mean(item.others for item in part if item.others is not None),
            )
            for part in (done[at : at + entry.window] for at in range(0, len(done), entry.window))
        ],
    )


def _median(values: Iterable[float]) -> float | None:
    rows = list(values)
    return median(rows) if rows else None


def _seconds_per_word(rows: Iterable[WorkedItem]) -> float | None:
    return _median(item.seconds / item.words for item in rows if item.seconds > 0 and item.words)


def _mean(values: Iterable[float]) -> float | None:
    rows = list(values)
    return sum(rows) / len(rows) if rows else None


def _flag_totals(
    rows: Sequence[WorkedItem],
    fast: Sequence[WorkedItem],
    timed: Sequence[WorkedItem],
    checks: Sequence[float],
    entry: PaceEntry,
    threshold: float,
) -> Iterator[Flag]:
    if len(timed) >= _FEW and len(fast) >= _TOO_FAST_SHARE * len(timed):
        reason = f"{len(fast)} of {len(timed)} items took less time than reading {entry.fastest:g} words a second"
        yield Flag("fast", reason)
    f1 = _mean(checks)
    if f1 is not None and len(checks) >= 3 and f1 < threshold:
        yield Flag("checks", f"F1 of {f1:.2f} on {len(checks)} items with known answers, below {threshold:g}")
    skipped = sum(row.skipped for row in rows)
    if len(rows) >= 2 * _FEW and skipped > len(rows) / 3:
        yield Flag("skips", f"{skipped} of {len(rows)} items were left out")


def _flag_drift(done: Sequence[WorkedItem], window: int) -> Iterator[Flag]:
    """Compare the newest `window` items with the earlier ones, if there are as many of these."""
    newest, before = done[-window:], done[:-window]
    if min(len(newest), len(before)) < max(_FEW, window):
        return
    slow, quick = map(_seconds_per_word, (before, newest))
    if slow and quick and slow > _DRIFT * quick:
        yield Flag("faster", f"the newest {len(newest)} items took {quick:.2f} seconds a word, those before {slow:.2f}")
    old_marks, new_marks = (sum(item.marks for item in rows) / len(rows) for rows in (before, newest))
    most, fewest = max(old_marks, new_marks), min(old_marks, new_marks)
    if most >= 1.0 and most > _DRIFT * fewest:
        reason = f"{new_marks:.1f} marks an item in the newest {len(newest)} items, {old_marks:.1f} before"
        yield Flag("marks", reason)
    for name, what in (("check", "F1 on items with known answers"), ("others", "likeness to others")):
        old, new = ([v for item in rows if (v := getattr(item, name)) is not None] for rows in (before, newest))
        if len(old) >= 3 and len(new) >= 3 and (mean := sum(new) / len(new)) < sum(old) / len(old) - _FEWER:
            reason = f"{what} of {mean:.2f} in the newest {len(newest)} items, {sum(old) / len(old):.2f} before"
            yield Flag("drift", reason)


class LanguageLine(Record):
    """Progress in one language."""

    language: str  # BCP 47 tag
    items: int  # to annotate: shared ones and individual ones
    shared: int
    begun: int  # items that somebody has or had
    done: int  # submitted items (reviewed ones, if the project has reviews)
    skipped: int  # items skipped by all who had them
    gold: int  # items with a gold layer: settled by a lead or a rule, or from the data
    single: int  # items without gold whose only annotation is final: exports use it as gold
    annotators: int  # people who may annotate in it
    wanted: int  # annotations due from current people: shared items by each, others by as many as configured
    made: int  # of these, submitted


class PersonLine(Record):
    """A person with their statistics.

    `confirmed`, `corrected` and `sent_back` count their work that was reviewed: annotations, by the final layer, and
    reviews as the first of two reviewers, by what the second did.
    """

    id: str  # public
    name: str | None  # chosen by the person
    role: Role
    number: int  # within the role: reviewers see `Annotator 3`
    stage: str  # `invited`, `exam`, `work`, `out` or `revoked`
    languages: tuple[str, ...] | None  # working languages; None for all
    note: str | None  # from the lead
    joined_at: datetime | None
    last_at: datetime | None  # last time they worked, regardless of later changes by others
    exam_attempts: int  # finished ones
    exam: dict[str, Any] | None  # results of the last attempt
    begun: int  # open assignments
    by_purpose: dict[str, int]  # submitted assignments
    pace: Pace  # of their annotations
    confirmed: int
    corrected: int
    sent_back: int
    suggested: SuggestionCounts | None  # suggestions in their submitted work; None if none were shown
    seconds: float  # of all their work, with exam, reviews and withdrawn work
    cost: float | None  # of that time; None if the project sets no hourly pay


class BatchLine(Record):
    """A batch: `ready` if it can be validated; `checks` are the annotations drawn for the current validation."""

    id: int
    number: int  # from 1
    language: str | None
    state: BatchState
    round: int  # how many times it was sent back
    items: int
    ready: bool
    checks: int
    rounds: list[dict[str, Any]]  # results of its validations, in order


class Overview(Record):
    """The whole project at a glance."""

    languages: list[LanguageLine]  # progress by language
    queue: dict[str, dict[str, int]]  # purpose to state to number of assignments
    people: list[PersonLine]  # everybody, in the order of their invitations
    batches: list[BatchLine]  # all
    disagreements: int  # items on which people disagree, without a gold layer
    seconds: float  # working time of all
    cost: float | None  # of that time; None if the project sets no hourly pay
    currency: str  # of the cost
    notes: list[str]  # remarks, such as missing exam items


def overview(tx: ReadTransaction, project: Project) -> Overview:
    """The whole project at a glance, as this transaction sees it."""
    project_id = tx.project(project.slug).id
    items, people = tx.items(project_id), tx.people(project_id)
    rows = tx.assignments(project_id)
    by_item = annotations_by_item(tx, project_id)
    queue: dict[str, dict[str, int]] = {}
    for (purpose, state), count in sorted(tx.tally(project_id, "assignments", "purpose", "state").items()):
        queue.setdefault(purpose, {})[state] = count
    seconds = sum(row.seconds for row in rows)
    return Overview(
        languages=_languages(project, items, people, rows, by_item),
        queue=queue,
        people=_people(tx, project, project_id, people, rows, _worked_items(tx, project, items, by_item)),
        batches=_batches(tx, project, project_id, items),
        disagreements=len(disagreements(tx, project, project_id)),
        seconds=seconds,
        cost=_cost(project, seconds),
        currency=project.entries.pace.currency,
        notes=_notes(tx, project, project_id),
    )


def _cost(project: Project, seconds: float) -> float | None:
    hourly = project.entries.pace.hourly
    return None if hourly is None else hourly * seconds / 3600


def _notes(tx: ReadTransaction, project: Project, project_id: int) -> list[str]:
    notes = [f"The exam lacks items: {shortage}." for shortage in exam.missing_items(tx, project, project_id)]
    roles = tx.tally(project_id, "people", "role")
    wanted, able = project.entries.work.reviews, sum(roles.get((role.value,), 0) for role in (Role.REVIEWER, Role.LEAD))
    if wanted and not able:
        notes.append("Work is reviewed here, and nobody was invited who reviews.")
    elif able < wanted:
        notes.append("Two people review each piece of work here, and only one was invited who reviews.")
    notes += [
        f"Batch {number} waits for somebody who had no hand in it to check it."
        for number in review.stuck_batches(tx, project_id)
    ]
    return notes


def _languages(
    project: Project,
    items: Sequence[Item],
    people: Sequence[Person],
    rows: Sequence[Assignment],
    by_item: dict[int, list[Assignment]],
) -> list[LanguageLine]:
    states = defaultdict[int, list[State]](list)
    for row in rows:
        if row.purpose is Purpose.ANNOTATE and row.state is not State.WITHDRAWN:
            states[row.item_id].append(row.state)
    by_language = defaultdict[str, list[Item]](list)
    for item in items:
        by_language[item.language or ""].append(item)
    through = set(final_states(project))
    lines = []
    for language, all_here in sorted(by_language.items()):
        here = [item for item in all_here if item.role in WORK_ROLES]
        able = [p for p in people if p.can_work(project) and (p.works_in is None or language in p.works_in)]
        shared = [item for item in here if item.role is ItemRole.OVERLAP]
        had = [states[item.id] for item in here]
        own = sum(item.people_wanted(project) for item in here if item.role is ItemRole.NORMAL)
        lines.append(
            LanguageLine(
                language,
                len(here),
                len(shared),
                sum(map(bool, had)),
                sum(bool(set(item_states) & through) for item_states in had),
                sum(bool(item_states) and set(item_states) == {State.SKIPPED} for item_states in had),
                sum(item.has_gold for item in here),
                sum(final_single_annotation(project, item, by_item.get(item.id, ())) is not None for item in here),
                len(able),
                own + len(shared) * max(1, len(able)),
                sum(state in DONE for item_states in had for state in item_states),
            )
        )
    return lines


def _people(
    tx: ReadTransaction,
    project: Project,
    project_id: int,
    people: Sequence[Person],
    rows: Sequence[Assignment],
    works: dict[int, list[WorkedItem]],
) -> list[PersonLine]:
    reviewed, called, checks = count_verdicts(tx, project_id), tx.numbers(project_id), project.entries.checks
    by_person = defaultdict[int, list[Assignment]](list)
    for row in rows:
        by_person[row.person_id].append(row)
    lines = []
    for person in people:
        mine = by_person[person.id]
        handed_in = [row for row in mine if row.state in DONE]
        seconds = sum(row.seconds for row in mine)
        worked = (row.changed_at if row.state is State.OPEN else row.submitted_at for row in mine if row.version)
        lines.append(
            view(
                PersonLine,
                person,
                id=person.public_id,
                number=called[person.id],
                stage=person.stage(project),
                languages=person.works_in,
                last_at=max(filter(None, worked), default=person.joined_at),
                exam=person.exam_figures[-1] if person.exam_figures else None,
                begun=sum(row.state in AT_WORK for row in mine),
                by_purpose={p.value: n for p in Purpose if (n := sum(row.purpose is p for row in handed_in))},
                pace=measure_pace(works.get(person.id, []), project.entries.pace, checks.threshold if checks else 0.0),
                confirmed=reviewed.get((person.id, "confirm"), 0),
                corrected=reviewed.get((person.id, "correct"), 0),
                sent_back=reviewed.get((person.id, "return"), 0),
                suggested=count_suggestions(row for row in handed_in if row.purpose is Purpose.ANNOTATE),
                seconds=seconds,
                cost=_cost(project, seconds),
            )
        )
    return lines


def _worked_items(
    tx: ReadTransaction, project: Project, items: Sequence[Item], by_item: dict[int, list[Assignment]]
) -> dict[int, list[WorkedItem]]:
    """The submitted items of each person, compared with known answers and with others."""
    works = defaultdict[int, list[WorkedItem]](list)
    for item in items:
        rows = by_item.get(item.id, [])
        judged = tx.cached(item.id, "judged", partial(_judge, tx, project, item, rows)) if rows else []
        for row, (marks, check, alike) in zip(rows, judged, strict=True):
            at, skipped = row.submitted_at or row.changed_at, row.layer.skip is not None
            worked = WorkedItem(at, item.words, row.seconds, marks, skipped, check, alike)
            works[row.person_id].append(worked)
    return works


def _judge(
    tx: ReadTransaction, project: Project, item: Item, rows: Sequence[Assignment]
) -> list[tuple[int, float | None, float | None]]:
    """For each annotation of an item: its marks, F1 if the item is a hidden check, else the similarity to others."""
    is_check = item.role is ItemRole.CHECK
    needed = is_check or len(rows) > 1  # loading texts is slow, and seldom needed
    comparison = Comparison(project.form, tx.sample(item.id)) if needed else None
    gold = tx.gold(item.id) if is_check else None
    judged = []
    for row in rows:
        check = alike = None
        if comparison is not None and gold is not None:
            check = 1.0 if (f1 := comparison.counts(row.layer, gold).f1) is None else f1
        elif comparison is not None:
            alike = comparison.mean_similarity(
                (row.layer, other.layer) for other in rows if other.person_id != row.person_id
            )
        judged.append((len(list(row.layer.marks(project.form))), check, alike))
    return judged


def _batches(tx: ReadTransaction, project: Project, project_id: int, items: Sequence[Item]) -> list[BatchLine]:
    sizes = Counter(item.batch_id for item in items if item.role in WORK_ROLES)
    through = review.ready_batches(tx, project, project_id)
    return [
        view(BatchLine, batch, items=sizes[batch.id], ready=batch.id in through, checks=len(batch.drawn))
        for batch in tx.batches(project_id)
    ]


# Endpoints for leads: statistics, items, and their annotations.


router = Router()
_MOST_EVENTS = 500  # of one history; exports have all
_GAMMA = 30  # random annotations per item, as reference for gamma


class AssignmentHistory(Record):
    """One person's assignment of an item, and its layer."""

    id: int
    by: str
    purpose: Purpose
    state: State
    version: int
    round: int
    layer: Layer
    message: str | None
    seconds: float


class EventView(Record):
    """An event of an item; `by` is null for rules and the command line."""

    id: int
    kind: str
    by: str | None
    assignment: int | None
    layer: Layer | None
    payload: dict[str, Any] | None
    seconds: float
    at: datetime


class History(Record):
    """An item with all its assignments and its latest events."""

    key: str
    item: msgspec.Raw
    gold: Layer | None
    origin: GoldOrigin | None  # of the gold layer; null if there is none, or it came with the data
    silver: Layer | None
    assignments: list[AssignmentHistory]
    events: list[EventView]
    events_left_out: int


@router.call("GET", "/api/lead/overview", answer=Overview, pending=Pending)
def show_overview(caller: Lead) -> Response:
    """Progress: languages, queue, people with their statistics, batches."""
    return figure(caller, _overview)


def _overview(studio: Studio, tx: ReadTransaction, _: Progress) -> Overview:
    return overview(tx, studio.project)


@router.call("GET", "/api/lead/agreement", answer=ProjectAgreement, pending=Pending)
def agreement(caller: Lead, language: Tag = None, gamma: bool = False) -> Response:
    """Agreement of people with each other and with silver; gamma is slow, so it is optional."""
    return figure(caller, _agreement, alone=gamma, language=language, gamma=_GAMMA if gamma else 0)


def _agreement(studio: Studio, tx: ReadTransaction, progress: Progress, **which: Any) -> ProjectAgreement:
    return measure_agreement(tx, studio.project, progress=progress, **which)


@router.call("GET", "/api/lead/items/{number}/history")
def history(caller: Lead, number: Number) -> History:
    """All annotations of an item, and all its events."""
    studio = caller.studio
    with studio.store.reading() as tx:
        item = tx.item(number)
        if item.project_id != studio.id:
            raise NotFound("item")
        names = tx.public_ids(studio.id)
        given = tx.assignments(item_id=number)
        events = list(tx.events(studio.id, item_id=number))
        gold, silver = tx.gold(number), tx.silver(number)
        origin = gold_origins(tx, studio.id, number).get(number)
    return History(
        item.key,
        item_view(studio, number),
        gold,
        origin,
        silver,
        [view(AssignmentHistory, row, by=names[row.person_id]) for row in given],
        [
            view(EventView, row, by=names.get(row.person_id or 0), assignment=row.assignment_id)
            for row in events[-_MOST_EVENTS:]
        ],
        max(0, len(events) - _MOST_EVENTS),
    )


# Settings that apply immediately, and files that a lead imports, as with the project file and `veriglot studio import`.


MOST_IMPORTED = 64_000_000
"""Maximum bytes of a file imported from the page."""


class ProjectSettings(StrictRecord):
    """Settings that leads can change on the page, by their keys in the project file; None if the file has no value.

    Fields that are missing in a change keep their values. `share` (of the items that show suggestions) is None if the
    project shows none.
    """

    name: str | msgspec.UnsetType = msgspec.UNSET
    half_width: float | msgspec.UnsetType | None = msgspec.UNSET
    stop_when_enough: bool | msgspec.UnsetType = msgspec.UNSET
    per_item: int | msgspec.UnsetType = msgspec.UNSET
    per_disputed_item: int | msgspec.UnsetType | None = msgspec.UNSET
    per_person: int | msgspec.UnsetType | None = msgspec.UNSET
    release_hours: float | msgspec.UnsetType | None = msgspec.UNSET
    share: float | msgspec.UnsetType | None = msgspec.UNSET


_TABLES = {"name": "project", "share": "suggestions"}  # the other keys are in [work]


@router.call("GET", "/api/lead/settings")
def settings(caller: Lead) -> ProjectSettings:
    """The settings that leads can change."""
    return _settings(caller.studio.project)


def _settings(project: Project) -> ProjectSettings:
    share = None if project.entries.suggestions is None else project.entries.suggestions.share
    return view(ProjectSettings, project.entries.work, name=project.name, share=share)


@router.call("POST", "/api/lead/settings")
def change(caller: LeadWriter, body: ProjectSettings) -> ProjectSettings:
    """Write settings into the project file; they apply immediately."""
    studios: Studios = caller.request.app.state.studios
    with studios.changing(caller.studio.slug) as studio:
        old, new = (msgspec.structs.asdict(record) for record in (_settings(studio.project), body))
        changed = {key for key, value in new.items() if value is not msgspec.UNSET and value != old[key]}
        if old["share"] is None:
            require("share" not in changed, "this project shows no suggestions", "share", "Edit the project file.")
        if changed:
            changes = {(_TABLES.get(key, "work"), key): new[key] for key in old if key in changed}
            studio, before = studios.change(studio, changes, by=caller.person.id), studio
            figures: FigureCache = caller.request.app.state.figures
            figures.renew(before, studio, drop="half_width" in changed)
        return _settings(studio.project)


class ImportBody(StrictRecord):
    """A file in any format that Veriglot reads: its name, kind of content, and bytes in base64."""

    name: str
    kind: Literal["data", "predictions"]
    content: bytes


class ImportAnswer(Record):
    """Counts of imported rows, and the first hundred rejected rows, each with its line (or 0) and id."""

    counts: dict[str, Any]
    left_out: list[dict[str, Any]]


@router.call("POST", "/api/lead/import")
def import_file(caller: LeadWriter, body: ImportBody) -> ImportAnswer:
    """Import a file as `veriglot studio import` does for files of the project; existing items stay."""
    name = re.sub(r"[^\w.-]", "_", body.name, flags=re.ASCII)[-100:].lstrip(".") or "file"  # valid in any file system
    studios: Studios = caller.request.app.state.studios
    with studios.changing(caller.studio.slug) as studio, TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(body.content)
        result = import_all(studio.store, studio.project, {body.kind: str(path)}, by=caller.person.id)
    rows = []
    for row in result.unusable[:100]:
        error = row.error
        reason = f"{error.field}: {error.detail}" if isinstance(error, InputError) and error.field else error.message
        rows.append({"line": row.line, "id": row.key, "error": reason})
    return ImportAnswer(result.counts(), rows)

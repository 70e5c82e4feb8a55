"""The exam that an annotator passes before the work: its items, the scoring of answers, and the consequences.

After HAT (section 3.2): 25 items, stratified by their share of hallucinated text; precision and recall of at least 0.95
over characters; one retry, then the person is out. After mFAVA (A.2): 10 items, agreement with the silver labels of at
least 0.40. A retry has other items if there are enough. A person with several languages takes and must pass the exam of
each.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from veriglot.metrics.agreement import kappa
from veriglot.records.settings import Record
from veriglot.studio.comparison import Comparison, Counts
from veriglot.studio.items import uniform
from veriglot.studio.layers import Layer
from veriglot.studio.project import ExamEntry, Project, StratumEntry
from veriglot.studio.store import ReadTransaction, WriteTransaction, transactional
from veriglot.studio.tables import Assignment, Item, ItemRole, Person, Purpose, Refused, State, now
from veriglot.studio.texts import item_view
from veriglot.studio.web import Router, SignedIn, Writer, view

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

__all__ = ["begin", "could_begin", "draw", "draw_pool", "missing_items", "router"]

T = TypeVar("T")


# Items in random order.


def draw(rows: Iterable[T], key: Callable[[T], str], *words: object) -> list[T]:
    """Rows in random order; rows that are added later do not change the order of the others."""
    return sorted(rows, key=lambda row: (uniform(*words, key(row)), key(row)))


# Composition of an exam: a number of items for each share of hallucinated text (HAT, section 3.2), drawn at random.


class Candidate(NamedTuple):
    """A possible exam item: its number of spans, and the `share` of its characters in them (0 to 1)."""

    id: int
    key: str
    share: float
    spans: int


def compose(candidates: Sequence[Candidate], entry: ExamEntry, seen: Collection[int]) -> list[Candidate]:
    """Choose the items of an attempt in one language, in random order; all first attempts have the same.

    `seen` items are used only if nothing else is left. The result is shorter than `entry.items` if there are not enough
    items of the required kinds; see `shortage`.
    """
    rows = draw(candidates, _key, entry.seed, "exam")
    rows.sort(key=lambda candidate: candidate.id in seen)  # new ones first, otherwise in their order
    chosen = []
    for stratum in _strata(entry):
        fitting = [row for row in rows if row not in chosen and stratum.low <= row.share <= stratum.high]
        several = [row for row in fitting if row.spans >= stratum.spans][: stratum.several]
        others = [row for row in fitting if row not in several]
        if stratum.several:  # items with one span first, so that `several` items have more, and not all
            others.sort(key=lambda row: row.spans >= stratum.spans)
        chosen += [*several, *others[: stratum.items - len(several)]]
    return draw(chosen, _key, entry.seed, "order")


def _key(candidate: Candidate) -> str:
    return candidate.key


def _strata(entry: ExamEntry) -> Sequence[StratumEntry]:
    """The strata of the project file, narrow ones first, so that wide ones do not take their items; or a single one."""
    if not entry.strata:
        return (StratumEntry(entry.items),)
    return sorted(entry.strata, key=lambda stratum: stratum.high - stratum.low)


def shortage(candidates: Sequence[Candidate], entry: ExamEntry) -> list[str]:
    """What these items lack for an exam, in words; empty if nothing."""
    missing = []
    chosen = compose(candidates, entry, ())
    for stratum in _strata(entry):
        fitting = [candidate for candidate in chosen if stratum.low <= candidate.share <= stratum.high]
        several = sum(candidate.spans >= stratum.spans for candidate in fitting)
        what = f" with {stratum.low:.0%} to {stratum.high:.0%} of the text marked" if entry.strata else ""
        if len(fitting) < stratum.items:
            missing.append(f"{len(fitting)} of {stratum.items} exam items{what}")
        if several < stratum.several:
            missing.append(f"{several} of {stratum.several} exam items{what}, with {stratum.spans} spans or more")
    return missing


Answer = tuple[Comparison, "Layer", "Layer"]
"""An item, the answer, and the reference layer."""


class Outcome(Record):
    """The result of an attempt."""

    passed: bool  # whether every language reached the threshold
    attempt: int  # number of the attempt, from 1
    attempts_left: int  # if 0 and not passed, the person is out
    measure: str  # `precision_recall` or `agreement`
    threshold: float  # required value
    precision: float | None  # over all items; None if nothing was marked
    recall: float | None  # over all items; None if there was nothing to mark
    agreement: float | None  # Cohen's kappa over words (over labels if units or pairs are labelled)
    items: int
    by_language: dict[str, dict[str, Any]]  # the same values


def begin(tx: WriteTransaction, project: Project, person: Person) -> Assignment | None:
    """Assign all items of an attempt; returns the first, or None if an attempt is in progress with nothing open.

    Raises:
        Refused: there is no exam item in any of the person's languages.
    """
    entry = project.entries.exam
    if entry is None or _open_attempt(tx, person):
        return None
    earlier = tx.assignments(person_id=person.id, purpose=Purpose.EXAM)
    seen = {row.item_id for row in earlier}
    round_ = 1 + max((row.round for row in earlier), default=-1)
    chosen = _composed(tx, project, person, seen)
    if not chosen:
        raise Refused(
            "The exam has no item in your languages.",
            "Ask the lead to name files under [exam] path, or to take [exam] out of the project file.",
        )
    given = [tx.assign(tx.item(id_), person.id, Purpose.EXAM, round=round_) for id_ in chosen]
    return given[0]


def _composed(tx: ReadTransaction, project: Project, person: Person, seen: Collection[int]) -> list[int]:
    """The items of a person's next attempt, if they have `seen` some."""
    entry, by_language = project.entries.exam, dict[str | None, list[Candidate]]()
    assert entry is not None
    for item in tx.items(person.project_id, role=ItemRole.EXAM, language=person.works_in):
        by_language.setdefault(item.language, []).append(_candidate(tx, project, entry, item))
    parts = (compose(candidates, entry, seen) for _, candidates in sorted(by_language.items(), key=str))
    return [row.id for row in chain.from_iterable(parts)]


def _to_come(tx: ReadTransaction, project: Project, person: Person, seen: Collection[int]) -> set[int]:
    """The items of all attempts that a person has left, if they have `seen` some."""
    entry, coming = project.entries.exam, set[int]()
    if entry is not None and person.stage(project) == "exam":
        for _ in range(entry.attempts - person.exam_attempts):
            coming.update(_composed(tx, project, person, {*seen, *coming}))
    return coming


@transactional
def finish(tx: WriteTransaction, project: Project, person_id: int) -> Outcome:
    """Score the current attempt, and apply the result: passed, another try, or out."""
    entry, person = project.entries.exam, tx.person(person_id)
    if entry is None or person.stage(project) != "exam":
        raise Refused("There is no exam to finish.")
    rows = _open_attempt(tx, person)
    missing = sum(row.state is not State.SUBMITTED for row in rows)
    if not rows or missing:
        raise Refused(
            "The exam has not begun." if not rows else f"{missing} of {len(rows)} items are not handed in yet.",
            "Answer every item first.",
        )
    by_language: dict[str, list[Answer]] = {}
    for row in rows:
        item = tx.item(row.item_id)
        wanted = _reference(tx, entry, item.id)
        assert wanted is not None  # only items with a reference are assigned
        by_language.setdefault(item.language or "", []).append(
            (Comparison(project.form, tx.sample(item.id)), row.layer, wanted)
        )
    outcome = measure(project, by_language, attempt=person.exam_attempts + 1)
    for row in rows:
        tx.move(row.id, State.ACCEPTED, kind="exam_measured", attempt=outcome.attempt)
    _conclude(tx, person, outcome)
    return outcome


def _conclude(tx: WriteTransaction, person: Person, outcome: Outcome) -> None:
    at, figures = now(), msgspec.to_builtins(outcome)
    history = [*(person.exam_figures or []), {**figures, "at": at.isoformat()}]
    changes: dict[str, Any] = {"exam_attempts": outcome.attempt, "exam_figures": history}
    kind = "exam_failed"
    if outcome.passed:
        kind, changes["exam_passed_at"] = "exam_passed", at
    elif outcome.attempts_left == 0:
        kind, changes["out_at"] = "exam_out", at
    tx.update_person(person.id, kind, payload={"figures": figures}, **changes)


_DECISIVE = {"precision_recall": ("precision", "recall"), "agreement": ("agreement",)}


def measure(project: Project, by_language: dict[str, list[Answer]], *, attempt: int) -> Outcome:
    """Scores of an attempt, numbered from 1; a pure function of the answers by language."""
    entry = project.entries.exam
    assert entry is not None
    parts = {language: _figures(project, answers) for language, answers in sorted(by_language.items())}
    whole = _figures(project, list(chain.from_iterable(by_language.values())))
    values = [part[name] for part in parts.values() for name in _DECISIVE[entry.measure]]
    passed = all(value is None or value >= entry.bar for value in values)  # None: nothing marked, or nothing to mark
    left = max(0, entry.attempts - attempt)
    return Outcome(passed, attempt, left, entry.measure, entry.bar, by_language=parts, **whole)


def _figures(project: Project, answers: Sequence[Answer]) -> dict[str, Any]:
    counts = Counts.total(comparison.counts(given, wanted) for comparison, given, wanted in answers)
    return {
        "precision": counts.precision,
        "recall": counts.recall,
        "agreement": _kappa(project, answers),
        "items": len(answers),
    }


def _kappa(project: Project, answers: Iterable[Answer]) -> float:
    """Cohen's kappa over all units of all items; 1 if all labels are equal and chance alone explains that."""
    pairs = []
    for comparison, given, wanted in answers:
        pairs += comparison.label_pairs(given, wanted, typed=not project.form.has_spans)
    names = sorted(set(chain.from_iterable(pairs)))
    table = np.zeros((len(names), len(names)))
    for first, second in pairs:
        table[names.index(first), names.index(second)] += 1
    value = float(kappa(table)) if names else float("nan")
    return float(all(first == second for first, second in pairs)) if np.isnan(value) else value


def draw_pool(tx: ReadTransaction, project: Project, items: Iterable[Item]) -> set[int]:
    """Items of the data, in one language, for the exam: enough for different items in every attempt, if there are.

    At most half of these items, which all have the reference layer, unless one attempt needs more.
    """
    entry = project.entries.exam
    assert entry is not None
    candidates = [_candidate(tx, project, entry, item) for item in items]
    chosen = set[int]()
    for attempt in range(entry.attempts):
        more = {row.id for row in compose([row for row in candidates if row.id not in chosen], entry, ())}
        whole = len(more) == entry.items and len(chosen) + len(more) <= len(candidates) / 2
        if attempt == 0 or whole:
            chosen |= more
    return chosen


def missing_items(tx: ReadTransaction, project: Project, project_id: int) -> list[str]:
    """What the exam lacks, in words, by language; empty if it fits the project file.

    If its items are drawn from the data and none is assigned yet, all items that could be drawn count.
    """
    entry = project.entries.exam
    if entry is None:
        return []
    by_language: dict[str, list[Candidate]] = {}
    items = tx.items(project_id, role=ItemRole.EXAM)
    if not (items or entry.path):
        items = [item for item in tx.items(project_id) if _reference(tx, entry, item.id) is not None]
    for item in items:
        by_language.setdefault(item.language or "", []).append(_candidate(tx, project, entry, item))
    languages = {language or "" for (language,) in tx.tally(project_id, "items", "language")}
    return [
        f"{language}: {missing}"
        for language in sorted(languages)
        for missing in shortage(by_language.get(language, []), entry)
    ]


def could_begin(tx: ReadTransaction, entry: ExamEntry, project_id: int) -> bool:
    """Whether there is any exam item, in any language."""
    if tx.items(project_id, role=ItemRole.EXAM):
        return True
    drawn = (item.has_gold if entry.against == "gold" else item.has_silver for item in tx.items(project_id))
    return not entry.path and any(drawn)


def _reference(tx: ReadTransaction, entry: ExamEntry, item_id: int) -> Layer | None:
    return tx.gold(item_id) if entry.against == "gold" else tx.silver(item_id)


def _candidate(tx: ReadTransaction, project: Project, entry: ExamEntry, item: Item) -> Candidate:
    wanted = _reference(tx, entry, item.id)
    if wanted is None:
        raise Refused(f"The item {item.key!r} is for the exam and has no {entry.against} layer.")
    share = Comparison(project.form, tx.sample(item.id)).marked_share(wanted)
    return Candidate(item.id, item.key, share, len(list(wanted.marks(project.form))))


def _open_attempt(tx: ReadTransaction, person: Person) -> list[Assignment]:
    """The assignments of the unfinished attempt, in order."""
    rows = tx.assignments(person_id=person.id, purpose=Purpose.EXAM)
    return [row for row in rows if row.state not in {State.ACCEPTED, State.WITHDRAWN}]


router = Router()


class ExamResult(Record):
    """The result of an attempt: `figures` are `precision` and `recall`, or `agreement`, depending on the project.

    Each language must reach the threshold; `by_language` has its values.
    """

    passed: bool
    attempt: int
    attempts_left: int
    measure: str
    threshold: float
    figures: dict[str, float | None]
    by_language: dict[str, dict[str, float | None]]


class ExamAnswer(Record):
    """An item of an attempt: the answer, the reference, and their agreement."""

    item: msgspec.Raw
    answer: Layer
    known: Layer
    precision: float | None  # over characters (over units, if these are labelled); None if nothing was marked
    recall: float | None  # None if there was nothing to mark


@router.call("GET", "/api/exam/feedback")
def feedback(caller: SignedIn) -> list[ExamAnswer]:
    """The caller's last attempt, item by item, once submitted, without items of attempts that are left.

    Empty if the project does not show it.
    """
    studio, entry = caller.studio, caller.studio.project.entries.exam
    if entry is None or not entry.feedback:
        return []
    answers = []
    with studio.store.reading() as tx:
        rows = tx.assignments(person_id=caller.person.id, purpose=Purpose.EXAM, state=State.ACCEPTED)
        last = max((row.round for row in rows), default=0)
        coming = _to_come(tx, studio.project, caller.person, {row.item_id for row in rows})
        for row in rows:
            known = _reference(tx, entry, row.item_id)
            if row.round != last or known is None or row.item_id in coming:
                continue
            counts = Comparison(studio.project.form, tx.sample(row.item_id)).counts(row.layer, known)
            item = item_view(studio, row.item_id)
            answers.append(ExamAnswer(item, row.layer, known, counts.precision, counts.recall))
    return answers


@router.call("POST", "/api/exam/finish")
def finish_attempt(caller: Writer) -> ExamResult:
    """Score the current exam attempt, once all its items are submitted."""
    outcome = finish(caller.studio.store, caller.studio.project, caller.person.id)
    names = _DECISIVE[outcome.measure]
    by_language = {tag: {name: part[name] for name in names} for tag, part in outcome.by_language.items()}
    return view(ExamResult, outcome, figures={name: getattr(outcome, name) for name in names}, by_language=by_language)

"""Adjudication of items with several annotations: by a lead who compares the layers, or by a rule.

A layer that a lead submits becomes the gold layer of the item. The rules: `agreed` (all layers say the same),
`majority` (what more than half of the annotators mark; ties are left to a lead), `best_with_silver` (for all shared
items of a language, the layer of the annotator who agrees most with the silver layer, as in mFAVA, section 3). No rule
changes what a lead adjudicated; gold from a rule or from the data changes only on request.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain, combinations, pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec
from fastapi import Query, Response
from msgspec.structs import replace

from veriglot.metrics.estimate import FEWEST_TEXTS
from veriglot.records.settings import Record, StrictRecord
from veriglot.studio.agreement import AgreementRow, agreement_rows, best_with_silver
from veriglot.studio.comparison import (
    SETTLED_BY_HAND,
    Comparison,
    GoldSource,
    annotations_by_item,
    final_single_annotation,
    final_states,
    gold_origins,
    suggested_id,
    texts_with_layers,
)
from veriglot.studio.figures import FigureCache, Pending, Progress, figure
from veriglot.studio.layers import Layer, LayerSpan, LayerUnit
from veriglot.studio.review import final_layer, final_layers
from veriglot.studio.store import ReadTransaction, Store, WriteTransaction, transactional
from veriglot.studio.tables import (
    AT_WORK,
    DONE,
    WORK_ROLES,
    Assignment,
    Item,
    ItemRole,
    NotFound,
    Person,
    Purpose,
    Refused,
    Role,
    RowId,
    State,
)
from veriglot.studio.texts import item_view, sample_of
from veriglot.studio.web import Lead, LeadWriter, Router, Studio, Tag, view

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from veriglot.metrics.agreement import AnnotatedText
    from veriglot.records import Pointer, Sample
    from veriglot.studio.project import Form, Project

__all__ = [
    "Rule",
    "Vote",
    "after_adjudication",
    "best_annotators",
    "label_of",
    "lacks_label",
    "router",
    "settle",
    "submissions_of",
    "votes_on",
]


# Rules that merge several layers: majority vote, and the annotator who agrees most with the silver layer.


if TYPE_CHECKING:
    H = TypeVar("H", bound=Hashable)


def _plain(layer: Layer) -> Layer:
    """A layer without personal parts (comments, notes, rejected suggestions); ratings are judgements and stay."""
    spans = tuple(replace(span, note="") for span in layer.spans)
    return replace(layer, spans=spans, comment="", rejected=())


def unanimous_layer(layers: Sequence[Layer], form: Form, sample: Sample) -> Layer:
    """What all layers say, and nothing else: marks and labels in all, flags that all set, ratings without dispute.

    If the layers do not differ (`Comparison.differ`), these are all marks of all of them.
    """
    first = layers[0]
    common = frozenset.intersection(*(layer.content(form, sample.response) or frozenset() for layer in layers))
    flags = tuple(flag for flag in first.flags if all(flag in layer.flags for layer in layers))
    source_flags = tuple(flag for flag in first.source_flags if all(flag in layer.source_flags for layer in layers))
    units = tuple(
        _agreed_unit(
            (start, end), label, [o for layer in layers for o in layer.units if (o.start, o.end) == (start, end)]
        )
        for start, end, label in sorted(common if form.unit is not None else ())
    )
    layer = Layer(units=units, label=first.label if common and form.labels else None)
    if form.has_spans:
        layer = Layer(spans=_spans(common))
    return _with_agreed_ratings(replace(layer, flags=flags, source_flags=source_flags), layers)


def _agreed_unit(bounds: tuple[int, int], label: str, here: Sequence[LayerUnit]) -> LayerUnit:
    """A unit with the same label in all layers: flags that all set, counts without dispute, all evidence."""
    counts = _unanimous(tuple(sorted(unit.counts.items())) for unit in here if unit.counts)
    flags = tuple(flag for flag in here[0].flags if all(flag in unit.flags for unit in here))
    return LayerUnit(*bounds, label, _evidence(here), flags, dict(counts or ()))


def _evidence(units: Iterable[LayerUnit]) -> tuple[Pointer, ...]:
    return tuple(dict.fromkeys(pointer for unit in units for pointer in unit.evidence))


def majority_layer(layers: Sequence[Layer], form: Form, sample: Sample) -> Layer | None:
    """The majority vote over layers; None if any part of it has no majority.

    A span that more than half have with the same ends and type is taken as it is. Any other segment (between two
    borders of any spans) is marked if more than half mark it, and unmarked if more than half do not; its type is the
    one that more than half of those who mark it give. If a person has several spans over a segment, the shortest
    counts. A unit or a pair needs a label with a majority, flags need a majority. Layers that skip the item vote
    neither yes nor no, but count in the total of which more than half is needed. White space is ignored.
    """
    answered, of = [layer for layer in layers if layer.skip is None], len(layers)
    if 2 * len(answered) <= of:
        return None
    voted = _majority_marks(answered, of, form, sample.response)
    if voted is None:
        return None
    flags = _common_flags((layer.flags for layer in answered), of)
    source_flags = _common_flags((layer.source_flags for layer in answered), of)
    return _with_agreed_ratings(replace(voted, flags=flags, source_flags=source_flags), answered)


def _majority_marks(layers: Sequence[Layer], of: int, form: Form, text: str) -> Layer | None:
    """The marks or labels with a majority, and nothing else."""
    if form.has_spans:
        spans = _majority_spans(layers, of, form, text)
        return None if spans is None else Layer(spans=spans)
    if form.labels:
        label = _majority_vote([layer.label for layer in layers if layer.label is not None], of)
        return None if label is None else Layer(label=label)
    units = _majority_units(layers, of)
    return None if units is None else Layer(units=units)


def _majority_vote(votes: Iterable[H], of: int) -> H | None:
    return next((what for what, count in Counter(votes).items() if 2 * count > of), None)


def _common_flags(flag_lists: Iterable[tuple[str, ...]], of: int) -> tuple[str, ...]:
    counts = Counter(flag for flags in flag_lists for flag in flags)
    return tuple(flag for flag, count in counts.items() if 2 * count > of)


def _with_agreed_ratings(layer: Layer, layers: Sequence[Layer]) -> Layer:
    """A layer with undisputed ratings: of the item, and of spans with the same ends and type."""
    spans = []
    for span in layer.spans:
        alike = [o for other in layers for o in other.spans if o.type == span.type]
        same = [o for o in alike if (o.start, o.end) == (span.start, span.end)]
        same = same or [o for o in alike if o.start < span.end > span.start < o.end]
        spans.append(replace(span, rating=_unanimous(o.rating for o in same if o.rating is not None)))
    names = dict.fromkeys(name for other in layers for name in other.ratings)
    steps = {name: _unanimous(other.ratings[name] for other in layers if name in other.ratings) for name in names}
    ratings = {name: step for name, step in steps.items() if step is not None}
    return replace(layer, spans=tuple(spans), ratings=ratings)


def _unanimous(answers: Iterable[H]) -> H | None:
    distinct = set(answers)
    return distinct.pop() if len(distinct) == 1 else None


def _majority_spans(layers: Sequence[Layer], of: int, form: Form, text: str) -> tuple[LayerSpan, ...] | None:
    """Spans with a majority; elsewhere the segments with a majority; None if a segment is undecided."""
    marks = [layer.content(form, text) or frozenset() for layer in layers]
    whole = [mark for mark, count in Counter(chain.from_iterable(marks)).items() if 2 * count > of]
    borders = sorted({0, len(text), *(offset for spans in marks for start, end, _ in spans for offset in (start, end))})
    merged: list[tuple[int, int, str]] = []
    for start, end in pairwise(borders):
        if any(first <= start and end <= after for first, after, _ in whole):
            continue
        # The type of a segment is that of the shortest span over it, as when layers are compared.
        over = ([(stop - at, at, type_) for at, stop, type_ in spans if at <= start and end <= stop] for spans in marks)
        types = [min(spans)[2] for spans in over if spans]
        marked, type_ = 2 * len(types) > of, _majority_vote(types, len(types))
        if marked and type_ is not None:
            if merged and merged[-1][1:] == (start, type_):
                merged[-1] = (merged[-1][0], end, type_)
            else:
                merged.append((start, end, type_))
        elif (marked or 2 * (len(layers) - len(types)) <= of) and not text[start:end].isspace():
            return None
    return _spans(whole + merged)


def _spans(marks: Iterable[tuple[int, int, str]]) -> tuple[LayerSpan, ...]:
    return tuple(LayerSpan(f"s{number}", *mark) for number, mark in enumerate(sorted(marks), 1))


def _majority_units(layers: Sequence[Layer], of: int) -> tuple[LayerUnit, ...] | None:
    """All labelled units, each with its majority label; None if a unit has none."""
    places = sorted({(unit.start, unit.end) for layer in layers for unit in layer.units})
    decisions = []
    for bounds in places:
        here = [unit for layer in layers for unit in layer.units if (unit.start, unit.end) == bounds]
        decided = _majority_vote([(unit.label,) for unit in here], of)
        counts = _majority_vote([tuple(sorted(unit.counts.items())) for unit in here if unit.counts], of)
        if decided is None or (decided == (None,) and counts is None):
            return None
        label = decided[0]
        agreeing = [unit for unit in here if unit.label == label]
        flags = _common_flags((unit.flags for unit in here), of)
        decisions.append(LayerUnit(*bounds, label, _evidence(agreeing), flags, dict(counts or ())))
    return tuple(decisions)


def best_annotators(
    tx: ReadTransaction, project: Project, texts: Sequence[AnnotatedText], *, resamples: int = 0
) -> dict[str, AgreementRow]:
    """By language, the kappa of the annotator who agrees most with silver (mFAVA, 3); from silver `texts_with_layers`.

    It is Cohen's kappa over words (over labels if units or pairs are labelled), typed if the form has several types.
    Only items of two or more people count, so that all are compared on the same texts, and at least five items are
    needed. Ties go to the person invited first.
    """
    shared = [text for text in texts if len(text.layers) > 2]  # two people and silver
    memory: dict[Any, Any] = tx.cached("agreement", f"best {resamples}", dict)
    rows = agreement_rows([], shared, by_single_type=not project.form.has_spans, resamples=resamples, memory=memory)
    ids = {name: id_ for id_, name in tx.public_ids(tx.project(project.slug).id).items()}
    return best_with_silver(sorted(rows, key=lambda row: ids.get(row.between[0], 0)))


def label_of(
    tx: ReadTransaction,
    project: Project,
    item: Item,
    handed_in: Sequence[Assignment],
    final_layer_of: Callable[[Assignment], Layer],
) -> tuple[Layer, str] | None:
    """The label of an item and its source: the gold layer (`gold`), the `single` annotation, or what all `agreed` on.

    `handed_in` are its annotations from `annotations_by_item`, `final_layer_of` is from `review.final_layers`. `agreed`
    needs all wanted annotators to be done; for an item that everybody annotates, two or more people.
    """
    if item.has_gold and (gold := tx.gold(item.id)) is not None:
        return gold, "gold"
    only = final_single_annotation(project, item, handed_in)
    if only is not None:
        return final_layer_of(only), "single"
    wanted = 2 if item.role is ItemRole.OVERLAP else max(2, item.people_wanted(project))
    through = all(row.state in final_states(project) for row in handed_in)
    if item.role not in WORK_ROLES or len(handed_in) < wanted or not through:
        return None
    layers, sample = [final_layer_of(row) for row in handed_in], tx.sample(item.id)
    if layers[0].skip is not None or Comparison(project.form, sample).differ(layers):
        return None
    return _plain(unanimous_layer(layers, project.form, sample)), "agreed"


def lacks_label(project: Project, item: Item, handed_in: Sequence[Assignment]) -> bool:
    """Whether an item has all annotations it needs but no label; leaving such items out may bias rates."""
    asked = 2 if item.role is ItemRole.OVERLAP else project.entries.work.per_item
    return item.role in WORK_ROLES and len(handed_in) >= asked


_SETTLED_AT_ONCE = 50  # items per transaction, during which people who save have to wait
Rule = Literal["agreed", "majority", "best_with_silver"]


class Submission(Record):
    """One annotator's annotation of an item, under their public id: the original layer and the corrected one."""

    assignment: int
    by: str
    layer: Layer
    final: Layer


class Disagreement(NamedTuple):
    """An item with annotations of several people."""

    item: Item
    differ: bool  # whether the layers are not all the same
    likeness: float  # mean similarity over pairs of layers, from 0 (nothing shared) to 1 (the same words)
    submissions: list[Submission]
    settled: bool  # whether the item has a gold layer

    @property
    def order(self) -> tuple[float, int]:
        """Sort key: the least similar layers first."""
        return self.likeness, self.item.position


class Settled(Record):
    """The result of a rule."""

    settled: int  # items that got a gold layer
    left: int  # items without gold that the rule could not decide; they wait for a lead
    unchanged: int = msgspec.field(name="kept")  # items with gold (by hand or by default) or undecided
    replaced: int  # settled items that had another gold layer before
    by_hand: int  # unchanged items that a lead had adjudicated
    best: dict[str, str]  # language to the public id of the annotator who agrees most with silver, for that rule


class Vote(Record):
    """A span or label of an item under adjudication, with the annotations that contain it; white space is ignored."""

    id: str  # unique in the item, as for a suggestion
    start: int
    end: int
    type: str
    assignments: list[int]
    rating: int | None  # the rating step, if all who rate it agree


def votes_on(submissions: Sequence[Submission], form: Form, sample: Sample) -> list[Vote]:
    """All spans and labels of all annotators, in the order of the text."""
    givers: dict[tuple[int, int, str], list[int]] = {}
    for submission in submissions:
        for mark in submission.final.content(form, sample.response) or ():
            givers.setdefault(mark, []).append(submission.assignment)
    layers = [submission.final for submission in submissions]
    rated = {span.id: span.rating for span in _with_agreed_ratings(Layer(spans=_spans(givers)), layers).spans}
    return [
        Vote(f"{start}-{end}-{type_}", start, end, type_, givers[start, end, type_], rated[f"s{number}"])
        for number, (start, end, type_) in enumerate(sorted(givers), 1)
    ]


def _sources(layer: Layer, votes: Iterable[Vote], form: Form, sample: Sample) -> list[GoldSource]:
    """The source annotations of each span or label of a layer, and whether it was changed after it was taken."""
    voted, taken = {}, {}
    for vote in votes:
        voted[vote.start, vote.end, vote.type] = taken[suggested_id({"id": vote.id})] = vote.assignments
    given = [((span.start, span.end, span.type), span.id, Layer(spans=(span,))) for span in layer.spans]
    given += [(mark, "", Layer()) for mark in replace(layer, spans=()).content(form, sample.response) or ()]
    sources = []
    for place_and_type, id_, alone in sorted(given, key=lambda row: row[0]):
        mark = next(iter(alone.content(form, sample.response) or ()), place_and_type)
        before = None if mark in voted else taken.get(id_)
        sources.append(GoldSource(*place_and_type, before or voted.get(mark, []), before is not None))
    return sources


def submissions_of(tx: ReadTransaction, item: Item) -> list[Submission]:
    """All submitted annotations of an item, in the order in which it was assigned; skips too."""
    rows, names = tx.assignments(item_id=item.id, purpose=Purpose.ANNOTATE, state=DONE), tx.public_ids(item.project_id)
    return [Submission(row.id, names[row.person_id], row.layer, final_layer(tx, row)) for row in rows]


def disagreements(
    tx: ReadTransaction,
    project: Project,
    project_id: int,
    *,
    language: str | tuple[str, ...] | None = None,
    settled: bool = False,
) -> list[Disagreement]:
    """Items with annotations of two or more people, in some languages or all, the least similar layers first.

    With `settled`, items with a gold layer and items without disagreement are included.
    """
    handed_in, names = annotations_by_item(tx, project_id), tx.public_ids(project_id)
    final_layer_of = final_layers(tx, project_id)
    result = []
    for item in tx.items(project_id, role=WORK_ROLES, language=language):
        rows = handed_in.get(item.id, [])
        if len({row.person_id for row in rows}) < 2 or (item.has_gold and not settled):
            continue
        submissions = [Submission(row.id, names[row.person_id], row.layer, final_layer_of(row)) for row in rows]
        disagreement = _disagreement(tx, project, item, submissions)
        if settled or disagreement.differ:
            result.append(disagreement)
    return sorted(result, key=lambda disagreement: disagreement.order)


def _disagreement(tx: ReadTransaction, project: Project, item: Item, submissions: list[Submission]) -> Disagreement:
    layers = [row.final for row in submissions]

    def compare() -> tuple[bool, float]:
        comparison = Comparison(project.form, tx.sample(item.id))
        return comparison.differ(layers), comparison.mean_similarity(combinations(layers, 2)) or 0.0

    return Disagreement(item, *tx.cached(item.id, "disagreement", compare), submissions, item.has_gold)


@transactional
def adjudicate(tx: WriteTransaction, project: Project, person_id: int, item_id: int) -> Assignment:
    """Assign an item to a lead for adjudication, with all annotations; a lead who had it gets their old layer back."""
    return _adjudicate(tx, project, person_id, item_id)


@transactional
def adjudicate_next(
    tx: WriteTransaction,
    project: Project,
    person_id: int,
    after: int,
    *,
    release: bool = False,
    order: Sequence[QueuePosition] | None = None,
) -> Assignment | None:
    """Assign a lead the next disagreement after an item; the list wraps around. None if no other is free.

    Items in the same language come first, because a lead may not read others.

    With `release`, the lead gives up that item if they changed nothing, so that others can take it. `order` is an
    earlier result of `_order`, which is slow; items settled since then are skipped.
    """
    person, item = _lead_and_item(tx, person_id, after)
    taken = tx.assignments(person.project_id, purpose=Purpose.ADJUDICATE, state=AT_WORK)
    for row in taken:
        if release and (row.item_id, row.person_id, row.version) == (after, person_id, 0):
            tx.move(row.id, State.WITHDRAWN, by=person_id, reason="left to others")
    places = _order(tx, project, person.project_id, person.works_in) if order is None else order
    others = {row.item_id for row in taken if row.person_id != person_id} | {after}
    current = _disagreement(tx, project, item, submissions_of(tx, item)).order
    for *_, id_ in sorted(places, key=lambda row: (row[2] != item.language, row[:2] <= current, row)):
        if id_ not in others and (order is None or _is_open(tx, project, tx.item(id_))):
            return _adjudicate(tx, project, person_id, id_)
    return None


QueuePosition = tuple[float, int, str | None, int]  # likeness and position (the sort order), language and item


def _order(
    tx: ReadTransaction, project: Project, project_id: int, languages: tuple[str, ...] | None = None
) -> list[QueuePosition]:
    return [
        (*row.order, row.item.language, row.item.id)
        for row in disagreements(tx, project, project_id, language=languages)
    ]


def _is_open(tx: ReadTransaction, project: Project, item: Item) -> bool:
    """Whether an item is still an unsettled disagreement."""
    if item.has_gold or item.role not in WORK_ROLES:
        return False
    submissions = submissions_of(tx, item)
    return len({row.by for row in submissions}) > 1 and _disagreement(tx, project, item, submissions).differ


def _lead_and_item(tx: ReadTransaction, person_id: int, item_id: int) -> tuple[Person, Item]:
    person, item = tx.person(person_id), tx.item(item_id)
    if item.project_id != person.project_id:
        raise NotFound("item")
    if person.role is not Role.LEAD or not person.can_judge:
        raise Refused("A lead settles what annotators disagree on.")
    return person, item


def _adjudicate(tx: WriteTransaction, project: Project, person_id: int, item_id: int) -> Assignment:
    person, item = _lead_and_item(tx, person_id, item_id)
    mine: Assignment | None = None
    for assignment in tx.assignments(item_id=item.id, purpose=Purpose.ADJUDICATE):
        if assignment.person_id == person.id:
            mine = assignment
        elif assignment.state in AT_WORK:
            raise Refused("Another lead is settling this item.")
    if mine is not None:
        return mine if mine.state in AT_WORK else tx.move(mine.id, State.OPEN, kind="reopened", by=person.id)
    layers = [submission.final for submission in submissions_of(tx, item)]
    if len(layers) < 2:
        raise Refused("Fewer than two people have handed this item in.", "Wait, or export what there is.")
    common = unanimous_layer(layers, project.form, tx.sample(item.id))
    return tx.assign(item, person.id, Purpose.ADJUDICATE, layer=common, by=person.id)


def after_adjudication(tx: WriteTransaction, project: Project, assignment: Assignment) -> None:
    """A layer that a lead submits becomes gold, with comment and sources; the annotations are accepted."""
    item = tx.item(assignment.item_id)
    _set_gold(tx, project, item, submissions_of(tx, item), assignment.layer, SETTLED_BY_HAND, by=assignment.person_id)


def _set_gold(
    tx: WriteTransaction,
    project: Project,
    item: Item,
    submissions: Sequence[Submission],
    layer: Layer,
    kind: str,
    *,
    by: int | None,
) -> None:
    form, sample = project.form, tx.sample(item.id)
    payload: dict[str, Any] = {"comment": layer.comment.strip()} if layer.comment.strip() else {}
    sources = _sources(layer, votes_on(submissions, form, sample), form, sample)
    tx.set_gold(item, layer, kind, by=by, payload={**payload, "sources": msgspec.to_builtins(sources)})
    # Annotations of a settled item are final; they need no more reviews.
    for annotation in tx.assignments(item_id=item.id, purpose=Purpose.ANNOTATE, state=State.SUBMITTED):
        for review in tx.assignments(subject_id=annotation.id, purpose=Purpose.REVIEW, state=AT_WORK):
            tx.move(review.id, State.WITHDRAWN, by=by, reason="item settled")
        tx.move(annotation.id, State.ACCEPTED, by=by, reason="item settled")


def settle(
    store: Store,
    project: Project,
    rule: Rule,
    *,
    language: str | None = None,
    overwrite: bool = False,
    by: int | None = None,
) -> Settled:
    """Settle by a rule all items that two or more people submitted, in one language or all.

    With `overwrite`, also items with a gold layer, except those that a lead adjudicated. `by` is the lead who asks.
    People can go on working: an item that changes meanwhile is skipped. After an interruption, call it again.

    Raises:
        Refused: the rule is `best_with_silver`, and too few of these items have a silver layer.
    """
    counts = dict.fromkeys(("settled", "left", "unchanged", "replaced", "by_hand"), 0)
    decided: list[tuple[Disagreement, Layer]] = []
    with store.reading() as tx:
        project_id = tx.project(project.slug).id
        shared = disagreements(tx, project, project_id, language=language, settled=True)
        best = _best_with_silver(tx, project, language) if rule == "best_with_silver" else {}
        origins = gold_origins(tx, project_id)
        for disagreement in shared:
            origin = origins.get(disagreement.item.id)
            by_hand = disagreement.settled and origin is not None and origin.kind == SETTLED_BY_HAND
            untouched = by_hand or (disagreement.settled and not overwrite)
            gold = None if untouched else _gold_by_rule(tx, project, rule, disagreement, best)
            counts["by_hand"] += by_hand
            if gold is None:
                counts["unchanged" if disagreement.settled else "left"] += 1
            else:
                decided.append((disagreement, gold))
    for start in range(0, len(decided), _SETTLED_AT_ONCE):
        some = decided[start : start + _SETTLED_AT_ONCE]
        for (disagreement, _), changed in zip(some, _settle(store, project, some, rule, by), strict=True):
            counts["settled" if changed else "unchanged" if disagreement.settled else "left"] += 1
            counts["replaced"] += changed and disagreement.settled
    return Settled(**counts, best=best)


@transactional
def _settle(
    tx: WriteTransaction, project: Project, decided: Sequence[tuple[Disagreement, Layer]], rule: Rule, by: int | None
) -> list[bool]:
    """Set gold layers, except for items that changed after the decision; returns whether each was set."""
    changed = []
    for disagreement, gold in decided:
        item = tx.item(disagreement.item.id)
        same = item == disagreement.item and submissions_of(tx, item) == disagreement.submissions
        if same:
            _set_gold(tx, project, item, disagreement.submissions, gold, f"settled_{rule}", by=by)
        changed.append(same)
    return changed


def _best_with_silver(tx: ReadTransaction, project: Project, language: str | None) -> dict[str, str]:
    texts = texts_with_layers(tx, project, silver=True, shared=True, language=language)
    best = {tag: row.between[0] for tag, row in best_annotators(tx, project, texts).items()}
    if not best:
        where = f" in {language}" if language else " in any language"
        message = f"Nobody has annotated {FEWEST_TEXTS} shared items{where} that have a silver layer."
        raise Refused(message, "Name it: silver = under [data]. More shared items: overlap = under [work].")
    return best


def _gold_by_rule(
    tx: ReadTransaction, project: Project, rule: Rule, disagreement: Disagreement, best: dict[str, str]
) -> Layer | None:
    layers = [submission.final for submission in disagreement.submissions]
    if rule == "majority":
        return majority_layer(layers, project.form, tx.sample(disagreement.item.id))
    if rule == "agreed":
        same = not disagreement.differ and layers[0].skip is None
        return unanimous_layer(layers, project.form, tx.sample(disagreement.item.id)) if same else None
    by = best.get(disagreement.item.language or "")
    chosen = (row.final for row in disagreement.submissions if row.by == by and row.final.skip is None)
    return next(map(_plain, chosen), None)


# Endpoints for leads.


router = Router()
_Limit = Annotated[int, Query(ge=1, le=500)]


class AdjudicationBody(StrictRecord):
    """The `item` to adjudicate, or the item `after` which the next disagreement follows.

    With `release`, the lead gives up the latter if they changed nothing.
    """

    item: RowId | None = None
    after: RowId | None = None
    release: bool = False


class Adjudication(Record):
    """The assignment for adjudication; null if no other disagreement is free."""

    assignment: int | None
    state: State | None


class SettleBody(StrictRecord):
    """Settle by a rule, in one language or all; with `overwrite` also items with gold that no lead set."""

    rule: Rule
    language: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    overwrite: bool = msgspec.field(name="again", default=False)


class DisagreementView(Record):
    """An item with annotations of several people; `likeness` is from 0 to 1."""

    key: str
    item: msgspec.Raw
    likeness: float
    disputed: int  # spans or labels that not all annotators have
    settled: bool
    submissions: list[Submission] = msgspec.field(name="said")


class Disagreements(Record):
    """Disagreements, the least similar layers first; `total` counts all."""

    total: int
    items: list[DisagreementView]


@router.call("GET", "/api/lead/disagreements", answer=Disagreements, pending=Pending)
def list_disagreements(caller: Lead, language: Tag = None, settled: bool = False, limit: _Limit = 10) -> Response:
    """All annotations of disputed items, side by side; the least similar layers first."""
    return figure(caller, _disagreements, language=language, settled=settled, limit=limit)


def _disagreements(
    studio: Studio, tx: ReadTransaction, _: Progress, *, language: str | None, settled: bool, limit: int
) -> Disagreements:
    rows = disagreements(tx, studio.project, studio.id, language=language, settled=settled)
    views = []
    for row in rows[:limit]:
        votes = votes_on(row.submissions, studio.project.form, sample_of(studio, row.item.id))
        disputed = sum(len(vote.assignments) < len(row.submissions) for vote in votes)
        texts = item_view(studio, row.item.id)
        views.append(view(DisagreementView, row, key=row.item.key, item=texts, disputed=disputed))
    return Disagreements(len(rows), views)


@router.call("POST", "/api/lead/adjudications")
def take_on(caller: LeadWriter, body: AdjudicationBody) -> Adjudication:
    """Take an item, or the next disagreement, for adjudication; the submitted layer becomes gold."""
    given: Assignment | None
    where, person = (caller.studio.store, caller.studio.project), caller.person.id
    if body.item is not None:
        given = adjudicate(*where, person, body.item)
    elif body.after is not None:
        figures: FigureCache = caller.request.app.state.figures
        order = figures.value(caller, _ranked, list[QueuePosition], languages=caller.person.works_in)
        given = adjudicate_next(*where, person, body.after, release=body.release, order=order)
    else:
        raise Refused("Which item?", "Name the `item`, or the one `after` which the next is wanted.")
    return Adjudication(None, None) if given is None else Adjudication(given.id, given.state)


def _ranked(
    studio: Studio, tx: ReadTransaction, _: Progress, *, languages: tuple[str, ...] | None
) -> list[QueuePosition]:
    return _order(tx, studio.project, studio.id, languages)


@router.call("POST", "/api/lead/settle")
def settle_by_rule(caller: LeadWriter, body: SettleBody) -> Settled:
    """Settle by a rule all shared items that it can decide; the rest is left to a lead."""
    caller.count("heavy")
    studio = caller.studio
    which: dict[str, Any] = {"language": body.language, "overwrite": body.overwrite, "by": caller.person.id}
    return settle(studio.store, studio.project, body.rule, **which)

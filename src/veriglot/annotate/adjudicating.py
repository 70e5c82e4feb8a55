"""Settling what was annotated more than once: a lead reads the layers side by side, or a rule chooses.

What a lead hands in becomes the gold layer of the item. The rules: `agreed` (all layers say the same), `majority` (what
more than half of the annotators mark; a tie is left), `best_with_silver` (all of a language's shared items from the one
annotator who agrees most with the silver layer, as mfava does, section 3). What a lead settled by hand no rule changes;
what a rule settled or came with the data, only where it is told to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from sqlalchemy import func, select

from veriglot.annotate.choosing import AT_WORK, DONE, can_judge
from veriglot.annotate.comparing import likeness
from veriglot.annotate.gathering import BY_HAND, gold_origins
from veriglot.annotate.reviewing import final_layer
from veriglot.annotate.store import Item, ItemRole, NotFound, Purpose, Refused, Role, State
from veriglot.annotate.store import tables as t
from veriglot.annotate.voting import agreed, best_with_silver, majority, plain

if TYPE_CHECKING:
    from veriglot.annotate.layers import Layer
    from veriglot.annotate.project import Project
    from veriglot.annotate.store import Assignment, NewEvent, Reading, Store, Writing

__all__ = [
    "Disagreement",
    "Rule",
    "Said",
    "Settled",
    "adjudicate",
    "after_adjudication",
    "disagreements",
    "said_of",
    "settle",
]

Rule = Literal["agreed", "majority", "best_with_silver"]
_WORK = (ItemRole.NORMAL, ItemRole.OVERLAP)


class Said(NamedTuple):
    """What one annotator said of an item, as far as it is handed in.

    Attributes:
        assignment_id: their assignment.
        person_id: who.
        layer: theirs.
        final: theirs, or the reviewer's who corrected it.
    """

    assignment_id: int
    person_id: int
    layer: Layer
    final: Layer


class Disagreement(NamedTuple):
    """An item that several people annotated.

    Attributes:
        item: which.
        likeness: of their layers, from 0 (nothing alike) to 1 (the same), the mean over pairs.
        said: the layers.
        settled: whether the item has a gold layer.
    """

    item: Item
    likeness: float
    said: tuple[Said, ...]
    settled: bool


class Settled(NamedTuple):
    """What a rule did.

    Attributes:
        settled: items that got a gold layer.
        left: items without one that it could not decide: they wait for a lead.
        kept: items that had one already, and have it still: it was not to be changed, a lead had settled it by hand,
            or the rule could not decide.
        replaced: of the settled, those that had another gold layer before.
        by_hand: of the kept, those that a lead had settled by hand.
        best: language to the public id of whoever agrees most with silver, where the rule asks for them; of the
            languages that were to be settled.
    """

    settled: int
    left: int
    kept: int
    replaced: int
    by_hand: int
    best: dict[str, str]


def said_of(tx: Reading, item: Item) -> list[Said]:
    """What everybody said of an item who has handed it in, in the order in which it was given; skips too."""
    states = (State.SUBMITTED, State.ACCEPTED, State.SKIPPED)
    rows = tx.assignments(item.project_id, item_id=item.id, purpose=Purpose.ANNOTATE, states=states)
    return [Said(row.id, row.person_id, row.layer, final_layer(tx, row).layer) for row in rows]


def disagreements(
    tx: Reading, project: Project, project_id: int, *, language: str | None = None, settled: bool = False
) -> list[Disagreement]:
    """Items that two people or more annotated, those first that they are least alike on.

    Args:
        tx: the transaction.
        project: the project.
        project_id: of its row.
        language: of the items; None for all.
        settled: also those that have a gold layer, and those on which all agree.
    """
    found = []
    for item in _shared(tx, project_id, language):
        said = said_of(tx, item)
        if len(said) < 2 or (item.has_gold and not settled):
            continue
        alike = _likeness(tx, project, item, said)
        if settled or alike < 1.0:
            found.append(Disagreement(item, alike, tuple(said), item.has_gold))
    return sorted(found, key=lambda one: (one.likeness, one.item.position))


def _shared(tx: Reading, project_id: int, language: str | None) -> list[Item]:
    """Items of the work that two people or more handed in."""
    many = (
        select(t.assignments.c.item_id)
        .where(
            t.assignments.c.project_id == project_id,
            t.assignments.c.purpose == Purpose.ANNOTATE,
            t.assignments.c.state.in_(DONE),
        )
        .group_by(t.assignments.c.item_id)
        .having(func.count(t.assignments.c.person_id.distinct()) > 1)
    )
    ids = {row[0] for row in tx.connection.execute(many)}
    found = [item for role in _WORK for item in tx.items(project_id, role=role, language=language)]
    return [item for item in found if item.id in ids]


def _likeness(tx: Reading, project: Project, item: Item, said: list[Said]) -> float:
    sample = tx.sample(item.id)
    layers = [one.final for one in said]
    pairs = [(a, b) for number, a in enumerate(layers) for b in layers[number + 1 :]]
    return sum(likeness(a, b, project.form, sample) for a, b in pairs) / len(pairs)


def adjudicate(store: Store, project: Project, person_id: int, item_id: int) -> Assignment:
    """Give a lead an item to settle. One that they settled before is opened again, with what they had said.

    Raises:
        NotFound: no such item in the project of this person.
        Refused: they are no lead, another lead has it, or fewer than two people handed it in.
    """

    def act() -> Assignment:
        with store.writing(lock=f"assign {project.slug}") as tx:
            return _adjudicate(tx, person_id, item_id)

    return store.again(act)


def _adjudicate(tx: Writing, person_id: int, item_id: int) -> Assignment:
    person, item = tx.person(person_id), tx.item(item_id)
    if item.project_id != person.project_id:
        raise NotFound("item")
    if person.role is not Role.LEAD or not can_judge(person):
        raise Refused("A lead settles what annotators disagree on.")
    mine: Assignment | None = None
    for one in tx.assignments(item.project_id, item_id=item.id, purpose=Purpose.ADJUDICATE):
        if one.person_id == person.id:
            mine = one
        elif one.state in AT_WORK:
            raise Refused("Another lead is settling this item.")
    if mine is not None:
        return mine if mine.state in AT_WORK else tx.move(mine.id, State.OPEN, "reopened", by=person.id)
    if len(said_of(tx, item)) < 2:
        raise Refused("Fewer than two people have handed this item in.", remedy="Wait, or export what there is.")
    return tx.assign(item, person.id, Purpose.ADJUDICATE, by=person.id)


def after_adjudication(tx: Writing, assignment: Assignment, new: NewEvent) -> None:
    """What a lead hands in becomes gold, and what it settles is accepted."""
    if new.kind == "submit":
        tx.set_gold(assignment.item_id, assignment.layer, BY_HAND, by=assignment.person_id)
        _accept(tx, tx.item(assignment.item_id), by=assignment.person_id)


def _accept(tx: Writing, item: Item, *, by: int | None) -> None:
    """The annotations of a settled item are final; reviews of them are no longer needed."""
    for one in tx.assignments(item.project_id, item_id=item.id, purpose=Purpose.ANNOTATE, states=(State.SUBMITTED,)):
        for review in tx.assignments(item.project_id, subject_id=one.id, purpose=Purpose.REVIEW, states=AT_WORK):
            tx.move(review.id, State.WITHDRAWN, "withdrawn", by=by, payload={"reason": "item settled"})
        tx.move(one.id, State.ACCEPTED, "accepted", by=by, payload={"reason": "item settled"})


def settle(
    store: Store,
    project: Project,
    rule: Rule,
    *,
    language: str | None = None,
    again: bool = False,
    by: int | None = None,
) -> Settled:
    """Settle by a rule every item that two people or more handed in.

    Args:
        store: where the work is kept.
        project: the project.
        rule: which.
        language: of the items; None for all.
        again: also those that have a gold layer, but for what a lead settled by hand.
        by: which lead asks for it.

    Raises:
        Refused: `best_with_silver`, and the project has no silver layer on these items.
    """

    def act() -> Settled:
        with store.writing(lock=f"assign {project.slug}") as tx:
            return _settle(tx, project, rule, language, again, by)

    return store.again(act)


def _settle(tx: Writing, project: Project, rule: Rule, language: str | None, again: bool, by: int | None) -> Settled:
    project_id = tx.project(project.slug).id
    shared = disagreements(tx, project, project_id, language=language, settled=True)
    best = best_with_silver(tx, project, project_id, language=language) if rule == "best_with_silver" else {}
    if rule == "best_with_silver" and not best:
        where = "" if language is None else f" in {language}"
        raise Refused(
            f"Nobody's work{where} can be held against a silver layer.", remedy="Name it: silver = under [data]."
        )
    origins = gold_origins(tx, project_id)
    counts = dict.fromkeys(("settled", "left", "kept", "replaced", "by_hand"), 0)
    for one in shared:
        by_hand = one.settled and origins.get(one.item.id) == BY_HAND
        untouched = by_hand or (one.settled and not again)
        gold = None if untouched else _chosen(tx, project, rule, one, best)
        if gold is None:
            counts["kept" if one.settled else "left"] += 1
            counts["by_hand"] += by_hand
        else:
            counts["settled"] += 1
            counts["replaced"] += one.settled
            tx.set_gold(one.item.id, gold, f"settled_{rule}"[:32], by=by)
            _accept(tx, one.item, by=by)
    names = {tag: tx.person(person_id).public_id for tag, person_id in best.items()}
    return Settled(**counts, best=names)


def _chosen(tx: Reading, project: Project, rule: Rule, one: Disagreement, best: dict[str, int]) -> Layer | None:
    layers = [said.final for said in one.said]
    if rule == "majority":
        return majority(layers, project.form, tx.sample(one.item.id))
    if rule == "agreed":
        same = one.likeness == 1.0 and all(layer.skip is None for layer in layers)
        return agreed(layers) if same else None
    person_id = best.get(one.item.language or "")
    return next((plain(s.final) for s in one.said if s.person_id == person_id and s.final.skip is None), None)

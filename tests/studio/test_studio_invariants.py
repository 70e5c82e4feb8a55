"""Whatever people do, in whatever order and at once: what has to hold, holds."""

from __future__ import annotations

import random
import tempfile
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rule_rows import RULES, Team, spans, team

from veriglot.studio.adjudication import adjudicate, disagreements, settle
from veriglot.studio.assignment import apply_event, next_assignment, withdraw
from veriglot.studio.dashboard import measure_agreement, overview
from veriglot.studio.figures import RowCache
from veriglot.studio.layers import Layer
from veriglot.studio.people import change
from veriglot.studio.project import load
from veriglot.studio.rates import measure_rates
from veriglot.studio.review import validate
from veriglot.studio.store import open_store
from veriglot.studio.tables import BatchState, Conflict, ItemRole, NewEvent, Purpose, Refused, Role, State

PROJECT = (
    RULES.replace("overlap = 0", "overlap = 2").replace("reviews = 0", "reviews = 1")
    + "[validation]\nbatch_size = 3\nshare = 0.4\nthreshold = 0.9\n"
    + "[checks]\nshare = 0.3\n"
)
LAYERS = [Layer(), spans((0, 3)), spans((0, 12), (13, 18, "relation")), spans((24, 28))]
KINDS = {
    Purpose.ANNOTATE: ["save", "submit", "submit", "submit", "skip", "opened", "reopen"],
    Purpose.REVIEW: ["save", "confirm", "confirm", "correct", "return", "skip", "opened"],
    Purpose.VALIDATE: ["save", "submit", "submit", "submit", "skip"],
    Purpose.ADJUDICATE: ["save", "submit", "submit", "skip", "reopen"],
}
ACTIONS = [
    "next",
    "event",
    "event",
    "event",
    "event",
    "late",
    "again",
    "shut",
    "let_in",
    "take",
    "validate",
    "settle",
    "rule",
    "more",
    "priority",
    "figures",
    "figures",
]


class Play:
    """People who do what they are told, and the account of what was acknowledged."""

    def __init__(self, work: Team) -> None:
        self.work = work
        work.items(4, batch=True, silver=LAYERS[2])
        work.items(3, batch=True)
        self.memory = RowCache(work.store, work.id)
        work.items(3, role=ItemRole.CHECK, gold=LAYERS[1])
        self.people = [work.person() for _ in range(3)]
        self.people += [work.person(Role.REVIEWER), work.person(Role.REVIEWER), work.person(Role.LEAD)]
        self.sent: dict[str, tuple[int, int, NewEvent]] = {}

    def step(self, action: str, who: int, what: int) -> None:
        person = self.people[who % len(self.people)]
        with suppress(Conflict, Refused):
            getattr(self, f"_{action}")(person, what)

    def _next(self, person, what) -> None:
        next_assignment(self.work.store, self.work.project, person.id)

    def _mine(self, person, what):
        with self.work.store.reading() as tx:
            mine = tx.assignments(self.work.id, person_id=person.id)
        return mine[what % len(mine)] if mine else None

    def _event(self, person, what, late: int = 0) -> None:
        mine = next_assignment(self.work.store, self.work.project, person.id) if what % 3 else self._mine(person, what)
        if mine is None:
            return
        kinds = KINDS[mine.purpose]
        kind = kinds[what % len(kinds)]
        layer = Layer(skip="not_sure") if kind == "skip" else LAYERS[what % 97 % len(LAYERS)]
        comment = "Look again." if kind == "return" else None
        new = NewEvent(str(uuid.uuid4()), kind, max(0, mine.version - late), layer, comment, 1.0)
        try:
            apply_event(self.work.store, self.work.project, person.id, mine.id, new)
        except Refused:
            return
        except Conflict:
            pass
        self.sent[new.event_id] = (person.id, mine.id, new)

    def _late(self, person, what) -> None:
        self._event(person, what, late=1 + what % 3)

    def _again(self, person, what) -> None:
        mine = [one for one in list(self.sent.values()) if one[0] == person.id]
        if mine:
            person_id, assignment, new = mine[what % len(mine)]
            apply_event(self.work.store, self.work.project, person_id, assignment, new)

    def _shut(self, person, what) -> None:
        if what % 5 == 0:
            with self.work.store.writing() as tx:
                change(tx, person.id, "revoke")

    def _let_in(self, person, what) -> None:
        with self.work.store.writing() as tx:
            change(tx, person.id, "restore")

    def _take(self, person, what) -> None:
        mine = self._mine(person, what)
        if mine is not None and what % 3 == 0 and mine.purpose is not Purpose.VALIDATE:
            with self.work.store.writing(lock=f"assign {self.work.project.slug}") as tx:
                if tx.assignment(mine.id).state in {State.OPEN, State.RETURNED}:
                    withdraw(tx, mine.id, reason="test")

    def _validate(self, person, what) -> None:
        with self.work.store.reading() as tx:
            batches = tx.batches(self.work.id)
        validate(self.work.store, self.work.project, batches[what % len(batches)].id)

    def _settle(self, person, what) -> None:
        with self.work.store.reading() as tx:
            items = tx.items(self.work.id)
        adjudicate(self.work.store, self.work.project, self.people[-1].id, items[what % len(items)].id)

    def _rule(self, person, what) -> None:
        settle(self.work.store, self.work.project, "agreed" if what % 2 else "majority")

    def _more(self, person, what) -> None:
        if what % 3 == 0:
            self.work.items(1, silver=LAYERS[1], batch=bool(what % 2))

    def _priority(self, person, what) -> None:
        with self.work.store.writing() as tx:
            items = tx.items(self.work.id)
            tx.update_item(items[what % len(items)], "priority", priority=float(what % 3))

    def _figures(self, person, what) -> None:
        """Figures of what is remembered; `check` compares them with those of all that is there."""
        with self.memory.reading() as tx:
            self._made(tx)

    def _made(self, tx):
        project = self.work.project
        figures = overview(tx, project), measure_agreement(tx, project), measure_rates(tx, project)
        return *figures, disagreements(tx, project, self.work.id, settled=True), tx.steps(self.work.id)

    def check(self) -> None:
        with self.memory.reading() as remembered, self.work.store.reading() as tx:
            for of_memory, of_all in zip(self._made(remembered), self._made(tx), strict=True):
                assert of_memory == of_all, "figures from memory are others than those of all that is there"
        with self.work.store.reading() as tx:
            items = {item.id: item for item in tx.items(self.work.id)}
            rows = tx.assignments(self.work.id)
            events = list(tx.events(self.work.id))
            batches = tx.batches(self.work.id)
        _check_shares(items, rows)
        _check_judging(rows)
        _check_history(rows, events)
        known = Counter(event.event_id for event in events)
        assert all(known[event_id] == 1 for event_id in self.sent), "an acknowledged event is lost or doubled"
        for batch in batches:
            drawn = (batch.figures or {}).get("drawn", [])
            assert bool(drawn) == (batch.state is BatchState.VALIDATING)
            assert batch.round == sum(not one["passed"] for one in (batch.figures or {}).get("rounds", []))


def _check_shares(items, rows) -> None:
    annotated = [row for row in rows if row.purpose is Purpose.ANNOTATE]
    live = Counter(row.item_id for row in annotated if row.state is not State.WITHDRAWN)
    each = Counter((row.item_id, row.person_id) for row in annotated if row.state is not State.WITHDRAWN)
    for item_id, count in live.items():
        assert count <= (1 if items[item_id].role is ItemRole.NORMAL else 3)
    assert all(count == 1 for count in each.values())
    for person_id in {row.person_id for row in rows}:
        open_ = [row for row in rows if row.person_id == person_id and row.state is State.OPEN]
        fresh = [row for row in open_ if row.submitted_at is None and row.purpose is not Purpose.ADJUDICATE]
        assert len(fresh) <= 1, "somebody was given something new before they were through"


def _check_judging(rows) -> None:
    by_id = {row.id: row for row in rows}
    open_ = Counter()
    for row in rows:
        if row.purpose not in {Purpose.REVIEW, Purpose.VALIDATE}:
            assert row.subject_id is None
            continue
        subject = by_id[row.subject_id]
        assert subject.person_id != row.person_id
        assert subject.item_id == row.item_id
        assert row.state is not State.RETURNED
        if row.state is State.OPEN:
            open_[row.purpose, subject.id] += 1
            assert subject.state in {State.SUBMITTED, State.ACCEPTED}
    assert all(count == 1 for count in open_.values())


def _check_history(rows, events) -> None:
    """Every row is what its events say: nothing was changed without one."""
    for row in rows:
        mine = [event for event in events if event.assignment_id == row.id]
        kept = [event for event in mine if event.kind != "conflict"]
        assert mine[0].kind == "assigned"
        assert (kept[-1].state, kept[-1].version) == (row.state, row.version)
        versions = [event.version for event in kept]
        assert all(0 <= after - before <= 1 for before, after in pairwise(versions))
        layers = [event.layer for event in kept if event.layer is not None and event.kind != "opened"]
        assert layers[-1] == row.layer


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 5), st.integers(0, 200)), min_size=20, max_size=90))
def test_whatever_people_do_in_whatever_order(steps):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "project.toml"
        path.write_text(PROJECT)
        store = open_store(str(Path(folder) / "studio.sqlite"))
        try:
            play = Play(team(store, load(path)))
            for number, (action, who, what) in enumerate(steps, 1):
                play.step(action, who, what)
                if number % 20 == 0:
                    play.check()
            play.check()
        finally:
            store.close()


@pytest.mark.parametrize("seed", range(2))
def test_whatever_people_do_at_once(store, make_project, seed):
    play = Play(team(store, make_project(PROJECT)))

    def live(number: int) -> None:
        chance = random.Random(f"{seed} {number}")
        for _ in range(40):
            action = chance.choice(ACTIONS)
            if action not in {"figures", "more"} or number == 0:  # one process remembers, one imports
                play.step(action, number, chance.randrange(200))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(live, range(6)))
    play.check()

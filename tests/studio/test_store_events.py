"""Events: known ones answered again, late ones kept, nothing overwritten unseen; in threads and processes too."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from studio_rows import event, marked, small

from veriglot.studio.assignment import append
from veriglot.studio.layers import Layer
from veriglot.studio.tables import Conflict, NewEvent, NotFound, Purpose, Refused, State, now

if TYPE_CHECKING:
    from veriglot.studio.store import Store

HERE = Path(__file__).parent


@pytest.mark.usefixtures("an_hour_passes")
def test_a_save_is_there(store: Store) -> None:
    s = small(store)
    done = append(store, s.assignment.id, s.person.id, event(layer=marked(), seconds=4.5))
    assert (done.version, done.state, done.repeated) == (1, State.OPEN, False)
    with store.reading() as tx:
        now_ = tx.assignment(s.assignment.id)
        kept = list(tx.events(s.project_id, assignment_id=s.assignment.id))
    assert (now_.layer, now_.seconds, now_.version) == (marked(), 4.5, 1)
    assert [(e.kind, e.version, e.layer) for e in kept] == [("assigned", 0, Layer()), ("save", 1, marked())]


@pytest.mark.usefixtures("an_hour_passes")
def test_the_same_event_again_changes_nothing(store: Store) -> None:
    s = small(store)
    one = event("submit", layer=marked(), seconds=2)
    first = append(store, s.assignment.id, s.person.id, one)
    again = append(store, s.assignment.id, s.person.id, one)
    assert (again.version, again.state) == (first.version, first.state)
    assert again.repeated
    with store.reading() as tx:
        assert tx.assignment(s.assignment.id).seconds == 2
        assert len(list(tx.events(s.project_id, kind=["submit"]))) == 1


def test_seconds_of_work_are_at_most_those_that_passed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six events of a day each in a moment state 518,400 s; an hour later, 3,600 s are there for all of them."""
    s = small(store)
    send = partial(append, store, s.assignment.id, s.person.id)
    began = now()
    for version in range(5):
        send(event(base=version, layer=marked(), seconds=86_400))
    with store.reading() as tx:
        assert tx.assignment(s.assignment.id).seconds <= (now() - began).total_seconds() + 1
    monkeypatch.setattr("veriglot.studio.store.now", lambda: began + timedelta(hours=1))
    send(event("opened", seconds=600))  # what a page sends at once that was offline counts in full
    send(event(base=5, layer=marked(), seconds=2400))
    send(event("submit", base=6, layer=marked(), seconds=86_400))
    with store.reading() as tx:
        total = tx.assignment(s.assignment.id).seconds
        kept = list(tx.events(s.project_id, assignment_id=s.assignment.id))
    assert total == pytest.approx(3600, abs=1)
    assert sum(e.seconds for e in kept) == pytest.approx(total)
    assert [e.seconds for e in kept[-3:-1]] == [600, 2400]
    assert [(e.payload or {}).get("stated_seconds") for e in kept] == [None, *[86_400] * 5, None, None, 86_400]


def test_another_event_under_a_known_id_is_refused_not_swallowed(store: Store) -> None:
    s = small(store)
    one = event(layer=marked())
    append(store, s.assignment.id, s.person.id, one)
    with pytest.raises(Refused, match="another event"):
        append(store, s.assignment.id, s.person.id, NewEvent(one.event_id, "save", 1, marked(4, 7)))


def test_a_late_event_is_refused_and_kept(store: Store) -> None:
    s = small(store)
    append(store, s.assignment.id, s.person.id, event(layer=marked(0, 3)))
    late = event(layer=marked(4, 7, "relation"))
    for _ in range(2):  # the second time from the record
        with pytest.raises(Conflict) as refused:
            append(store, s.assignment.id, s.person.id, late)
        assert (refused.value.version, refused.value.layer) == (1, marked(0, 3))
        assert refused.value.reason == "version"
    with store.reading() as tx:
        (kept,) = tx.events(s.project_id, kind=["conflict"])
        assert kept.layer == marked(4, 7, "relation")
        assert kept.payload == {"kind": "save", "reason": "version"}
        assert tx.assignment(s.assignment.id).layer == marked(0, 3)


def test_a_save_after_handing_in_is_kept_as_a_conflict(store: Store) -> None:
    s = small(store)
    append(store, s.assignment.id, s.person.id, event("submit", layer=marked()))
    with pytest.raises(Conflict) as refused:
        append(store, s.assignment.id, s.person.id, event("save", 1, layer=marked(4, 7)))
    assert (refused.value.reason, refused.value.state) == ("state", State.SUBMITTED)
    assert append(store, s.assignment.id, s.person.id, event("reopen", 1)).state is State.OPEN


def test_others_work_is_not_there_for_one(store: Store) -> None:
    s = small(store)
    with pytest.raises(NotFound):
        append(store, s.assignment.id, s.reviewer.id, event())
    with pytest.raises(NotFound):
        append(store, 999, s.person.id, event())


def test_who_was_shut_out_changes_nothing(store: Store) -> None:
    s = small(store)
    with store.writing() as tx:
        tx.update_person(s.person.id, "revoked", revoked_at=now())
    with pytest.raises(Refused, match="shut out"):
        append(store, s.assignment.id, s.person.id, event())


@pytest.mark.parametrize(
    "bad",
    [
        event("confirm"),
        event("explode"),
        event("skip"),
        NewEvent("server-12345678", "save", 0),
    ],
)
def test_nonsense_is_refused_and_leaves_no_trace(store: Store, bad: NewEvent) -> None:
    s = small(store)
    with pytest.raises(Refused):
        append(store, s.assignment.id, s.person.id, bad)
    with store.reading() as tx:
        assert tx.assignment(s.assignment.id) == s.assignment
        assert [e.kind for e in tx.events(s.project_id, assignment_id=s.assignment.id)] == ["assigned"]


@pytest.mark.parametrize(
    "more",
    [
        '"event_id": "short"',
        f'"event_id": "{"x" * 65}"',
        '"event_id": "no spaces"',
        '"event_id": "with-a-line-feed\\n"',
        '"kind": "explode"',
        '"seconds": -1',
        '"seconds": 86401',
        '"seconds": NaN',
        '"base_version": -1',
        '"at": "2020-01-01T00:00:00"',
        '"at": "9999-12-31T23:59:59-12:00"',
        '"more": 1',
    ],
)
def test_events_that_say_nothing_sensible_are_not_read(more: str) -> None:
    sound = '"event_id": "12345678", "kind": "save", "base_version": 0'
    assert msgspec.json.decode(f"{{{sound}}}", type=NewEvent).seconds == 0
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(f"{{{sound}, {more}}}", type=NewEvent)


def test_effects_belong_to_the_event_or_undo_it(store: Store) -> None:
    s = small(store)
    append(store, s.assignment.id, s.person.id, event("submit", layer=marked()))
    with store.writing() as tx:
        item = tx.item(s.assignment.item_id)
        review = tx.assign(item, s.reviewer.id, Purpose.REVIEW, subject_id=s.assignment.id, layer=marked())

    def send_back(tx, done) -> None:
        tx.move(done.subject_id, State.RETURNED, by=done.person_id, message="Look again.")

    def fail(tx, done) -> None:
        send_back(tx, done)
        raise Refused("no")

    with pytest.raises(Refused):
        append(store, review.id, s.reviewer.id, event("return"), after=fail)
    with store.reading() as tx:
        assert tx.assignment(s.assignment.id).state is State.SUBMITTED
        assert tx.assignment(review.id).state is State.OPEN
    append(store, review.id, s.reviewer.id, event("return", comment="Look again."), after=send_back)
    with store.reading() as tx:
        returned = tx.assignment(s.assignment.id)
    assert (returned.state, returned.version, returned.message) == (State.RETURNED, 2, "Look again.")


@pytest.mark.parametrize("statement", ["UPDATE events SET kind = 'x'", "DELETE FROM events"])
def test_events_are_only_ever_added(store: Store, statement: str) -> None:
    small(store)
    with pytest.raises(DBAPIError, match="only ever added"), store.writing() as tx:
        tx.connection.execute(text(statement))


@pytest.mark.usefixtures("an_hour_passes")
def test_threads_that_save_at_once_lose_and_double_nothing(store: Store) -> None:
    """Eight threads, 15 saves each on one assignment: each is either the next version or a kept conflict."""
    s = small(store)

    def work(thread: int) -> list[int]:
        won = []
        for turn in range(15):
            with store.reading() as tx:
                base = tx.assignment(s.assignment.id).version
            new = event(base=base, layer=marked(comment=f"{thread}:{turn}"), seconds=1)
            for _ in range(2):  # each is sent twice
                try:
                    won.append(append(store, s.assignment.id, s.person.id, new).version)
                except Conflict:
                    won.append(0)
        return won

    with ThreadPoolExecutor(8) as pool:
        answers = [version for won in pool.map(work, range(8)) for version in won]
    _whole(store, s.assignment.id, s.project_id, answers, sent=8 * 15)


def _whole(store: Store, assignment_id: int, project_id: int, answers: list[int], *, sent: int) -> None:
    with store.reading() as tx:
        end = tx.assignment(assignment_id)
        saves = list(tx.events(project_id, kind=["save"]))
        conflicts = list(tx.events(project_id, kind=["conflict"]))
    assert [e.version for e in saves] == list(range(1, end.version + 1))
    assert all(e.base_version == (e.version or 0) - 1 for e in saves)
    assert len(saves) + len(conflicts) == sent
    assert end.layer == saves[-1].layer
    assert end.seconds == len(saves)
    acknowledged = [version for version in answers if version]
    assert sorted(acknowledged) == sorted(2 * list(range(1, end.version + 1)))  # each told twice, the same


def test_one_event_sent_by_many_threads_is_done_once(store: Store) -> None:
    s = small(store)
    new = event(layer=marked())
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda _: append(store, s.assignment.id, s.person.id, new), range(16)))
    assert {one.version for one in done} == {1}
    assert sorted(one.repeated for one in done) == [False] + 15 * [True]


def test_an_item_is_given_once_however_many_ask(store: Store) -> None:
    s = small(store, items=6)

    def take(_: int) -> int | None:
        with store.writing(lock="queue") as tx:
            given = {one.item_id for one in tx.assignments(s.project_id)}
            free = [item for item in tx.items(s.project_id) if item.id not in given]
            return tx.assign(free[0], s.person.id, Purpose.ANNOTATE).item_id if free else None

    with ThreadPoolExecutor(8) as pool:
        taken = [item for item in pool.map(take, range(16)) if item is not None]
    assert len(taken) == len(set(taken)) == 5


def test_processes_that_save_at_once_lose_and_double_nothing(store: Store, database: str) -> None:
    s = small(store)
    command = [sys.executable, str(HERE / "saving_process.py"), database, str(s.assignment.id), str(s.person.id), "12"]
    running = [subprocess.Popen([*command, str(n)], stdout=subprocess.PIPE, text=True) for n in range(4)]
    said = [process.communicate(timeout=120)[0] for process in running]
    assert [process.returncode for process in running] == [0] * 4
    _whole(store, s.assignment.id, s.project_id, [int(w) for one in said for w in one.split()], sent=4 * 12)


def test_what_was_acknowledged_survives_a_kill(store: Store, database: str) -> None:
    """A process that is killed while it saves: every version that it told us of is there."""
    s = small(store)
    command = [sys.executable, str(HERE / "saving_process.py"), database, str(s.assignment.id), str(s.person.id)]
    for round_ in range(3):
        with subprocess.Popen([*command, "100000", str(round_)], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            told = [int(process.stdout.readline()) for _ in range(20)]
            process.kill()
            rest = process.stdout.read().split("\n")[:-1]  # a line that was cut off was not told
        with store.reading() as tx:
            versions = [e.version for e in tx.events(s.project_id, kind=["save"])]
        assert set(told + [int(line) for line in rest]) - {0} <= set(versions)
        assert versions == list(range(1, len(versions) + 1))

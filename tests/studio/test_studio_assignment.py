"""Who gets what."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from rule_rows import EMPTY, RULES, spans, team
from sqlalchemy import update

from veriglot.errors import InputError
from veriglot.studio import tables as t
from veriglot.studio.assignment import assign_item, withdraw
from veriglot.studio.dashboard import overview
from veriglot.studio.people import change
from veriglot.studio.review import ready_batches
from veriglot.studio.tables import ItemRole, Purpose, Role, State, now


def _given(team_):
    with team_.store.reading() as tx:
        rows = tx.assignments(team_.id, purpose=Purpose.ANNOTATE)
        roles = {item.id: item.role for item in tx.items(team_.id)}
    return [(row.person_id, row.item_id, roles[row.item_id]) for row in rows if row.state is not State.WITHDRAWN]


def test_shared_items_go_to_everybody_and_own_ones_to_one(store, make_project):
    project = make_project(RULES.replace("overlap = 0", "overlap = 3\nper_person = 4"))
    work = team(store, project)
    work.items(12)
    work.items(9, "zh")
    first, second = work.person(languages=["de"]), work.person(languages=["de", "zh"])
    done = [[row.item_id for row in work.do(person)] for person in (first, second)]
    assert len(done[0]) == 3 + 4
    assert len(done[1]) == 3 + 3 + 4
    shared = set(done[0]) & set(done[1])
    assert shared == set(done[0][:3])
    counts = Counter((item, role) for _, item, role in _given(work))
    assert all(count == 1 for (_, role), count in counts.items() if role is ItemRole.NORMAL)
    with store.reading() as tx:
        assert {item.language for item in tx.items(work.id, id=done[0])} == {"de"}
        assert len(tx.items(work.id, role=ItemRole.OVERLAP)) == 6


def test_what_was_begun_comes_before_anything_new(store, make_project):
    work = team(store, make_project(RULES))
    work.items(3)
    person = work.person()
    given = work.next(person)
    assert work.next(person) == given
    work.act(given, "save", spans((0, 3)))
    assert work.next(person).layer == spans((0, 3))


def test_nobody_gets_work_before_they_join_or_after_they_were_shut_out(store, make_project):
    work = team(store, make_project(RULES))
    work.items(3)
    invited, gone = work.person(joined=False), work.person()
    assert work.next(invited) is None
    begun = work.next(gone)
    with store.writing() as tx:
        change(tx, gone.id, "revoke")
    assert work.next(gone) is None
    other = work.person()
    assert next(iter(work.do(other))).item_id == begun.item_id
    assert work.state(begun) is State.WITHDRAWN


def test_items_of_somebody_whose_link_has_ended_go_to_others(store, make_project):
    work = team(store, make_project(RULES))
    work.items(1)
    gone, other = work.person(), work.person()
    begun = work.next(gone)
    assert work.next(other) is None
    with store.writing() as tx:
        tx.update_person(gone.id, "test", key_expires_at=now() - timedelta(seconds=1))
    assert work.next(other).item_id == begun.item_id


def test_somebody_who_is_let_in_again_finds_what_they_had(store, make_project):
    work = team(store, make_project(RULES))
    work.items(1)
    person, other = work.person(), work.person()
    begun = work.next(person)
    work.act(begun, "save", spans((0, 3)))
    with store.writing() as tx:
        change(tx, person.id, "revoke")
    work.next(other)
    with store.writing() as tx:
        change(tx, person.id, "restore")
    assert work.next(person) is None  # the other one has it now
    with store.writing() as tx:
        withdraw(tx, tx.assignments(work.id, person_id=other.id)[0].id, reason="test")
    again = work.next(person)
    assert (again.id, again.state, again.layer) == (begun.id, State.OPEN, spans((0, 3)))


def test_an_item_that_was_taken_from_somebody_comes_to_them_last(store, make_project):
    work = team(store, make_project(RULES))
    ids = work.items(3)
    person = work.person()
    begun = work.next(person)
    with store.writing() as tx:
        withdraw(tx, begun.id, reason="test")
    assert [row.item_id for row in work.do(person)] == [ids[1], ids[2], ids[0]]


def test_each_item_goes_to_as_many_as_the_project_asks_and_to_more_where_they_differ(store, make_project):
    text = RULES.replace("overlap = 0", "overlap = 0\nper_item = 2\nper_disputed_item = 3")
    work = team(store, make_project(text))
    same, apart = work.items(2)
    people = [work.person() for _ in range(4)]
    layers = {same: [spans((0, 3))] * 4, apart: [spans((0, 3)), spans((0, 3, "relation")), EMPTY, EMPTY]}
    done = []
    for number, person in enumerate(people):
        for given in iter(lambda person=person: work.next(person), None):
            work.act(given, "submit", layers[given.item_id][number])
            done.append((number, given.item_id))
    assert sorted(done) == [(0, same), (0, apart), (1, same), (1, apart), (2, apart)]  # nothing is left for a fourth
    with store.reading() as tx:
        assert [item.wanted for item in tx.items(work.id)] == [None, 3]
        assert [event.payload for event in tx.events(work.id, kind="disputed")] == [{"wanted": 3}]


def test_a_second_is_asked_before_an_item_counts_as_done(store, make_project):
    work = team(store, make_project(RULES.replace("overlap = 0", "overlap = 0\nper_item = 2")))
    work.items(1)
    work.do(work.person(), spans((0, 3)))
    with store.reading() as tx:
        (line,) = overview(tx, work.project).languages
    assert (line.wanted, line.made, line.single) == (2, 1, 0)  # not gold from a single annotation


def test_more_where_people_differ_is_more_than_each_item_gets(make_project):
    with pytest.raises(InputError, match=r"work\.per_disputed_item"):
        make_project(RULES.replace("overlap = 0", "per_item = 2\nper_disputed_item = 2"))


def test_a_batch_waits_for_all_who_are_asked(store, make_project):
    work = team(store, make_project(RULES.replace("overlap = 0", "per_item = 2\noverlap = 0") + "[validation]\n"))
    work.items(2, batch=True)
    work.do(work.person())
    with store.reading() as tx:
        assert ready_batches(tx, work.project, work.id) == set()
    work.do(work.person())
    with store.reading() as tx:
        assert len(ready_batches(tx, work.project, work.id)) == 1


def test_a_higher_priority_comes_first_also_among_what_somebody_holds(store, make_project):
    work = team(store, make_project(RULES.replace("overlap = 0", "overlap = 2")))
    ids = work.items(5)
    person = work.person()
    with store.writing() as tx:
        tx.update_item(tx.item(ids[4]), "priority", priority=1.0)
        tx.update_item(tx.item(ids[0]), "priority", priority=-1.0)
        held = [assign_item(tx, work.project, tx.item(id_), person).item_id for id_ in (ids[3], ids[4])]
    assert held == [ids[3], ids[4]]
    assert [row.item_id for row in work.do(person)] == [ids[4], ids[3], ids[1], ids[2], ids[0]]


def _age(store, hours, *ids):
    """Let so many hours pass since assignments changed."""
    with store.writing() as tx:
        at = now() - timedelta(hours=hours)
        tx.connection.execute(update(t.assignments).where(t.assignments.c.id.in_(ids)).values(changed_at=at))


def test_what_nobody_saves_for_so_long_goes_to_others(store, make_project):
    work = team(store, make_project(RULES.replace("overlap = 0", "overlap = 0\nrelease_hours = 24")))
    work.items(2)
    slow, busy, other = work.person(), work.person(), work.person()
    held, first = work.next(slow), work.next(busy)
    work.act(held, "save", spans((0, 3)))
    _age(store, 23, held.id, first.id)
    assert work.next(other) is None
    _age(store, 25, held.id, first.id)
    work.act(first, "save", spans((0, 3)))  # who saves keeps what they have
    given = work.next(other)
    assert given.item_id == held.item_id
    assert given.layer == EMPTY
    assert (work.state(held), work.state(first)) == (State.WITHDRAWN, State.OPEN)
    with store.writing() as tx:
        withdraw(tx, given.id, reason="test")
    assert (work.next(slow).id, work.next(slow).layer) == (held.id, spans((0, 3)))  # nothing was lost


def test_who_saves_something_keeps_everything_that_they_hold(store, make_project):
    work = team(store, make_project(RULES.replace("overlap = 0", "overlap = 0\nrelease_hours = 24")))
    ids = work.items(3)
    person, other = work.person(), work.person()
    with store.writing() as tx:
        held = [assign_item(tx, work.project, tx.item(id_), person) for id_ in ids]
    _age(store, 25, *(row.id for row in held))
    work.act(held[0])
    assert work.next(other) is None


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_checks_are_strewn_in_at_their_share(store, make_project, share):
    project = make_project(RULES + f"[checks]\nshare = {share}\n")
    work = team(store, project)
    work.items(80)
    checks = set(work.items(60, role=ItemRole.CHECK, gold=spans((0, 3))))
    people = [work.person() for _ in range(4)]  # two alone have the same order once in a hundred runs
    orders = [[row.item_id in checks for row in work.do(person, most=20)] for person in people]
    for order in orders:
        assert abs(sum(order) - 20 * share) <= 1
    assert len({tuple(order) for order in orders}) > 1  # nobody can tell another which ones they are
    with store.reading() as tx:
        assert all(row.purpose is Purpose.ANNOTATE for row in tx.assignments(work.id))


def test_checks_are_drawn_from_data_with_known_answers(store, make_project):
    work = team(store, make_project(RULES + "[checks]\nshare = 0.2\n"))
    work.items(20, gold=lambda number: spans((0, 3)) if number < 10 else None)
    work.do(work.person(), most=1)
    with store.reading() as tx:
        drawn = tx.items(work.id, role=ItemRole.CHECK)
    assert len(drawn) == 4
    assert all(item.has_gold for item in drawn)


def test_reviewers_and_leads_annotate_nothing(store, make_project):
    work = team(store, make_project(RULES))
    work.items(2)
    assert work.next(work.person(Role.REVIEWER)) is None
    assert work.next(work.person(Role.LEAD)) is None


def test_no_item_is_handed_out_twice_when_many_ask_at_once(store, make_project):
    project = make_project(RULES.replace("overlap = 0", "overlap = 2"))
    work = team(store, project)
    work.items(42)
    people = [work.person() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda person: [row.item_id for row in work.do(person)], people))
    given = _given(work)
    own = [item for _, item, role in given if role is ItemRole.NORMAL]
    assert len(own) == len(set(own)) == 40
    assert Counter(item for _, item, role in given if role is ItemRole.OVERLAP) == dict.fromkeys(done[0][:2], 8)


def test_one_person_in_two_tabs_gets_one_item(store, make_project):
    work = team(store, make_project(RULES))
    work.items(10)
    person = work.person()
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: work.next(person), range(6)))
    assert len({row.id for row in found}) == 1

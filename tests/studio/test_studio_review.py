"""Reviews, batches, settling."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from rule_rows import RULES, spans, team

from veriglot.studio.adjudication import adjudicate, disagreements, settle, submissions_of
from veriglot.studio.assignment import withdraw
from veriglot.studio.dashboard import overview
from veriglot.studio.layers import Layer, LayerSpan
from veriglot.studio.people import change
from veriglot.studio.review import after_exclusion, count_verdicts, final_layer, ready_batches, stuck_batches, validate
from veriglot.studio.tables import BatchState, Conflict, ItemRole, Purpose, Refused, Role, State

REVIEWED = RULES.replace("reviews = 0", "reviews = 1")
BATCHES = "\n[validation]\nbatch_size = 10\nshare = 0.3\nthreshold = 0.95\n"
MINE, THEIRS = spans((0, 3)), spans((0, 12))


def test_a_review_confirms_corrects_or_sends_back(store, make_project):
    work = team(store, make_project(REVIEWED))
    work.items(3)
    person, reviewer = work.person(), work.person(Role.REVIEWER)
    confirmed, corrected, sent_back = work.do(person, MINE)
    one = work.next(reviewer)
    assert (one.purpose, one.subject_id, one.layer) == (Purpose.REVIEW, confirmed.id, MINE)
    work.act(one, "save", THEIRS)
    work.act(one, "confirm", None)
    two = work.next(reviewer)
    work.act(two, "correct", THEIRS)
    three = work.next(reviewer)
    with pytest.raises(Refused, match="reason"):
        work.act(three, "return", None, comment="  ")
    work.act(three, "return", None, comment="The place is missing.")
    assert [work.state(row) for row in (confirmed, corrected, sent_back)] == [
        State.ACCEPTED, State.ACCEPTED, State.RETURNED,
    ]  # fmt: skip
    with store.reading() as tx:
        finals = [final_layer(tx, tx.assignment(row.id)) for row in (confirmed, corrected)]
        assert finals == [MINE, THEIRS]
        assert tx.assignment(corrected.id).layer == MINE  # what the annotator said stays theirs
        assert count_verdicts(tx, work.id) == {(person.id, kind): 1 for kind in ("confirm", "correct", "return")}
    again = work.next(person)
    assert (again.id, again.state, again.message, again.layer) == (
        sent_back.id, State.RETURNED, "The place is missing.", MINE,
    )  # fmt: skip
    work.act(again, "submit", THEIRS)
    four = work.next(reviewer)
    assert (four.subject_id, four.layer, four.round) == (sent_back.id, THEIRS, 1)
    work.act(four, "confirm", None)
    assert work.state(sent_back) is State.ACCEPTED
    assert work.next(reviewer) is None


def test_two_reviewers_look_one_after_the_other(store, make_project):
    work = team(store, make_project(RULES.replace("reviews = 0", "reviews = 2")))
    work.items(3)
    person, first = work.person(), work.person(Role.REVIEWER)
    corrected, undone, sent_back = work.do(person, MINE)
    with store.reading() as tx:
        assert any("Two people review" in note for note in overview(tx, work.project).notes)
    second = work.person(Role.REVIEWER)
    for layer in (THEIRS, THEIRS):
        work.act(work.next(first), "correct", layer)
    work.act(work.next(first), "confirm", None)
    assert work.next(first) is None  # nobody passes the same work twice
    assert {work.state(one) for one in (corrected, undone, sent_back)} == {State.SUBMITTED}
    with pytest.raises(Refused, match="looking"):
        work.act(corrected, "reopen", None)
    one = work.next(second)
    assert (one.subject_id, one.layer) == (corrected.id, THEIRS)  # as the first reviewer left it
    work.act(one, "save", spans((4, 12)))
    work.act(one, "confirm", None)
    work.act(work.next(second), "correct", MINE)  # the annotator was right after all
    work.act(work.next(second), "return", None, comment="A mark is missing.")
    assert [work.state(one) for one in (corrected, undone, sent_back)] == [
        State.ACCEPTED, State.ACCEPTED, State.RETURNED,
    ]  # fmt: skip
    with store.reading() as tx:
        finals = [final_layer(tx, tx.assignment(one.id)) for one in (corrected, undone)]
        assert not [note for note in overview(tx, work.project).notes if "review" in note]
        assert count_verdicts(tx, work.id) == {
            (person.id, "correct"): 1, (person.id, "confirm"): 1, (person.id, "return"): 1,
            (first.id, "confirm"): 1, (first.id, "correct"): 1, (first.id, "return"): 1,
        }  # fmt: skip
    assert finals == [THEIRS, MINE]
    work.act(work.next(person), "submit", THEIRS)
    for reviewer in (second, first):  # both look again at what was sent back
        assert work.state(sent_back) is State.SUBMITTED
        work.act(work.next(reviewer), "confirm", None)
    assert work.state(sent_back) is State.ACCEPTED
    with store.reading() as tx:
        found = count_verdicts(tx, work.id)
    assert (found[person.id, "confirm"], found[second.id, "confirm"]) == (2, 1)


def test_annotators_are_judged_by_the_layer_that_counts(store, make_project):
    """Of two reviewers the second judges the first: what they undo was never the annotator's mistake."""
    work = team(store, make_project(RULES.replace("reviews = 0", "reviews = 2")))
    work.items(2)
    person, first, second = work.person(), work.person(Role.REVIEWER), work.person(Role.REVIEWER)
    work.do(person, MINE)
    for _ in range(2):
        work.act(work.next(first), "correct", THEIRS)
    with store.reading() as tx:
        assert count_verdicts(tx, work.id) == {}  # nothing is through yet
    drawn_anew = Layer(spans=(LayerSpan("s7", 0, 3, "entity", note="as it was"),), comment="The annotator was right.")
    work.act(work.next(second), "correct", drawn_anew)
    with store.reading() as tx:
        assert count_verdicts(tx, work.id) == {(person.id, "confirm"): 1, (first.id, "correct"): 1}
    work.act(work.next(second), "confirm", None)
    with store.reading() as tx:
        lines = {line.id: line for line in overview(tx, work.project).people}
    annotator, reviewer = lines[person.public_id], lines[first.public_id]
    assert (annotator.confirmed, annotator.corrected, annotator.sent_back) == (1, 1, 0)
    assert (reviewer.confirmed, reviewer.corrected, reviewer.sent_back) == (1, 1, 0)


def test_work_that_is_looked_at_is_not_opened_again(store, make_project):
    work = team(store, make_project(REVIEWED))
    work.items(1)
    person, reviewer = work.person(), work.person(Role.REVIEWER)
    (done,) = work.do(person, MINE)
    work.act(done, "reopen", None)
    work.act(done, "submit", MINE)
    review = work.next(reviewer)
    with pytest.raises(Refused, match="looking"):
        work.act(done, "reopen", None)
    work.act(review, "confirm", None)
    with pytest.raises(Conflict):
        work.act(done, "reopen", None)


def test_a_review_that_is_left_out_goes_to_another(store, make_project):
    work = team(store, make_project(REVIEWED))
    work.items(1)
    (done,) = work.do(work.person(), MINE)
    first, second = work.person(Role.REVIEWER), work.person(Role.REVIEWER)
    work.act(work.next(first), "skip", Layer(skip="not_sure"))
    assert work.next(first) is None
    assert work.next(second).subject_id == done.id


def test_two_reviewers_never_get_one_annotation(store, make_project):
    work = team(store, make_project(REVIEWED))
    work.items(12)
    work.do(work.person(), MINE)
    reviewers = [work.person(Role.REVIEWER) for _ in range(6)]

    def review(person):
        found = []
        while (row := work.next(person)) is not None:
            work.act(row, "confirm", None)
            found.append(row.subject_id)
        return found

    with ThreadPoolExecutor(6) as pool:
        subjects = [one for found in pool.map(review, reviewers) for one in found]
    assert len(subjects) == len(set(subjects)) == 12


def test_nobody_reviews_themselves(store, make_project):
    work = team(store, make_project(REVIEWED))
    work.items(1)
    person = work.person()
    work.do(person, MINE)
    with store.writing() as tx:
        tx.update_person(person.id, "test", role=Role.REVIEWER)
    assert work.next(person) is None


def test_reviewers_get_the_languages_that_they_work_in(store, make_project):
    work = team(store, make_project(REVIEWED))
    work.items(1, "de")
    work.items(1, "zh")
    work.do(work.person(), MINE)
    reviewer = work.person(Role.REVIEWER, ["zh"])
    review = work.next(reviewer)
    with store.reading() as tx:
        assert tx.item(review.item_id).language == "zh"
    work.act(review, "confirm", None)
    assert work.next(reviewer) is None


def test_hidden_checks_are_accepted_beside_other_work(store, make_project):
    work = team(store, make_project(REVIEWED + "[checks]\nshare = 0.5\n"))
    work.items(4)
    work.items(4, role=ItemRole.CHECK, gold=MINE)
    person, reviewer = work.person(), work.person(Role.REVIEWER)
    done = work.do(person, MINE)
    seen = []
    while (row := work.next(reviewer)) is not None:
        seen.append(row.item_id)
        work.act(row, "confirm", None)
    with store.reading() as tx:
        assert {tx.item(id_).role for id_ in seen} == {ItemRole.NORMAL}
        checks = {item.id for item in tx.items(work.id, role=ItemRole.CHECK)}
    last = max(number for number, row in enumerate(done) if row.item_id not in checks)
    assert {work.state(row) for row in done[: last + 1]} == {State.ACCEPTED}


def test_a_batch_above_the_threshold_is_accepted(store, make_project):
    work = team(store, make_project(RULES + BATCHES))
    work.items(10, batch=True)
    person, reviewer = work.person(), work.person(Role.REVIEWER)
    work.do(person, MINE, most=9)
    assert work.next(reviewer) is None  # not before all of it is through
    work.do(person, MINE)
    checked = []
    while (row := work.next(reviewer)) is not None:
        assert (row.purpose, row.layer) == (Purpose.VALIDATE, MINE)
        work.act(row, "submit", MINE)
        checked.append(row)
    assert len(checked) == 3
    with store.reading() as tx:
        (batch,) = tx.batches(work.id)
    assert batch.state is BatchState.ACCEPTED
    (account,) = batch.figures["rounds"]
    assert (account["precision"], account["recall"], account["passed"], account["checked"]) == (1.0, 1.0, True, 3)
    assert work.next(person) is None
    with pytest.raises(Refused):
        work.act(work.assignment(checked[0].subject_id), "reopen", None)


def test_a_batch_below_the_threshold_goes_back_whole_with_its_history(store, make_project):
    work = team(store, make_project(RULES + BATCHES))
    ids = work.items(10, batch=True)
    person, reviewer = work.person(), work.person(Role.REVIEWER)
    first = work.do(person, MINE)
    while (row := work.next(reviewer)) is not None:
        work.act(row, "submit", THEIRS)
    with store.reading() as tx:
        (batch,) = tx.batches(work.id)
        assert (batch.state, batch.round) == (BatchState.RETURNED, 1)
        (account,) = batch.figures["rounds"]
        assert account["precision"] == 1.0
        assert account["recall"] == pytest.approx(3 / 11)
    assert {work.state(row) for row in first} == {State.WITHDRAWN}
    assert all(work.assignment(row.id).layer == MINE for row in first)
    second = work.do(person, THEIRS)
    assert sorted(row.item_id for row in second) == sorted(ids)
    assert all(row.round == 1 and row.layer == Layer() for row in second)
    while (row := work.next(reviewer)) is not None:
        work.act(row, "submit", row.layer)
    with store.reading() as tx:
        (batch,) = tx.batches(work.id)
        assert batch.state is BatchState.ACCEPTED
        assert [one["passed"] for one in batch.figures["rounds"]] == [False, True]


def test_who_reviewed_a_thing_does_not_validate_it(store, make_project):
    work = team(store, make_project(REVIEWED + BATCHES))
    work.items(2, batch=True)
    reviewer, lead = work.person(Role.REVIEWER), work.person(Role.LEAD)
    work.do(work.person(), MINE)
    while (row := work.next(reviewer)) is not None:
        assert row.purpose is Purpose.REVIEW
        work.act(row, "confirm", None)
    with store.writing() as tx:
        change(tx, lead.id, "revoke")
    assert work.next(reviewer) is None  # the validation has begun, and nobody is there for it
    with store.reading() as tx:
        assert overview(tx, work.project).notes == ["Batch 1 waits for somebody who had no hand in it to check it."]
    other = work.person(Role.LEAD)
    assert work.next(other).purpose is Purpose.VALIDATE
    with store.reading() as tx:
        assert overview(tx, work.project).notes == []


def test_the_last_two_checks_of_a_batch_at_once_decide_it_once(store, make_project):
    work = team(store, make_project(RULES + BATCHES.replace("0.3", "1.0")))
    work.items(6, batch=True)
    reviewers = [work.person(Role.REVIEWER) for _ in range(6)]
    work.do(work.person(), MINE)
    given = [work.next(one) for one in reviewers]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda row: work.act(row, "submit", MINE), given))
    with store.reading() as tx:
        (batch,) = tx.batches(work.id)
        assert batch.state is BatchState.ACCEPTED
        assert len(batch.figures["rounds"]) == 1


def test_a_lead_begins_a_validation_early(store, make_project):
    work = team(store, make_project(RULES + BATCHES))
    work.items(10, batch=True)
    person, lead = work.person(), work.person(Role.LEAD)
    with store.reading() as tx:
        (batch,) = tx.batches(work.id)
    with pytest.raises(Refused, match="Nothing"):
        validate(store, work.project, batch.id, by=lead.id)
    work.do(person, MINE, most=4)
    with store.reading() as tx:
        assert batch.id not in ready_batches(tx, work.project, batch.project_id)
    begun = validate(store, work.project, batch.id, by=lead.id)
    assert (begun.state, len(begun.figures["drawn"])) == (BatchState.VALIDATING, 2)
    assert work.next(person) is None  # it stands still while it is checked
    with pytest.raises(Refused, match="validating"):
        validate(store, work.project, batch.id)


def _overlapping(store, make_project, layers, count=2):
    work = team(store, make_project(RULES.replace("overlap = 0", f"overlap = {count}")))
    ids = work.items(count, silver=spans((0, 12)))
    people = [work.person() for _ in layers]
    for person, layer in zip(people, layers, strict=True):
        work.do(person, layer)
    return work, people, ids


def test_what_a_lead_settles_is_gold(store, make_project):
    work, people, ids = _overlapping(store, make_project, [MINE, THEIRS])
    lead = work.person(Role.LEAD)
    with store.reading() as tx:
        found = disagreements(tx, work.project, work.id)
    assert [one.item.id for one in found] == ids
    assert found[0].likeness == pytest.approx(3 / 11)
    assert [submission.layer for submission in found[0].submissions] == [MINE, THEIRS]
    given = adjudicate(store, work.project, lead.id, ids[0])
    assert adjudicate(store, work.project, lead.id, ids[0]) == given
    with pytest.raises(Refused, match="Another lead"):
        adjudicate(store, work.project, work.person(Role.LEAD).id, ids[0])
    with pytest.raises(Refused, match="lead"):
        adjudicate(store, work.project, people[0].id, ids[0])
    assert work.next(lead) == given
    work.act(given, "submit", THEIRS)
    with store.reading() as tx:
        assert tx.gold(ids[0]) == THEIRS
        assert {tx.assignment(said.assignment).state for said in submissions_of(tx, tx.item(ids[0]))} == {
            State.ACCEPTED
        }
        assert [one.item.id for one in disagreements(tx, work.project, work.id)] == ids[1:]
    again = adjudicate(store, work.project, lead.id, ids[0])
    assert (again.id, again.state, again.layer) == (given.id, State.OPEN, THEIRS)
    work.act(again, "submit", MINE)
    with store.reading() as tx:
        assert tx.gold(ids[0]) == MINE


def test_the_majority_can_settle(store, make_project):
    layers = [spans((0, 12), (24, 28)), spans((0, 3)), spans((0, 12), (50, 54))]
    work, _, ids = _overlapping(store, make_project, layers)
    done = settle(store, work.project, "majority")
    assert (done.settled, done.left, done.unchanged) == (2, 0, 0)
    with store.reading() as tx:
        gold = tx.gold(ids[0])
    assert [(s.start, s.end, s.type) for s in gold.spans] == [(0, 12, "entity")]
    assert settle(store, work.project, "majority").unchanged == 2


def test_only_what_all_agree_on_is_settled_as_agreed(store, make_project):
    work, _, _ = _overlapping(store, make_project, [MINE, MINE])
    assert settle(store, work.project, "agreed").settled == 2


def test_whoever_agrees_most_with_silver_can_settle(store, make_project):
    work, people, ids = _overlapping(store, make_project, [MINE, THEIRS, Layer()], count=5)
    done = settle(store, work.project, "best_with_silver")
    assert done.best == {"de": people[1].public_id}
    with store.reading() as tx:
        assert all(tx.gold(id_) == THEIRS for id_ in ids)


def test_the_best_are_told_of_the_language_that_is_settled(store, make_project):
    work = team(store, make_project(RULES.replace("overlap = 0", "overlap = 5")))
    for language in ("de", "zh"):
        work.items(5, language, silver=spans((0, 12)))
    work.items(2, "hi")
    people = [work.person() for _ in range(2)]
    for person, layer in zip(people, (MINE, THEIRS), strict=True):
        work.do(person, layer)
    done = settle(store, work.project, "best_with_silver", language="de")
    assert (done.settled, done.best) == (5, {"de": people[1].public_id})
    with pytest.raises(Refused, match="5 shared items in hi that have a silver layer"):
        settle(store, work.project, "best_with_silver", language="hi")
    done = settle(store, work.project, "best_with_silver", overwrite=True)
    assert (done.settled, done.left, done.unchanged) == (10, 2, 0)
    assert set(done.best) == {"de", "zh"}


def test_what_a_rule_cannot_decide_anew_keeps_its_gold(store, make_project):
    work, _, ids = _overlapping(store, make_project, [MINE, THEIRS])
    work.act(adjudicate(store, work.project, work.person(Role.LEAD).id, ids[0]), "submit", MINE)
    done = settle(store, work.project, "agreed", overwrite=True)
    assert (done.settled, done.left, done.unchanged) == (0, 1, 1)
    with store.reading() as tx:
        assert tx.gold(ids[0]) == MINE


def _under_validation(store, make_project, share="1.0"):
    work = team(store, make_project(RULES + f"\n[validation]\nbatch_size = 3\nshare = {share}\n"))
    work.items(3, batch=True)
    work.do(work.person(), MINE)
    return work, work.person(Role.REVIEWER)


def _batch(work):
    with work.store.reading() as tx:
        (batch,) = tx.batches(work.id)
        return batch, stuck_batches(tx, work.id)


def _exclude(work, item_id):
    with work.store.writing() as tx:
        item = tx.item(item_id)
        for row in tx.assignments(item_id=item_id, state=State.OPEN):
            withdraw(tx, row.id, reason="lead")
        tx.set_role(item, ItemRole.EXCLUDED)
        after_exclusion(tx, work.project, item, by=None)


def test_a_check_that_was_taken_back_is_taken_up_again(store, make_project):
    work, reviewer = _under_validation(store, make_project)
    check = work.next(reviewer)
    work.act(check, "save", THEIRS)
    with store.writing() as tx:
        withdraw(tx, check.id, reason="lead")
    assert _batch(work)[1] == []
    again = work.next(reviewer)
    assert (again.id, again.state, again.layer) == (check.id, State.OPEN, THEIRS)
    assert len(work.do(reviewer, MINE)) == 3
    assert _batch(work)[0].state is BatchState.ACCEPTED


def test_nobody_checks_an_excluded_item_and_its_batch_is_decided_without_it(store, make_project):
    work, reviewer = _under_validation(store, make_project)
    first = work.next(reviewer)
    work.act(first, "submit", MINE)
    second = work.next(reviewer)
    _exclude(work, second.item_id)
    third = work.next(reviewer)
    assert third.item_id != second.item_id
    _exclude(work, third.item_id)  # all that is left is checked
    batch, stuck = _batch(work)
    assert (batch.state, batch.rounds[0]["checked"], stuck) == (BatchState.ACCEPTED, 1, [])


def test_others_are_drawn_where_all_drawn_items_are_excluded_and_an_empty_batch_is_accepted(store, make_project):
    work, reviewer = _under_validation(store, make_project, "0.1")
    for _ in range(2):
        _exclude(work, work.next(reviewer).item_id)
    assert _batch(work)[0].state is BatchState.VALIDATING
    _exclude(work, work.next(reviewer).item_id)
    assert _batch(work)[0].state is BatchState.ACCEPTED
    for id_ in work.items(2, batch=True):
        _exclude(work, id_)
    assert work.next(reviewer) is None
    with store.reading() as tx:
        assert [batch.state for batch in tx.batches(work.id)] == [BatchState.ACCEPTED] * 2


def test_a_comment_is_refused_where_nobody_would_read_it(store, make_project):
    work = team(store, make_project(RULES.replace("overlap = 0", "overlap = 1")))
    work.items(1)
    (mine,), _ = (work.do(work.person(), layer) for layer in (MINE, THEIRS))
    lead = work.person(Role.LEAD)
    settling = adjudicate(store, work.project, lead.id, mine.item_id)
    with pytest.raises(Refused, match="Nobody reads comments here"):
        work.act(settling, "comment", None, comment="Why?")
    work.act(mine, "comment", None, comment="Why?")

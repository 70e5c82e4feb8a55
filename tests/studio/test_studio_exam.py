"""The exam: composition, measures, retries."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rule_rows import RULES, TEXTS, spans, team
from sklearn.metrics import cohen_kappa_score

from veriglot.studio import exam
from veriglot.studio.comparison import Comparison
from veriglot.studio.exam import Candidate, compose, shortage
from veriglot.studio.layers import Layer
from veriglot.studio.project import ExamEntry, StratumEntry
from veriglot.studio.tables import ItemRole, Purpose, Refused, State

EXAM = RULES + "[exam]\nitems = 3\nthreshold = 0.9\nattempts = 2\npath = 'unused.jsonl'\n"
RIGHT = spans((0, 12))
HAT = (
    StratumEntry(2, 0.9, 1.0),
    StratumEntry(10, 0.4, 0.6, several=4),
    StratumEntry(10, 0.1, 0.2, several=2),
    StratumEntry(3, 0.0, 0.0),
)


def test_who_passes_goes_on_to_the_work(store, make_project):
    work = team(store, make_project(EXAM))
    work.items(2)
    questions = set(work.items(5, role=ItemRole.EXAM, gold=RIGHT))
    person = work.person()
    done = work.do(person, RIGHT)
    assert len(done) == 3
    assert {row.item_id for row in done} <= questions
    assert all(row.purpose is Purpose.EXAM for row in done)
    outcome = exam.finish(store, work.project, person.id)
    assert (outcome.passed, outcome.precision, outcome.recall, outcome.attempts_left) == (True, 1.0, 1.0, 1)
    assert work.next(person).purpose is Purpose.ANNOTATE
    assert work.state(done[0]) is State.ACCEPTED  # not to be changed any more


def test_a_retry_has_other_items_and_then_one_is_out(store, make_project):
    work = team(store, make_project(EXAM))
    work.items(2)
    work.items(6, role=ItemRole.EXAM, gold=RIGHT)
    person = work.person()
    first = work.do(person, spans((0, 6)))
    outcome = exam.finish(store, work.project, person.id)
    assert (outcome.passed, outcome.attempt, outcome.attempts_left) == (False, 1, 1)
    assert outcome.precision == 1.0
    assert outcome.recall == pytest.approx(6 / 11, abs=0.1)  # of characters that are no spaces
    second = work.do(person, Layer())
    assert not {row.item_id for row in first} & {row.item_id for row in second}
    outcome = exam.finish(store, work.project, person.id)
    assert (outcome.passed, outcome.attempts_left, outcome.precision, outcome.recall) == (False, 0, None, 0.0)
    assert work.next(person) is None
    with store.reading() as tx:
        out = tx.person(person.id)
        assert out.out_at is not None
        assert [one["attempt"] for one in out.exam_figures] == [1, 2]
    with pytest.raises(Refused):
        exam.finish(store, work.project, person.id)


def test_a_retry_has_the_same_items_where_there_are_no_others(store, make_project):
    work = team(store, make_project(EXAM))
    work.items(3, role=ItemRole.EXAM, gold=RIGHT)
    person = work.person()
    first = work.do(person, Layer())
    exam.finish(store, work.project, person.id)
    assert {row.item_id for row in work.do(person, RIGHT)} == {row.item_id for row in first}
    assert exam.finish(store, work.project, person.id).passed


@pytest.mark.parametrize("pool", [4, 6])
def test_no_answer_is_told_that_an_attempt_to_come_asks_for(store, make_project, pool):
    work = team(store, make_project(EXAM))
    work.items(pool, role=ItemRole.EXAM, gold=RIGHT)
    person = work.person()
    first = {row.item_id for row in work.do(person, Layer())}
    exam.finish(store, work.project, person.id)
    with store.reading() as tx:
        coming = exam._to_come(tx, work.project, tx.person(person.id), first)
    second = {row.item_id for row in work.do(person, Layer())}
    assert (coming, len(first - coming)) == (second, pool - 3)
    exam.finish(store, work.project, person.id)
    with store.reading() as tx:
        assert exam._to_come(tx, work.project, tx.person(person.id), first | second) == set()


def test_an_exam_that_was_reset_can_be_taken_again(store, make_project):
    from veriglot.studio.people import change

    work = team(store, make_project(EXAM))
    work.items(3, role=ItemRole.EXAM, gold=RIGHT)
    person = work.person()
    for _ in range(2):
        work.do(person, Layer())
        exam.finish(store, work.project, person.id)
    with store.writing() as tx:
        change(tx, person.id, "reset_exam")
    work.do(person, RIGHT)
    assert exam.finish(store, work.project, person.id).passed
    with store.reading() as tx:
        assert len(tx.person(person.id).exam_figures) == 3


def test_an_exam_is_finished_when_every_item_is_answered(store, make_project):
    work = team(store, make_project(EXAM))
    work.items(3, role=ItemRole.EXAM, gold=RIGHT)
    person = work.person()
    with pytest.raises(Refused, match="not begun"):
        exam.finish(store, work.project, person.id)
    work.do(person, RIGHT, most=2)
    with pytest.raises(Refused, match="1 of 3"):
        exam.finish(store, work.project, person.id)
    last = work.next(person)
    with pytest.raises(Refused, match="left out"):
        work.act(last, "skip", Layer(skip="not_sure"))


def test_an_exam_without_items_is_refused_and_told_to_the_lead(store, make_project):
    work = team(store, make_project(EXAM.replace("path = 'unused.jsonl'\n", "")))
    work.items(2, "zh")
    work.items(3, gold=RIGHT)
    with store.reading() as tx:  # the exam's items are not drawn before somebody asks for work
        assert exam.missing_items(tx, work.project, work.id) == ["zh: 0 of 3 exam items"]
    with pytest.raises(Refused, match="no item"):
        work.next(work.person(languages=["zh"]))
    with store.reading() as tx:
        assert exam.missing_items(tx, work.project, work.id) == ["zh: 0 of 3 exam items"]


def test_the_right_places_of_the_wrong_type_do_not_pass(store, make_project):
    work = team(store, make_project(EXAM))
    work.items(3, role=ItemRole.EXAM, gold=spans((0, 12), (24, 28, "relation")))
    person = work.person()
    work.do(person, spans((0, 12), (24, 28, "invented")))
    outcome = exam.finish(store, work.project, person.id)
    # of the 14 characters that are no space 11 have their type, and those of "in L" another
    assert outcome.precision == outcome.recall == pytest.approx(11 / 14)
    assert not outcome.passed


def test_each_language_has_to_be_passed(store, make_project):
    work = team(store, make_project(EXAM))
    for language in ("de", "ar"):
        work.items(3, language, ItemRole.EXAM, gold=RIGHT)
    person = work.person()
    while (row := work.next(person)) is not None:
        with store.reading() as tx:
            german = tx.item(row.item_id).language == "de"
        work.act(row, "submit", RIGHT if german else Layer())
    outcome = exam.finish(store, work.project, person.id)
    assert not outcome.passed
    assert outcome.by_language["de"]["recall"] == 1.0
    assert outcome.by_language["ar"]["recall"] == 0.0


def test_agreement_with_silver_is_the_kappa_of_words(store, make_project):
    text = RULES + "[exam]\nitems = 4\nagainst = 'silver'\nmeasure = 'agreement'\nattempts = 1\n"
    work = team(store, make_project(text))
    silver = spans((0, 3), (24, 28))
    work.items(10, silver=silver)
    person = work.person()
    said = spans((0, 12), (24, 28))
    done = work.do(person, said)
    assert len(done) == 4  # drawn from the data
    outcome = exam.finish(store, work.project, person.id)
    words = [(0, 3), (4, 12), (13, 18), (19, 23), (24, 26), (27, 33), (34, 41), (42, 45), (46, 53), (54, 58), (59, 68)]
    assert [TEXTS["de"][a:b] for a, b in words][4] == "in"

    def labels(layer):
        return [any(s.start < b and s.end > a for s in layer.spans) for a, b in words]

    assert outcome.agreement == pytest.approx(cohen_kappa_score(labels(said) * 4, labels(silver) * 4))
    assert outcome.passed == (outcome.agreement >= 0.4)


def test_what_is_drawn_for_the_exam_is_no_work(store, make_project):
    work = team(store, make_project(RULES + "[exam]\nitems = 2\nattempts = 2\n"))
    work.items(10, gold=lambda n: RIGHT if n < 8 else None)
    person = work.person()
    work.do(person, RIGHT)
    assert exam.finish(store, work.project, person.id).passed
    assert len(work.do(person)) == 6
    with store.reading() as tx:
        assert len(tx.items(work.id, role=ItemRole.EXAM)) == 4


def _candidates():
    rows = []
    for share, spans_, count in [
        (0.95, 1, 4), (0.5, 1, 12), (0.5, 2, 6), (0.15, 1, 12), (0.15, 3, 5), (0.0, 0, 6), (0.3, 1, 20),
    ]:  # fmt: skip
        rows += [Candidate(len(rows) + n, f"k{len(rows) + n}", share, spans_) for n in range(count)]
    return rows


def test_hats_exam_has_hats_composition():
    entry = ExamEntry(strata=HAT)
    chosen = compose(_candidates(), entry, ())
    shares = [one.share for one in chosen]
    assert [shares.count(s) for s in (0.95, 0.5, 0.15, 0.0)] == [2, 10, 10, 3]
    assert sum(one.spans >= 2 for one in chosen) == 6
    assert shortage(_candidates(), entry) == []
    again = compose(_candidates(), entry, {one.id for one in chosen})
    assert len(again) == 25
    others = {one.id for one in again} - {one.id for one in chosen}
    assert len(others) == 2 + 8 + 6 + 3  # of each kind, as far as there are


def test_a_shortage_is_told():
    said = shortage([one for one in _candidates() if one.share != 0.95], ExamEntry(strata=HAT))
    assert said == ["0 of 2 exam items with 90% to 100% of the text marked"]


_MARKS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 20), st.sampled_from(["entity", "relation", "invented"])), max_size=5
)


@given(_MARKS, _MARKS)
def test_precision_and_recall_are_those_of_characters_of_a_type(one, other):
    from pathlib import Path

    from veriglot.records import Sample
    from veriglot.studio.project import Entries, Project, ProjectEntry, TaskKind, form_of

    text = TEXTS["de"]
    entries = Entries(ProjectEntry("P", "p", TaskKind.SPANS))
    project = Project(Path("p.toml"), entries, form_of(entries))
    layers = [spans(*((a, min(a + n, len(text)), type_) for a, n, type_ in rows)) for rows in (one, other)]
    marked = [
        {(i, span.type) for span in layer.spans for i in range(span.start, span.end) if not text[i].isspace()}
        for layer in layers
    ]
    counts = Comparison(project.form, Sample(id="x", response=text, language="de")).counts(*layers)
    assert counts == (len(marked[0] & marked[1]), len(marked[0]), len(marked[1]))
    assert (
        counts.precision is None
        if not marked[0]
        else math.isclose(counts.precision, len(marked[0] & marked[1]) / len(marked[0]))
    )

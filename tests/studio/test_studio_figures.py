"""Figures for the lead, pace and drift, other kinds of tasks, and the commands."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from rule_rows import RULES, TEXTS, spans, team
from sklearn.metrics import cohen_kappa_score

from veriglot.cli.app import app
from veriglot.studio import exam
from veriglot.studio.adjudication import majority_layer, settle
from veriglot.studio.comparison import Comparison
from veriglot.studio.dashboard import WorkedItem, measure_agreement, measure_pace, overview
from veriglot.studio.layers import Layer, LayerUnit
from veriglot.studio.people import change
from veriglot.studio.project import PaceEntry
from veriglot.studio.tables import ItemRole, Refused, Role
from veriglot.text.segmentation import word_bounds

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINE, THEIRS = spans((0, 12)), spans((0, 3), (24, 28, "relation"))


def _work(count, start=0, **more):
    row = {"words": 100, "seconds": 60.0, "marks": 2, "skipped": False} | more
    return [WorkedItem(NOON + timedelta(minutes=start + number), **row) for number in range(count)]


def test_steady_work_raises_no_flag():
    found = measure_pace(_work(60, check=0.9, others=0.8), PaceEntry(), 0.7)
    assert found.flags == []
    assert (found.items, found.seconds, found.seconds_per_item, found.seconds_per_word) == (60, 3600.0, 60.0, 0.6)
    assert found.check_f1 == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("rows", "kinds"),
    [
        (_work(18) + _work(2, 20, seconds=5.0), ["fast"]),
        (_work(19) + _work(1, 20, seconds=5.0), []),
        (_work(3, check=0.5), ["checks"]),
        (_work(2, check=0.5), []),
        (_work(6) + _work(4, 10, skipped=True), ["skips"]),
        (_work(20) + _work(20, 30, seconds=25.0), ["faster"]),
        (_work(20) + _work(20, 30, marks=0), ["marks"]),
        (_work(20, others=0.9) + _work(20, 30, others=0.6), ["drift"]),
        (_work(4, seconds=1.0), []),
    ],
)
def test_what_is_worth_a_look_has_its_reason(rows, kinds):
    found = measure_pace(list(reversed(rows)), PaceEntry(), 0.7)
    assert [flag.kind for flag in found.flags] == kinds
    assert all(any(char.isdigit() for char in flag.reason) for flag in found.flags)


def test_a_trend_has_a_point_for_each_stretch_of_work():
    rows = _work(20, others=0.9) + _work(20, 30, others=0.6, seconds=25.0) + _work(3, 60, check=0.5, marks=4)
    found = measure_pace([*rows, *_work(1, 90, skipped=True)], PaceEntry())
    points = [(point.items, point.seconds_per_word, point.marks, point.check_f1) for point in found.trend]
    assert points == [(20, 0.6, 2.0, None), (20, 0.25, 2.0, None), (3, 0.6, 4.0, 0.5)]
    assert [point.others for point in found.trend] == [pytest.approx(0.9), pytest.approx(0.6), None]


def test_types_are_confused_word_by_word_over_each_two_people(store, make_project):
    work = team(store, make_project(RULES.replace("overlap = 0", "overlap = 1")))
    work.items(1)
    for layer in (spans((0, 12)), spans((0, 3), (4, 12, "relation")), Layer()):  # of "Ada Lovelace ..."
        work.do(work.person(), layer)
    with store.reading() as tx:
        found = measure_agreement(tx, work.project)
    assert [(row.first, row.second, row.units) for row in found.confusion] == [
        ("", "entity", 3), ("", "relation", 1), ("entity", "entity", 1), ("entity", "relation", 1),
    ]  # fmt: skip


@pytest.mark.usefixtures("an_hour_passes")
def test_the_overview_counts_what_there_is(store, make_project):
    text = RULES.replace("overlap = 0", "overlap = 1").replace("reviews = 0", "reviews = 1")
    work = team(store, make_project(text + "[checks]\nshare = 0.5\n[pace]\nhourly = 36.0\n"))
    work.items(3)
    work.items(2, "zh")
    work.items(2, role=ItemRole.CHECK, gold=MINE)
    people = [work.person(languages=["de"]), work.person(languages=["de"]), work.person(joined=False)]
    reviewer = work.person(Role.REVIEWER)
    for person, layer in zip(people[:2], (MINE, THEIRS), strict=True):
        work.do(person, layer, seconds=100.0)
    for kind in ("confirm", "correct", "return"):
        work.act(work.next(reviewer), kind, MINE if kind == "correct" else None, comment="Why?")
    with store.writing() as tx:
        change(tx, people[1].id, "revoke")
    with store.reading() as tx:
        found = overview(tx, work.project)
    german, chinese = found.languages
    assert (german.language, german.items, german.shared, german.begun, german.annotators) == ("de", 3, 1, 3, 1)
    assert (chinese.items, chinese.shared, chinese.begun, chinese.annotators) == (2, 1, 0, 0)
    lines = {line.id: line for line in found.people}
    first, second, invited = (lines[person.public_id] for person in people)
    assert [line.stage for line in (first, second, invited)] == ["work", "revoked", "invited"]
    assert first.pace.items == first.by_purpose["annotate"]
    assert first.pace.check_f1 == 1.0
    assert (first.pace.items, first.begun) == (4, 1)  # what was sent back is to be done again
    assert (first.seconds, first.cost) == (500.0, pytest.approx(5.0))  # and costs nobody their time
    assert sum(line.confirmed + line.corrected + line.sent_back for line in (first, second)) == 3
    assert found.queue["review"] == {"submitted": 3}
    assert found.cost == pytest.approx(found.seconds / 100)
    assert found.disagreements == 1


def test_nobody_is_at_work_by_what_a_lead_settles(store, make_project):
    work = team(store, make_project(RULES.replace("overlap = 0", "overlap = 1")))
    (id_,) = work.items(1)
    people = [work.person(), work.person()]
    for person in people:
        work.do(person, MINE)

    def last():
        with store.reading() as tx:
            lines = {line.id: line for line in overview(tx, work.project).people}
        return [lines[person.public_id].last_at for person in people]

    before = last()
    with store.reading() as tx:
        assert before == [row.submitted_at for row in tx.assignments(item_id=id_)]
    assert settle(store, work.project, "agreed").settled == 1
    assert last() == before


def test_agreement_is_that_of_words(store, make_project):
    work = team(store, make_project(RULES.replace("overlap = 0", "overlap = 5")))
    work.items(5, silver=MINE)
    people = [work.person(), work.person()]
    for person, layer in zip(people, (MINE, THEIRS), strict=True):
        work.do(person, layer)
    with store.reading() as tx:
        found = measure_agreement(tx, work.project, gamma=20)
    words = word_bounds(TEXTS["de"], "de").tolist()

    def labels(layer, typed):
        return [
            next((s.type if typed else "x" for s in layer.spans if s.start < b and s.end > a), "") for a, b in words
        ]

    kappas = {
        line.scope: line.value
        for line in found.lines
        if (line.among, line.measure, line.between) == ("people", "kappa", ("all", "all"))
    }
    for scope in ("binary", "typed"):
        one, other = (labels(layer, scope == "typed") for layer in (MINE, THEIRS))
        assert kappas[scope] == pytest.approx(cohen_kappa_score(one, other))
    assert (found.best["de"].between[0], found.best["de"].texts) == (people[0].public_id, 5)
    assert {line.measure for line in found.lines if line.among == "people"} >= {"alpha", "span_f1", "gamma"}
    assert found.shared == 5


def test_the_page_names_whom_the_rule_takes(store, make_project):
    """By shared items alone: on their own items others may look better."""
    work = team(store, make_project(RULES.replace("overlap = 0", "overlap = 5")))
    work.items(11, silver=MINE)
    first, second = work.person(), work.person()
    layers = {first.id: [spans((0, 10))] * 5 + [spans((30, 40))] * 3, second.id: [spans((0, 3))] * 5 + [MINE] * 3}
    for number in range(8):
        for person in (first, second):
            work.act(work.next(person), "submit", layers[person.id][number])
    with store.reading() as tx:
        found = measure_agreement(tx, work.project)
    kappas = {
        line.between[0]: line.value
        for line in found.lines
        if (line.among, line.measure, line.scope, line.language) == ("silver", "kappa", "binary", "de")
    }
    assert kappas[second.public_id] > kappas[first.public_id]  # of all items, their own as well
    assert found.best["de"].between[0] == first.public_id
    assert settle(store, work.project, "best_with_silver").best == {"de": first.public_id}


def test_a_few_items_make_nobody_best(store, make_project):
    work = team(store, make_project(RULES.replace("overlap = 0", "overlap = 5")))
    work.items(5, silver=MINE)
    people = [work.person(), work.person()]
    for person in people:
        work.do(person, MINE, most=4)
    with store.reading() as tx:
        assert measure_agreement(tx, work.project).best == {}
    with pytest.raises(Refused, match="5 shared items in any language"):
        settle(store, work.project, "best_with_silver")
    for person in people:
        work.do(person, MINE)
    assert settle(store, work.project, "best_with_silver").best == {"de": people[0].public_id}


def test_nothing_to_compare_is_no_error(store, make_project):
    work = team(store, make_project(RULES))
    work.items(1)
    with store.reading() as tx:
        assert measure_agreement(tx, work.project).lines == []
        assert overview(tx, work.project).disagreements == 0


FACTS = RULES.replace('task = "spans"', 'task = "facts"\nunits = "sentence"')
PAIRS = RULES.replace('task = "spans"', 'task = "pairs"').replace("overlap = 0", "overlap = 9")
TWO = "Ada wurde in Paris geboren. Sie schrieb über Maschinen."


def test_sentences_are_compared_one_by_one(store, make_project):
    project = make_project(FACTS)
    work = team(store, project)
    (id_,) = work.items(1, text=TWO)
    with store.reading() as tx:
        sample = tx.sample(id_)
    places = project.form.units_of(sample)
    assert len(places) == 2

    def said(*labels):
        return Layer(units=tuple(LayerUnit(*place, label) for place, label in zip(places, labels, strict=True)))

    wrong = said("contradicted", "supported")
    compared = Comparison(project.form, sample)
    assert compared.counts(wrong, wrong) == (1, 1, 1)
    assert compared.counts(said("unverified", "supported"), wrong) == (0, 1, 1)
    assert compared.similarity(said("contradicted", "unverified"), wrong) == 0.5
    found = majority_layer([wrong, wrong, said("unverified", "unverified")], project.form, sample)
    assert [unit.label for unit in found.units] == ["contradicted", "supported"]
    assert majority_layer([wrong, said("unverified", "supported")], project.form, sample) is None
    by_language = {"de": [(compared, wrong, wrong)]}
    assert exam.measure(make_project(FACTS + "[exam]\n"), by_language, attempt=1).passed


def test_pairs_are_compared_by_their_label(store, make_project):
    work = team(store, make_project(PAIRS))
    ids = work.items(3)
    people = [work.person() for _ in range(3)]
    labels = [("0", "entity", "relation"), ("0", "entity", "entity"), ("entity", "entity", "sentence")]
    for number, person in enumerate(people):
        for row in labels:
            work.act(work.next(person), "submit", Layer(label=row[number]))
    done = settle(store, work.project, "majority")
    assert (done.settled, done.left) == (2, 1)
    with store.reading() as tx:
        assert [tx.gold(id_) for id_ in ids] == [None, Layer(label="entity"), Layer(label="entity")]
        found = measure_agreement(tx, work.project)
    first, second = ([row[number] for row in labels] for number in (0, 1))
    pair = tuple(sorted(person.public_id for person in people[:2]))
    kappa = next(one for one in found.lines if (one.measure, one.scope, one.between) == ("kappa", "typed", pair))
    assert kappa.value == pytest.approx(cohen_kappa_score(first, second))
    assert found.unit == "response"


def test_the_commands_export_and_settle(store, database, make_project, tmp_path):
    from typer.testing import CliRunner

    work = team(store, make_project(RULES.replace("overlap = 0", "overlap = 2")))
    work.items(2, silver=MINE)
    for layer in (MINE, MINE):
        work.do(work.person(), layer)
    given = [str(work.project.path)]
    studio = ["studio", "--database", database]
    run = CliRunner()
    done = run.invoke(app, [*studio, "settle", *given, "--rule", "agreed", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["settled"] == 2
    told = [run.invoke(app, [*studio, "settle", *given, *more]).stdout.strip() for more in ([], ["--overwrite"])]
    assert told == [
        "Settled: 0 (final labels replaced: 0). Left to a lead: 0. Final labels unchanged: 2 (a lead's: 0).",
        "Settled: 2 (final labels replaced: 2). Left to a lead: 0. Final labels unchanged: 0 (a lead's: 0).",
    ]
    done = run.invoke(app, [*studio, "export", given[0], str(tmp_path / "out"), *given[1:], "--to", "mfava"])
    assert done.exit_code == 0, done.output
    assert "silver_gold_de.json  rows: 2" in done.stdout
    assert "mFAVA holds" in done.stderr or "gold and silver" in done.stderr
    done = run.invoke(app, [*studio, "export", given[0], str(tmp_path / "out.zip"), *given[1:], "--json"])
    assert json.loads(done.stdout)["items"] == 2
    assert (tmp_path / "out.zip").exists()
    with store.reading() as tx:
        assert tx.gold(tx.items(work.id)[0].id) == MINE


def test_an_empty_layer_is_like_itself(store, make_project):
    work = team(store, make_project(RULES))
    (id_,) = work.items(1)
    with store.reading() as tx:
        sample = tx.sample(id_)
    compared = Comparison(work.project.form, sample)
    assert compared.similarity(Layer(), Layer()) == 1.0
    assert compared.similarity(Layer(), Layer(skip="not_sure")) == 0.0

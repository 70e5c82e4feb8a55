"""Marks that are shown beforehand: from silver or from a detector, kept with the work, and never in an exam."""

from __future__ import annotations

import json

import pytest
from msgspec import to_builtins
from rule_rows import RULES, TEXTS, spans, team

from veriglot.errors import InputError
from veriglot.formats.reader import read
from veriglot.records import Evidence, Sample
from veriglot.studio.assignment import suggestions_for
from veriglot.studio.comparison import SuggestionCounts, suggested_id, verdict
from veriglot.studio.dashboard import overview
from veriglot.studio.export import export
from veriglot.studio.items import import_all, is_random
from veriglot.studio.layers import Layer, LayerSpan
from veriglot.studio.tables import ItemRole

WRONG = "Ada Lovelace wurde 1915 in Rom geboren und schrieb über Maschinen."


def test_nothing_is_suggested_unless_the_project_says_so(store, make_project):
    work = team(store, make_project(RULES))
    work.items(1, silver=spans((0, 3)))
    assert work.next(work.person()).suggestions is None


def test_silver_is_shown_and_kept_with_the_work_that_saw_it(store, make_project):
    work = team(store, make_project(RULES + "\n[suggestions]\nsilver = true\n"))
    work.items(1, silver=spans((4, 12, "invented")))
    given = work.next(work.person())
    assert [(one["start"], one["end"], one["type"]) for one in given.suggestions] == [(4, 12, "invented")]
    work.act(given, "submit", spans((0, 3)))
    with store.reading() as tx:
        assert tx.assignment(given.id).suggestions == given.suggestions


def test_marked_nothing_is_a_suggestion_and_no_layer_is_none(store, make_project):
    work = team(store, make_project(RULES + "\n[suggestions]\nsilver = true\n"))
    empty, absent = [*work.items(1, silver=spans()), *work.items(1)]
    with store.reading() as tx:
        found = {item.id: suggestions_for(tx, work.project, item) for item in tx.items(work.id)}
    assert found == {empty: [], absent: None}


def test_a_real_detector_suggests_what_it_marks(store, make_project):
    work = team(store, make_project(RULES + '\n[suggestions]\ndetector = "grounding"\n'))
    with store.writing() as tx:
        for number, response in enumerate((TEXTS["de"], WRONG)):
            sample = Sample(id=f"s{number}", response=response, language="de", evidence=(Evidence(TEXTS["de"]),))
            row = {"key": sample.id, "position": number, "language": "de", "words": 10, "role": ItemRole.NORMAL}
            tx.add_items(work.id, [{**row, "sample": to_builtins(sample), "gold": None, "silver": None}])
    with store.reading() as tx:
        right, wrong = (suggestions_for(tx, work.project, item) for item in tx.items(work.id))
    assert right == []
    marked = {WRONG[one["start"] : one["end"]] for one in wrong}
    assert any("1915" in part for part in marked)
    assert any("Rom" in part for part in marked)
    assert {one["type"] for one in wrong} <= {choice.name for choice in work.project.form.types}


def test_an_exam_is_taken_without_help(store, make_project):
    work = team(store, make_project(RULES + "\n[suggestions]\nsilver = true\n"))
    work.items(2, role=ItemRole.EXAM, gold=spans((0, 3)), silver=spans((0, 3)))
    with store.reading() as tx:
        assert [suggestions_for(tx, work.project, item) for item in tx.items(work.id)] == [None, None]


def test_on_a_share_of_the_items_only(store, make_project):
    work = team(store, make_project(RULES + "\n[suggestions]\nsilver = true\nshare = 0.4\n"))
    work.items(200, silver=spans((0, 3)))
    with store.reading() as tx:
        items = tx.items(work.id)
        shown = [suggestions_for(tx, work.project, item) is not None for item in items]
        again = [suggestions_for(tx, work.project, item) is not None for item in items]
    assert shown == again
    assert 50 < sum(shown) < 110


def test_a_table_without_a_source_is_refused(make_project):
    with pytest.raises(InputError):
        make_project(RULES + "\n[suggestions]\nshare = 0.4\n")


def test_what_became_of_each_suggestion_is_data(store, make_project, tmp_path):
    work = team(store, make_project(RULES + "\n[suggestions]\nsilver = true\n"))
    shown = spans((0, 3), (4, 12), (13, 18), (19, 23), (24, 26))
    work.items(1, silver=shown)
    person = work.person()
    given = work.next(person)
    accept, change, reject, leave, alike = (suggested_id(one) for one in given.suggestions)
    marks = (
        LayerSpan(accept, 0, 3, "entity"),
        LayerSpan(change, 4, 12, "relation"),
        LayerSpan("own", 24, 26, "entity"),  # by hand, and the same
    )
    work.act(given, "submit", Layer(spans=marks, rejected=(reject,)))
    wanted = ["accepted", "changed", "rejected", "untouched", "accepted"]
    assert [verdict(one, work.assignment(given.id).layer) for one in given.suggestions] == wanted
    assert (leave, alike) != (accept, accept)
    with store.reading() as tx:
        (line,) = overview(tx, work.project).people
    assert line.suggested == SuggestionCounts(items=1, shown=5, accepted=2, changed=1, rejected=1, untouched=1)
    done = export(store, work.project, tmp_path / "out")
    assert done.annotators[person.public_id]["suggestions"] == to_builtins(line.suggested)
    (row,) = read(tmp_path / "out" / "data.jsonl")
    (kept,) = row.meta["studio"]["layers"]
    assert [one["verdict"] for one in kept["suggestions"]] == wanted
    assert kept["layer"]["rejected"] == [reject]


def test_without_suggestions_nothing_is_said_of_them(store, make_project):
    work = team(store, make_project(RULES))
    work.items(1)
    person = work.person()
    work.act(work.next(person), "submit", spans((0, 3)))
    with store.reading() as tx:
        assert overview(tx, work.project).people[0].suggested is None
        (kept,) = tx.assignments(work.id)
    assert "rejected" not in kept.layer.to_data()  # what is kept and compared is as it was before there were any


def test_a_rejection_is_an_id_and_said_once(store, make_project):
    project = make_project(RULES)
    sample = Sample(id="s", response=WRONG, language="de")
    for rejected in (("a", "a"), ("x" * 65,), ("\ud800",)):
        with pytest.raises(InputError, match="rejected"):
            Layer(rejected=rejected).check(project.form, sample)


FOUR = "Ada war in Rom."  # four words


def _loop(make_project, tmp_path, number=40, more="", suggestions='predictions = "marked.jsonl"', **work):
    """A project of short texts with predictions: item n has a confidence of n / (2 number) in each of its words."""
    rows = [{"id": f"i{n}", "language": "de", "response": FOUR, "evidence": [{"text": str(n)}]} for n in range(number)]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    marked = [
        {"id": f"i{n}", "status": "scored", "detector": "d@1", "score": 0.9, "spans": [
            {"start": 0, "end": 3, "type": "entity", "confidence": 0.75, "text": "Ada"}],
         "words": [{"start": start, "end": start + 2, "confidence": n / number / 2} for start in (0, 4, 8, 11)]}
        for n in range(number)
    ]  # fmt: skip
    marked.append({"id": "stranger", "status": "scored", "detector": "d@1", "score": 0.1, "spans": []})
    (tmp_path / "marked.jsonl").write_text("\n".join(map(json.dumps, marked)), "utf-8")
    settings = "".join(f"{name} = {json.dumps(value)}\n" for name, value in work.items())
    head = RULES.replace("[work]\n", '[data]\npath = "data.jsonl"\n[work]\nper_person = 1000\n' + settings)
    return make_project(f"{head}\n[suggestions]\n{suggestions}\n{more}")


def test_predictions_of_a_file_are_suggested_with_their_confidence(store, make_project, tmp_path):
    project = _loop(make_project, tmp_path)
    done = import_all(store, project)
    assert (done.predicted, done.unpredicted) == (40, 1)
    again = import_all(store, project)
    assert (again.predicted, again.known) == (0, 40)
    work = team(store, project)
    given = work.next(work.person())
    (shown,) = given.suggestions
    assert {name: shown[name] for name in ("start", "end", "type", "confidence")} == {
        "start": 0, "end": 3, "type": "entity", "confidence": 0.75,
    }  # fmt: skip
    layer = Layer(spans=(LayerSpan(suggested_id(shown), 0, 3, "entity"),))
    work.act(given, "submit", layer)
    assert verdict(shown, work.assignment(given.id).layer) == "accepted"


def test_the_least_certain_come_first_and_every_other_one_by_chance(store, make_project, tmp_path):
    project = _loop(make_project, tmp_path, order="uncertainty")
    import_all(store, project)
    work = team(store, project)
    with store.reading() as tx:
        items = tx.items(work.id)
    chance = [is_random(project, item.key) for item in items]
    both = min(chance.count(True), chance.count(False))
    assert chance[: 2 * both] == [False, True] * both
    assert 10 < chance.count(True) < 30
    uncertain = [int(item.key[1:]) for item in items if not is_random(project, item.key)]
    assert uncertain == sorted(uncertain, reverse=True)  # the nearer to 1/2, the less certain
    by_chance = [int(item.key[1:]) for item in items if is_random(project, item.key)]
    assert by_chance not in (sorted(by_chance), sorted(by_chance, reverse=True))
    person = work.person()
    first = work.next(person)
    import_all(store, project)  # changes nothing, and never what somebody has
    with store.reading() as tx:
        assert [item.key for item in tx.items(work.id)] == [item.key for item in items]
        assert tx.item(first.item_id).key == items[0].key


def test_an_order_without_predictions_is_refused(make_project):
    with pytest.raises(InputError, match="predictions"):
        make_project(RULES.replace("[work]\n", '[work]\norder = "uncertainty"\n'))

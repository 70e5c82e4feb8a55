"""Rates by the labels so far: those that `veriglot estimate` makes of the export, which other commands take too."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from rule_rows import RULES, spans, team

from json_lines import read_lines
from veriglot import estimate, read
from veriglot.cli import main
from veriglot.formats.reader import read_predictions
from veriglot.metrics.reference import reference
from veriglot.studio.adjudication import adjudicate, disagreements
from veriglot.studio.assignment import assign_item, next_assignment, suggestions_for
from veriglot.studio.export import export
from veriglot.studio.items import draws_suggestions, import_all, is_random
from veriglot.studio.layers import Layer
from veriglot.studio.rates import measure_rates
from veriglot.studio.tables import Role

STUDY = """
[study]
title = "Labelled"
estimator = "ppi"
estimators = ["raw"]
[responses]
path = "data.jsonl"
[[models]]
name = "m"
[[detectors]]
name = "grounding"
[labels]
path = "out/labels.jsonl"
"""
TEXT = "Ada war in Rom und in Bonn."
_UNLABELLED = "8 handed in without a label, which can widen the interval: review, settle or exclude"
WORDS = [(0, 3), (4, 7), (8, 10), (11, 14), (15, 18), (19, 21), (22, 26)]


def _loop(make_project, tmp_path, number, settings="", table='predictions = "marked.jsonl"', work="per_person = 9999"):
    """Responses of seven words, of which the detector marks the first in every third one."""
    rows = [
        {"id": f"i{n}", "language": "de", "response": TEXT, "generator": {"name": "m"}, "evidence": [{"text": str(n)}]}
        for n in range(number)
    ]
    marked = [
        {"id": f"i{n}", "status": "scored", "detector": "d@1", "score": 0.6, "signature": "detector:d@1|threshold:0.5",
         "spans": [{"start": 0, "end": 3, "type": "entity", "text": "Ada", "confidence": 0.6}] if n % 3 == 0 else []}
        for n in range(number)
    ]  # fmt: skip
    for name, lines in (("data", rows), ("marked", marked)):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    head = RULES.replace("[work]\n", f'[data]\npath = "data.jsonl"\n[work]\n{work}\n')
    return make_project(f"{head}\n[suggestions]\n{table}\n{settings}")


def _label(work, number, layer_of):
    """Hand in as many items; what `layer_of` says of the number of each."""
    person = work.person()
    with work.store.reading() as tx:
        keys = {item.id: int(item.key[1:]) for item in tx.items(work.id)}
    for _ in range(number):
        given = work.next(person)
        work.act(given, "submit", layer_of(keys[given.item_id], given))


def test_the_rate_is_that_of_estimate_on_the_export(store, make_project, tmp_path):
    project = _loop(make_project, tmp_path, 240, "share = 0\n")
    import_all(store, project)
    work = team(store, project)
    _label(work, 120, lambda n, _: spans(*[WORDS[n % 7]] if n % 3 == 0 or n % 11 == 0 else []))
    with store.reading() as tx:
        (line,) = measure_rates(tx, project).languages
    export(store, project, tmp_path / "out")
    (rate,) = estimate(
        read_predictions(str(tmp_path / "marked.jsonl")), read(tmp_path / "data.jsonl"),
        labels=read(tmp_path / "out" / "labels.jsonl"),
    )  # fmt: skip
    assert (line.rate, line.low, line.high) == (rate.rate, rate.low, rate.high)
    assert (line.estimator, line.items, line.labels, line.suggested) == ("ppi", 240, 120, 0)
    assert [step.labels for step in line.steps] == [100, 120]
    true = sum(n % 3 == 0 or n % 11 == 0 for n in range(240)) / 240 / 7
    assert line.low < true < line.high
    assert line.enough == ((line.high - line.low) / 2 <= 0.02)


@pytest.mark.slow
def test_without_predictions_the_labels_stand_alone_and_more_make_the_interval_narrower(store, make_project, tmp_path):
    project = _loop(make_project, tmp_path, 420, table="silver = true", work="per_person = 9999\nhalf_width = 0.001")
    import_all(store, project)
    work = team(store, project)
    _label(work, 400, lambda n, _: spans(*[WORDS[0]] if n % 4 == 0 else []))
    with store.reading() as tx:
        (line,) = measure_rates(tx, project).languages
    assert (line.estimator, line.labels, line.rate) == ("raw", 400, pytest.approx(0.25 / 7))
    widths = [step.high - step.low for step in line.steps]
    assert widths == sorted(widths, reverse=True)
    assert widths[3] == pytest.approx(widths[0] / 2, rel=0.1)  # as the root of the number
    normal = 2 * 1.96 * math.sqrt(np.var([0.0, 0.0, 0.0, 1 / 7]) / 400)
    assert normal < widths[3] < 1.2 * normal  # whose spread is itself estimated
    assert not line.enough
    assert line.needed > 10_000


def test_what_came_since_it_is_uncertain_is_in_no_rate(store, make_project, tmp_path):
    order = 'per_person = 9999\norder = "uncertainty"'
    project = _loop(make_project, tmp_path, 60, "share = 0\n", work=order)
    import_all(store, project)
    work = team(store, project)
    _label(work, 40, lambda _, __: spans((0, 3)))
    with store.reading() as tx:
        (line,) = measure_rates(tx, project).languages
    assert (line.labels, line.chosen) == (20, 20)
    export(store, project, tmp_path / "out")
    assert len(list(read(tmp_path / "out" / "gold.jsonl"))) == 40
    assert len(list(read(tmp_path / "out" / "labels.jsonl"))) == 20


def _two_annotate(store, make_project, tmp_path, disputed, number):
    """Two people annotate each item; of the first `disputed` only one of them marks a word."""
    _loop(make_project, tmp_path, number)
    head = RULES.replace("[work]\n", '[data]\npath = "data.jsonl"\n[work]\nper_item = 2\nper_person = 9999\n')
    project = make_project(head)
    import_all(store, project)
    work = team(store, project)
    _label(work, number, lambda n, _: spans(*[WORDS[0]] if n < disputed else []))
    _label(work, number, lambda _, __: spans())
    return project, work


def test_what_all_agree_on_is_a_label_and_what_is_not_settled_a_reason(store, make_project, tmp_path):
    project, work = _two_annotate(store, make_project, tmp_path, 8, 40)
    with store.reading() as tx:
        (line,) = measure_rates(tx, project).languages
        disputed = [row.item.id for row in disagreements(tx, project, work.id)]
    assert (line.labels, line.rate) == (32, 0)
    assert not line.enough  # however narrow: what all agree on says nothing of the other 8
    assert _UNLABELLED in line.reasons
    done = export(store, project, tmp_path / "before")
    assert len(list(read(tmp_path / "before" / "labels.jsonl"))) == 32
    assert any("lacks 8 items" in note for note in done.notes)
    lead = work.person(Role.LEAD)
    for item_id in disputed:
        work.act(adjudicate(store, project, lead.id, item_id), "submit", spans(WORDS[0]))
    with store.reading() as tx:
        (line,) = measure_rates(tx, project).languages
    assert (line.labels, line.rate, line.reasons) == (40, pytest.approx(8 / 280), ())
    done = export(store, project, tmp_path / "after")
    labels = list(read(tmp_path / "after" / "labels.jsonl"))
    assert sum(len(sample.annotations[0].spans) for sample in labels) == 8
    assert (len(labels), done.notes) == (40, [])


def test_few_disputes_undo_no_stop_but_the_queue_reopens_if_settled_they_make_a_rate_less_sure(
    store, make_project, tmp_path
):
    _loop(make_project, tmp_path, 60)
    work = "per_item = 2\nper_person = 9999\nhalf_width = 0.02\n"
    project = make_project(RULES.replace("[work]\n", f'[data]\npath = "data.jsonl"\n[work]\n{work}'))
    import_all(store, project)
    team_, people = team(store, project), []
    for layer in (spans(*WORDS), spans()):
        people.append(team_.person())
        for number in range(40):
            team_.act(team_.next(people[-1]), "submit", layer if number < 4 else spans())

    def state():
        with store.reading() as tx:
            (line,) = measure_rates(tx, project).languages
        enough = {line.language} if line.enough else set()
        return line, next_assignment(store, project, people[0].id, enough=enough)

    line, given = state()
    assert (line.labels, line.enough, given) == (36, True, None)
    assert line.reasons == (_UNLABELLED.replace("8", "4", 1),)
    lead = team_.person(Role.LEAD)
    with store.reading() as tx:
        disputed = [row.item.id for row in disagreements(tx, project, team_.id)]
    for item_id in disputed:
        team_.act(adjudicate(store, project, lead.id, item_id), "submit", spans(*WORDS))
    line, given = state()
    assert (line.labels, line.enough, line.reasons) == (40, False, ())
    assert line.high - line.low > 2 * 0.02
    assert given is not None


def test_responses_to_one_query_are_one_cluster_as_for_estimate(store, make_project, tmp_path):
    project = _loop(make_project, tmp_path, 60, "share = 0\n")
    path = tmp_path / "data.jsonl"
    rows = read_lines(path)
    for number, row in enumerate(rows):
        row["meta"] = {"query": f"q{number // 6}"}
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    import_all(store, project)
    work = team(store, project)
    _label(work, 60, lambda n, _: spans(*[WORDS[n % 7]] if (n // 6) % 2 else []))
    with store.reading() as tx:
        (line,) = measure_rates(tx, project).languages
    export(store, project, tmp_path / "out")
    predictions = read_predictions(str(tmp_path / "marked.jsonl"))
    (rate,) = estimate(predictions, read(path), labels=read(tmp_path / "out" / "labels.jsonl"))
    assert (line.rate, line.low, line.high) == (rate.rate, rate.low, rate.high)


def test_labels_alone_have_the_clusters_of_their_queries(store, make_project, tmp_path):
    project = _loop(make_project, tmp_path, 20, table="silver = true")
    path = tmp_path / "data.jsonl"
    path.write_text(path.read_text("utf-8").replace('"language"', '"meta": {"query": "q"}, "language"'), "utf-8")
    import_all(store, project)
    _label(team(store, project), 20, lambda _, __: spans(WORDS[0]))
    with store.reading() as tx:
        (line,) = measure_rates(tx, project).languages
    assert (line.labels, line.enough, bool(line.reasons)) == (20, False, True)


def test_predictions_count_the_pairs_that_labels_count(store, make_project, tmp_path):
    _loop(make_project, tmp_path, 60)
    head = RULES.replace('"spans"', '"pairs"').replace(
        "[work]\n", '[data]\npath = "data.jsonl"\n[work]\nper_person = 99\n'
    )
    project = make_project(f'{head}\n[suggestions]\npredictions = "marked.jsonl"\nshare = 0\n')
    import_all(store, project)
    _label(team(store, project), 30, lambda n, _: Layer(label="entity" if n % 2 else "0"))
    with store.reading() as tx:
        rates = measure_rates(tx, project)
        counts = [(row["marked"], row["units"]) for row in (tx.prediction(id_) for id_ in range(1, 61))]
    (line,) = rates.languages
    assert (rates.unit, line.estimator, line.labels, line.items) == ("response", "ppi", 30, 60)
    assert counts == [(1, 1), (0, 1), (0, 1)] * 20
    assert line.low < 0.5 < line.high


def test_what_a_lead_picks_is_in_no_rate(store, make_project, tmp_path):
    project = _loop(make_project, tmp_path, 24, table="silver = true")
    import_all(store, project)
    work = team(store, project)
    person, lead = work.person(), work.person(Role.LEAD)
    with store.writing() as tx:
        items = tx.items(work.id)
        for item in items[:4]:
            tx.update_item(item, "priority", priority=10.0)
        for item in items[4:8]:
            assign_item(tx, project, item, person, by=lead.id)
    work.do(person)
    other = work.person()
    with store.writing() as tx:
        for item in items:  # these came by chance already
            tx.update_item(item, "priority", priority=1.0)
        assign_item(tx, project, items[8], other, by=lead.id)
    with store.reading() as tx:
        (line,) = measure_rates(tx, project).languages
    assert (line.labels, line.chosen, line.enough) == (16, 8, False)
    assert "8 picked by a lead are not among the labels, which stand for the others alone" in line.reasons
    export(store, project, tmp_path / "out")
    assert len(list(read(tmp_path / "out" / "labels.jsonl"))) == 16


def test_an_order_by_uncertainty_goes_on_counting_once_the_project_file_names_another(store, make_project, tmp_path):
    import_all(store, _loop(make_project, tmp_path, 40, "share = 0\n", work='order = "file"'))
    project = _loop(make_project, tmp_path, 40, "share = 0\n", work='per_person = 9999\norder = "uncertainty"')
    work = team(store, project)
    person = work.person()
    first = work.next(person)  # in the order of the file
    work.act(first, "submit", spans())
    import_all(store, project)
    work.do(person)
    chance = {f"i{n}" for n in range(40) if is_random(project, f"i{n}")} | {"i0"}
    project = _loop(make_project, tmp_path, 40, "share = 0\n")
    with store.reading() as tx:
        (line,) = measure_rates(tx, project).languages
    assert (line.labels, line.chosen) == (len(chance), 40 - len(chance))
    export(store, project, tmp_path / "out")
    assert {sample.id for sample in read(tmp_path / "out" / "labels.jsonl")} == chance


@pytest.mark.slow
@pytest.mark.parametrize("follows", [True, False])
def test_suggestions_that_change_what_people_mark_are_told(store, make_project, tmp_path, follows):
    project = _loop(make_project, tmp_path, 300, "share = 0.5\n")
    import_all(store, project)
    work = team(store, project)

    def layer(n, given):
        """What is suggested and shown; of what is not shown, every other one (or as often, where nobody follows)."""
        seen = bool(given.suggestions) and follows
        return spans((0, 3)) if n % 3 == 0 and (seen or n % 2) else spans()

    _label(work, 300, layer)
    with store.reading() as tx:
        marked, followed = measure_rates(tx, project).effects
        shown = {int(i.key[1:]): suggestions_for(tx, project, i) is not None for i in tx.items(work.id)}
        (line,) = measure_rates(tx, project).languages
    assert (marked.shown_items, marked.blind_items) == (sum(shown.values()), 300 - sum(shown.values()))
    assert line.suggested == sum(shown.values())
    suggested = [n for n in range(0, 300, 3) if shown[n]]
    blind = [n for n in range(0, 300, 3) if not shown[n]]
    first = 1.0 if follows else sum(n % 2 for n in suggested) / len(suggested)
    second = sum(n % 2 for n in blind) / len(blind)
    assert (followed.shown, followed.blind) == (pytest.approx(first), pytest.approx(second))
    assert followed.difference == pytest.approx(first - second)
    assert (followed.low > 0) == follows
    assert followed.low < first - second < followed.high


def test_few_items_give_no_difference_and_a_reason(store, make_project, tmp_path):
    project = _loop(make_project, tmp_path, 12)
    import_all(store, project)
    work = team(store, project)
    _label(work, 12, lambda _, __: spans())
    with store.reading() as tx:
        marked, _ = measure_rates(tx, project).effects
    assert (marked.difference, marked.blind_items) == (None, 0)
    assert "12 items with suggestions and 0 without; 8 of each" in marked.reason


def test_other_commands_take_the_export_as_it_is(store, make_project, tmp_path, capsys):
    project = _loop(make_project, tmp_path, 60, "share = 0\n")
    import_all(store, project)
    work = team(store, project)
    _label(work, 40, lambda n, _: spans((0, 3)) if n % 3 == 0 or n % 7 == 0 else spans())
    export(store, project, tmp_path / "out")
    labels, profile = str(tmp_path / "out" / "labels.jsonl"), str(tmp_path / "profile.json")
    predictions, data = str(tmp_path / "marked.jsonl"), str(tmp_path / "data.jsonl")
    assert main(["evaluate", labels, "--predictions", predictions, "-o", profile]) == 0
    assert json.loads((tmp_path / "profile.json").read_text("utf-8"))["data"]["kind"] == "gold"
    assert main(["estimate", predictions, "--samples", data, "--labels", labels, "--json"]) == 0
    assert main(["estimate", predictions, "--samples", data, "--profile", profile]) == 0
    config = tmp_path / "study.toml"
    config.write_text(STUDY, "utf-8")
    assert main(["study", "run", str(config), "-o", str(tmp_path / "run"), "--quiet"]) == 0
    (cell,) = json.loads((tmp_path / "run" / "results.json").read_text("utf-8"))["cells"]
    assert cell["rates"][0]["estimator"] == "ppi"
    gold = [reference(sample) for sample in read(tmp_path / "out" / "gold.jsonl")]
    assert [labels.annotator for labels in gold] == ["gold"] * 40


def test_what_was_annotated_before_there_were_predictions_is_in_neither_arm(store, make_project, tmp_path):
    project = _loop(make_project, tmp_path, 24, "share = 0.5\n")
    predictions = tmp_path / "marked.jsonl"
    text = predictions.read_text("utf-8")
    predictions.write_text("", "utf-8")
    import_all(store, project)
    work = team(store, project)
    _label(work, 12, lambda _, __: spans())
    predictions.write_text(text, "utf-8")
    import_all(store, project)
    _label(work, 12, lambda _, __: spans())
    with store.reading() as tx:
        marked, _ = measure_rates(tx, project).effects
        shown = [draws_suggestions(project, item.key) for item in tx.items(work.id)]
    assert 0 < sum(shown[:12]) < 12
    assert (marked.shown_items, marked.blind_items) == (sum(shown[12:]), 24 - sum(shown))


def test_what_is_under_review_skipped_or_picked_leaves_the_stop_as_it_is(store, make_project, tmp_path):
    _loop(make_project, tmp_path, 60)
    head = RULES.replace("reviews = 0", "reviews = 1\nper_person = 9999\nhalf_width = 0.2")
    project = make_project(f'{head}[data]\npath = "data.jsonl"\n')
    import_all(store, project)
    work = team(store, project)
    with store.writing() as tx:
        tx.update_item(tx.items(work.id)[7], "priority", priority=10.0)
    _label(work, 40, lambda n, _: spans(*[WORDS[0]] if n % 2 else []))
    _label(work, 1, lambda _, __: Layer(skip="not_sure"))
    reviewer = work.person(Role.REVIEWER)
    for _ in range(36):
        work.act(work.next(reviewer), "confirm", None)
    with store.reading() as tx:
        (line,) = measure_rates(tx, project).languages
    assert (line.labels, line.chosen, line.enough) == (35, 1, True)
    assert [reason.split()[0] for reason in line.reasons] == ["5", "1"]

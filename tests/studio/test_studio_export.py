"""Exports hold what was marked, to the code point, and say what they cannot hold."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rule_rows import RULES, TEXTS, spans, team

from json_lines import read_lines
from own_environment import environment_of, run
from veriglot.errors import UnknownNameError, UsageError
from veriglot.formats.reader import read
from veriglot.formats.tags import parse_tags
from veriglot.records import Kind, Sample, from_mapping
from veriglot.studio.adjudication import adjudicate
from veriglot.studio.export import FORMATS, export, export_zip
from veriglot.studio.layers import Layer, LayerSpan, LayerUnit
from veriglot.studio.tables import ItemRole, Role
from veriglot.text.segmentation import clusters

HAT = RULES.replace('task = "spans"', 'task = "translation"')
RATED = RULES.replace("overlap = 0", "overlap = 1") + '[[ratings]]\nname = "fools_reader"\nof = "span"\n'


def _ends(text):
    """The first character, one in the middle, and the last two: whole ones, whatever they are made of."""
    several = list(clusters(text))  # characters of several code points
    inside = {place for start, end in several for place in range(start, end)}
    places = sorted([*several, *((n, n + 1) for n in range(len(text)) if n not in inside)])
    middle = places[len(places) // 2]
    return [places[0], middle, (places[-2][0], places[-1][1])]


def _layer(language, types=("entity", "invented", "relation")):
    places = _ends(TEXTS[language])
    return Layer(spans=tuple(LayerSpan(f"s{n}", *place, types[n % len(types)]) for n, place in enumerate(places)))


def _found(path, annotator, format_=None):
    """Language to the spans that a file has of an annotator."""
    found = {}
    for sample in read(path, format=format_):
        for one in sample.annotations:
            if one.annotator == annotator:
                found[sample.language] = [(s.start, s.end, s.type, sample.response[s.start : s.end]) for s in one.spans]
    return found


def _wanted(layers):
    return {
        {"zh": "zh-Hans"}.get(language, language): sorted(
            (s.start, s.end, s.type, TEXTS[language][s.start : s.end]) for s in layer.spans
        )
        for language, layer in layers.items()
    }


def _like(found):
    return {{"zh": "zh-Hans"}.get(language, language): sorted(rows) for language, rows in found.items()}


def _in_five_languages(store, project, types):
    work = team(store, project)
    layers = {language: _layer(language, types) for language in TEXTS}
    ids = {work.items(1, language)[0]: language for language in TEXTS}
    person = work.person()
    with store.reading() as tx:
        for id_, language in ids.items():
            layers[language].check(project.form, tx.sample(id_), complete=True)
    while (row := work.next(person)) is not None:
        work.act(row, "submit", layers[ids[row.item_id]])
    return work, person, layers


@pytest.mark.parametrize(
    ("format_", "file", "reader"),
    [
        ("native", "data.jsonl", "jsonl"),
        ("inline", "data.jsonl", "inline"),
        ("label_studio", "data.json", "label-studio"),
        ("hat", "data.json", "hat"),
    ],
)
def test_what_was_marked_comes_back(store, make_project, tmp_path, format_, file, reader):
    types = ("hallucination",) if format_ == "hat" else ("entity", "invented", "relation")
    project = make_project(HAT if format_ == "hat" else RULES)
    work, person, layers = _in_five_languages(store, project, types)
    done = export(store, project, tmp_path / "out", format_)
    assert _like(_found(tmp_path / "out" / file, "gold", reader)) == _wanted(layers)
    if format_ in {"native", "label_studio"}:
        assert _like(_found(tmp_path / "out" / file, person.public_id, reader)) == _wanted(layers)
    else:
        other = tmp_path / "out" / file.replace("data", "annotators")
        assert _like(_found(other, person.public_id, reader)) == _wanted(layers)
    assert done.items == 5
    assert done.annotators[person.public_id]["layers"] == 5
    assert not any(what.startswith("row:") for one in done.files for what in one.lost)
    assert work.project.slug == done.project


@pytest.mark.parametrize("task", ["spans", "translation", "pairs", "facts"])
def test_label_studio_takes_what_is_exported(store, make_project, tmp_path, task):
    """By the rules of its importer."""
    project = make_project(RULES.replace("spans", task))
    work = team(store, project)
    form = project.form
    if form.has_spans:
        marked = spans((0, 3, form.types[-1].name))
    elif form.labels:
        marked = Layer(label="entity")
    else:
        sample = Sample("x", TEXTS["de"], language="de")
        marked = Layer(units=tuple(LayerUnit(*unit, form.unit_labels[0].name) for unit in form.units_of(sample)))
    work.items(2, silver=marked)
    work.do(work.person(), marked)
    done = export(store, project, tmp_path / "out", "label-studio")
    assert "labeling_config.xml" in {file.path for file in done.files}
    config = ElementTree.parse(tmp_path / "out" / "labeling_config.xml").getroot()
    (control,) = (tag for tag in config if tag.get("toName"))
    shown = {tag.get("value").removeprefix("$"): tag.tag for tag in config if tag.get("value", "").startswith("$")}
    assert control.get("toName") in shown
    tasks = json.loads((tmp_path / "out" / "data.json").read_text("utf-8"))
    assert len(tasks) == 2
    for task in tasks:
        for key, tag in shown.items():  # each key that the configuration shows has to be there, of its kind
            assert isinstance(task["data"][key], str if tag == "Text" else list)
        assert all(isinstance(turn["text"], str) for turn in task["data"]["evidence"])
        assert [one["ground_truth"] for one in task["annotations"]] == [True, False]
        assert all(one["result"] for one in (*task["annotations"], *task["predictions"]))
        for one in (*task["annotations"], *task["predictions"]):
            assert "completed_by" not in one  # which has to be a member's id, or {"email": a member's}
            for result in one["result"]:
                assert (result["from_name"], result["to_name"]) == (control.get("name"), control.get("toName"))
                assert set(result["value"]["labels"]) <= {label.get("value") for label in control}


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_label_studio_itself_imports_what_is_exported(store, make_project, tmp_path):
    """In an environment of its own, into an empty database: nothing of it is refused or lost, and marks come back."""
    project = make_project(RULES)
    work, _, layers = _in_five_languages(store, project, ("entity", "invented", "relation"))
    work.items(1, silver=spans((0, 3, "entity")), text="Ada schrieb.")
    export(store, project, tmp_path / "out", "label-studio")
    (tmp_path / "scratch").mkdir()
    python = environment_of(Path(__file__).with_name("label_studio.txt"), tmp_path / "scratch")
    out, closed = tmp_path / "out", Path(__file__).parents[1] / "integrations" / "closed_network"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "LABEL_STUDIO_BASE_DATA_DIR": str(tmp_path / "label-studio"),
        "COLLECT_ANALYTICS": "False",
        "SENTRY_DSN": "",
        "FRONTEND_SENTRY_DSN": "",
        "LATEST_VERSION_CHECK": "False",
        "PYTHONPATH": str(closed),
        "CLOSED_NETWORK_LOG": str(tmp_path / "tried.txt"),
    }
    script = Path(__file__).with_name("label_studio_import.py")
    files = (out / "labeling_config.xml", out / "data.json", tmp_path / "back.json")
    done = run(python, script, *files, cwd=tmp_path, env=environment, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    assert not (tmp_path / "tried.txt").exists(), (tmp_path / "tried.txt").read_text("utf-8")
    told = json.loads(files[-1].read_text("utf-8"))
    counts = {key: told["imported"][key] for key in ("task_count", "annotation_count", "prediction_count")}
    assert counts == {"task_count": 6, "annotation_count": 10, "prediction_count": 1}  # gold beside each annotation
    (tmp_path / "exported.json").write_text(json.dumps(told["exported"]), "utf-8")
    wanted = [rows for rows in _wanted(layers).values() for _ in range(2)]
    marks = [
        sorted((s.start, s.end, s.type, sample.response[s.start : s.end]) for s in annotation.spans)
        for sample in read(tmp_path / "exported.json")
        for annotation in sample.annotations
        if annotation.kind is Kind.HUMAN
    ]
    assert sorted(marks) == sorted(wanted)
    assert [[one["ground_truth"] for one in task["annotations"]] for task in told["exported"]] == [
        [True, False]
    ] * 5 + [[]]


def test_label_studios_own_export_names_predictions_by_their_ids(tmp_path):
    result = {"type": "labels", "value": {"start": 0, "end": 3, "labels": ["entity"], "text": "Ada"}}
    task = {"id": 1, "data": {"response": "Ada war hier."}, "predictions": [1]}
    task["annotations"] = [{"id": 7, "completed_by": 1, "result": [result]}]
    (tmp_path / "back.json").write_text(json.dumps([task]), "utf-8")
    (sample,) = read(tmp_path / "back.json", language="de")
    assert [(one.annotator, len(one.spans)) for one in sample.annotations] == [("1", 1)]


def test_mfavas_files_hold_a_language_each(store, make_project, tmp_path):
    project = make_project(RULES)
    _, person, layers = _in_five_languages(store, project, ("entity", "invented", "relation"))
    done = export(store, project, tmp_path / "out", "mfava")
    for language, layer in layers.items():
        for path in (f"silver_gold_{language}.json", f"annotators/{person.public_id}_{language}.json"):
            (row,) = json.loads((tmp_path / "out" / path).read_text("utf-8"))
            tagged = parse_tags(row["gold_annotations"], ("entity", "invented", "relation"))
            assert (row["generated_text"], tagged.text) == (TEXTS[language], TEXTS[language])
            assert [(s.start, s.end, s.type) for s in tagged.spans] == [(s.start, s.end, s.type) for s in layer.spans]
    lost = {one.path: one.lost for one in done.files}
    assert "spans" not in lost["silver_gold_de.json"]
    assert lost["silver_gold_th.json"]["spans"] == 1  # readers of mFAVA take no white space into a span


def test_the_native_export_keeps_everything(store, make_project, tmp_path):
    project = make_project(RATED)
    work = team(store, project)
    ids = work.items(3, silver=spans((4, 12)))
    first, second, lead = work.person(), work.person(), work.person(Role.LEAD)
    said = Layer(
        spans=(LayerSpan("s1", 0, 12, "entity", 4, "Wrong woman?"), LayerSpan("s2", 4, 12, "relation")),
        comment="Hard.",
    )
    work.act(work.next(first), "submit", said, seconds=30)
    work.act(work.next(first), "skip", Layer(skip="not_sure"))
    work.act(work.next(second), "submit", spans((0, 3)))
    work.act(work.next(second), "save", spans((4, 12)))
    work.act(adjudicate(store, project, lead.id, ids[0]), "submit", spans((0, 12)))
    export(store, project, tmp_path / "out")
    rows = read_lines(tmp_path / "out" / "data.jsonl")
    names = [[one["annotator"] for one in row.get("annotations", [])] for row in rows]
    assert names == [["gold", "silver", first.public_id, second.public_id], ["silver"], ["silver"]]
    kept = rows[0]["meta"]["studio"]
    assert (kept["gold"], kept["role"]) == ("adjudicated", "overlap")
    assert from_mapping(kept["layers"][0]["layer"], Layer) == said
    assert [one["purpose"] for one in kept["layers"]] == ["annotate", "annotate", "adjudicate"]
    assert rows[1]["meta"]["studio"]["layers"][0]["layer"]["skip"] == "not_sure"
    begun = rows[2]["meta"]["studio"]["layers"][0]
    assert (begun["state"], from_mapping(begun["layer"], Layer)) == ("open", spans((4, 12)))
    history = read_lines(tmp_path / "out" / "history.jsonl")
    with store.reading() as tx:
        events = list(tx.events(work.id))
    assert [one["id"] for one in history] == [one.id for one in events]
    assert [from_mapping(one["layer"], Layer) for one in history if "layer" in one] == [
        e.layer for e in events if e.layer
    ]
    account = json.loads((tmp_path / "out" / "export.json").read_text("utf-8"))
    assert account["beyond"] == {}


def test_a_format_says_what_it_cannot_hold(store, make_project, tmp_path):
    project = make_project(RATED)
    work = team(store, project)
    work.items(2)
    work.items(1, role=ItemRole.CHECK, gold=spans((0, 3)))
    work.items(2, role=ItemRole.EXCLUDED)
    person = work.person()
    layer = Layer(spans=(LayerSpan("s1", 0, 12, "entity", 4, "Why?"),), comment="Hard.")
    work.act(work.next(person), "submit", layer)
    work.act(work.next(person), "skip", Layer(skip="unreadable"))
    done = export(store, project, tmp_path / "out", "label-studio")
    assert done.beyond == {
        "notes at spans": 1, "ratings of spans": 1, "comments": 1, "reasons to skip": 1,
    }  # fmt: skip
    assert done.notes[0] == "3 items that are no work are only in the native export: check 1, excluded 2."
    assert "ratings" in next(one for one in done.files if one.path == "data.json").lost


def test_source_flags_and_reasons_stand_in_hats_rows(store, make_project, tmp_path):
    project = make_project(HAT)
    work = team(store, project)
    work.items(2)
    person = work.person()
    work.act(work.next(person), "submit", Layer(source_flags=("wrong_language",)))
    work.act(work.next(person), "skip", Layer(skip="sensitive_content"))
    export(store, project, tmp_path / "out", "hat")
    rows = json.loads((tmp_path / "out" / "annotators.json").read_text("utf-8"))
    assert rows[0]["sourceErrors"] == ["wrong_language"]
    assert (rows[0]["annotatorID"], rows[0]["errors"]) == (person.public_id, [])
    assert (rows[1]["skipReason"], rows[1]["errors"]) == ("sensitive_content", None)


def test_names_are_given_only_where_they_are_asked_for(store, make_project, tmp_path):
    project = make_project(RULES)
    work = team(store, project)
    work.items(2)
    person = work.person()
    with store.writing() as tx:
        tx.update_person(person.id, "joined", payload={"name": "../../Mia"}, name="../../Mia")
    work.do(person, spans((0, 3)))
    for format_ in FORMATS:
        export(store, project, tmp_path / f"without-{format_}", format_)
        export(store, project, tmp_path / f"with-{format_}", format_, names=True)
    said = {
        path.name: "".join(file.read_text("utf-8") for file in path.rglob("*") if file.is_file())
        for path in tmp_path.iterdir()
        if path.is_dir()
    }
    assert {name for name, text in said.items() if "Mia" in text} == {f"with-{one}" for one in FORMATS}
    assert not list(Path(tmp_path).glob("*Mia*"))


def test_one_file_holds_an_export(store, make_project, tmp_path):
    project = make_project(RULES)
    team(store, project).items(1)
    done = export_zip(store, project, tmp_path / "out.zip", "native")
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert sorted(archive.namelist()) == [
            f"rules-native/{n}" for n in ("data.jsonl", "export.json", "history.jsonl")
        ]
    assert done.notes == ["Nobody has handed anything in yet."]
    with pytest.raises(UnknownNameError):
        export(store, project, tmp_path / "a", "word")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c").touch()
    with pytest.raises(UsageError):
        export(store, project, tmp_path / "b")

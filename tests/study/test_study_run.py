"""A study from end to end, with the scripted client or with given responses: what is made, kept, and made again."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from small_study import DETECTOR, LANGUAGES, RULES, asked, cell, given, make, write_study
from study_folder import EXAMPLES, outputs, write_rows

from veriglot.errors import InputError, UsageError
from veriglot.formats.reader import read
from veriglot.llm.client import ModelError
from veriglot.records import Annotation, Kind, Rate, Reliability, Span, encode
from veriglot.study.config import Folder, load
from veriglot.study.responses import study_cost
from veriglot.study.results import StudyResults
from veriglot.study.run import status

if TYPE_CHECKING:
    from pathlib import Path


def test_a_finished_study_has_every_output_and_a_cell_for_each_model_and_language(tmp_path: Path) -> None:
    outcome = make(write_study(tmp_path, asked(tmp_path), study="pooled = true"), tmp_path / "run")
    assert outcome.failed == 0
    made = outputs(tmp_path / "run")
    for name in ("responses/kiln.jsonl", "predictions/grounding/moor.jsonl", "rates.json", "results.json",
                 "report.html", "plan.json", "profiles/grounding.json", "tables/rates.csv"):  # fmt: skip
        assert name in made
    assert not [name for name in made if "partial" in name or name.endswith(".lock")]
    results = msgspec.json.decode(made["results.json"], type=StudyResults)
    assert results == outcome.results
    assert [(one.model, one.language) for one in results.cells] == [(m, t) for m in ("kiln", "moor") for t in LANGUAGES]
    for one in results.cells:
        assert one.coverage.planned == one.coverage.answered == sum(one.coverage.statuses.values()) == 24
        assert [rate.estimator for rate in one.rates] == ["label-shift", "raw", "paper"]
        assert [rate.seed for rate in one.replicates] == [1, 2, 3]
        assert one.rates[0].responses == 24
        assert one.types
    rates = msgspec.json.decode(made["rates.json"], type=list[Rate])
    assert rates[: 6 * 3] == [rate for one in results.cells for rate in one.rates]
    with (tmp_path / "run" / "tables" / "rates.csv").open(encoding="utf-8-sig", newline="") as file:
        assert len(list(csv.DictReader(file))) == 6 * 3


def test_a_finished_study_is_the_same_again_and_asks_nobody(tmp_path: Path) -> None:
    study = write_study(tmp_path, asked(tmp_path))
    make(study, tmp_path / "run")
    before = outputs(tmp_path / "run")
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").glob("*/**/*.jsonl")}
    make(study, tmp_path / "run")
    assert outputs(tmp_path / "run") == before
    assert {path: path.stat().st_mtime_ns for path in times} == times
    make(study, tmp_path / "run", restart=True)
    assert outputs(tmp_path / "run") == before
    assert status(Folder(tmp_path / "run")).finished
    (tmp_path / "run" / "study.toml").touch()  # as a run does that is killed before it has estimated anew
    assert not status(Folder(tmp_path / "run")).finished
    make(study, tmp_path / "other", jobs=2, batch_size=5)
    assert outputs(tmp_path / "other") == before


def test_rates_are_those_of_the_words_that_were_marked(tmp_path: Path) -> None:
    """Held against a count by hand: the detector of the tests marks a word that the evidence does not hold."""
    detectors = '[[detectors]]\nname = "word_absence:WordAbsence"'
    text = given(tmp_path)
    study = write_study(tmp_path, text, detectors=detectors, study='estimator = "raw"\nestimators = []')
    results = make(study, tmp_path / "run").results
    expected: dict[tuple[str, str], list[int]] = {}
    for row in read(tmp_path / "responses.jsonl"):
        known = {word.casefold() for passage in row.evidence for word in words(passage.text)}
        said = words(row.response)
        assert row.generator is not None
        counts = expected.setdefault((row.generator.name, str(row.language)), [0, 0])
        counts[0] += sum(word.casefold() not in known for word in said)
        counts[1] += len(said)
    for (model, language), (marked, units) in expected.items():
        rate = cell(results, model, language).rates[0]
        assert rate.units == units
        assert rate.rate == pytest.approx(marked / units)
    moor = [cell(results, "moor", language).rates[0].rate for language in LANGUAGES]
    assert moor == [0.0, 0.0, 0.0]  # it says what its evidence says
    assert results.warnings[-1].startswith("The rates are raw")


def words(text: str) -> list[str]:
    import re

    return re.findall(r"\w+", text)


def test_several_detectors_and_seeds_give_replicates_with_mean_and_deviation(tmp_path: Path) -> None:
    detectors = DETECTOR + DETECTOR.replace("[[detectors]]", '[[detectors]]\nlabel = "strict"\nthreshold = 0.3')
    study = write_study(tmp_path, given(tmp_path, count=90), detectors=detectors, study="pooled = true")
    results = make(study, tmp_path / "run").results
    one = cell(results, "kiln", "en")
    assert len(one.replicates) == 2 * 5
    assert {rate.seed for rate in one.replicates} == {0, 1, 2, 3, 4}
    sound = [rate.rate for rate in one.replicates if rate.status is Reliability.OK and rate.rate is not None]
    if sound:
        assert one.mean == pytest.approx(sum(sound) / len(sound))
    assert (tmp_path / "run" / "predictions" / "strict" / "kiln.jsonl").exists()
    first, second = (
        msgspec.json.decode((tmp_path / "run" / "profiles" / f"{name}.json").read_bytes())
        for name in ("grounding", "strict")
    )
    assert (first["threshold"], second["threshold"]) == (0.5, 0.3)


def test_gold_labels_from_the_study_give_ppi(tmp_path: Path) -> None:
    text = given(tmp_path, models=("kiln",), count=120)
    labelled = [row for number, row in enumerate(read(tmp_path / "responses.jsonl")) if number % 2]
    write_rows(
        tmp_path / "gold.jsonl",
        (
            msgspec.structs.replace(row, id=id_, annotations=(first_word(row),))
            for number, row in enumerate([*labelled, *labelled[:2]])
            for id_ in [row.id if number < len(labelled) else f"another-{number}"]
        ),
    )
    study = write_study(
        tmp_path, text + '[labels]\npath = "gold.jsonl"\n', detectors='[[detectors]]\nname = "grounding"',
        study='estimator = "ppi"\nestimators = ["raw"]',
    )  # fmt: skip
    results = make(study, tmp_path / "run").results
    for language in LANGUAGES:
        own, raw = cell(results, "kiln", language).rates
        assert own.estimator == "ppi"
        assert own.status is Reliability.OK, own.reason
        assert own.low is not None
        assert own.rate is not None
        assert raw.rate is not None
        first_words = 1 / cell(results, "kiln", language).length  # the share that the labels mark: one word a response
        assert abs(own.rate - first_words) < abs(raw.rate - first_words)
        assert own.low <= first_words * 1.05
    assert any("Labelled but not judged, and in no rate: 2 responses." in line for line in results.warnings)
    assert {rate.estimator for one in results.cells for rate in one.replicates} == {"raw"}
    assert any("the replicates are raw shares" in line for line in results.methods)


def first_word(row: Any) -> Annotation:
    end = row.response.index(" ")
    return Annotation("gold", Kind.HUMAN, "hat", spans=(Span(0, end, "hallucination"),))


def test_a_language_that_the_profile_does_not_hold_is_no_number(tmp_path: Path) -> None:
    german = [row for row in read(EXAMPLES) if row.language == "de"]
    (tmp_path / "german").mkdir()
    write_rows(tmp_path / "german" / "german.jsonl", iter(german))
    (tmp_path / "german" / "de-val.refs.jsonl").write_text('{"id": "1", "reference": "Read with another file."}\n')
    detectors = '[[detectors]]\nname = "grounding"\nlabelled = "german"'
    study = write_study(tmp_path, given(tmp_path, models=("kiln",)), detectors=detectors)
    rate = cell(make(study, tmp_path / "run").results, "kiln", "fr").rates[0]
    assert (rate.rate, rate.status) == (None, Reliability.UNRELIABLE)
    assert rate.reason == "the error profile does not hold this language"
    study.write_text(study.read_text().replace("draws = 200", "draws = 200\npooled = true"))
    results = make(study, tmp_path / "run").results
    assert cell(results, "kiln", "fr").rates[0].rate is not None
    assert "rates:pooled" in cell(results, "kiln", "fr").rates[0].signature
    assert any("French" in line and "over all languages" in line for line in results.assumptions)


def test_a_language_that_nothing_was_asked_in_says_so(tmp_path: Path) -> None:
    study = write_study(tmp_path, given(tmp_path, models=("kiln",)))
    study.write_text(study.read_text().replace("draws = 200", 'draws = 200\nlanguages = ["fr", "sw"]'))
    rate = cell(make(study, tmp_path / "run").results, "kiln", "sw").rates[0]
    assert (rate.rate, rate.responses) == (None, 0)
    assert rate.reason == "no response was asked for or given in this language"


def test_where_a_model_was_not_asked_it_has_no_rate_that_could_be_unreliable(tmp_path: Path) -> None:
    text = given(tmp_path)
    rows = [row for row in read(tmp_path / "responses.jsonl") if row.language != "fr" or row.generator.name != "moor"]
    write_rows(tmp_path / "responses.jsonl", iter(rows))
    detectors = '[[detectors]]\nname = "word_absence:WordAbsence"'
    study = write_study(tmp_path, text, detectors=detectors, study='estimator = "raw"\nestimators = []')
    results = make(study, tmp_path / "run").results
    assert not any("unreliable" in line for line in results.warnings)
    assert {mean.name: (mean.cells, mean.unreliable) for mean in results.by_model} == {"kiln": (3, 0), "moor": (2, 0)}
    assert "unreliable," not in (tmp_path / "run" / "tables" / "rates.csv").read_text("utf-8").partition("\n")[2]


def test_calls_that_fail_are_counted_and_made_up_for_by_the_next_run(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text("[[rules]]\nmatch = '\\(7\\)$'\nerror = 'no'\n" + RULES)
    text = asked(tmp_path, models=("kiln",))
    study = write_study(tmp_path, text)
    outcome = make(study, tmp_path / "run")
    assert outcome.failed == 3
    covered = [one.coverage for one in outcome.results.cells]
    assert sum(one.failed for one in covered) == 3
    assert sum(one.planned for one in covered) == sum(one.answered for one in covered) + 3 == 72
    for one in outcome.results.cells:  # what failed is missing beside the rates too: of the cell, and of each seed
        expected = one.coverage.answered / 24
        assert {rate.coverage for rate in one.rates} == {expected}
        assert [rate.coverage for rate in one.replicates] == [(8 - one.coverage.failed / 3) / 8] * 3
    assert any("Never made, as the calls failed: 3 of 72" in line for line in outcome.results.warnings)
    assert [step.failed for step in status(Folder(tmp_path / "run")).steps] == [3, 0]
    (tmp_path / "run" / "cache").rename(tmp_path / "spared")  # another script is another client, with calls of its own
    (tmp_path / "rules.toml").write_text(RULES)
    with pytest.raises(UsageError, match="started differently"):
        make(study, tmp_path / "run")
    again = make(study, tmp_path / "run", restart=True)
    assert again.failed == 0
    assert sum(one.coverage.answered for one in again.results.cells) == 72


def test_a_server_that_comes_back_makes_up_for_what_failed(tmp_path: Path) -> None:
    """The client is the same, so the run goes on; predictions of responses that have changed are made anew."""
    from misbehaving import Arrival, ModelServer

    class Moody(ModelServer):
        moody = True

        def handle(self, arrival: Arrival) -> tuple[int, Any]:
            if self.moody and "(7)" in json.dumps(arrival.body):
                return 400, {"error": {"message": "not this one"}}
            return super().handle(arrival)

    text = asked(tmp_path, models=())
    with Moody() as server:
        study = write_study(tmp_path, f'{text}[[models]]\nname = "kiln"\nbase_url = "{server.base_url}"\n')
        assert make(study, tmp_path / "run").failed == 3
        server.moody = False
        mended = make(study, tmp_path / "run")
        assert mended.failed == 0
        assert sum(one.coverage.answered for one in mended.results.cells) == 72
        assert server.paid_most() == 1
        assert len(server.paid) == 72
    make(study, tmp_path / "run")  # nothing is left to ask, so nobody is connected to
    rows = [path.read_bytes().count(b"\n") for path in (tmp_path / "run").glob("*/**/kiln.jsonl")]
    assert rows == [72, 72]


def test_a_spending_limit_stops_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    text = asked(tmp_path)
    study = write_study(tmp_path, text + "[limits]\ncalls = 100\njobs = 3\n")
    with pytest.raises(ModelError, match="The limit of"):
        make(study, tmp_path / "run")
    with pytest.raises(ModelError, match="The limit of"):  # what was spent before counts
        make(study, tmp_path / "run")
    study.write_text(study.read_text().replace("calls = 100", "calls = 144"))
    assert make(study, tmp_path / "run").failed == 0
    whole = write_study(tmp_path, text)
    make(whole, tmp_path / "whole")
    assert outputs(tmp_path / "run") == outputs(tmp_path / "whole")


def test_a_profile_that_does_not_belong_to_the_detector_is_refused(tmp_path: Path) -> None:
    make(write_study(tmp_path, given(tmp_path)), tmp_path / "run")
    profile = msgspec.json.decode((tmp_path / "run" / "profiles" / "grounding.json").read_bytes())
    for key, value, words_ in (
        ("detector", "other@1", "is of other@1"),
        ("unit", "char", "counts 'char'"),
    ):
        (tmp_path / "profile.json").write_bytes(msgspec.json.encode({**profile, key: value}))
        study = write_study(
            tmp_path, given(tmp_path), detectors='[[detectors]]\nname = "grounding"\nprofile = "profile.json"'
        )
        with pytest.raises((InputError, UsageError), match=words_):
            make(study, tmp_path / "refused")
    (tmp_path / "profile.json").write_bytes(msgspec.json.encode(profile))
    study.write_text(study.read_text() + "\nthreshold = 0.4")
    with pytest.raises(UsageError, match=r"is for the threshold 0\.5"):
        make(study, tmp_path / "refused")
    study.write_text(study.read_text().replace("threshold = 0.4", ""))
    assert (
        outputs(tmp_path / "run")["rates.json"]
        == (make(study, tmp_path / "same"), outputs(tmp_path / "same"))[1]["rates.json"]
    )


def test_a_measured_profile_of_another_revision_is_refused(tmp_path: Path) -> None:
    study, run = write_study(tmp_path, given(tmp_path)), tmp_path / "run"
    make(study, run)
    stored = run / "profiles" / "grounding.json"
    profile = msgspec.json.decode(stored.read_bytes())
    stored.write_bytes(msgspec.json.encode({**profile, "detector": "grounding@0.9"}))
    with pytest.raises(UsageError, match=r"is of grounding@0\.9"):
        make(study, run)


def test_a_profile_is_refused_before_a_model_is_asked(tmp_path: Path) -> None:
    (tmp_path / "profile.json").write_text("[study]")
    study = write_study(
        tmp_path, asked(tmp_path), detectors='[[detectors]]\nname = "grounding"\nprofile = "profile.json"'
    )
    with pytest.raises(InputError, match="not valid JSON"):
        make(study, tmp_path / "run")
    assert not (tmp_path / "run" / "responses").exists()
    with pytest.raises(InputError, match="not valid JSON"):
        study_cost(load(study), Folder(tmp_path / "dry"))


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    study = write_study(tmp_path, given(tmp_path))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="is no run of a study"):
        make(study, tmp_path / "home", restart=True)
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["letter.txt"]


def test_errors_of_every_call_end_the_run_and_keep_what_is_done(tmp_path: Path) -> None:
    from misbehaving import ModelServer

    with ModelServer(models=["kiln"]) as server:
        text = asked(tmp_path, models=())
        names = "".join(f'[[models]]\nname = "{name}"\nbase_url = "{server.base_url}"\n' for name in ("kiln", "fen"))
        study = write_study(tmp_path, text + names)
        with pytest.raises(ModelError, match="no such model: fen"):
            make(study, tmp_path / "run")
        assert len(server.paid) == 72
        steps = status(Folder(tmp_path / "run")).steps
        assert [(step.model, step.done, step.finished) for step in steps[:2]] == [("kiln", 72, True), ("fen", 0, False)]
        server.models = None
        make(study, tmp_path / "run")
        assert server.paid_most() == 1


def test_results_hold_no_path_and_no_time(tmp_path: Path) -> None:
    study = write_study(tmp_path, asked(tmp_path))
    results = make(study, tmp_path / "run").results
    assert str(tmp_path).encode() not in encode(results)

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import msgspec
import pytest
from absent_words import AbsentWords
from labelled_texts import samples

from commands import command
from json_lines import read_lines, write_lines
from veriglot.bench.config import load
from veriglot.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Command, Outcome

DETECTOR = ("--detector", "absent_words:AbsentWords")
evaluate = command("evaluate")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    return write_lines(path, samples())


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    path = tmp_path / "marked.jsonl"
    return write_lines(path, AbsentWords().predict(samples()))


def figures(outcome: Outcome) -> dict[tuple[str, str, str], dict[str, object]]:
    assert outcome.code == 0, outcome.err
    return {(f["level"], f["name"], f["language"]): f for f in json.loads(outcome.out)["figures"]}


def test_of_many_rows_that_cannot_be_read_some_are_shown_and_all_counted(
    evaluate: Command, data: Path, tmp_path: Path
) -> None:
    with data.open("ab") as file:
        file.write(b'{"id": 1}\n' * 40)
    outcome = evaluate(data, *DETECTOR)
    assert outcome.code == 3
    assert outcome.err.count("data.jsonl, line") == 5
    assert "not shown, only counted; `veriglot convert FILE -o NEW.jsonl` writes all to" in outcome.err
    assert "40 could not be read." in outcome.err
    outcome = evaluate(data, *DETECTOR, "-o", tmp_path / "profile.json")
    assert outcome.err.count("data.jsonl, line") == 5
    assert f"40 could not be read (see {tmp_path}/profile.json.failed.jsonl)" in outcome.err
    assert (tmp_path / "profile.json.failed.jsonl").read_bytes().count(b"\n") == 40


def test_a_line_for_each_language_and_one_for_all(evaluate: Command, data: Path) -> None:
    outcome = evaluate(data, *DETECTOR, "--resamples", 50)
    values = figures(evaluate(data, *DETECTOR, "--resamples", 50, "--json"))
    lines = {line.split()[0]: line.split()[1:] for line in outcome.out.splitlines() if line.split()}
    for tag in ("de", "en", "pooled"):
        shown = [
            ("response", "recall"),
            ("response", "fpr"),
            *(("unit", name) for name in ("precision", "recall", "f1")),
        ]
        cells = [float(cell) for cell in lines[tag][2:] if not cell.startswith("[") and not cell.endswith("]")]
        assert cells == [round(float(str(values[level, name, tag]["value"])), 3) for level, name in shown]
    assert "mean" not in lines
    assert lines["de"][:2] == ["3", "2"]
    assert len(lines["de"]) == 7, "three texts give no interval"
    assert any(cell.startswith("[") for cell in lines["pooled"]), "six texts do"
    assert outcome.out.count("\n") < 12
    assert "Wrong, marked: recall," in outcome.out, "in the field's words"
    assert "Right, marked: FPR," in outcome.out


def test_a_summary_says_how_many_were_not_scored(evaluate: Command, data: Path, predictions: Path) -> None:
    predictions.write_bytes(b"".join(predictions.read_bytes().splitlines(keepends=True)[1:]))
    outcome = evaluate(data, "--predictions", predictions, "--resamples", 0)
    assert "2 of 3" in outcome.out
    assert "5 of 6" in outcome.out
    assert "1 of 6 labelled samples not scored: missing 1" in outcome.out


def test_full_output_shows_every_table(evaluate: Command, data: Path) -> None:
    outcome = evaluate(data, *DETECTOR, "--resamples", 50, "--full")
    assert outcome.code == 0
    for part in (
        "Units (word), unsupported or not",
        "prevalence",
        "mean",
        "pooled",
        "entity",
        "Characters",
        "Signature",
    ):
        assert part in outcome.out
    assert outcome.out.startswith("Responses\n"), "what most people ask for"
    assert "nan" not in outcome.out.lower()
    assert "\u2026" not in outcome.out  # nothing is cut off
    assert "6 rows: 6 checked" in outcome.err


def test_tables_without_a_figure_are_left_out(evaluate: Command, tmp_path: Path) -> None:
    """Seven empty tables stood before the one with figures."""
    path = tmp_path / "whole.csv"
    path.write_text("response,evidence,unsupported\nIt rains.,It rains.,0\nIt snows.,It rains.,1\n", "utf-8")
    shown = evaluate(path, *DETECTOR, "--full", "--resamples", 0).out
    assert shown.count("\nlanguage ") == 3  # responses, units, confidences
    assert "labelled as a whole" not in shown, "responses are what is counted"
    words = evaluate(path, *DETECTOR, "--full", "--resamples", 0, "--unit", "word").out
    assert words.count("labelled as a whole: only figures of responses include them (--unit response)\n") == 1


def test_one_language_is_shown_once(evaluate: Command, data: Path) -> None:
    data.write_bytes(b"".join(data.read_bytes().splitlines(keepends=True)[:3]))
    outcome = evaluate(data, *DETECTOR, "--resamples", 0, "--levels", "char")
    assert outcome.out.count("\nen ") == 1
    assert "\nmean " not in outcome.out
    assert ("char", "iou", "mean") in figures(evaluate(data, *DETECTOR, "--json"))


def test_units_may_be_the_tokens_of_a_tokenizer_file(evaluate: Command, data: Path, tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=60, show_progress=False)
    tokenizer.train_from_iterator([sample.response for sample in samples()], trainer)
    path = tmp_path / "tokenizer.json"
    tokenizer.save(str(path))
    found = figures(evaluate(data, *DETECTOR, "--json", "--unit", f"hf:{path}"))
    units = sum(len(tokenizer.encode(sample.response).ids) for sample in samples())
    assert found["unit", "f1", "pooled"]["n_units"] == units
    assert found["unit", "f1", "pooled"]["unit"] == f"hf:{path}"


def test_predictions_give_what_the_detector_gives(evaluate: Command, data: Path, predictions: Path) -> None:
    asked = figures(evaluate(data, *DETECTOR, "--json", "-q"))
    joined = figures(evaluate(data, "--predictions", predictions, "--json", "-q"))
    assert asked.keys() == joined.keys()
    for key, figure in asked.items():
        assert (figure["value"], figure["low"], figure["high"]) == (
            joined[key]["value"], joined[key]["low"], joined[key]["high"],
        )  # fmt: skip
    assert joined["unit", "f1", "de"]["signature"] == asked["unit", "f1", "de"]["signature"]


def test_order_of_predictions_is_nothing_and_missing_ones_are_coverage(
    evaluate: Command, data: Path, predictions: Path
) -> None:
    lines = predictions.read_bytes().splitlines(keepends=True)
    predictions.write_bytes(b"".join(lines[::-1]))
    assert figures(evaluate(data, "--predictions", predictions, "--json", "-q"))["unit", "f1", "de"]["coverage"] == 1.0
    predictions.write_bytes(b"".join(lines[1:]))
    outcome = evaluate(data, "--predictions", predictions, "--json")
    plain = json.loads(outcome.out)
    assert plain["coverage"]["en"]["unscored"] == {"missing": 1}
    assert plain["coverage"]["en"]["share"] == pytest.approx(2 / 3)


def test_predictions_of_no_sample_are_told(evaluate: Command, data: Path, predictions: Path) -> None:
    lines = data.read_bytes().splitlines(keepends=True)
    data.write_bytes(b"".join(lines[1:]))
    assert "1 predictions of" in evaluate(data, "--predictions", predictions).err


def test_threshold_marks_anew_from_words(evaluate: Command, data: Path, predictions: Path) -> None:
    asked = figures(evaluate(data, *DETECTOR, "--threshold", 0.9, "--json", "-q"))
    joined = figures(evaluate(data, "--predictions", predictions, "--threshold", 0.9, "--json", "-q"))
    for level, name in (("unit", "precision"), ("unit", "recall"), ("sentence", "f1")):
        assert asked[level, name, "pooled"]["value"] == joined[level, name, "pooled"]["value"]
    assert asked["unit", "recall", "pooled"] != figures(evaluate(data, *DETECTOR, "--json"))["unit", "recall", "pooled"]


def test_processes_change_nothing(evaluate: Command, data: Path) -> None:
    assert (
        evaluate(data, *DETECTOR, "--json", "--processes", 1).out
        == evaluate(data, *DETECTOR, "--json", "--processes", 2).out
    )


def test_counts_are_measured_again_without_the_detector(evaluate: Command, data: Path, tmp_path: Path) -> None:
    counts = tmp_path / "counts.json"
    first = figures(evaluate(data, *DETECTOR, "--json", "--counts", counts))
    again = figures(evaluate(counts, "--json"))
    assert {key: f["low"] for key, f in again.items()} == {key: f["low"] for key, f in first.items()}
    assert again["unit", "f1", "de"]["signature"] == first["unit", "f1", "de"]["signature"]
    other = figures(evaluate(counts, "--json", "--seed", 5, "--resamples", 77))
    assert "seed:5|resamples:77" in str(other["unit", "f1", "de"]["signature"])
    twice = figures(evaluate(counts, counts, "--json", "--resamples", 0))
    assert twice["unit", "f1", "pooled"]["value"] == first["unit", "f1", "pooled"]["value"]
    assert twice["unit", "f1", "pooled"]["n_responses"] == 12
    mixed = evaluate(counts, data)
    assert (mixed.code, "cannot be given together" in mixed.err) == (2, True)


def test_profile_is_written(evaluate: Command, data: Path, tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    outcome = evaluate(data, *DETECTOR, "-o", path, "--json")
    profile = json.loads(path.read_bytes())
    assert profile["pooled"]["recall"] == figures(outcome)["unit", "recall", "pooled"]["value"]
    assert profile["signature"] == json.loads(outcome.out)["signature"]


def test_labels_of_whole_responses_make_no_profile_of_words(evaluate: Command, tmp_path: Path) -> None:
    data, profile = tmp_path / "whole.csv", tmp_path / "profile.json"
    data.write_text("context,answer,unsupported\nIt rains in Rome.,It rains.,0\nIt rains.,It snows.,1\n", "utf-8")
    outcome = evaluate(data, *DETECTOR, "-o", profile, "--unit", "word")
    assert (outcome.code, profile.exists()) == (2, False)
    assert "2 samples are labelled as a whole" in outcome.out, "the figures of responses are shown"
    assert "no response with labelled spans was scored.\n  Labels of whole responses give the figures of" in outcome.err
    assert "--unit response" in outcome.err
    assert "veriglot estimate --estimator raw" in outcome.err


def test_labels_of_whole_responses_make_the_profile_of_responses_that_marks_make(
    evaluate: Command, tmp_path: Path
) -> None:
    """They had no confidences: `em` took those of the study for probabilities, with intervals far off its rate."""
    wanted = []
    for column, labels in (("unsupported", (0, 1, 1)), ("spans", ("[]", "snows", "hails"))):
        data, profile = tmp_path / f"{column}.csv", tmp_path / f"{column}.json"
        answers = zip(("It rains.", "It snows.", "It hails."), labels, strict=True)
        rows = "".join(f"It rains in Rome.,{answer},{label}\n" for answer, label in answers)
        data.write_text(f"context,answer,{column}\n{rows}", "utf-8")
        unit = () if column == "unsupported" else ("--unit", "response")  # the default, if there are no marks
        assert evaluate(data, *DETECTOR, *unit, "-o", profile).code == 0
        assert json.loads(profile.read_bytes())["unit"] == "response"
        wanted.append(json.loads(profile.read_bytes())["pooled"])
    assert wanted[0] == wanted[1]
    assert wanted[0]["confidences"]


def test_marks_of_one_row_make_words_the_unit(evaluate: Command, tmp_path: Path) -> None:
    data, profile = tmp_path / "mixed.csv", tmp_path / "profile.json"
    data.write_text("context,answer,unsupported,spans\nIt rains.,It rains.,0,\nIt rains.,It snows.,,snows\n", "utf-8")
    assert evaluate(data, *DETECTOR, "-o", profile).code == 0
    assert json.loads(profile.read_bytes())["unit"] == "word"


def test_a_label_of_the_whole_response_beside_anothers_marks_is_used_or_told(evaluate: Command, tmp_path: Path) -> None:
    data = tmp_path / "two.csv"
    rows = "a,It rains.,It snows.,[],,anna\na,It rains.,It snows.,,unsupported,ben\n"
    rows += "b,It rains.,It snows.,snows,,anna\n"
    rows += "".join(f"b,It rains.,It snows.,,supported,{name}\n" for name in ("ben", "cyd"))
    rows += "c,It rains.,It snows.,snows,,anna\nc,It rains.,It snows.,,supported,ben\n"
    rows += "c,It rains.,It snows.,,unsupported,cyd\n"
    data.write_text(f"id,context,answer,spans,label,annotator\n{rows}", "utf-8")
    outcome = evaluate(data, *DETECTOR, "--json")
    assert figures(outcome)["response", "recall", "pooled"]["value"] is None, "two of three call b supported"
    assert any("2 samples count as right" in note for note in json.loads(outcome.out)["notes"])


def test_bad_rows_are_kept_and_the_rest_measured(evaluate: Command, data: Path, tmp_path: Path) -> None:
    data.write_bytes(data.read_bytes() + b'{"id": "broken", "respon\n')
    path = tmp_path / "profile.json"
    outcome = evaluate(data, *DETECTOR, "-o", path)
    assert outcome.code == 3
    failed = json.loads((tmp_path / "profile.json.failed.jsonl").read_text())
    assert failed["line"] == 7
    assert "respon" in failed["raw"]
    assert path.exists()
    stopped = evaluate(data, *DETECTOR, "--on-error", "stop")
    assert (stopped.code, "line 7" in stopped.err) == (1, True)


def test_misspelt_option_values_are_named_in_the_error(evaluate: Command, data: Path) -> None:
    for words, said in (
        (("--unit", "wrod"), "unit named 'wrod'"),
        (("--levels", "unti"), "level named 'unti'"),
        (("--taxonomy", "flava"), "taxonomy named 'flava'"),
        (("--threshold", "3"), "between 0 and 1"),
        (("--annotator", "golden"), "annotator named 'golden'"),
    ):
        outcome = evaluate(data, *DETECTOR, *words)
        assert (outcome.code, outcome.out) == (2, ""), words
        assert said in outcome.err, words
    assert evaluate("absent.jsonl", *DETECTOR).code == 1


def test_levels_are_chosen(evaluate: Command, data: Path) -> None:
    chosen = figures(evaluate(data, *DETECTOR, "--json", "--levels", "char", "--levels", "span"))
    assert {level for level, _, _ in chosen} == {"char", "span"}
    shown = evaluate(data, *DETECTOR, "--levels", "char").out
    assert "Characters" in shown
    assert "Units" not in shown


def test_duplicate_predictions_are_refused(evaluate: Command, data: Path, predictions: Path) -> None:
    predictions.write_bytes(predictions.read_bytes() * 2)
    outcome = evaluate(data, "--predictions", predictions)
    assert outcome.code == 1
    assert "there are two predictions of" in outcome.err
    assert "--systems" not in outcome.err


def test_two_files_of_predictions_are_compared_by_bench(
    evaluate: Command, data: Path, predictions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error hid what to type, and bench took files of predictions only from a bench file."""
    other = tmp_path / "other.jsonl"
    other.write_bytes(predictions.read_bytes())
    outcome = evaluate(data, "--predictions", predictions, "--predictions", other)
    assert outcome.code == 1
    assert f"veriglot bench DATA --systems {predictions},{other}" in outcome.err
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grounding").touch()  # a file of that name is not what the name means
    made = load(data, systems=[str(predictions), str(other), "grounding"])
    assert [(system.name, system.files) for system in made.systems] == [
        (predictions.name, (str(predictions),)), (other.name, (str(other),)), ("grounding", ())
    ]  # fmt: skip
    with pytest.raises(InputError, match="no detector, scorer or file"):
        load(data, systems=["othr.jsonl"])


def test_predictions_without_a_threshold_need_one_for_a_profile(
    evaluate: Command, data: Path, predictions: Path, tmp_path: Path
) -> None:
    rows = read_lines(predictions)
    predictions.write_text("".join(json.dumps({**row, "signature": None}) + "\n" for row in rows))
    refused = evaluate(data, "--predictions", predictions, "-o", tmp_path / "p.json")
    assert (refused.code, "--threshold" in refused.err) == (2, True)
    assert evaluate(data, "--predictions", predictions).code == 0


def test_data_without_the_labels_that_are_needed_are_refused_before_they_are_judged(
    evaluate: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AbsentWords, "predict", None)
    path = tmp_path / "bare.jsonl"
    write_lines(path, (msgspec.structs.replace(one, annotations=()) for one in samples()))
    outcome = evaluate(path, *DETECTOR)
    assert (outcome.code, outcome.out) == (1, "")
    assert "bare.jsonl: no sample has labels\n  Say where they are: --map label=COLUMN" in outcome.err
    rated = tmp_path / "rated.csv"
    rated.write_text("context,answer,right,note\nIn 1897.,In 1879.,0,x\n")
    assert "for marked parts. Not used: note, right.\n" in evaluate(rated, *DETECTOR).err
    rated.write_text("context,answer,is_wrong\nIn 1897.,In 1879.,1\nIn 1897.,In 1897.,0\n")
    outcome = evaluate(rated, *DETECTOR, "--calibrate", tmp_path / "made.json")
    assert outcome.code == 2
    assert "--calibrate needs marked words, but the labels are of whole responses.\n  Mark the unsup" in outcome.err
    monkeypatch.undo()
    assert evaluate(rated, *DETECTOR).code == 0


def test_the_profile_is_there_though_nobody_reads_the_figures(
    evaluate: Command, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("veriglot.cli.evaluate._show", closed)  # as `| head -1` does to a long table
    monkeypatch.setattr("os.dup2", lambda *_: None)
    assert evaluate(data, *DETECTOR, "-o", tmp_path / "profile.json").code == 1
    assert json.loads((tmp_path / "profile.json").read_bytes())["languages"]


def test_intervals_are_explained_only_where_there_are_any(evaluate: Command, data: Path) -> None:
    drawn, plain = (evaluate(data, *DETECTOR, "--full", "--resamples", count).out for count in (50, 0))
    assert "Under each value: its 95% interval" in drawn
    assert "95% interval" not in plain


def test_few_texts_give_one_note_on_resamples_and_not_one_a_count(evaluate: Command, data: Path) -> None:
    notes = [
        line
        for line in evaluate(data, *DETECTOR, "--full", "--resamples", 50).out.splitlines()
        if "undefined in " in line
    ]
    assert len(notes) == 1
    assert re.search(r"undefined in \d+–\d+ of 50 resamples", notes[0])


def test_predictions_may_lie_in_several_files(evaluate: Command, data: Path, predictions: Path, tmp_path: Path) -> None:
    lines = predictions.read_bytes().splitlines(keepends=True)
    halves = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    for path, part in zip(halves, (lines[:3], lines[3:]), strict=True):
        path.write_bytes(b"".join(part))
    split = evaluate(data, "--predictions", halves[0], "--predictions", halves[1], "--json")
    assert figures(split) == figures(evaluate(data, "--predictions", predictions, "--json"))


def test_an_interrupted_evaluation_says_that_nothing_is_kept_and_how_to_keep_it(evaluate: Command, data: Path) -> None:
    outcome = evaluate(data, "--detector", "absent_words:Interrupted")
    assert outcome.code == 130
    assert "Interrupted: nothing was saved" in outcome.err
    assert "`veriglot detect --words -o FILE`" in outcome.err
    assert "Interrupted" not in evaluate(data, "--detector", "absent_words:Interrupted", "-q").err

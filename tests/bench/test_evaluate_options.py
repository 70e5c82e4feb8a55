"""Options of `veriglot evaluate` that would give wrong figures in silence if they were taken as they come."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest
from absent_words import AbsentWords
from labelled_texts import samples

from json_lines import write_lines
from settings_file import main
from veriglot.bench.evaluation import evaluate
from veriglot.records import ErrorProfile, encode

if TYPE_CHECKING:
    from pathlib import Path

DETECTOR = ("--detector", "absent_words:AbsentWords")


def _data(path: Path, language: str | None) -> Path:
    rows = [msgspec.structs.replace(sample, language=language) for sample in samples()]
    return write_lines(path, rows)


def _evaluate(*words: object) -> int:
    return main(["evaluate", "--resamples", "0", "--levels", "unit", *(str(word) for word in words)])


@pytest.mark.parametrize(("stated", "option"), [("German", None), ("deu", None), ("de-DE", None), (None, "German")])
def test_a_language_counts_under_its_tag_however_it_is_called(
    stated: str | None, option: str | None, tmp_path: Path
) -> None:
    profile = tmp_path / "profile.json"
    more = ("--language", option) if option else ()
    assert _evaluate(_data(tmp_path / "data.jsonl", stated), *DETECTOR, *more, "-o", profile) == 0
    found = msgspec.json.decode(profile.read_bytes(), type=ErrorProfile)
    assert list(found.languages) == ["de"]


def test_a_language_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _evaluate(_data(tmp_path / "data.jsonl", None), *DETECTOR, "--language", "Klingon") == 2
    assert "no language named 'Klingon'" in capsys.readouterr().err


def test_spans_alone_are_not_held_at_a_lower_threshold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = _data(tmp_path / "data.jsonl", "de")
    rows = [json.loads(encode(prediction)) for prediction in AbsentWords().predict(samples())]
    for row in rows:
        row.pop("words", None)
        row["signature"] = "detector:absent|threshold:0.5"
    marked = tmp_path / "marked.jsonl"
    marked.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert _evaluate(data, "--predictions", marked, "--threshold", 0.2) == 2
    assert "--words" in capsys.readouterr().err
    assert _evaluate(data, "--predictions", marked, "--threshold", 0.6) == 0


def test_flagged_samples_are_dropped_before_the_detector_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = samples()
    label = msgspec.structs.replace(rows[0].annotations[0], flags=("source_wrong_language",))
    rows[0] = msgspec.structs.replace(rows[0], annotations=(label,))
    data = tmp_path / "data.jsonl"
    write_lines(data, rows)
    marked = tmp_path / "marked.jsonl"
    write_lines(marked, AbsentWords().predict(samples()))
    for source in (DETECTOR, ("--predictions", marked, "--threshold", 0.5)):
        assert _evaluate(data, *source) == 0
        assert "Note: 1 samples are flagged for a faulty source, and count" in capsys.readouterr().out
        assert _evaluate(data, *source, "--drop-flags", "source") == 0
        outcome = capsys.readouterr()
        assert "Note: 1 samples dropped by their flags: source_wrong_language 1" in outcome.out
        assert "|dropped:source|" in outcome.out
        assert "belong to no sample" not in outcome.err
    left_out = evaluate(rows, AbsentWords(), drop_flags=("source",), resamples=0)
    assert left_out.coverage["en"].samples == 2
    assert left_out.figures == evaluate(rows[1:], AbsentWords(), drop_flags=("source",), resamples=0).figures


def test_predictions_of_other_samples_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = _data(tmp_path / "data.jsonl", "en")
    marked = tmp_path / "marked.jsonl"
    renamed = [msgspec.structs.replace(sample, id=f"tm-{number}") for number, sample in enumerate(samples())]
    write_lines(marked, AbsentWords().predict(renamed))
    assert _evaluate(data, "--predictions", marked) == 1
    outcome = capsys.readouterr()
    assert outcome.out == ""
    assert f"marked.jsonl: no prediction is of a sample of {data}\n" in outcome.err
    assert "rows without an id are called after their file and line, such as answers-12." in outcome.err
    assert "belong to no sample" not in outcome.err


def test_the_majority_is_taken_over_the_files_of_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One person's rows in each file, all called `gold`, with the same ids: texts are joined, as for agreement."""
    everybody = samples()
    nobody = [msgspec.structs.replace(row.annotations[0], spans=()) for row in everybody]
    files = {name: tmp_path / f"{name}.jsonl" for name in ("anna", "ben", "cleo")}
    for name, path in files.items():
        labels = nobody if name == "cleo" else [row.annotations[0] for row in everybody]
        rows = [msgspec.structs.replace(row, annotations=(own,)) for row, own in zip(everybody, labels, strict=True)]
        write_lines(path, rows)
    marked = tmp_path / "marked.jsonl"
    write_lines(marked, AbsentWords().predict(samples()))
    profile = tmp_path / "profile.json"
    for source in (DETECTOR, ("--predictions", marked)):
        assert _evaluate(*files.values(), *source, "--annotator", "majority", "-o", profile) == 0
        assert "|annotator:majority|" in capsys.readouterr().out
        made = msgspec.json.decode(profile.read_bytes(), type=ErrorProfile)
        alone = evaluate(samples(), AbsentWords(), resamples=0).profile()
        counts = {tag: sorted(each.responses) for tag, each in alone.languages.items()}
        assert {tag: sorted(each.responses) for tag, each in made.languages.items()} == counts

    other = _data(tmp_path / "other.jsonl", "fr")
    assert _evaluate(files["anna"], other, *DETECTOR, "--annotator", "majority") == 2
    assert "No text is marked by two annotators" in capsys.readouterr().err
    rows = files["ben"].read_text("utf-8")
    files["ben"].write_text(rows + rows.splitlines()[0].replace("en-0", "again") + "\n", "utf-8")
    assert _evaluate(*files.values(), *DETECTOR, "--annotator", "majority") == 2
    assert "one stands twice under one name" in capsys.readouterr().err

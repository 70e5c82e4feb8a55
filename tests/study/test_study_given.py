"""Studies of responses that exist already: which are counted, under what, and what is said of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from small_study import LANGUAGES, asked, given, make, write_study
from study_folder import write_rows

from veriglot.errors import UnknownNameError, UsageError
from veriglot.formats.reader import read

if TYPE_CHECKING:
    from pathlib import Path


def test_given_responses_are_sorted_by_model_and_what_is_wrong_is_told(tmp_path: Path) -> None:
    text = given(tmp_path, models=("kiln", "moor"))
    study = write_study(tmp_path, text)
    whole = (tmp_path / "responses.jsonl").read_bytes()
    (tmp_path / "responses.jsonl").write_bytes(whole + b'{"id": \n')
    outcome = make(study, tmp_path / "run")
    assert outcome.failed == 1
    assert b"not valid JSON" in (tmp_path / "run" / "responses" / "given.failed.jsonl").read_bytes()
    assert sum(one.coverage.answered for one in outcome.results.cells) == 80
    assert any("1 row of the input could not be read" in line for line in outcome.results.warnings)
    (tmp_path / "responses.jsonl").write_bytes(whole)
    assert make(study, tmp_path / "run").failed == 0
    assert not (tmp_path / "run" / "responses" / "given.failed.jsonl").exists()
    listed = write_study(tmp_path, text + '[[models]]\nname = "kiln"\n')
    with pytest.raises(UnknownNameError, match="'moor'"):
        make(listed, tmp_path / "listed")
    missing = write_study(tmp_path, text + "".join(f'[[models]]\nname = "{n}"\n' for n in ("kiln", "moor", "fen")))
    with pytest.raises(UsageError, match="No response is by the model 'fen'"):
        make(missing, tmp_path / "missing")


def test_only_the_languages_that_are_asked_for(tmp_path: Path) -> None:
    study = write_study(tmp_path, given(tmp_path), study='languages = ["French", "de"]')
    results = make(study, tmp_path / "run").results
    assert results.languages == ("fr", "de")
    assert {one.language for one in results.cells} == {"fr", "de"}


def test_responses_that_state_no_language_are_counted_under_the_one_they_are_in(tmp_path: Path) -> None:
    text = given(tmp_path)
    rows = list(read(tmp_path / "responses.jsonl"))
    write_rows(tmp_path / "responses.jsonl", (msgspec.structs.replace(row, language=None) for row in rows))
    results = make(write_study(tmp_path, text), tmp_path / "run").results
    counted = {tag: sum(c.coverage.answered for c in results.cells if c.language == tag) for tag in LANGUAGES}
    assert all(count > 20 for count in counted.values())
    assert sum(one.coverage.answered for one in results.cells) == 80
    some = make(write_study(tmp_path, text, study='languages = ["de"]'), tmp_path / "some").results
    assert {one.language for one in some.cells} == {"de"}
    assert sum(one.coverage.answered for one in some.cells) == counted["de"]
    assert any(line.startswith(f"{80 - counted['de']} responses that state no language") for line in some.warnings)


def test_a_folder_of_built_responses_is_given(tmp_path: Path) -> None:
    make(write_study(tmp_path, asked(tmp_path)), tmp_path / "run")
    names = {path.name for path in (tmp_path / "run" / "responses").iterdir()}
    assert {"kiln.jsonl", "kiln.jsonl.progress", "kiln.jsonl.asked"} <= names
    study = write_study(tmp_path, '[responses]\npath = "run/responses"')
    assert make(study, tmp_path / "given").results.models[0].name == "kiln"

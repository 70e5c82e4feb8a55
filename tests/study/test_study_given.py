"""Studies of responses that exist already: which are counted, under what, and what is said of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from small_study import LANGUAGES, asked, cell, given, make, write_study
from study_folder import EXAMPLES, write_rows

from veriglot.cli.detectors import detector_recipe
from veriglot.cli.study import measure
from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.formats.reader import read
from veriglot.records import Confusion, LanguageProfile, encode

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
    assert any("Not read or not asked, and in no coverage: 1 row" in line for line in outcome.results.warnings)
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
    assert not any("another language than" in line for line in results.warnings)  # nobody asked for one
    some = make(write_study(tmp_path, text, study='languages = ["de"]'), tmp_path / "some").results
    assert {one.language for one in some.cells} == {"de"}
    assert sum(one.coverage.answered for one in some.cells) == counted["de"]
    assert any(line.endswith(f"in no coverage: {80 - counted['de']} responses.") for line in some.warnings)


def test_a_folder_of_built_responses_is_given(tmp_path: Path) -> None:
    make(write_study(tmp_path, asked(tmp_path)), tmp_path / "run")
    names = {path.name for path in (tmp_path / "run" / "responses").iterdir()}
    assert {"kiln.jsonl", "kiln.jsonl.progress", "kiln.jsonl.asked"} <= names
    study = write_study(tmp_path, '[responses]\npath = "run/responses"')
    assert make(study, tmp_path / "given").results.models[0].name == "kiln"


def test_the_mean_of_all_is_over_languages_that_every_model_has(tmp_path: Path) -> None:
    """One model answers in German alone: the mean of all must not weigh the other's further languages."""
    text = given(tmp_path, count=60)
    rows = [row for row in read(tmp_path / "responses.jsonl") if row.language == "de" or row.id.split("/")[1] == "kiln"]
    write_rows(tmp_path / "responses.jsonl", iter(rows))
    results = make(write_study(tmp_path, text, study='estimator = "raw"\nestimators = []'), tmp_path / "run").results
    rates = {(c.model, c.language): c.rates[0].rate for c in results.cells if c.rates[0].status == "ok"}
    assert rates.keys() == {("kiln", "de"), ("kiln", "en"), ("kiln", "fr"), ("moor", "de")}
    assert results.overall.mean == pytest.approx((rates["kiln", "de"] + rates["moor", "de"]) / 2)
    assert results.overall.mean != pytest.approx(np.mean(list(rates.values())), abs=0.01)
    assert (results.overall.cells, results.overall.unreliable) == (2, 2)
    kiln = [cell(results, "kiln", tag) for tag in LANGUAGES]
    (amount,) = (row for row in results.correlations if row.name.endswith(", kiln"))
    lengths = [each.length for each in kiln]
    assert amount.r == pytest.approx(np.corrcoef(lengths, [c.length * rates["kiln", c.language] for c in kiln])[0, 1])
    assert amount.points == 3


def test_rates_by_a_second_profile_are_those_of_a_study_with_it_alone(tmp_path: Path) -> None:
    own = measure([EXAMPLES], detector_recipe("grounding", threshold=None, words=True), unit="word")
    rows = [Confusion(9 + number % 3, 1, 2 + number % 2, 60) for number in range(30)]
    tags = {tag: LanguageProfile.of(rows[: 25 + number]) for number, tag in enumerate(("de", "fr"))}
    (tmp_path / "own.json").write_bytes(encode(own))
    (tmp_path / "other.json").write_bytes(encode(msgspec.structs.replace(own, languages=tags)))
    text, study = given(tmp_path, count=60), 'estimator = "paper"'
    both = '[[detectors]]\nname = "grounding"\nprofile = "own.json"\ncompare_profile = "other.json"'
    results = make(write_study(tmp_path, text, detectors=both, study=study), tmp_path / "both").results
    alone = '[[detectors]]\nname = "grounding"\nprofile = "other.json"'
    other = make(write_study(tmp_path, text, detectors=alone, study=study), tmp_path / "alone").results
    assert [(p.rate.model, p.rate.language) for p in results.profiles] == [
        ("kiln", "de"), ("kiln", "fr"), ("moor", "de"), ("moor", "fr"),
    ]  # fmt: skip
    for pair in results.profiles:
        model, tag = str(pair.rate.model), pair.rate.language
        assert pair.rate == cell(results, model, tag).rates[0]
        assert pair.compared == cell(other, model, tag).rates[0]
        assert pair.compared_sd == cell(other, model, tag).sd
        assert pair.rate.high != pair.compared.high
    assert other.profiles == ()
    (tmp_path / "other.json").write_bytes(encode(msgspec.structs.replace(own, detector="other@1")))
    with pytest.raises(UsageError, match="of other@1"):
        make(write_study(tmp_path, text, detectors=both, study=study), tmp_path / "both")
    with pytest.raises(InputError, match="uses no error profile, so there is nothing to compare"):
        make(write_study(tmp_path, text, detectors=both, study='estimator = "raw"'), tmp_path / "raw")

"""Bench files: what is refused, and with which words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from small_bench import BENCH, written

from veriglot.bench.config import load
from veriglot.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("resamples = 60", "resample = 60", "resamples"),
        ("resamples = 60", "resamples = -1", "0 or more"),
        ('baseline = "absent"', 'baseline = "absnt"', "absent"),
        ('scorer = "top-ngram"', 'scorer = "top-ngrm"', "top-ngram"),
        ('scorer = "top-ngram"', 'scorer = "top-ngram"\ndetector = "grounding"', "either a detector or a scorer"),
        ('scorer = "top-ngram"', 'predictions = "folds.jsonl"', "there is no file"),
        ('scorer = "top-ngram"', "predictions = []", "no files"),
        ('scorer = "top-ngram"', 'predictions = "animals.jsonl"\nthreshold = 0.5', "no threshold"),
        ('scorer = "top-ngram"', 'scorer = "top-ngram"\ndata = ["animal"]', "animals"),
        ('scorer = "top-ngram"', 'scorer = "rouge-l"', "'rouge-l' occurs twice"),
        ('scorer = "top-ngram"', 'detector = "grounding"\nthreshold = 3', "between 0 and 1"),
        ('scorer = "top-ngram"', 'detector = "judge:spans"\noptions = { key = "sk-abcdefghijklmnop" }', "key"),
        ("dev_share = 0.4", "dev_share = 1.0", "between 0 and 1"),
        ("dev_share = 0.4", "limit = 0", "1 or more"),
        ("dev_share = 0.4", 'seen = ["nobody"]', "system of this bench"),
        ("dev_share = 0.4", 'languages = ["Germann"]', "German"),
        ('levels = ["word", "sentence", "response"]', 'levels = ["wrd"]', "word"),
        ('levels = ["word", "sentence", "response"]', "levels = []", "at least one level"),
        ('path = "animals.jsonl"', 'path = "plants.jsonl"', "there is no file"),
        ('title = "Small"', 'rank_by = "f2"', "f1"),
        ('title = "Small"', 'groups = ["latn"]', "latin"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(tmp_path: Path, before: str, after: str, said: str) -> None:
    assert before in BENCH
    path = written(tmp_path, BENCH.replace(before, after))
    with pytest.raises(InputError) as error:
        load(path)
    assert said in str(error.value)
    assert str(path) in str(error.value)
    assert "abcdefghijklmnop" not in str(error.value)


def test_predictions_say_which_data_they_are_of_where_there_are_several(tmp_path: Path) -> None:
    text = BENCH.replace('scorer = "top-ngram"', 'predictions = "animals.jsonl"')
    text += '\n[[data]]\nname = "again"\npath = "animals.jsonl"\n'
    with pytest.raises(InputError, match="several data sets may have the same ids"):
        load(written(tmp_path, text))
    named = text.replace('predictions = "animals.jsonl"', 'predictions = "animals.jsonl"\ndata = ["again"]')
    assert load(written(tmp_path, named)).systems[2].name == "animals.jsonl"


def test_paths_of_data_are_relative_to_the_file(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert load(path).resolve_all("animals.jsonl") == [tmp_path / "animals.jsonl"]
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(InputError, match="there is no file"):
        load(path.rename(tmp_path / "elsewhere" / "bench.toml"))


def test_a_limit_lowers_what_the_file_says_and_never_raises_it(tmp_path: Path) -> None:
    path = written(tmp_path, BENCH.replace("dev_share = 0.4", "limit = 7"))
    assert load(path, limit=3).data[0].limit == 3
    assert load(path, limit=30).data[0].limit == 7
    assert load(path, limit=30).data[0].dev_limit == 30


def test_the_measure_of_the_ranking_is_always_taken(tmp_path: Path) -> None:
    config = load(written(tmp_path, BENCH.replace("resamples = 60", 'measures = ["f1"]')))
    assert config.measures("response") == ("mcc", "f1")

"""The benchmarks of meaning: what they ask is what they say, and their figures are right; how good these are is not."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def run(script: str, *options: str | Path) -> list[dict[str, Any]]:
    command = [sys.executable, BENCHMARKS / script, "--json", "--resamples", "20", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module", autouse=True)
def beside_the_benchmarks() -> Any:
    """They import each other as neighbours, the way Python runs a script."""
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def questions(shared_data: Path) -> Any:
    from parallel_questions import read_questions

    return read_questions(shared_data / "xquad", 1)


def test_the_area_is_the_share_of_pairs_in_order() -> None:
    from ranking import auc

    rng = np.random.default_rng(5)
    scores = rng.integers(0, 6, 40) / 5  # with ties
    scores[3] = np.nan
    wrong = rng.random(40) < 0.4
    weight = np.stack([np.ones(40), rng.integers(0, 3, 40).astype(float), np.zeros(40)])
    expected = []
    for row in weight[:2]:
        won = total = 0.0
        for i, j in product(np.flatnonzero(wrong), np.flatnonzero(~wrong)):
            if not np.isnan(scores[i]) and not np.isnan(scores[j]):
                both = row[i] * row[j]
                total += both
                won += both * (1.0 if scores[i] > scores[j] else 0.5 if scores[i] == scores[j] else 0.0)
        expected.append(won / total)
    found = auc(scores, wrong, weight)
    assert found[:2] == pytest.approx(expected)
    assert np.isnan(found[2])


def test_a_mean_leaves_out_what_is_undefined() -> None:
    from ranking import mean_of

    found = mean_of([np.array([0.5, np.nan, np.nan]), np.array([1.0, 0.25, np.nan])])
    assert found[:2].tolist() == [0.75, 0.25]
    assert np.isnan(found[2])


def test_only_test_articles_are_asked_about(questions: list[Any]) -> None:
    from veriglot.training.grounding.examples import share_of

    assert len(questions) > 300
    assert {share_of("xquad:" + question.article) < 0.3 for question in questions} == {True}


def test_wrong_responses_are_wrong_in_every_language(questions: list[Any]) -> None:
    for question in questions:
        for tag, version in question.versions.items():
            answer, paragraph = version.folded
            assert version.paragraph[version.start :].startswith(version.answer)
            for name in ("far", "elsewhere"):
                assert question.others[name].versions[tag].folded[0] not in paragraph
            near = question.others["near"].versions[tag]
            assert near.folded[1] == paragraph
            assert near.folded[0] not in answer
            assert answer not in near.folded[0]
        assert question.others["far"].kind == question.others["near"].kind == question.kind
        assert question.others["elsewhere"].article == question.article


def test_what_is_wrong_is_marked_and_nothing_else(questions: list[Any]) -> None:
    from parallel_questions import drawn

    items = [item for tag in ("de", "th", "ar") for item in drawn(questions, tag, "en", 60, 1)]
    for item in items:
        spans = item.sample.annotations[0].spans or ()
        assert len(spans) == (item.wrong is not None)
        assert item.sample.evidence[0].language == "en"
        right = next(q for q in questions if q.id == item.sample.id.split(":")[2]).versions[item.sample.language]
        if item.form == "sentence" and item.wrong is None:
            assert item.sample.response in right.paragraph
        elif item.wrong is None:
            assert right.answer in item.sample.response
        for span in spans:
            assert item.sample.response[span.start : span.end] == span.text
        if item.wrong == "exchanged":
            (span,) = spans
            whole = item.sample.response[: span.start] + right.answer + item.sample.response[span.end :]
            assert whole in right.paragraph


def test_every_form_has_as_many_right_as_wrong(questions: list[Any]) -> None:
    from parallel_questions import drawn

    items = drawn(questions, "tr", "zh", 60, 1)
    assert len({item.sample.id.split(":")[2] for item in items}) == 60
    for form in ("bare", "said", "sentence"):
        assert [item.wrong is None for item in items if item.form == form].count(True) == 10
        assert [item.wrong is None for item in items if item.form == form].count(False) == 10


def test_the_same_seed_draws_the_same(questions: list[Any]) -> None:
    from parallel_questions import drawn

    assert drawn(questions, "de", "en", 24, 1) == drawn(questions, "de", "en", 24, 1)
    assert drawn(questions, "de", "en", 24, 1) != drawn(questions, "de", "en", 24, 2)
    with pytest.raises(ValueError, match="there are"):
        drawn(questions, "de", "en", len(questions) + 1, 1)


@pytest.mark.slow
def test_pairs_of_languages_are_judged_and_counted(shared_data: Path) -> None:
    (found,) = run("cross_lingual.py", "--data", shared_data, "--languages", "de", "en", "--limit", "36")
    assert found["responses"] == 4 * 36
    (detector,) = found["detectors"].values()
    assert sum(detector["statuses"].values()) == 4 * 36
    assert 0 < detector["statuses"]["unsupported_language"] < 2 * 36  # across, grounding compares numbers alone
    table = detector["score"]["all but near"]
    assert set(table["pairs"]) == {"de>de", "de>en", "en>de", "en>en"}
    assert table["means"]["same, all"]["value"] == pytest.approx(
        (table["pairs"]["de>de"] + table["pairs"]["en>en"]) / 2, abs=1e-5
    )
    assert table["means"]["same, all"]["value"] > table["means"]["cross, all"]["value"]


@pytest.mark.slow
def test_probes_are_asked_in_ten_languages() -> None:
    pairs, best, decisions, alarms, turns = run("paraphrase.py")
    assert [table["rows"][-1][""] for table in (pairs, best, decisions, alarms)] == ["mean"] * 4
    for table in (pairs, turns):
        assert {row["shared words"].split()[0] for row in table["rows"]} == {"0.000"}
    assert sum(row["pairs"] for row in turns["rows"]) == pairs["rows"][-1]["pairs"] >= 240

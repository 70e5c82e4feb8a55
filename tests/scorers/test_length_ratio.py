"""The length ratio: zero as usual, symmetric, and silent about languages that were not measured."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import pytest

from veriglot.errors import UnknownNameError, UsageError
from veriglot.records import Evidence, Sample, Score, Scorer, Status
from veriglot.records.languages import get_language, languages
from veriglot.scorers.registry import SCORERS, load_scorer
from veriglot.scorers.translation import LengthRatio, usual_ratio

if TYPE_CHECKING:
    from pathlib import Path


def score_of(response: str, source: str, target: str | None, origin: str | None, **options: float) -> Score:
    sample = Sample(id="1", response=response, language=target, evidence=(Evidence(source, language=origin),))
    (score,) = LengthRatio(**options).score([sample])
    return score


def test_values_by_hand() -> None:
    assert score_of("a" * 50, "b" * 50, "en", "en", smoothing=0).value == pytest.approx(0)
    assert score_of("a b " * 50, "b" * 50, "en", "en", smoothing=0).value == pytest.approx(math.log(2))
    assert score_of("a" * 25, "b " * 50, "en", "en", smoothing=0).value == pytest.approx(math.log(2))
    assert score_of("a" * 40, "b" * 20, "en", "en", smoothing=10).value == pytest.approx(math.log(50 / 30))
    assert score_of("a" * 30, "b" * 10, "xx", "yy", usual=3.0).value == pytest.approx(0)
    doubled = score_of("a" * 64, "b" * 200, "zh", "en", smoothing=0)
    assert doubled.parts == {"ratio": 0.32, "usual": 0.32}
    assert doubled.value == pytest.approx(0)


def test_an_empty_response_is_far_too_short() -> None:
    assert (score_of("", "b" * 200, "de", "en").value or 0) > 3
    assert (score_of("", "b" * 200, "de", "en", smoothing=0).value or 0) > 20


def test_the_usual_ratio_goes_both_ways() -> None:
    forth, back = usual_ratio("en", "zh"), usual_ratio("zh-Hans", "en")
    assert forth is not None
    assert back is not None
    assert forth * back == pytest.approx(1)
    assert forth == pytest.approx(0.32)
    assert usual_ratio("de-CH", "deu") == 1.0


def test_what_was_not_measured_is_not_scored() -> None:
    assert usual_ratio("en", "grc") is None
    assert usual_ratio("en", "no such language") is None
    unknown = score_of("a" * 20, "b" * 20, "grc", "en")
    assert unknown.status is Status.UNSUPPORTED_LANGUAGE
    assert "en to grc" in (unknown.reason or "")
    assert score_of("1 2 3", "4 5 6", None, None).status is Status.UNSUPPORTED_LANGUAGE
    assert score_of("a", " ", "en", "en").status is Status.NO_EVIDENCE


def test_languages_that_are_not_given_are_identified() -> None:
    source = "Die alte Mühle am Fluss wurde vor vielen Jahren von den Leuten des Dorfes gebaut."
    response = "The old mill by the river was built many years ago by the people of the village."
    found = score_of(response, source, None, None)
    assert found.parts["usual"] == pytest.approx(1 / 1.19)
    assert found == score_of(response, source, None, "de")
    assert found.language == "en"


def test_every_measured_language_is_one_of_the_table() -> None:
    from veriglot.scorers.translation import _lengths

    relative = _lengths().relative
    known = languages()
    assert all(get_language(tag).tag == tag for tag in relative)
    assert len(relative) >= 150
    assert all(0.2 < ratio < 2.0 for ratio in relative.values())
    papers = {tag for tag, entry in known.items() if "hat" in entry.sources}
    assert papers <= set(relative), "every pair of HAT can be scored"


def test_the_table_fits_other_parallel_text(shared_data: Path) -> None:
    lengths = {}
    for path in sorted((shared_data / "xquad").glob("xquad.*.json")):
        paragraphs = [p["context"] for a in json.loads(path.read_text("utf-8"))["data"] for p in a["paragraphs"]]
        lengths[path.name.split(".")[1]] = sum(len("".join(text.split())) for text in paragraphs)
    for tag, length in lengths.items():
        usual = usual_ratio("en", tag)
        assert usual is not None
        assert abs(math.log(length / lengths["en"] / usual)) < math.log(1.27), tag


def test_tables_and_names() -> None:
    assert {"length-ratio", "top-ngram"} <= set(SCORERS.names())
    scorer = load_scorer("length-ratio", smoothing=2)
    assert isinstance(scorer, Scorer)
    assert "smoothing:2" in scorer.signature
    with pytest.raises(UnknownNameError, match="smoothing"):
        load_scorer("length-ratio", smothing=2)
    with pytest.raises(UnknownNameError, match="top-ngram"):
        load_scorer("topngram")
    for wrong in ({"usual": 0.0}, {"usual": math.inf}, {"smoothing": -1.0}):
        with pytest.raises(UsageError):
            load_scorer("length-ratio", **wrong)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"status": Status.SCORED}, "finite"),
        ({"status": Status.SCORED, "value": math.nan}, "finite"),
        ({"status": Status.NO_EVIDENCE, "value": 0.0, "reason": "r"}, "no `value`"),
        ({"status": Status.NO_EVIDENCE}, "`reason`"),
    ],
)
def test_a_score_says_what_it_is(fields: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Score(id="1", scorer="s", **fields)  # type: ignore[arg-type]

"""Records from JSON: what is unknown is kept, what is wrong is named, what was measured is read back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from veriglot.errors import InputError
from veriglot.records import (
    Confusion,
    DataSource,
    ErrorProfile,
    LanguageProfile,
    Prediction,
    Status,
    Verdict,
    decode_json,
    encode,
    from_mapping,
    sample_from,
)


def _row(**more: Any) -> dict[str, Any]:
    return {"id": "a", "response": "The mill stands.", **more}


def test_unknown_keys_are_kept_wherever_they_stand() -> None:
    sample = sample_from(
        _row(
            colour="red",
            generator={"name": "m", "quantised": True},
            evidence=[{"text": "x"}, {"text": "y", "score": 0.7}],
            annotations=[
                {
                    "annotator": "anna", "kind": "human", "taxonomy": "fava", "tool": "pen",
                    "spans": [{"start": 0, "end": 3, "note": "why"}],
                    "units": [{"start": 0, "end": 3, "label": "supported", "by": 2}],
                }
            ],
            meta={"split": "dev"},
        )
    )  # fmt: skip
    assert sample.meta == {
        "colour": "red",
        "generator.quantised": True,
        "evidence[1].score": 0.7,
        "annotations[0].tool": "pen",
        "annotations[0].spans[0].note": "why",
        "annotations[0].units[0].by": 2,
        "split": "dev",
    }
    assert sample_from(decode_json(encode(sample))) == sample


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"annotations": [{"annotator": "a", "kind": "human", "taxonomy": "fava", "spans": [{"start": 3, "end": 99}]}]},
         "annotations[0].spans[0]"),
        ({"annotations": [{"annotator": "a", "kind": "person", "taxonomy": "fava"}]}, "annotations[0].kind"),
        ({"evidence": [{"title": "x"}]}, "evidence[0].text"),
        ({"evidence": [{"text": "x", "id": "p"}, {"text": "y", "id": "p"}]}, "evidence"),
        ({"generator": "m"}, "generator"),
        ({"response": None}, "response"),
    ],
)  # fmt: skip
def test_an_error_names_its_field(more: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as caught:
        sample_from(_row(**more))
    assert caught.value.field == field


@pytest.mark.parametrize(
    "row",
    [
        {"status": "scored", "score": 0.5},
        {"status": "scored", "spans": []},
        {"status": "scored", "spans": [], "score": 1.5},
        {"status": "no_evidence"},
        {"status": "no_evidence", "reason": "none", "spans": []},
        {"status": "failed", "reason": "it broke", "score": 0.0},
        {"status": "clean", "spans": [], "score": 0.0},
    ],
)
def test_what_was_not_checked_cannot_look_clean(row: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        from_mapping({"id": "a", "detector": "d@1", **row}, Prediction)


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        ({"status": "scored", "score": 0.1, "spans": []}, "supported"),
        ({"status": "scored", "score": 0.9, "spans": [{"start": 0, "end": 3}]}, "unsupported"),
        ({"status": "no_evidence", "reason": "none"}, "not_checked"),
    ],
)
def test_the_verdict_is_written_and_what_a_file_says_of_it_does_not_count(row: dict[str, Any], verdict: str) -> None:
    old = from_mapping({"id": "a", "detector": "d@1", **row}, Prediction)
    written = decode_json(encode(old))
    assert list(written)[-1] == "verdict"  # what stands before it is what earlier versions wrote
    assert written["verdict"] == old.verdict == verdict
    for other in Verdict:
        assert from_mapping({**written, "verdict": other.value}, Prediction) == old
    unchecked = msgspec.structs.replace(old, status=Status.FAILED, reason="r", spans=None, score=None)
    assert unchecked.verdict is Verdict.NOT_CHECKED


def test_an_error_profile_is_read_back() -> None:
    german = LanguageProfile.of([Confusion(2, 1, 0, 7), Confusion(0, 0, 0, 3)])
    assert (german.tpr, german.fpr, german.precision, german.prevalence) == (1.0, 1 / 11, 2 / 3, 2 / 13)
    assert LanguageProfile.of([Confusion(0, 0, 0, 3)]).tpr is None
    profile = ErrorProfile("word", 0.5, "d@1", {"de": german}, german, DataSource("0" * 64, "gold"), "data:0")
    assert msgspec.json.decode(encode(profile), type=ErrorProfile) == profile


def test_a_profile_sums_the_histograms_of_its_responses() -> None:
    german = LanguageProfile.of([Confusion(2, 1, 0, 1), Confusion(0, 0, 0, 3)], histograms=[[(0, 0, 1), (12, 2, 1)],
                                [(0, 0, 3)]])  # fmt: skip
    assert (german.confidences[0], german.confidences[12], len(german.confidences)) == ((0, 4), (2, 1), 20)
    assert msgspec.json.decode(encode(german), type=LanguageProfile) == german
    old = LanguageProfile.of([Confusion(2, 1, 0, 1)])
    assert b"histograms" not in encode(old)
    assert msgspec.json.decode(encode(old), type=LanguageProfile) == old


@pytest.mark.parametrize(("histograms", "said"), [([[(0, 1, 0)]] * 2, "2 `histograms`"), ([[(20, 1, 0)]], "0 to 19")])
def test_histograms_that_do_not_fit_are_refused(histograms: list[list[tuple[int, int, int]]], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        LanguageProfile.of([Confusion(1, 0, 0, 0)], confidences=[(0, 0)] * 20, histograms=histograms)

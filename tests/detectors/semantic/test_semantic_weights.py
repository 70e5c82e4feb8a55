"""Folders of weights: one's own, and what is said of one that is missing, damaged or for something else."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from veriglot.detectors.grounding.detector import parts
from veriglot.detectors.registry import detect, load_detector
from veriglot.detectors.semantic.detector import words_at_once
from veriglot.errors import WeightsError
from veriglot.records import Evidence, Sample, Status

if TYPE_CHECKING:
    from pathlib import Path


def test_weights_of_ones_own_judge_and_are_named(random_head: str) -> None:
    detector = load_detector("semantic", weights=random_head, words=True)
    assert detector.name == "semantic@random"
    found = detect("Der Turm wurde 1874 gebaut.", "The tower is from 1901.", language="en", detector=detector)
    assert (found.status, found.detector) == (Status.SCORED, detector.name)
    assert load_detector("semantic", weights=random_head, threshold=0.3).signature != detector.signature


def test_weights_that_are_missing_damaged_or_for_other_features(random_head: str, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="no semantic weights"):
        load_detector("semantic", weights=str(tmp_path))
    folder = tmp_path / "weights"
    shutil.copytree(random_head, folder)
    manifest = (folder / "weights.json").read_text("utf-8")
    for name in ("head.onnx", "calibration.json"):
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(WeightsError, match=f"{name} is missing or damaged"):
            load_detector("semantic", weights=str(folder))
        (folder / name).unlink()
        with pytest.raises(WeightsError, match=f"{name} is missing or damaged"):
            load_detector("semantic", weights=str(folder))
        (folder / name).write_bytes(whole)
    for before, after in (('"reading_version":', '"reading_version":9'), ('"shared":"', '"shared":"0')):
        (folder / "weights.json").write_text(manifest.replace(before, after), "utf-8")
        with pytest.raises(WeightsError, match="for other features"):
            load_detector("semantic", weights=str(folder))
    (folder / "weights.json").write_text(manifest.replace('"head.onnx":', '"another.onnx":'), "utf-8")
    with pytest.raises(WeightsError, match=r"head\.onnx is missing or damaged"):
        load_detector("semantic", weights=str(folder))
    (folder / "weights.json").write_text("{}", "utf-8")
    with pytest.raises(WeightsError, match="not a manifest"):
        load_detector("semantic", weights=str(folder))


@pytest.mark.parametrize("slots", [24, 1000, 12_000, 10**7])
def test_parts_of_a_response_cover_it_once_and_are_shorter_where_there_is_more_evidence(slots: int) -> None:
    stretches = list(parts(2345, words_at_once(slots)))
    kept = [word for _, _, low, high in stretches for word in range(low, high)]
    assert kept == list(range(2345))
    for begin, end, low, high in stretches:
        assert begin <= low < high <= end
        assert high - low <= max(40, min(500, 1_000_000 // slots))
        assert low - begin == 60 or begin == 0
        assert end - high == 60 or end == 2345


def test_thousands_of_passages_of_one_word(semantic_weights: str) -> None:
    detector = load_detector("semantic", weights=semantic_weights, words=True)
    passages = tuple(Evidence("bridge") for _ in range(2000))
    sample = Sample("s", "The bridge is old. " * 30, language="en", question="Which bridge? " * 3000, evidence=passages)
    (found,) = detector.predict([sample])
    assert found.status is Status.SCORED
    assert found.words is not None
    assert len(found.words) == 120


@pytest.mark.parametrize(
    ("evidence", "note"),
    [
        ("Turm Rathaus Brücke 1874", "evidence:language_unsure"),  # German by its words, but few and no sentence
        ("Der alte Turm am Fluss wurde 1874 von einem Müller gebaut und steht noch.", "evidence:language_from_text"),
        ("The old tower by the river was built in 1874 by a miller and is still standing today.", None),
        ("1874", None),
    ],
)  # fmt: skip
def test_evidence_that_states_no_language_is_said_to_be_told_from_its_text_or_to_be_unsure(
    random_head: str, evidence: str, note: str | None
) -> None:
    detector = load_detector("semantic", weights=random_head)
    found = detect(evidence, "The tower by the river was built in 1901.", language="en", detector=detector)
    assert [one for one in found.notes if one.startswith("evidence:language")] == ([note] if note else [])

"""A detector says the same from Python, for a pair of files, JSONL, Parquet, any batch and processes."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from many_languages import TEXTS

from veriglot.cli import main
from veriglot.detectors.registry import load_detector
from veriglot.formats.writer import write
from veriglot.records import Evidence, Sample, encode

if TYPE_CHECKING:
    from pathlib import Path

SAMPLES = [
    Sample(f"{tag}-{n}", text, language=tag, question="1862?", evidence=(Evidence(told.evidence), Evidence("Lenna 🌊")))
    for tag, told in TEXTS.items()
    for n, text in enumerate((told.changed, told.sentence + " " + told.changed))
]


def expected(name: str, samples: list[Sample], *, words: bool = False) -> list[dict[str, Any]]:
    detector = load_detector(name, words=words)
    return [json.loads(encode(prediction)) for sample in samples for prediction in detector.predict([sample])]


def said(capfd: pytest.CaptureFixture[str], name: str, *arguments: object) -> list[dict[str, Any]]:
    capfd.readouterr()
    assert main(["detect", "--detector", name, *map(str, arguments)]) == 0
    sys.stdout.flush()
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    write(SAMPLES, path)
    return path


@pytest.mark.parametrize("options", [("--processes", 1), pytest.param(("--processes", 2), marks=pytest.mark.slow)])
def test_batches_and_processes(
    capfd: pytest.CaptureFixture[str], trained: str, rows: Path, options: tuple[object, ...]
) -> None:
    assert said(capfd, trained, rows, *options) == expected(trained, SAMPLES)


def test_parquet_and_words(capfd: pytest.CaptureFixture[str], trained: str, tmp_path: Path) -> None:
    write(SAMPLES, tmp_path / "rows.parquet")
    assert said(capfd, trained, tmp_path / "rows.parquet", "--words") == expected(trained, SAMPLES, words=True)


@pytest.mark.parametrize("tag", ["en", "ar", "zh"])
def test_a_pair_of_files_in_a_process_of_its_own(trained: str, tmp_path: Path, tag: str) -> None:
    told = TEXTS[tag]
    (tmp_path / "source.txt").write_bytes(told.evidence.encode())
    (tmp_path / "answer.txt").write_bytes(told.changed.encode())
    code = "import sys; from veriglot.cli import main; sys.exit(main())"
    pair = ["--evidence", str(tmp_path / "source.txt"), "--response", str(tmp_path / "answer.txt"), "--to", "json"]
    command = [sys.executable, "-c", code, "detect", *pair, "--language", tag, "--detector", trained]
    done = subprocess.run(command, capture_output=True, check=True)
    (found,) = [json.loads(line) for line in done.stdout.decode().splitlines()]
    (wanted,) = expected(trained, [Sample("response", told.changed, language=tag, evidence=(Evidence(told.evidence),))])
    assert found == wanted
    assert any(told.other in span["text"] for span in found["spans"])

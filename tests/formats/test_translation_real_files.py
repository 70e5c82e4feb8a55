"""Readers of labelled translations on the published files: every row read, every label accounted for."""

from __future__ import annotations

import csv
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from veriglot.formats.base import Report
from veriglot.formats.reader import guess, read, read_rows, readable_files
from veriglot.records import Sample, Task
from veriglot.storage.checkpoint import FailedRow

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS = {
    "mt_zhou_zhen": "token-labels",
    "mt_guerreiro_deen": "guerreiro",
    "mt_mlqe_catastrophic": "mlqe",
    "mt_mqm_ted": "mqm",
}


def read_all(path: Path) -> tuple[list[Sample], Report]:
    report = Report()
    rows = list(read_rows(path, report=report))
    assert not [row.message for row in rows if isinstance(row, FailedRow)]
    return [row for row in rows if isinstance(row, Sample)], report


def pairs(samples: list[Sample]) -> Counter[tuple[str | None, str | None]]:
    assert {s.task for s in samples} == {Task.TRANSLATION}
    return Counter((s.evidence[0].language, s.language) for s in samples)


def test_every_token_label_is_in_a_span(shared_data: Path) -> None:
    folder = shared_data / "mt_zhou_zhen"
    samples, report = read_all(folder)
    assert pairs(samples) == {("zh-Hans", "en"): 484}
    assert len(report.unread) == 8, "the texts beside the labels, and nothing else"
    lines = [line for name in ("mbart", "trans2s") for line in (folder / f"{name}.label").read_text().splitlines()]
    for sample, line in zip(samples, lines, strict=True):
        spans = sample.annotations[0].spans
        assert spans is not None
        place, labels = 0, []
        for token in sample.response.split():
            place = sample.response.index(token, place)
            inside = [s.start <= place and place + len(token) <= s.end for s in spans]
            outside = [s.end <= place or s.start >= place + len(token) for s in spans]
            assert all(a or b for a, b in zip(inside, outside, strict=True))
            labels.append(str(int(any(inside))))
            place += len(token)
        assert " ".join(labels) == line.strip()
    assert sum(not s.annotations[0].spans for s in samples) == 150


def test_every_pathology_is_a_flag(shared_data: Path) -> None:
    samples, report = read_all(shared_data / "mt_guerreiro_deen")
    assert pairs(samples) == {("de", "en"): 3415}
    assert sum(file.notes["unquoted_commas"] for file in report.files.values()) == 1
    flags = Counter(flag for s in samples for flag in s.annotations[0].flags)
    assert flags == {
        "omission": 204, "strong_detachment": 164, "full_detachment": 129, "oscillation": 87, "named_entities": 41
    }  # fmt: skip
    assert sum(len(s.annotations[0].units or ()) for s in samples) == 324
    with (shared_data / "mt_guerreiro_deen" / "annotated_corpus.csv").open(encoding="utf-8", newline="") as file:
        translations = [row["mt"] for row in csv.DictReader(file)]
    differing = [s.id for s, text in zip(samples, translations, strict=True) if s.response != text]
    assert differing == ["annotated_corpus-1381"], "the row whose commas are not quoted"


def test_every_row_of_critical_errors(shared_data: Path) -> None:
    samples, report = read_all(shared_data / "mt_mlqe_catastrophic")
    assert pairs(samples) == {("en", "cs"): 9476, ("en", "de"): 9878, ("en", "ja"): 9658, ("en", "zh-Hans"): 8859}
    assert {path.rsplit("/", 1)[1] for path in report.unread} == {"readme"}
    assert Counter(s.meta["split"] for s in samples) == {"train": 29871, "dev": 4000, "test": 4000}
    assert all(bool(s.annotations) == (s.meta["split"] != "test") for s in samples)
    critical = Counter(
        s.language for s in samples if s.meta["split"] == "dev" for a in s.annotations[:1] for _ in a.units or ()
    )
    assert critical == {"cs": 160, "de": 281, "ja": 96, "zh-Hans": 141}
    asked = [a.units is not None for s in samples for a in s.annotations[1:]]
    assert asked.count(False) == sum(row.count(score) for row in scores(shared_data) for score in "23")
    assert any(s.response.startswith('"') for s in samples), "quotation marks are text"


def scores(shared_data: Path) -> list[str]:
    folder = shared_data / "mt_mlqe_catastrophic"
    files = [file for file in sorted(folder.glob("*.tsv")) if "blind" not in file.name]
    return [line.split("\t")[3] for file in files for line in file.read_bytes().decode().split("\n") if line]


def test_every_mqm_error(shared_data: Path) -> None:
    samples, report = read_all(shared_data / "mt_mqm_ted")
    assert pairs(samples) == {("zh-Hans", "en"): 7935, ("en", "de"): 7406}
    assert [file.notes["unclosed_marks"] for file in report.files.values()] == [1, 1]
    errors = [(s, e) for s in samples for e in s.meta.get("errors", ())]
    assert len(errors) == 8435 - 4404 + 9915 - 4297
    assert Counter(e["in"] for _, e in errors) == {"target": 4017 + 5269, "source": 14 + 349}
    spans = [span for s in samples for a in s.annotations for span in a.spans or ()]
    additions = sum(e["category"] == "Accuracy/Addition" for _, e in errors)
    assert len(spans) == additions == 16 + 127
    assert not any("<v>" in s.response or "<v>" in s.evidence[0].text for s in samples)


@pytest.mark.parametrize("folder", FOLDERS)
def test_they_are_known_by_content_without_a_name(shared_data: Path, folder: str, tmp_path: Path) -> None:
    assert FOLDERS[folder] in {guessed.format for _, guessed in readable_files(shared_data / folder, {})}
    file = next(p for p in sorted((shared_data / folder).iterdir()) if p.suffix in {".label", ".csv", ".tsv"})
    (tmp_path / "nameless").symlink_to(file)
    assert guess(tmp_path / "nameless").format == FOLDERS[folder]
    if folder in {"mt_mlqe_catastrophic", "mt_mqm_ted"}:  # the texts alone tell the languages too
        named, nameless = (next(iter(read(p))) for p in (file, tmp_path / "nameless"))
        assert (named.language, named.evidence[0].language) == (nameless.language, nameless.evidence[0].language)

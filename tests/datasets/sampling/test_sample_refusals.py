"""Unusable input is refused with counts, before work is lost; odd rows are counted."""

from __future__ import annotations

import json
import math
import random
from typing import TYPE_CHECKING, Any

from settings_file import main
from veriglot.errors import EXIT_FAILED, EXIT_ROWS_FAILED, EXIT_USAGE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest

NOUNS = (
    "Müller", "Wald", "Fluss", "Markt", "Turm", "Garten", "Bäcker", "Lehrer", "Hund", "Winter", "Bruder", "Kaiser",
    "Nachbar", "Brücke", "Schule", "Straße", "Wasser", "Feuer", "Morgen", "Abend", "Brief", "Koffer", "Fenster",
)  # fmt: skip


def rows(count: int) -> list[dict[str, Any]]:
    found = []
    for number in range(count):
        words = random.Random(number).sample(NOUNS, k=10)
        source = f"Der {words[0]} und die {' '.join(words[1:7])} sind nicht {' '.join(words[7:])}."
        found.append({"source": source, "target": f"It was {' '.join(words)[::-1]}", "qe": float(number)})
    return found


def jsonl(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def run(path: Path, out: Path, *words: str) -> int:
    return main(["dataset", "sample", str(path), "-s", "de", "-t", "en", "-o", str(out), "--processes", "1", *words])


def test_parquet_gives_what_json_lines_give(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    data = rows(60)
    jsonl(tmp_path / "data.jsonl", [{**row, "qe": None if i in {3, 4} else row["qe"]} for i, row in enumerate(data)])
    data[3]["qe"], data[4]["qe"] = math.nan, -math.inf  # neither can be compared with other scores
    pyarrow.parquet.write_table(pa.Table.from_pylist(data), tmp_path / "data.parquet")
    words = ("--scores", "qe:higher-is-better", "--worst", "5", "--drawn", "5", "--percentile", "50", "--quiet")
    for kind in ("jsonl", "parquet"):
        assert run(tmp_path / f"data.{kind}", tmp_path / kind, *words) == 0
    reports = [json.loads((tmp_path / kind / "report.json").read_bytes()) for kind in ("jsonl", "parquet")]
    assert reports[0]["sample"] == reports[1]["sample"]
    (account,) = reports[1]["sample"]["scorers"]
    assert (account["scored"], account["unscored"], account["worst_border"]) == (58, 2, 6.0)
    assert account["reasons"] == {"the data hold no number": 2}
    for name in ("train", "dev", "test"):
        told = [(tmp_path / kind / f"{name}.jsonl").read_text("utf-8") for kind in ("jsonl", "parquet")]
        assert told[0] == told[1].replace("data.parquet", "data.jsonl")


def test_fewer_lines_than_asked_for_are_shared_out_and_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = jsonl(tmp_path / "data.jsonl", rows(50))
    assert run(path, tmp_path / "out", "--scores", "qe:higher-is-worse") == 0
    told = capfd.readouterr().err
    assert (
        "qe: lines missing from its draw: 1,000. Lines in its worst percentile, with those already chosen: 1." in told
    )
    sample = json.loads((tmp_path / "out" / "report.json").read_bytes())["sample"]
    assert (sample["worst"], sample["drawn"], sample["sample"]) == (50, 0, 50)
    assert {name: part["lines"] for name, part in sample["parts"].items()} == {"train": 25, "dev": 10, "test": 15}


def test_ties_are_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = jsonl(tmp_path / "data.jsonl", [{**row, "qe": i % 2} for i, row in enumerate(rows(50))])
    assert run(path, tmp_path / "out", "--scores", "qe:higher-is-better", "--worst", "10") == 0
    assert "qe: 25 lines are as bad as the last of its 10 worst" in capfd.readouterr().err


def test_rows_that_cannot_be_read_end_in_three(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = jsonl(tmp_path / "data.jsonl", rows(50))
    with path.open("ab") as stream:
        stream.write(b'{"source": "no end\n')
    assert run(path, tmp_path / "out", "--scores", "qe:higher-is-better", "--worst", "10") == EXIT_ROWS_FAILED
    assert "Rows that could not be read: 1" in capfd.readouterr().err
    failed = (tmp_path / "out" / "work" / "read" / "failed.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["line"] for line in failed] == [51]


def test_what_nothing_can_come_of_is_refused_with_counts(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = jsonl(tmp_path / "data.jsonl", rows(20))
    given = ("--scores", "qe:higher-is-better")
    assert run(path, tmp_path / "a", *given, "-s", "fr") == EXIT_FAILED  # the last -s counts
    assert "no line of 20 is clean: other language 20 (de 20)" in capfd.readouterr().err
    assert not (tmp_path / "a" / "report.json").exists()
    jsonl(tmp_path / "empty.jsonl", [{**row, "qe": None} for row in rows(20)])
    assert run(tmp_path / "empty.jsonl", tmp_path / "b", *given) == EXIT_FAILED
    assert "no line has a score: qe: the data hold no number, 20" in capfd.readouterr().err
    jsonl(tmp_path / "sources.jsonl", [{"source": row["source"]} for row in rows(20)])
    assert run(tmp_path / "sources.jsonl", tmp_path / "c", "--scorer", "top-ngram") == EXIT_USAGE
    assert "None of 20 lines has a translation" in capfd.readouterr().err
    jsonl(tmp_path / "none.jsonl", [])
    assert run(tmp_path / "none.jsonl", tmp_path / "d", *given) == EXIT_FAILED
    assert "there is no line" in capfd.readouterr().err


def test_a_scorer_that_cannot_be_made_says_so_before_anything_is_read(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "data.jsonl", rows(20))
    missing = tmp_path / "no-such-model"
    assert run(path, tmp_path / "out", "--scorer", f"comet:{missing} python={tmp_path / 'no-python'}") != 0
    assert not (tmp_path / "out" / "work" / "read").exists()
    assert run(path, tmp_path / "out", "--scorer", "length-ratio", "--worst", "5") == 0  # and leaves nothing behind


def test_the_folder_of_fallen_lines_is_made(tmp_path: Path) -> None:
    data = [*rows(20), {"source": "Ja.", "target": "Yes.", "qe": 1}]
    fallen = tmp_path / "kept" / "aside" / "fallen.jsonl"
    words = ("--scores", "qe:higher-is-better", "--worst", "5", "--rejected", str(fallen))
    assert run(jsonl(tmp_path / "data.jsonl", data), tmp_path / "out", *words) == 0
    (line,) = fallen.read_text("utf-8").splitlines()
    assert json.loads(line) == {"id": "data-21", "source": "Ja.", "target": "Yes.", "reason": "too_short"}

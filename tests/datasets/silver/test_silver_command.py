"""`veriglot dataset silver` on the command line, and with a small real model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest
from misbehaviour import CASES, seeds
from real_server import MODEL, start_real_server

from commands import command
from json_lines import write_lines
from veriglot import read
from veriglot.datasets.generation import rejected_path
from veriglot.datasets.silver.check import Change, Edited, check
from veriglot.datasets.silver.job import load_account
from veriglot.records import Evidence, Sample

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Command

ARTICLE = (
    "The mill of Oberfeld was built in 1731 by the widow Anna Kroll. It stands by the river Elm. In 1902 it burnt down"
    " after a stroke of lightning, and it was never built again."
)
silver = command("dataset", "silver")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Seeds and a script, as files."""
    given, script = tmp_path / "seeds.jsonl", tmp_path / "script.json"
    write_lines(given, seeds())
    rules = [
        {"match": f"Mill {n:02} was", "reply": case.reply.replace("%", f"{n:02}"), "finish": case.finish}
        for n, case in enumerate(CASES)
    ]
    script.write_text(json.dumps({"rules": rules}), "utf-8")
    return given, script


def test_rows_rejections_and_account(silver: Command, files: tuple[Path, Path], tmp_path: Path) -> None:
    given, script = files
    output = tmp_path / "out.jsonl"
    words = (given, "-m", "m", "--mock-rules", script, "-o", output, "--order", "entity")
    words = (*words, "--attempts", "1", "--price-in", "2", "--price-out", "8")
    first = silver(*words)
    assert first.code == 0, first.err
    sound = sum(case.reason is None for case in CASES)
    table = [line.split() for line in first.out.splitlines()]
    assert table[0] == ["language", "seeds", "rows", "clean", "passages", "entity"]
    assert table[2] == ["en", str(len(CASES)), str(sound), "0", "100%", f"{sound / len(CASES):.0%}"]
    assert f"{sound} rows, 0 of them clean" in first.err
    assert "at the prices given" in first.err
    assert "outside 4" in first.err
    again = silver(*words, "--json")
    assert again.code == 0
    assert "All of them had been done by an earlier run" in again.err
    account = json.loads(again.out)
    spent = account["total"]["tokens_in"] * 2 + account["total"]["tokens_out"] * 8
    assert account["money"] == pytest.approx(spent / 1e6, abs=1e-4)
    assert sum(1 for _ in read(str(output))) == sound


def test_a_plan_asks_nothing(silver: Command, files: tuple[Path, Path], tmp_path: Path) -> None:
    given, script = files
    words = (given, "-m", "m", "--mock-rules", script, "-o", tmp_path / "o.jsonl", "--dry-run")
    plain = json.loads(silver(*words).out)
    assert plain["calls"] == 6 * len(CASES)
    checked = json.loads(silver(*words, "--support", "model", "--clean", "0.5").out)
    clean = len(CASES) // 2
    assert checked["calls"] == (len(CASES) - clean) * (6 + 6) + len(CASES)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["script.json", "seeds.jsonl"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--order", "entity,name"], "name"),
        (["--order", " , "], "names no type"),
        (["--price-in", "2"], "both prices"),
        (["--taxonomy", "halluverse", "--form", "tags"], "plain"),
        (["--support", "detector", "--detector", "nothing-like-it"], "nothing-like-it"),
    ],
)
def test_what_makes_no_sense_is_refused(
    silver: Command, files: tuple[Path, Path], tmp_path: Path, words: list[str], said: str
) -> None:
    given, script = files
    base = (given, "-m", "m", "--mock-rules", script, "-o", tmp_path / "out.jsonl")
    outcome = silver(*base, *words)
    assert outcome.code == 2
    assert said in outcome.err


@pytest.mark.slow
@pytest.mark.parametrize("taxonomy", ["fava", "halluverse"])
def test_a_small_real_model_gives_sound_rows_or_reasons(silver: Command, tmp_path: Path, taxonomy: str) -> None:
    given, output = tmp_path / "seeds.jsonl", tmp_path / "out.jsonl"
    text = "The mill of Oberfeld was built in 1731. The widow Anna Kroll owned it."
    samples = [
        Sample("asked", "", language="en", question="When was the mill built?", evidence=(Evidence(ARTICLE),)),
        Sample("given", text, language="en", evidence=(Evidence(ARTICLE),)),
    ]
    write_lines(given, samples)
    server = start_real_server()
    try:
        outcome = silver(
            given, "-m", MODEL, "--base-url", server.base_url, "-o", output, "--taxonomy", taxonomy, "--attempts", "1",
            "--generation", "max_tokens=120", "--generation", "temperature=0", "--concurrency", "1",
            "--client-options", "retries=0",
        )  # fmt: skip
    finally:
        assert server.stop() == 0
    assert outcome.code == 0, outcome.err
    account = load_account(output).total
    lines = rejected_path(output).read_bytes().splitlines()
    reasons = [account.passages, *account.types.values()]
    counted = sum(sum(one.reasons.values()) for one in reasons) + sum(account.row_reasons.values())
    assert counted == len(lines)
    assert account.calls >= 3
    found = list(read(str(output))) if output.stat().st_size else []
    assert len(found) == account.rows
    for sample in found:
        made = sample.meta["silver"]
        changes = msgspec.convert(made["changes"], list[Change])
        faults = check(Edited(made["passage"], sample.response, tuple(changes)), language="en", evidence=[ARTICLE])
        assert faults == []
    for one in reasons:
        assert one.taken <= one.asked
        assert one.taken == one.asked or one.reasons

"""`veriglot study` on the command line: the rehearsal, the run, its account, its status."""

from __future__ import annotations

import json
import re
import signal
from typing import TYPE_CHECKING, Any

import pytest
from misbehaving import Faults, ModelServer
from study_folder import EXAMPLES, write_queries, write_responses

from veriglot.cli import main
from veriglot.storage.files import Lock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Start = Callable[..., Any]

DETECTOR = f'[[detectors]]\nname = "grounding"\nlabelled = "{EXAMPLES}"\n'


def asked(folder: Path, address: str, more: str = "") -> Path:
    write_queries(folder / "queries.jsonl", 30)
    path = folder / "study.toml"
    path.write_text(
        f"""
[study]
title = "Two kilns"
pooled = true
draws = 200
[queries]
path = "queries.jsonl"
[[models]]
name = "kiln"
base_url = "{address}"
settings = {{ max_tokens = 10 }}
price_in = 2.0
price_out = 10.0
[[models]]
name = "kiln-open"
base_url = "{address}"
prompt = "open"
{DETECTOR}
{more}
"""
    )
    return path


def given(folder: Path) -> Path:
    write_responses(folder / "responses.jsonl", ["kiln", "moor"], 30)
    path = folder / "study.toml"
    path.write_text(f'[study]\ndraws = 200\npooled = true\n[responses]\npath = "responses.jsonl"\n{DETECTOR}')
    return path


def told(capfd: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    capfd.readouterr()
    code = main([str(word) for word in words])
    out, err = capfd.readouterr()
    return code, out, err


def test_a_rehearsal_counts_calls_tokens_and_cost_and_leaves_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    study = asked(tmp_path, "http://127.0.0.1:9/v1")  # nobody listens there
    before = sorted(path.name for path in tmp_path.iterdir())
    code, out, _ = told(capfd, "study", "run", study, "--dry-run", "--json")
    assert code == 0
    found = json.loads(out)
    assert (found["calls"], found["judgements"], found["enough"]) == (60, 60, True)
    kiln, opened = found["models"]
    assert kiln["languages"] == {"de": 10, "en": 10, "fr": 10}
    assert kiln["tokens_out"] == 300
    assert kiln["cost"] == pytest.approx((kiln["tokens_in"] * 2 + 300 * 10) / 1e6)
    assert (opened["tokens_out"], opened["cost"]) == (None, None)
    assert opened["tokens_in"] > 2 * kiln["tokens_in"]  # it gets the evidence as well
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    code, out, _ = told(capfd, "study", "run", study, "--dry-run")
    assert code == 0
    assert "60 calls to make, 60 judgements, 3 languages: de, en, fr" in out


def test_a_rehearsal_says_where_limits_stop_the_study(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for limits, enough in (
        ("calls = 59", False),
        ("calls = 60", True),
        ("tokens = 10", False),
        ("tokens = 9999", None),
    ):
        study = asked(tmp_path, "http://127.0.0.1:9/v1", f"[limits]\n{limits}\n")
        _, out, _ = told(capfd, "study", "run", study, "--dry-run", "--json")
        assert json.loads(out)["enough"] is enough, limits


def test_a_rehearsal_of_given_responses(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capfd, "study", "run", given(tmp_path), "--dry-run", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["calls"], found["judgements"]) == (0, 60)
    assert [model["model"] for model in found["models"]] == ["kiln", "moor"]


def test_a_rehearsal_calls_no_language_und(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    study = given(tmp_path)
    for path in tmp_path.glob("*.jsonl"):
        rows = map(json.loads, path.read_text("utf-8").splitlines())
        kept = ({key: value for key, value in row.items() if key != "language"} for row in rows)
        path.write_text("".join(f"{json.dumps(row)}\n" for row in kept), "utf-8")
    _, out, _ = told(capfd, "study", "run", study, "--dry-run")
    assert "0 calls to make, 60 judgements. Prompt tokens" in out
    assert "Without a stated language, so identified from the text: 60 responses." in out


def test_a_run_ends_with_a_table_and_the_path_of_the_report(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(capfd, "study", "run", given(tmp_path), "--processes", 1)
    assert code == 0
    assert "kiln" in out
    assert "French" in out
    assert f"the report is {tmp_path / 'study' / 'report.html'}" in err
    code, out, err = told(capfd, "study", "run", tmp_path / "study.toml", "--processes", 1, "--json", "--quiet")
    assert (code, err) == (0, "")
    assert json.loads(out) == json.loads((tmp_path / "study" / "results.json").read_bytes())


def test_rows_that_came_to_nothing_leave_with_3(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    study = given(tmp_path)
    with (tmp_path / "responses.jsonl").open("ab") as file:
        file.write(b"{}\n")
    code, _, err = told(capfd, "study", "run", study, "--processes", 1)
    assert code == 3
    assert "1 row failed: see *.failed.jsonl in " in err


def test_wrong_words_are_answered_with_the_right_ones(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    study = given(tmp_path)
    study.write_text(study.read_text().replace("pooled", "poold"))
    code, out, err = told(capfd, "study", "run", study)
    assert (code, out) == (1, "")
    assert "field study.poold" in err
    assert "Did you mean pooled?" in err
    code, _, err = told(capfd, "study", "status", tmp_path)
    assert code == 1
    assert "this is not the folder of a study's run" in err


def test_the_status_is_known_before_while_and_after(
    tmp_path: Path, start: Start, capfd: pytest.CaptureFixture[str]
) -> None:
    with ModelServer(Faults(slow=1.0, slow_seconds=0.1, in_a_row=10**6)) as server:
        study = asked(tmp_path, server.base_url, "[limits]\njobs = 2\n")
        running = start("study", "run", study, "--processes", 1)
        folder = tmp_path / "study"
        file = folder / "responses" / "kiln.jsonl"
        while not (file.exists() and file.stat().st_size) and running.poll() is None:
            pass
        _, out, _ = told(capfd, "study", "status", folder, "--json")
        found = json.loads(out)
        assert found["running"] is True
        assert found["finished"] is False
        first = found["steps"][0]
        assert (first["what"], first["model"], first["planned"], first["finished"]) == ("responses", "kiln", 30, False)
        assert 1 <= first["done"] < 30
        code, _, err = told(capfd, "study", "run", study)
        assert code == 2
        assert "Another process is writing" in err
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
        assert running.returncode == 130
        _, out, _ = told(capfd, "study", "status", folder)
        assert "No process is working" in out
        assert "under way" in out
        assert told(capfd, "study", "run", study, "--processes", 1, "--quiet")[0] == 0
        assert server.paid_most() == 1
    _, out, _ = told(capfd, "study", "status", folder)
    assert re.search(r"predictions\s+kiln-open, by grounding\s+30\s+30\s+finished", out)
    assert not re.search("not begun|under way|not made yet|at work", out)


def test_looking_does_not_take_hold_of_the_folder(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    told(capfd, "study", "run", given(tmp_path), "--processes", 1)
    lock = Lock(tmp_path / "study" / "run")
    try:
        assert json.loads(told(capfd, "study", "status", tmp_path / "study", "--json")[1])["running"] is True
    finally:
        lock.release()
    assert json.loads(told(capfd, "study", "status", tmp_path / "study", "--json")[1])["running"] is False


def test_the_rates_are_those_of_veriglot_estimate(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    study = given(tmp_path)
    study.write_text(study.read_text().replace("draws = 200", "estimators = []"))
    assert told(capfd, "study", "run", study, "--processes", 1, "--quiet")[0] == 0
    folder = tmp_path / "study"
    rates = [rate for rate in json.loads((folder / "rates.json").read_bytes()) if rate["seed"] is None]
    again = []
    for model in ("kiln", "moor"):
        code, out, _ = told(
            capfd, "estimate", folder / "predictions" / "grounding" / f"{model}.jsonl", "--pooled", "--json",
            "--samples", folder / "responses" / f"{model}.jsonl", "--profile", folder / "profiles" / "grounding.json",
        )  # fmt: skip
        assert code == 0
        again += json.loads(out)
    assert len(again) == len(rates) == 6
    numbers = ("model", "language", "rate", "low", "high", "units", "responses", "coverage", "status", "reason")
    for one, other in zip(rates, again, strict=True):
        assert {name: one.get(name) for name in numbers} == {name: other.get(name) for name in numbers}


def test_a_rehearsal_finds_that_the_labels_make_no_profile(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    study = given(tmp_path)
    row = {"id": "a", "evidence": "It opened in 1897.", "response": "It opened in 1879.", "label": "unsupported"}
    (tmp_path / "labelled.jsonl").write_text(json.dumps(row) + "\n")
    study.write_text(study.read_text("utf-8").replace(str(EXAMPLES), "labelled.jsonl"), "utf-8")
    code, _, err = told(capfd, "study", "run", study, "--dry-run")
    assert code == 2
    assert "labelled.jsonl marks no spans" in err
    assert "estimators = []" in err

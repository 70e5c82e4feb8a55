"""Judges on the command line: options by --set, keys from the environment, exit codes of what failed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from misbehaving import ModelServer
from scripted_judges import sample

from json_lines import read_lines
from veriglot.records import encode

CLEAN = '{"spans": []}'


def veriglot(*words: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("veriglot")), *words]
    return subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True)


def written(folder: Path) -> str:
    path = folder / "answers.jsonl"
    path.write_bytes(b"\n".join(encode(sample(id=str(n))) for n in range(3)) + b"\n")
    return path.name


def test_a_server_is_asked_with_its_key_and_options(tmp_path: Path) -> None:
    with ModelServer(answer=lambda _: CLEAN, schemas=False, key="secret-of-the-judge") as server:
        done = veriglot(
            "detect", written(tmp_path), "-o", "marked.jsonl", "--detector", "judge:spans", "--processes", "2",
            "--set", "model=m", "--set", f"url={server.base_url}", "--set", "key=JUDGE_KEY", "--set", "cache=calls",
            "--set", 'settings={"top_p": 0.9}', "--set", "max_tokens=77", "--set", "temperature=server",
            folder=tmp_path, JUDGE_KEY="secret-of-the-judge",
        )  # fmt: skip
        body = server.arrivals[-1].body
    assert done.returncode == 0, done.stderr
    assert (body["model"], body["top_p"], body["max_tokens"], "temperature" in body) == ("m", 0.9, 77, False)
    rows = read_lines(tmp_path / "marked.jsonl")
    assert [(row["id"], row["status"], row["spans"]) for row in rows] == [(str(n), "scored", []) for n in range(3)]
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"secret-of-the-judge" in content for content in kept)


def test_a_judge_that_fails_leaves_with_the_code_of_failed_rows(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text("[[rules]]\nreply = 'I would rather not.'\n", "utf-8")
    done = veriglot(
        "detect", written(tmp_path), "-o", "marked.jsonl", "--detector", "judge:spans",
        "--set", "client=scripted", "--set", "rules=rules.toml", folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 3
    assert "3 not checked (failed 3)" in done.stderr


def test_what_is_missing_is_said_before_anything_is_asked(tmp_path: Path) -> None:
    name = written(tmp_path)
    for settings, said in (((), "Set model=NAME"), (("--set", "model=m"), "Set the option url")):
        done = veriglot("detect", name, "-o", "x.jsonl", "--detector", "judge:spans", *settings, folder=tmp_path)
        assert done.returncode == 2
        assert said in done.stderr
    done = veriglot("detect", name, "-o", "x.jsonl", "--detector", "judge:span", "--set", "model=m", folder=tmp_path)
    assert "Did you mean spans" in done.stderr

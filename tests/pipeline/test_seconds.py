"""How long an output took: the wall time of every call that worked on it, added up."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import veriglot.storage.checkpoint
from veriglot.storage.checkpoint import Checkpoint, Manifest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NAP = 0.03


class Word(msgspec.Struct, frozen=True):
    id: str


def napping(rows: Iterator[Word], until: int = 100) -> Iterator[Word]:
    for number, row in enumerate(rows):
        if number == until:
            raise KeyboardInterrupt
        time.sleep(_NAP)
        yield row


def run(path: Path, *, until: int = 100, **settings: Any) -> None:
    stage = Checkpoint(path, signature="naps@1", **settings)
    stage.run((Word(f"w{number}") for number in range(6)), lambda rows: napping(rows, until))


def seconds(path: Path) -> float | None:
    manifest = Manifest.load(path)
    assert manifest is not None
    return manifest.seconds


def test_calls_that_go_on_add_up_and_one_that_finds_all_done_adds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(path, until=4)
    first = seconds(path)
    assert first is not None
    assert 4 * _NAP <= first < 60
    run(path)
    whole = seconds(path)
    assert whole is not None
    assert first + 2 * _NAP <= whole < 60
    run(path)
    assert seconds(path) == whole
    run(path, restart=True)
    anew = seconds(path)
    assert anew is not None
    assert 6 * _NAP <= anew < whole + 6 * _NAP


def test_what_an_earlier_version_began_has_an_unknown_time(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(path, until=2)
    progress = tmp_path / "out.jsonl.progress"
    manifest = json.loads(progress.read_text())
    del manifest["seconds"]
    progress.write_text(json.dumps(manifest))
    run(path)
    assert seconds(path) is None
    assert json.loads(progress.read_text())["finished"]


def test_time_is_noted_while_a_run_is_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(veriglot.storage.checkpoint, "_SAVE_EVERY", 0.0)
    path, noted = tmp_path / "out.jsonl", []
    stage = Checkpoint(path, signature="naps@1")
    stage.run((Word(f"w{number}") for number in range(3)), napping, seen=lambda _: noted.append(seconds(path)))
    for number, one in enumerate(noted, start=1):
        assert one is not None
        assert one >= number * _NAP

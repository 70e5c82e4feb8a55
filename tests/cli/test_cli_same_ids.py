"""Ids that occur in several inputs: a prediction is told from others of its output by its id alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rows import samples

from veriglot.records import encode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Outcome

    Command = Callable[..., Outcome]

WORD_ABSENCE = ("--detector", "word_absence:WordAbsence")


def _twice(folder: Path) -> tuple[Path, Path]:
    lines = b"".join(encode(row) + b"\n" for row in samples(3))
    paths = (folder / "a.jsonl", folder / "b.jsonl")
    for path in paths:
        path.write_bytes(lines)
    return paths


def test_an_output_holds_every_id_once(veriglot: Command, tmp_path: Path) -> None:
    a, b = _twice(tmp_path)
    outcome = veriglot("detect", a, b, *WORD_ABSENCE, "-o", tmp_path / "out.jsonl")
    assert outcome.code == 3
    assert len((tmp_path / "out.jsonl").read_bytes().splitlines()) == 3
    failed = (tmp_path / "out.jsonl.failed.jsonl").read_text("utf-8")
    assert failed.count("occurred before") == 3
    assert failed.count("b.jsonl") == 3


def test_outputs_of_their_own_may_share_ids(veriglot: Command, tmp_path: Path) -> None:
    a, b = _twice(tmp_path)
    assert veriglot("detect", a, b, *WORD_ABSENCE, "--output", f"{tmp_path / 'out'}/").code == 0

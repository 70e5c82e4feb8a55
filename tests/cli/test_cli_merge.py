"""`veriglot detect --shard` and `veriglot merge`: the same output as without shards, and refusals of what is not it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from rows import samples

from veriglot.formats.reader import read_predictions
from veriglot.records import encode
from veriglot.storage.checkpoint import Manifest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Outcome

    Command = Callable[..., Outcome]

WORD_ABSENCE = ("--detector", "word_absence:WordAbsence", "--processes", 1)


def write_inputs(folder: Path) -> list[Path]:
    """Two files of 40 and 31 rows; some cannot be read, and the second has ids of the first."""
    paths = [folder / "a.jsonl", folder / "b.jsonl"]
    lines = [encode(sample) for sample in samples(70)]
    broken = {5: b'{"id": "x", "response": 3}', 8: b"{", 39: b"nothing"}
    first = [broken.get(number, line) for number, line in enumerate(lines[:40])]
    second = [*lines[40:], lines[0]]  # the last one is a row of the first file again
    for path, content in zip(paths, (first, second), strict=True):
        path.write_bytes(b"\n".join(content) + b"\n")
    return paths


def run_shards(veriglot: Command, inputs: list[Path], folder: Path, count: int, suffix: str = ".jsonl") -> list[Path]:
    outputs = [folder / f"{number}-{count}{suffix}" for number in range(1, count + 1)]
    for number, output in enumerate(outputs, start=1):
        outcome = veriglot("detect", *inputs, "-o", output, "--shard", f"{number}/{count}", *WORD_ABSENCE)
        assert outcome.code in {0, 3}, outcome.err
    return outputs


def told(output: Path) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads((output.parent / f"{output.name}.progress").read_bytes())
    return {name: value for name, value in plain.items() if name != "seconds"}


@pytest.mark.parametrize("count", [1, 2, 3, 9, 20])
def test_the_merged_output_is_that_of_one_run(veriglot: Command, tmp_path: Path, count: int) -> None:
    inputs = write_inputs(tmp_path)
    whole, merged = tmp_path / "whole.jsonl", tmp_path / "merged.jsonl"
    assert veriglot("detect", *inputs, "-o", whole, *WORD_ABSENCE).code == 3
    shards = run_shards(veriglot, inputs, tmp_path / "parts", count)
    outcome = veriglot("merge", *reversed(shards), "-o", merged)
    assert outcome.code == 3, outcome.err
    assert "71 rows: 61 checked" in outcome.err
    assert merged.read_bytes() == whole.read_bytes()
    for suffix in (".failed.jsonl",):
        assert merged.with_name(merged.name + suffix).read_bytes() == whole.with_name(whole.name + suffix).read_bytes()
    assert told(merged) == told(whole)
    assert veriglot("detect", *inputs, "-o", merged, *WORD_ABSENCE).code == 3  # it is finished: nothing is redone
    assert merged.read_bytes() == whole.read_bytes()


def test_parquet_goes_in_and_out(veriglot: Command, tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path)[1:]
    whole = tmp_path / "whole.parquet"
    assert veriglot("detect", *inputs, "-o", whole, *WORD_ABSENCE).code == 0
    shards = run_shards(veriglot, inputs, tmp_path / "parts", 3, ".parquet")
    for merged in (tmp_path / "merged.parquet", tmp_path / "merged.jsonl"):
        assert veriglot("merge", *shards, "-o", merged).code == 0
        assert list(read_predictions(merged)) == list(read_predictions(whole))
    assert told(tmp_path / "merged.parquet") == told(whole)


def test_what_is_not_a_whole_run_is_refused_with_the_difference(veriglot: Command, tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path)
    shards = run_shards(veriglot, inputs, tmp_path / "parts", 3)
    others = run_shards(veriglot, inputs[:1], tmp_path / "others", 3)
    halves = run_shards(veriglot, inputs, tmp_path / "halves", 2)
    whole = tmp_path / "whole.jsonl"
    veriglot("detect", *inputs, "-o", whole, *WORD_ABSENCE)
    words = tmp_path / "words.jsonl"
    veriglot("detect", *inputs, "-o", words, "--shard", "3/3", "--words", *WORD_ABSENCE)
    refused = {
        (shards[0], shards[2]): "Of 3 shards 2/3 is missing",
        (shards[1],): "Of 3 shards 1/3, 3/3 are missing",
        (*shards, shards[1]): "are both shard 2/3",
        (shards[0], others[1], shards[2]): "it had 2 input files and now has 1",
        (shards[0], halves[1]): "--shard was 1/3 and is now 2/2",
        (*shards[:2], words): "--words was False and is now True",
        (*shards[:2], whole): "is not a shard of a run",
        (*shards[:2], inputs[0]): "is not a shard of a run",
        (*shards[:2], tmp_path / "none.jsonl"): "there is no such file",
    }
    for paths, message in refused.items():
        outcome = veriglot("merge", *paths, "-o", tmp_path / "merged.jsonl")
        assert outcome.code != 0
        assert message in " ".join(outcome.err.split()), paths
        assert not (tmp_path / "merged.jsonl").exists()


def test_a_shard_that_is_unfinished_or_changed_is_refused(veriglot: Command, tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path)
    first, second = run_shards(veriglot, inputs, tmp_path / "parts", 2)
    lines = second.read_bytes()
    second.write_bytes(lines[: len(lines) // 2])
    assert "was changed after it was finished" in veriglot("merge", first, second, "-o", tmp_path / "m.jsonl").err
    progress = second.with_name(second.name + ".progress")
    progress.write_text(progress.read_text().replace('"finished": true', '"finished": false'))
    outcome = veriglot("merge", first, second, "-o", tmp_path / "m.jsonl")
    assert "is not finished" in outcome.err
    assert "--shard 2/2" in outcome.err
    run_shards(veriglot, inputs, tmp_path / "parts", 2)  # resumes
    assert second.read_bytes() == lines
    assert veriglot("merge", first, second, "-o", tmp_path / "m.jsonl").code == 3


def test_merging_again_does_nothing_and_after_a_kill_everything(veriglot: Command, tmp_path: Path) -> None:
    shards = run_shards(veriglot, write_inputs(tmp_path), tmp_path / "parts", 2)
    merged = tmp_path / "merged.jsonl"
    veriglot("merge", *shards, "-o", merged)
    content, changed = merged.read_bytes(), merged.stat().st_mtime_ns
    assert "all of them had been done" in veriglot("merge", *shards, "-o", merged).err
    assert merged.stat().st_mtime_ns == changed
    progress = merged.with_name(merged.name + ".progress")
    progress.write_text(progress.read_text().replace('"finished": true', '"finished": false'))
    merged.unlink()
    assert veriglot("merge", *shards, "-o", merged).code == 3
    assert merged.read_bytes() == content
    assert (manifest := Manifest.load(merged)) is not None
    assert manifest.finished


def test_nothing_of_others_is_overwritten(veriglot: Command, tmp_path: Path) -> None:
    shards = run_shards(veriglot, write_inputs(tmp_path), tmp_path / "parts", 2)
    mine = tmp_path / "mine.jsonl"
    mine.write_bytes(b"mine\n")
    assert "already exists" in veriglot("merge", *shards, "-o", mine).err
    assert "is a shard and would be overwritten" in veriglot("merge", *shards, "-o", shards[0]).err
    assert mine.read_bytes() == b"mine\n"
    assert veriglot("merge", *shards, "-o", mine, "--overwrite").code == 3
    others = run_shards(veriglot, [tmp_path / "b.jsonl"], tmp_path / "others", 2)
    assert "it had 2 input files and now has 1" in veriglot("merge", *others, "-o", mine).err


@pytest.mark.parametrize("shard", ["0/3", "4/3", "3", "1/0", "a/b", "-1/2", "1/2/3", ""])
def test_a_shard_that_does_not_exist_is_refused(veriglot: Command, tmp_path: Path, shard: str) -> None:
    (path, _) = write_inputs(tmp_path)
    outcome = veriglot("detect", path, "-o", tmp_path / "out.jsonl", f"--shard={shard}", *WORD_ABSENCE)
    assert outcome.code == 2
    assert "such as 3/16" in outcome.err


def test_a_shard_is_of_files_and_makes_a_file(veriglot: Command, tmp_path: Path) -> None:
    (path, _) = write_inputs(tmp_path)
    for words in (
        ["-", "-o", tmp_path / "o.jsonl"],
        [path],
        [path, "-o", tmp_path / "o.html"],
        [path, "-o", f"{tmp_path}/o/"],
    ):
        outcome = veriglot("detect", *words, "--shard", "1/2", *WORD_ABSENCE)
        assert outcome.code == 2
        assert "--shard" in outcome.err

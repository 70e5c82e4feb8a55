"""Folders of parts without Ray: planned alike at each call, resumed after any death, refused where they differ."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from rows import samples
from word_absence import WordAbsence

from veriglot.errors import InputError, UsageError
from veriglot.formats.reader import read_predictions, read_rows
from veriglot.formats.writer import predictions_as_parquet
from veriglot.pipeline.ray_engine import RunStats, _Share, _Task, text_bytes
from veriglot.records import Prediction, Status, encode
from veriglot.storage import parts
from veriglot.storage.parts import Block, Outcome, Part, PartFolder, finished_parts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class DeathError(Exception):
    """The run dies here."""


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_MOST_ROWS", 10)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """47 rows, of which the 4th and the 21st cannot be read."""
    lines = [b"{" if number in {3, 20} else encode(row) for number, row in enumerate(samples(47))]
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


class Maker:
    """Makes parts here, the later of two first, and dies after so many parts were written."""

    def __init__(self, dies_after: int | None = None) -> None:
        self.made: list[int] = []
        self._left = dies_after

    def __call__(self, blocks: Iterator[Block], folder: PartFolder) -> Iterator[Part]:
        more, fault = True, None
        while more:
            pair: list[Block] = []
            try:
                pair.extend(islice(blocks, 2))
            except InputError as error:
                fault = error
            more = len(pair) == 2
            yield from self._pair(pair, folder)
        if fault is not None:
            raise fault

    def _pair(self, pair: list[Block], folder: PartFolder) -> list[Part]:
        return [self._part(block, folder) for block in reversed(pair)][::-1]

    def _part(self, block: Block, folder: PartFolder) -> Part:
        if (part := folder.listed(block)) is not None:
            return part
        if self._left == 0:
            raise DeathError
        self._left = None if self._left is None else self._left - 1
        predictions = WordAbsence().predict(block.samples)
        self.made.append(block.start)
        return folder.write(block, predictions_as_parquet(predictions), Outcome.of(predictions), 0.5)


def folder_of(source: Path, **changes: Any) -> PartFolder:
    settings: dict[str, Any] = {
        "read": read_predictions,
        "size": text_bytes,
        "inputs": [str(source)],
        "signature": "word-absence@1|threshold:0.5",
        "options": {"--words": False},
    }
    return PartFolder(source.parent / "out", **{**settings, **changes})


def run(source: Path, maker: Maker | None = None, *, stop: bool = False, **changes: Any) -> Any:
    return folder_of(source, **changes).run(lambda: read_rows(str(source)), maker or Maker(), stop=stop)


def expected(source: Path) -> list[Prediction]:
    return WordAbsence().predict([row for row in read_rows(str(source)) if hasattr(row, "response")])


def test_the_parts_hold_every_row_once_and_in_order(source: Path) -> None:
    tally = run(source)
    assert (tally.rows, tally.failed, tally.reused) == (47, 2, 0)
    listed = finished_parts(source.parent / "out")
    assert [(part.start, part.end) for part in listed] == [(0, 10), (10, 20), (20, 30), (30, 40), (40, 47)]
    assert [row.row for part in listed for row in part.failed] == [3, 20]
    assert list(read_predictions(source.parent / "out")) == expected(source)


@pytest.mark.parametrize("alive", range(6))
def test_a_run_that_died_goes_on_and_redoes_no_part(source: Path, alive: int) -> None:
    first, second, third = Maker(dies_after=alive), Maker(), Maker()
    if alive < 5:
        with pytest.raises(DeathError):
            run(source, first)
    else:
        run(source, first)
    tally = run(source, second)
    assert sorted(first.made + second.made) == [0, 10, 20, 30, 40]
    assert tally.rows == 47
    assert list(read_predictions(source.parent / "out")) == expected(source)
    assert run(source, third).reused == 47
    assert not third.made


def test_a_part_that_is_damaged_or_missing_is_made_anew(source: Path) -> None:
    run(source)
    listed = [source.parent / "out" / part.id for part in finished_parts(source.parent / "out")]
    listed[1].write_bytes(listed[1].read_bytes()[:-100])
    listed[3].unlink()
    with pytest.raises(UsageError, match="was changed after it was finished"):
        list(read_predictions(source.parent / "out"))
    maker = Maker()
    run(source, maker)
    assert sorted(maker.made) == [10, 30]
    assert list(read_predictions(source.parent / "out")) == expected(source)


def test_a_listed_part_that_was_changed_is_made_anew_though_its_ids_are_right(source: Path) -> None:
    run(source)
    folder = source.parent / "out"
    same_size, other_size = (folder / finished_parts(folder)[number].id for number in (1, 3))
    data = bytearray(same_size.read_bytes())
    data[len(data) // 2] ^= 1
    same_size.write_bytes(data)
    altered = [replace(each, reason="altered") for each in read_predictions(other_size)]
    other_size.write_bytes(predictions_as_parquet(altered))
    maker = Maker()
    run(source, maker)
    assert sorted(maker.made) == [10, 30]
    assert list(read_predictions(folder)) == expected(source)


def test_overwrite_takes_up_no_part_and_removes_only_files_of_our_own_names(source: Path) -> None:
    with pytest.raises(DeathError):
        run(source, Maker(dies_after=1))
    folder = source.parent / "out"
    (folder / "parts.jsonl").unlink(missing_ok=True)
    strange = folder / "part-00000-6c1f-c000.snappy.parquet"
    partial = folder / f"part-{0:012}-{9:012}-{'a' * 12}.parquet.partial"
    strange.touch()
    partial.touch()
    maker = Maker()
    run(source, maker, restart=True)
    assert sorted(maker.made) == [0, 10, 20, 30, 40]
    assert strange.exists()
    assert not partial.exists()


def test_a_whole_part_of_other_rows_is_not_taken(source: Path) -> None:
    with pytest.raises(DeathError):
        run(source, Maker(dies_after=1))
    (only,) = (source.parent / "out").glob("part-*.parquet")
    assert "000000000010-000000000020" in only.name
    only.write_bytes(predictions_as_parquet(expected(source)[:10]))
    maker = Maker()
    run(source, maker)
    assert 10 in maker.made
    assert list(read_predictions(source.parent / "out")) == expected(source)


@pytest.mark.parametrize("alive", [1, 2, None])
def test_another_input_detector_or_option_is_refused_with_the_difference(source: Path, alive: int | None) -> None:
    maker = Maker(dies_after=alive)
    if alive is None:
        run(source, maker)
    else:
        with pytest.raises(DeathError):
            run(source, maker)
    before = {path.name: path.read_bytes() for path in (source.parent / "out").iterdir()}
    if alive == 1:  # nothing is listed yet, so nothing binds; a part of another run has another name
        tally = run(source, Maker(), options={"--words": True})
        assert tally.rows == 47
        assert len(list((source.parent / "out").glob("part-*"))) == 5
        return
    with pytest.raises(UsageError, match=r"threshold was '0\.5' and is now '0\.7'"):
        run(source, signature="word-absence@1|threshold:0.7")
    with pytest.raises(UsageError, match="--words was False and is now True"):
        run(source, options={"--words": True})
    source.write_bytes(source.read_bytes() + encode(next(samples(1))) + b"\n")
    with pytest.raises(UsageError, match="has changed"):
        run(source)
    assert {path.name: path.read_bytes() for path in (source.parent / "out").iterdir()} == before


def test_overwrite_makes_all_anew_and_leaves_no_part_behind(source: Path) -> None:
    run(source)
    maker = Maker()
    run(source, maker, options={"--words": True}, restart=True)
    assert sorted(maker.made) == [0, 10, 20, 30, 40]
    assert len(list((source.parent / "out").glob("part-*"))) == 5


def test_stop_ends_at_the_first_bad_row_and_keeps_what_is_whole(source: Path) -> None:
    lines = source.read_bytes().split(b"\n")
    source.write_bytes(b"\n".join(line for number, line in enumerate(lines) if number != 3))
    with pytest.raises(InputError, match="line 20"):
        run(source, Maker(), stop=True)
    maker = Maker()
    run(source, maker)
    assert 0 not in maker.made


def test_what_is_not_finished_is_not_read_as_whole(source: Path) -> None:
    with pytest.raises(DeathError):
        run(source, Maker(dies_after=3))
    with pytest.raises(UsageError, match="is not finished"):
        list(read_predictions(source.parent / "out"))
    with pytest.raises(UsageError, match="is not a folder of predictions"):
        list(read_predictions(source.parent))


def test_blocks_end_by_bytes_too(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_MOST_BYTES", 1)
    run(source)
    assert len(finished_parts(source.parent / "out")) == 47
    assert list(read_predictions(source.parent / "out")) == expected(source)


@pytest.mark.parametrize("size", [0, 1, 2, 10, 2_000])
def test_a_sample_is_tried_three_times_and_the_last_time_alone(size: int) -> None:
    task = _Task(Block("part", 0, []), list(samples(size)))
    pieces = _Share(task, 0, size).after_death()
    assert [sample for piece in pieces for sample in piece.samples] == task.samples
    singles = [single for piece in pieces for single in piece.after_death()]
    assert [sample for single in singles for sample in single.samples] == task.samples
    assert all(single.deaths == 2 and len(single.samples) <= 1 for single in singles)
    assert len(pieces) <= size**0.5 + 1


def test_pace_tells_rate_time_skew_failures_and_cost() -> None:
    now = [0.0]
    pace = RunStats(2, done_before=1_000, clock=lambda: now[0])
    failed = Outcome({"failed": 2}, {}, {"the detector raised ArithmeticError": 2})
    pace.add(Part("a", 1_000, 2_000, 1, failed, seconds=20.0), 1)
    now[0] = 30.0
    assert pace.due_line(lambda: 10_000) is None
    now[0] = 70.0
    pace.add(Part("b", 2_000, 2_400, 1, Outcome(), seconds=8.0), 2)
    line = pace.due_line(lambda: 10_000)
    assert line == (
        "2,400 of 10,000 rows, 20.0 rows/s, 7 min left, skew 1.43, 2 failed (2 x the detector raised ArithmeticError)"
    )
    now[0] = 100.0
    assert pace.due_line(lambda: 10_000) is None
    assert pace.core_hours == pytest.approx(2 * 100 / 3600 / 1_400 * 1e6)
    assert pace.summary == (
        "1,400 rows in 100.0 s on 2 processes; 14.0 rows/s, skew 1.43; a million rows take 39.68 core-hours, 5.56 of"
        " them CPU time of judging; 2 failed (2 x the detector raised ArithmeticError)"
    )


def test_outcome_counts_by_status_verdict_and_reason(source: Path) -> None:
    predictions = expected(source)
    outcome = Outcome.of(predictions)
    assert sum(outcome.statuses.values()) == len(predictions)
    assert outcome.verdicts["de"].keys() == {"supported", "unsupported"}
    broken = [Prediction(f"s{n}", Status.FAILED, "word-absence@1", reason=f"reason {n}") for n in range(30)]
    reasons = Outcome.of(broken).reasons
    assert len(reasons) == 21
    assert reasons["other reasons"] == 10

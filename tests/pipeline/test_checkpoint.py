"""Outputs that are continued, never redone and never lost."""

from __future__ import annotations

import json
import os
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import samples
from word_absence import WordAbsence

from json_lines import read_lines, write_lines
from veriglot.errors import InputError, UsageError
from veriglot.pipeline.engine import Engine, OutputJob, run_jobs
from veriglot.records import Prediction, Sample, Status, encode
from veriglot.storage.checkpoint import Checkpoint, FailedRow, JsonLines, Tally

if TYPE_CHECKING:
    from collections.abc import Iterator


class Counting(WordAbsence):
    """Counts what it is asked about."""

    asked: ClassVar[Counter[str]] = Counter()

    def judge(self, sample: Sample) -> Prediction:
        self.asked[sample.id] += 1
        return super().judge(sample)


@pytest.fixture(autouse=True)
def _count_anew() -> None:
    Counting.asked.clear()


def write_input(folder: Path, count: int = 60, name: str = "in.jsonl") -> Path:
    path = folder / name
    return write_lines(path, samples(count))


def rows_of(path: Path) -> Iterator[Sample | FailedRow]:
    """Every seventh row of the input counts as one that cannot be read."""
    for number, line in enumerate(path.read_bytes().splitlines()):
        if number % 7 == 3:
            yield FailedRow("broken", path=str(path), line=number + 1, raw=line.decode())
        else:
            yield msgspec.json.decode(line, type=Sample)


def checkpoint_for(source: Path, output: Path, **settings: Any) -> Checkpoint:
    given: dict[str, Any] = {"signature": "word-absence@1", "options": {"words": False}, **settings}
    return Checkpoint(output, inputs=[str(source)], **given)


def make(source: Path, output: Path, *, until: int | None = None, stop: bool = False, **settings: Any) -> Tally:
    """A run; with `until`, one that is interrupted after that many rows."""
    left = until

    def seen(row: object, prediction: object) -> None:
        nonlocal left
        if left is not None:
            left -= 1
            if left <= 0:
                raise KeyboardInterrupt

    job = OutputJob(lambda: rows_of(source), checkpoint_for(source, output, **settings))
    with Engine(Counting, batch_size=1) as engine:
        return run_jobs([job], engine, seen=seen, stop=stop)


@pytest.mark.slow
def test_two_processes_write_the_bytes_and_count_the_rows_of_one(tmp_path: Path) -> None:
    source = write_input(tmp_path)
    made = []
    for jobs in (1, 2):
        checkpoint = checkpoint_for(source, tmp_path / f"{jobs}.jsonl")
        with Engine(partial(WordAbsence, words=True), jobs=jobs, batch_size=7) as engine:
            tally = run_jobs([OutputJob(lambda: rows_of(source), checkpoint)], engine)
        made.append((checkpoint.rows.path.read_bytes(), checkpoint.failures.path.read_bytes(), tally))
    assert made[0] == made[1]
    assert made[0][2].reasons == {"no_evidence": "s15: the sample has no evidence"}


def test_a_line_counts_as_its_record_does(tmp_path: Path) -> None:
    records = [
        Prediction("a", Status.SCORED, "d", 0.9, (), language="de", notes=("evidence:other_language",)),
        Prediction("b", Status.FAILED, "d", reason="why"),
    ]
    made = []
    for name, lines in (("records", records), ("lines", list(map(encode, records)))):
        checkpoint = checkpoint_for(write_input(tmp_path), tmp_path / name)
        checkpoint.open()
        for line in lines:
            checkpoint.write(line)
        checkpoint.complete()
        made.append((checkpoint.output.read_bytes(), checkpoint.tally))
    assert made[0] == made[1]
    assert (made[0][1].foreign, made[0][1].reasons) == (1, {"failed": "b: why"})


def test_every_row_is_in_one_of_the_two_files(tmp_path: Path) -> None:
    source, output = write_input(tmp_path), tmp_path / "out.jsonl"
    tally = make(source, output)
    predictions = read_lines(output)
    failed = read_lines(tmp_path / "out.jsonl.failed.jsonl")
    assert [row["row"] for row in failed] == list(range(3, 60, 7))
    assert [row["line"] for row in failed] == [number + 1 for number in range(3, 60, 7)]
    assert [p["id"] for p in predictions] == [f"s{number}" for number in range(60) if number % 7 != 3]
    assert (tally.rows, tally.failed, tally.reused) == (60, len(failed), 0)


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    source, output = write_input(tmp_path), tmp_path / "out.jsonl"
    make(source, tmp_path / "whole.jsonl")
    Counting.asked.clear()
    for until in (1, 7, 20):
        with pytest.raises(KeyboardInterrupt):
            make(source, output, until=until)
    tally = make(source, output)
    assert output.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert (tmp_path / "out.jsonl.failed.jsonl").read_bytes() == (tmp_path / "whole.jsonl.failed.jsonl").read_bytes()
    assert tally.reused == 28
    assert set(Counting.asked.values()) == {1}  # no finished row was done again


def test_a_finished_run_is_recognised(tmp_path: Path) -> None:
    source, output = write_input(tmp_path), tmp_path / "out.jsonl"
    first = make(source, output)
    before = output.stat()
    Counting.asked.clear()
    again = make(source, output)
    assert not Counting.asked
    assert output.stat().st_mtime_ns == before.st_mtime_ns
    assert (again.statuses, again.failed, again.reused) == (first.statuses, first.failed, first.rows)


def test_an_input_without_rows_has_an_output_without_rows(tmp_path: Path) -> None:
    source, output = write_input(tmp_path, 0), tmp_path / "out.jsonl"
    assert make(source, output).rows == 0
    assert output.read_bytes() == b""
    assert make(source, output).rows == 0


@pytest.mark.parametrize("cut", [1, 5, 30])
def test_a_half_written_line_is_repaired(tmp_path: Path, cut: int) -> None:
    source, output = write_input(tmp_path), tmp_path / "out.jsonl"
    make(source, tmp_path / "whole.jsonl")
    with pytest.raises(KeyboardInterrupt):
        make(source, output, until=25)
    os.truncate(output, output.stat().st_size - cut)
    failures = tmp_path / "out.jsonl.failed.jsonl"
    with failures.open("ab") as file:
        file.write(b'{"message": "bro')
    make(source, output)
    assert output.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert failures.read_bytes() == (tmp_path / "whole.jsonl.failed.jsonl").read_bytes()


@pytest.mark.fuzz
@given(rows=st.integers(0, 59), into=st.integers(0, 200))
def test_a_kill_at_any_byte_loses_and_repeats_nothing(
    tmp_path_factory: pytest.TempPathFactory, rows: int, into: int
) -> None:
    """The output cut at any place, the failed rows ahead of it, as a power failure can leave them."""
    folder = tmp_path_factory.mktemp("kill")
    source, output = write_input(folder), folder / "out.jsonl"
    make(source, output)
    whole, failed = output.read_bytes(), (folder / "out.jsonl.failed.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    left = b"".join(lines[:rows]) + b"".join(lines[rows : rows + 1])[:into]
    output.write_bytes(left)
    progress = folder / "out.jsonl.progress"
    progress.write_text(json.dumps({**json.loads(progress.read_text()), "finished": False}))
    Counting.asked.clear()
    make(source, output)
    assert output.read_bytes() == whole
    assert (folder / "out.jsonl.failed.jsonl").read_bytes() == failed
    assert Counting.asked.total() == len(lines) - left.count(b"\n")


def test_touching_the_input_changes_nothing(tmp_path: Path) -> None:
    source, output = write_input(tmp_path), tmp_path / "out.jsonl"
    make(source, output)
    os.utime(source, ns=(1, 1))
    Counting.asked.clear()
    make(source, output)
    assert not Counting.asked


def test_other_content_of_the_input_is_refused(tmp_path: Path) -> None:
    source, output = write_input(tmp_path), tmp_path / "out.jsonl"
    with pytest.raises(KeyboardInterrupt):
        make(source, output, until=5)
    kept = output.read_bytes()
    source.write_bytes(source.read_bytes().replace(b"river", b"brook"))
    with pytest.raises(UsageError, match=r"in\.jsonl has changed") as caught:
        make(source, output)
    assert "--overwrite" in caught.value.remedy
    assert output.read_bytes() == kept
    make(source, output, restart=True)
    assert b"brook" in output.read_bytes()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"signature": "word-absence@2"}, "the detector was 'word-absence@1' and is now 'word-absence@2'"),
        ({"options": {"words": True}}, "words was False and is now True"),
        ({"options": {"words": False, "language": "de"}}, "language was not set and is now 'de'"),
    ],
)
def test_another_call_is_refused_and_says_what_differs(tmp_path: Path, settings: dict[str, Any], says: str) -> None:
    source, output = write_input(tmp_path), tmp_path / "out.jsonl"
    make(source, output)
    manifest = (tmp_path / "out.jsonl.progress").read_bytes()
    with pytest.raises(UsageError) as caught:
        make(source, output, **settings)
    assert says in caught.value.message
    assert (tmp_path / "out.jsonl.progress").read_bytes() == manifest
    make(source, output)  # the first call is still finished


def test_a_call_that_failed_before_its_first_row_binds_nothing(tmp_path: Path) -> None:
    source, output = write_input(tmp_path), tmp_path / "out.jsonl"
    failing = checkpoint_for(source, output, options={"--map": None})
    with pytest.raises(InputError, match="no column"):
        failing.run(unreadable(), lambda rows: rows)
    assert failing.progress.exists()
    make(source, output)
    assert len(output.read_bytes().splitlines()) + len(Path(f"{output}.failed.jsonl").read_bytes().splitlines()) == 60


def unreadable() -> Iterator[Sample | FailedRow]:
    raise InputError("no column is known to hold the response")
    yield


def test_a_file_that_no_run_made_is_not_overwritten(tmp_path: Path) -> None:
    source, output = write_input(tmp_path), tmp_path / "out.jsonl"
    output.write_text("mine\n")
    with pytest.raises(UsageError, match="nothing says how it was made"):
        make(source, output)
    assert output.read_text() == "mine\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


@pytest.mark.parametrize("name", ["in.jsonl", "in.jsonl.failed.jsonl"])
def test_an_input_is_never_overwritten_even_on_restart(tmp_path: Path, name: str) -> None:
    source = write_input(tmp_path, name=name)
    before = source.read_bytes()
    with pytest.raises(UsageError, match="is an input and would be overwritten"):
        make(source, tmp_path / "in.jsonl", restart=True)
    assert source.read_bytes() == before


def test_an_output_that_was_edited_is_refused(tmp_path: Path) -> None:
    source, output = write_input(tmp_path), tmp_path / "out.jsonl"
    with pytest.raises(KeyboardInterrupt):
        make(source, output, until=20)
    lines = output.read_bytes().splitlines(keepends=True)
    output.write_bytes(b"".join(lines[:4] + lines[5:]))
    with pytest.raises(UsageError, match=r"Row 6 of the input is not the one .*'s6'"):
        make(source, output)


def test_a_finished_output_that_was_edited_is_refused(tmp_path: Path) -> None:
    source, output = write_input(tmp_path), tmp_path / "out.jsonl"
    make(source, output)
    output.write_bytes(output.read_bytes() + b"more\n")
    with pytest.raises(UsageError, match="changed after it was finished"):
        make(source, output)


def test_a_damaged_manifest_is_refused(tmp_path: Path) -> None:
    source, output = write_input(tmp_path), tmp_path / "out.jsonl"
    make(source, output)
    (tmp_path / "out.jsonl.progress").write_bytes(b"{")
    with pytest.raises(UsageError, match="damaged or from another version"):
        make(source, output)


def test_standard_input_is_never_continued(tmp_path: Path) -> None:
    source, output = write_input(tmp_path), tmp_path / "out.jsonl"

    def run() -> None:
        checkpoint = Checkpoint(output, inputs=["-"], signature="s", options={})
        with Engine(WordAbsence) as engine:
            run_jobs([OutputJob(lambda: rows_of(source), checkpoint)], engine)

    run()
    with pytest.raises(UsageError, match="standard input cannot be compared"):
        run()


def test_stop_raises_at_the_first_row_that_cannot_be_read_and_keeps_what_was_done(tmp_path: Path) -> None:
    source, output = write_input(tmp_path), tmp_path / "out.jsonl"
    with pytest.raises(InputError) as caught:
        make(source, output, stop=True)
    assert (caught.value.line, caught.value.detail) == (4, "broken")
    assert len(output.read_bytes().splitlines()) == 3
    make(source, output)
    assert Counting.asked.total() == len(output.read_bytes().splitlines())


def test_two_processes_do_not_write_one_output(tmp_path: Path) -> None:
    source, output = write_input(tmp_path), tmp_path / "out.jsonl"
    checkpoint = checkpoint_for(source, output)
    checkpoint.open()
    with pytest.raises(UsageError, match="Another process is writing"):
        checkpoint_for(source, output).open()
    checkpoint.close()
    make(source, output)
    assert not (tmp_path / "out.jsonl.lock").exists()


def test_an_output_made_from_its_rows_survives_a_failure_of_that_step(tmp_path: Path) -> None:
    source, output = write_input(tmp_path), tmp_path / "out.count"

    def full(rows: Path, target: Path) -> None:
        target.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    def count(rows: Path, target: Path) -> None:
        target.write_text(f"{len(rows.read_bytes().splitlines())}\n")

    with pytest.raises(OSError, match="No space left"):
        make(source, output, finish=full)
    assert not output.exists()
    asked = Counting.asked.total()
    make(source, output, finish=count)
    assert Counting.asked.total() == asked  # only the last step was taken again
    assert output.read_text() == f"{asked}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "in.jsonl",
        "out.count",
        "out.count.failed.jsonl",
        "out.count.progress",
    ]
    make(source, output, finish=full)  # finished: the step is not taken


def test_many_inputs_share_one_engine_and_resume_each(tmp_path: Path) -> None:
    sources = [write_input(tmp_path, 10 + 5 * number, f"in{number}.jsonl") for number in range(4)]

    def jobs() -> list[OutputJob]:
        return [
            OutputJob(lambda source=source: rows_of(source), checkpoint_for(source, tmp_path / "out" / source.name))  # type: ignore[misc]
            for source in sources
        ]

    with Engine(Counting, batch_size=8) as engine:
        run_jobs(jobs()[:2], engine)
    with Engine(Counting, batch_size=8) as engine:
        tally = run_jobs(jobs(), engine)
    assert (tally.rows, tally.reused) == (70, 25)
    assert set(Counting.asked.values()) <= {1, 2, 3, 4}
    for source in sources:
        alone = tmp_path / "alone" / source.name
        make(source, alone)
        assert (tmp_path / "out" / source.name).read_bytes() == alone.read_bytes()


@pytest.mark.fuzz
@given(lines=st.lists(st.binary(max_size=40).filter(lambda line: b"\n" not in line)), tail=st.binary(max_size=40))
def test_a_journal_holds_exactly_its_whole_lines(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], tail: bytes
) -> None:
    tail = tail.replace(b"\n", b"")
    path = tmp_path_factory.mktemp("journal") / "rows"
    journal = JsonLines(path)
    for line in lines:
        journal.append(line)
    journal.close()
    with path.open("ab") as file:
        file.write(tail)
    assert journal.repair() == len(tail)
    assert list(journal.lines()) == lines
    journal.keep(len(lines) // 2)
    assert list(journal.lines()) == lines[: len(lines) // 2]


def test_a_call_in_which_every_row_failed_binds_no_other(tmp_path: Path) -> None:
    source, output = write_input(tmp_path, 3), tmp_path / "out.jsonl"

    def fail(rows: Iterator[Sample]) -> Iterator[FailedRow]:
        return (FailedRow("no answer", id=row.id) for row in rows)

    def judge(rows: Iterator[Sample]) -> Iterator[Prediction]:
        return map(WordAbsence().judge, rows)

    mistyped = checkpoint_for(source, output, signature="server@mistyped").run(samples(3), fail)
    assert (mistyped.failed, mistyped.rows) == (3, 3)
    assert checkpoint_for(source, output).run(samples(3), judge).failed == 0
    assert len(output.read_bytes().splitlines()) == 3
    with pytest.raises(UsageError, match="was started differently"):
        checkpoint_for(source, output, signature="server@mistyped").run(samples(3), fail)

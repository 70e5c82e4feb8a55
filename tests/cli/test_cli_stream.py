"""`produce | veriglot detect - | consume`: a row in, a row out; a slow or dead reader; what comes in pieces."""

from __future__ import annotations

import json
import os
import select
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

import pytest
from rows import samples

from veriglot.formats.containers import Source, read_container, standard_input_ready
from veriglot.records import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from subprocess import Popen

    Start = Callable[..., Popen[bytes]]

DETECTOR = ("--detector", "word_absence:WordAbsence")
LIMIT = 30.0  # seconds: only what never comes is an error here; benchmarks/stream_latency.py measures


class Stream:
    """A running `veriglot detect -` of which each result has to come though no more input does."""

    def __init__(self, running: Popen[bytes]) -> None:
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stderr is not None
        self.running, self.input, self.output, self.errors = running, running.stdin, running.stdout, running.stderr
        self._read = b""

    def write(self, *lines: bytes) -> None:
        self.input.write(b"".join(line + b"\n" for line in lines))
        self.input.flush()

    def result(self) -> Any:
        while b"\n" not in self._read:
            assert select.select([self.output], [], [], LIMIT)[0], "nothing came out"
            block = os.read(self.output.fileno(), 65536)
            assert block, self.errors.read().decode()
            self._read += block
        line, _, self._read = self._read.partition(b"\n")
        return json.loads(line)


@pytest.fixture
def stream(process: Start) -> Iterator[Callable[..., Stream]]:
    """Start one; `stream("--processes", 2)`."""
    started: list[Stream] = []

    def start(*words: object) -> Stream:
        started.append(Stream(process("detect", "-", *DETECTOR, *words, stdin=-1)))
        return started[-1]

    yield start
    for each in started:
        each.running.kill()
        each.running.wait(LIMIT)
        for pipe in (each.input, each.output, each.errors):
            with suppress(BrokenPipeError):  # what could not be written is still there
                pipe.close()


ROW = encode(next(iter(samples(1))))


def many(count: int) -> bytes:
    """Rows as lines, each with an id of its own."""
    return b"".join(ROW.replace(b'"s0"', f'"r{number}"'.encode()) + b"\n" for number in range(count))


@pytest.mark.parametrize("processes", [1, 2])
def test_a_row_in_a_row_out(stream: Callable[..., Stream], processes: int) -> None:
    running = stream("--processes", processes, "--quiet")
    for row in samples(5):
        running.write(encode(row))
        assert running.result()["id"] == row.id
    several = list(samples(12))[5:]  # those that come together go out together
    running.write(*map(encode, several))
    assert [running.result()["id"] for _ in several] == [row.id for row in several]
    running.input.close()
    assert running.running.wait(LIMIT) == 0
    assert (running.output.read(), running.errors.read()) == (b"", b"")


def test_a_row_that_cannot_be_read_holds_up_none(stream: Callable[..., Stream]) -> None:
    running = stream()
    first, second = samples(2)
    for row in (b'{"id": "cut', encode(first), b"{", encode(second)):
        running.write(row)
    assert [running.result()["id"], running.result()["id"]] == [first.id, second.id]
    running.input.close()
    assert running.running.wait(LIMIT) == 3


def test_a_dead_reader_ends_it_in_silence(stream: Callable[..., Stream]) -> None:
    running = stream()
    running.write(ROW)
    running.result()
    running.output.close()
    with pytest.raises(BrokenPipeError):  # nobody reads us either
        running.input.write(many(20_000))
    assert running.running.wait(LIMIT) == 1
    assert running.errors.read() == b""


def test_a_slow_reader_holds_up_the_writer(stream: Callable[..., Stream]) -> None:
    running = stream("--quiet")
    running.write(ROW)
    running.result()
    os.set_blocking(running.input.fileno(), False)
    lines = many(50_000)
    written, refused = 0, 0
    while refused < 10:  # tries in a row, a second, in which it took nothing
        try:
            written += os.write(running.input.fileno(), lines[written : written + 65536])
            refused = 0
        except BlockingIOError:
            time.sleep(0.1)
            refused += 1
        assert written < len(lines) / 5, "it reads on though nobody takes the results"
    assert running.running.poll() is None


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[BinaryIO]:
    """The other end of standard input."""
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as stdin, os.fdopen(writing, "wb", buffering=0) as other:
        monkeypatch.setattr("sys.stdin", stdin)
        yield other


def test_the_first_line_is_enough_to_know_json_lines(pipe: BinaryIO) -> None:
    pipe.write('{"id": "a", "response": "é"}\n{"id": "b", "response": "'.encode() + "é".encode()[:1])
    source = Source("-")
    assert source.look().container == "jsonl"
    assert source.head.decode("utf-8").endswith("\n"), "a character that was cut in two is not in sight"
    records = read_container("jsonl", source)
    assert next(records).data["id"] == "a"  # type: ignore[union-attr]
    assert not standard_input_ready()
    pipe.write("é".encode()[1:] + b'"}\n{"id": "c"}\n')
    assert standard_input_ready()
    assert next(records).data["response"] == "é"  # type: ignore[union-attr]
    assert standard_input_ready()
    assert next(records).data["id"] == "c"  # type: ignore[union-attr]
    assert not standard_input_ready()
    pipe.close()
    assert standard_input_ready()
    assert list(records) == []


@pytest.mark.parametrize("text", ['{\n "id": "a"\n}', '[\n{"id": "a"},\n{"id": "b"}\n]\n', "id,response\na,b\n", "{"])
def test_whatever_else_comes_in_pieces_is_read_whole(pipe: BinaryIO, text: str) -> None:
    pipe.write(text.encode())
    pipe.close()
    source = Source("-")
    assert source.look().text.strip() == text.strip()
    assert source.open().read() == text.encode()

"""`veriglot detect`: the same prediction by every way in, every output, bad rows, options that do not fit."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rows import samples
from word_absence import WordAbsence

from json_lines import write_lines
from veriglot.formats.writer import write
from veriglot.records import Evidence, Sample, encode
from veriglot.storage.checkpoint import InputFile, Manifest
from veriglot.storage.files import write_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Outcome

    Command = Callable[..., Outcome]

WORD_ABSENCE = ("--detector", "word_absence:WordAbsence")
SOURCE = "Die alte Mühle steht am Fluss.\r\nSie wurde 1874 gebaut. 🌊\n"
ANSWER = "Die Mühle wurde 1901 gebaut. 🌊 Sie steht leer.\n"


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def write_rows(path: Path, count: int = 40) -> list[Sample]:
    rows = list(samples(count))
    write_lines(path, rows)
    return rows


def expected(rows: list[Sample]) -> list[dict[str, Any]]:
    return [json.loads(encode(WordAbsence().judge(row))) for row in rows]


def test_every_way_in_gives_the_same_prediction(veriglot: Command, tmp_path: Path) -> None:
    sample = Sample("response", ANSWER, language="de", question="Wann?", evidence=(Evidence(SOURCE), Evidence("Sie")))
    (tmp_path / "source.txt").write_bytes(SOURCE.encode())
    (tmp_path / "more.txt").write_bytes(b"Sie")
    (tmp_path / "answer.txt").write_bytes(ANSWER.encode())
    (tmp_path / "in.jsonl").write_bytes(encode(sample) + b"\n")
    write([sample], tmp_path / "in.parquet", format="parquet")
    (wanted,) = expected([sample])
    assert wanted["spans"]  # 1901 and leer: a prediction with something in it
    more = ("--question", "Wann?", "--language", "German", *WORD_ABSENCE)
    source, second, answer = tmp_path / "source.txt", tmp_path / "more.txt", tmp_path / "answer.txt"
    ways: dict[str, Outcome] = {
        "files": veriglot("detect", "--evidence", source, "--evidence", second, "--response", answer, *more),
        "glob": veriglot("detect", "--response", answer, *more, "--evidence", source, second),
        "literals": veriglot(
            "detect", "--evidence-text", SOURCE, "--evidence-text", "Sie", "--response-text", ANSWER, *more
        ),
        "response from stdin": veriglot(
            "detect", "--evidence", source, second, "--response", "-", *more, stdin=ANSWER.encode()
        ),
        "stdin": veriglot("detect", "-", *WORD_ABSENCE, stdin=encode(sample) + b"\n"),
        "JSONL": veriglot("detect", tmp_path / "in.jsonl", *WORD_ABSENCE),
        "Parquet": veriglot("detect", tmp_path / "in.parquet", *WORD_ABSENCE),
        "two processes": veriglot("detect", tmp_path / "in.jsonl", "--processes", 2, *WORD_ABSENCE),
    }
    for way, outcome in ways.items():
        assert outcome.code == 0, (way, outcome.err)
        assert lines_of(outcome.out) == [wanted], way


@pytest.mark.parametrize("options", [("--processes", 1), ("--processes", 2)])
def test_batches_and_processes_change_nothing(veriglot: Command, tmp_path: Path, options: tuple[object, ...]) -> None:
    rows = write_rows(tmp_path / "in.jsonl")
    outcome = veriglot("detect", tmp_path / "in.jsonl", *WORD_ABSENCE, *options)
    assert lines_of(outcome.out) == expected(rows)


def test_words_and_threshold_reach_the_detector(veriglot: Command, tmp_path: Path) -> None:
    pair = ("--evidence-text", "old mill", "--response-text", "new mill", *WORD_ABSENCE)
    (plain,) = lines_of(veriglot("detect", *pair).out)
    (words,) = lines_of(veriglot("detect", *pair, "--words", "--threshold", 0.95).out)
    assert "words" not in plain
    assert [span["text"] for span in plain["spans"]] == ["new"]
    assert [word["confidence"] for word in words["words"]] == [0.9, 0.1]
    assert words["spans"] == []


def test_output_files_agree_with_standard_output(veriglot: Command, tmp_path: Path) -> None:
    import pyarrow.parquet

    rows = write_rows(tmp_path / "in.jsonl")
    for name in ("out.jsonl", "out.parquet", "out.html"):
        outcome = veriglot("detect", tmp_path / "in.jsonl", "-o", tmp_path / name, *WORD_ABSENCE)
        assert (outcome.code, outcome.out) == (0, "")
        assert "40 rows: " in outcome.err
    assert lines_of((tmp_path / "out.jsonl").read_text()) == expected(rows)
    table = pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert [row["id"] for row in table] == [row.id for row in rows]
    assert [row["score"] for row in table] == [row.get("score") for row in expected(rows)]
    page = (tmp_path / "out.html").read_text()
    assert page.count('class="listed"') == 40
    assert sorted(path.name for path in tmp_path.iterdir() if ".rows" in path.name or ".lock" in path.name) == []


def test_a_pair_is_shown_in_every_output_format(veriglot: Command, tmp_path: Path) -> None:
    pair = ("--evidence-text", "old mill", "--response-text", "new mill", *WORD_ABSENCE)
    assert "[new]{hallucination .90}" in veriglot("detect", *pair, "--to", "terminal").out
    assert veriglot("detect", *pair, "--to", "html").out.startswith("<!doctype html>")
    assert lines_of(veriglot("detect", *pair, "--to", "json").out)[0]["id"] == "response"
    for name in ("one.jsonl", "one.parquet", "one.html"):
        assert veriglot("detect", *pair, "-o", tmp_path / name).code == 0
        assert (tmp_path / name).stat().st_size > 0


def test_many_files_and_folders_go_to_a_folder(veriglot: Command, tmp_path: Path) -> None:
    inside = tmp_path / "answers" / "deep"
    inside.mkdir(parents=True)
    made = {
        "a.jsonl": write_rows(tmp_path / "a.jsonl", 10),
        "deep/b.jsonl": write_rows(inside / "b.jsonl", 20),
    }
    write(samples(5, seed=1), tmp_path / "c.parquet", format="parquet")
    made["c.jsonl"] = list(samples(5, seed=1))
    (tmp_path / "answers" / "README").write_text("Not samples.\n")
    words = (
        "detect",
        tmp_path / "a.jsonl",
        tmp_path / "c.parquet",
        tmp_path / "answers",
        "--processes",
        2,
        *WORD_ABSENCE,
    )
    outcome = veriglot(*words, "--output", f"{tmp_path / 'out'}/")
    assert outcome.code == 0, outcome.err
    assert "README is skipped" in outcome.err
    assert "35 rows" in outcome.err
    for name, rows in made.items():
        assert lines_of((tmp_path / "out" / name).read_text()) == expected(rows)
    again = veriglot(*words, "--output", f"{tmp_path / 'out'}/")
    assert "all of them had been done by an earlier run" in again.err


def test_a_file_of_rows_in_a_folder_that_cannot_be_read_is_not_passed_over(veriglot: Command, tmp_path: Path) -> None:
    write_rows(tmp_path / "nightly.jsonl", 3)
    (tmp_path / "source_info.jsonl").write_text("{}\n")  # belongs to a format: read beside its files, if at all
    limit = ("--fail-on", "not-checked")
    assert veriglot("detect", tmp_path, *WORD_ABSENCE, "--to", "json", *limit).code == 0
    (tmp_path / "table.csv").write_text("Frage,Antwort\nWo?,Im Tal.\n", "utf-8")
    outcome = veriglot("detect", tmp_path, *WORD_ABSENCE, "--to", "json", *limit)
    assert (outcome.code, "1 could not be read" in outcome.err) == (4, True)
    assert "source_info.jsonl is skipped" in outcome.err


def test_what_a_run_made_of_other_files_is_read_and_what_it_made_of_this_folder_is_not(
    veriglot: Command, tmp_path: Path
) -> None:
    rows = write_rows(tmp_path / "built.jsonl", 5)
    write_rows(tmp_path / "again.jsonl", 5)
    for name, made_of in (("built", "queries.jsonl"), ("again", "built.jsonl")):
        write_json(tmp_path / f"{name}.jsonl.progress", Manifest((InputFile(made_of, 0, 0, ""),), "client:x", {}))
    (tmp_path / "built.jsonl.asked").write_text("8a6b")
    outcome = veriglot("detect", tmp_path, *WORD_ABSENCE, "--to", "json")
    assert lines_of(outcome.out) == expected(rows)
    assert "again.jsonl is skipped: an earlier run made it from files of this folder" in outcome.err
    assert "asked" not in outcome.err


def test_inputs_of_one_stem_keep_their_whole_names(veriglot: Command, tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", 3)
    write(samples(4), tmp_path / "a.parquet", format="parquet")
    veriglot("detect", tmp_path / "a.jsonl", tmp_path / "a.parquet", "--output", f"{tmp_path / 'out'}/", *WORD_ABSENCE)
    assert len((tmp_path / "out" / "a.jsonl.jsonl").read_text().splitlines()) == 3
    assert len((tmp_path / "out" / "a.parquet.jsonl").read_text().splitlines()) == 4


BROKEN = (
    b'{"id": "a", "response": "new mill", "evidence": [{"text": "mill"}]}\n'
    b'{"id": "b", "response": \n'
    b'{"id": "c"}\n'
    b'{"id": "d", "response": "\xff"}\n'
    b'{"id": "e", "response": "mill"}\n'
)


@pytest.mark.parametrize("jobs", [1, 2])
def test_bad_rows_are_kept_beside_the_output(veriglot: Command, tmp_path: Path, jobs: int) -> None:
    (tmp_path / "in.jsonl").write_bytes(BROKEN)
    words = ("detect", tmp_path / "in.jsonl", "-o", tmp_path / "out.jsonl", "--processes", jobs, *WORD_ABSENCE)
    outcome = veriglot(*words)
    assert outcome.code == 3
    assert [row["id"] for row in lines_of((tmp_path / "out.jsonl").read_text())] == ["a", "e"]
    failed = lines_of((tmp_path / "out.jsonl.failed.jsonl").read_text())
    assert [(row["line"], row["row"]) for row in failed] == [(2, 1), (3, 2), (4, 3)]
    assert "response" in f"{failed[1]['message']} {failed[1].get('field')}"
    assert failed[0]["raw"] == '{"id": "b", "response": '
    assert all(row["path"] == str(tmp_path / "in.jsonl") for row in failed)
    assert (
        "5 rows: 1 checked, 1 of them marked (100.0%); 1 not checked (no evidence 1); 3 could not be read (see"
        in outcome.err
    )
    assert veriglot(*words).code == 3  # finished, and still with failed rows


def test_stop_ends_at_the_first_bad_row(veriglot: Command, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(BROKEN)
    words = ("detect", tmp_path / "in.jsonl", "-o", tmp_path / "out.jsonl", *WORD_ABSENCE)
    outcome = veriglot(*words, "--on-error", "stop")
    assert outcome.code == 1
    assert "in.jsonl, line 2" in outcome.err
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 1
    assert veriglot(*words, "--on-error", "skip").code == 3  # and it can go on from there
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2
    to_pipe = veriglot("detect", tmp_path / "in.jsonl", *WORD_ABSENCE, "--on-error", "stop")
    assert (to_pipe.code, len(to_pipe.out.splitlines())) == (1, 1)


def test_bad_rows_without_an_output_file_are_told_one_by_one(veriglot: Command) -> None:
    outcome = veriglot("detect", "-", *WORD_ABSENCE, "--quiet", stdin=BROKEN)
    assert outcome.code == 3
    told = [re.match(r"veriglot: standard input, line (\d)", line) for line in outcome.err.splitlines()]
    assert [found and found.group(1) for found in told] == ["2", "3", "4"]
    assert [row["id"] for row in lines_of(outcome.out)] == ["a", "e"]


@pytest.mark.parametrize("name", ["header.csv", "empty.csv", "list.json", "none.jsonl"])
@pytest.mark.parametrize("verb", ["detect", "evaluate", "convert"])
def test_a_file_without_rows_ends_every_command_alike(verb: str, name: str, veriglot: Command, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text({"header.csv": "context,answer\n", "list.json": "[]", "none.jsonl": "\n \n"}.get(name, ""))
    outcome = veriglot(verb, path)
    assert outcome.code == 1
    assert outcome.err == f"veriglot: {path}: it has no rows\n  Check that it is the right file.\n"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--evidence", "It opened in 1897.", "--response-text", "x"), 1, "Give a text itself by --evidence-text"),
        (("--evidence", ".", "--response-text", "x"), 1, ".: this is a folder, not a file"),
        (("-", "--threshold", "high"), 2, "'--threshold': a number is expected\n"),
        (("-", "--processes", "two"), 2, "'-j': a whole number is expected\n"),
        (("-", "--processes", "-1"), 2, "it must be greater than or equal to 0\n"),
    ],
)
def test_a_slip_is_answered_in_plain_words(words: tuple[str, ...], code: int, message: str, veriglot: Command) -> None:
    outcome = veriglot("detect", *words)
    assert outcome.code == code
    assert message in outcome.err
    assert "Errno" not in outcome.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is always full is Linux's")
def test_a_full_disk_says_what_to_do(process: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(encode({"evidence": "a", "response": "b"}) + b"\n")
    with Path("/dev/full").open("wb") as full:
        running = process("convert", tmp_path / "in.jsonl", stdout=full)
        err = running.communicate(timeout=120)[1].decode()
    assert running.returncode == 1
    assert err.endswith("Make room, then rerun the command.\n")


def test_a_row_that_the_detector_fails_over_gives_exit_code_3(veriglot: Command) -> None:
    outcome = veriglot(
        "detect", "--evidence-text", "x", "--response-text", "raise", "--detector", "word_absence:Raises"
    )
    assert outcome.code == 3
    assert lines_of(outcome.out)[0]["reason"].startswith("the detector raised ArithmeticError")


def test_a_pipe_gets_each_row_when_it_is_done(process: Any, tmp_path: Path) -> None:
    write_rows(tmp_path / "in.jsonl", 5000)
    running = process("detect", tmp_path / "in.jsonl", "--detector", "word_absence:Slow", "--processes", 1)
    first = running.stdout.readline()
    assert running.poll() is None
    assert json.loads(first)["id"] == "s0"
    running.stdout.close()  # as `head -1` does
    assert running.wait(30) == 1
    assert running.stderr.read() == b""
    running.stderr.close()


PAIR = ("--evidence-text", "old", "--response-text", "new")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "There is nothing to read."),
        (("The mill burned.", "It did."), "Give texts after --evidence-text and --response-text."),
        (("no-such.jsonl",), "no-such.jsonl: there is no such file"),
        (("-", "-"), "Standard input can be read only once."),
        (("-", "--question", "why"), "--question belongs to --response"),
        (("-", "--language", "Germann"), "There is no language named 'Germann'. | Did you mean"),
        (("-", "-o", "out.cvs"), "There is no kind of output named '.cvs'."),
        (("-", "-o", "out.jsonl", "--to", "html"), "exclude each other"),
        (("-", "--max-rate", "7"), "5% or 0.05"),
        (("-", "--max-rate", "5%x"), "5% or 0.05"),
        (("-", "--evidence-text", "x"), "- is a file of samples, and the other options give a pair. | Give one"),
        (("-", "--fail-on", "unsuported"), "Did you mean unsupported?"),
        (("-", "--strictness", "high", "--threshold", 0.3), "exclude each other"),
        (("-", "--map", "answer=a"), "There is no part of a sample named 'answer'. | It is called response."),
        (("-", "--map", "respons=a"), "There is no part of a sample named 'respons'. | Did you mean response"),
        (("-", "--processes", "-1"), "Invalid value for '--processes'"),
        (("-", "--on-error", "ignore"), "Invalid value for '--on-error'"),
        (("-", "--threshld", "1"), "No such option: --threshld | --threshold"),
        (("-", "--threshold", "1.5"), "A threshold is a probability between 0 and 1"),
        (("--evidence-text", "x"), "A pair has one response"),
        ((*PAIR, "--response", "x"), "A pair has one response"),
        ((*PAIR, "extra.txt"), "extra.txt is a file of samples, and the other options give a pair."),
        ((*PAIR, "--output", "out/"), "A folder is for files of samples"),
        ((*PAIR, "--map", "response=a"), "--map is for files of samples"),
    ],
)
def test_wrong_usage_says_what_and_leaves_with_2(
    veriglot: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    row = b'{"id": "a", "response": "r", "evidence": [{"text": "e"}]}\n'
    outcome = veriglot("detect", *words, *WORD_ABSENCE, stdin=row)
    for part in says.split(" | "):
        assert part in outcome.err
    assert outcome.code == (1 if "no such file" in says else 2)
    assert "Traceback" not in outcome.err
    assert outcome.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("no_such_module:Class", "No module named 'no_such_module'"),
        ("word_absence:NoSuchClass", "has no attribute 'NoSuchClass'"),
        ("json:JSONDecoder", "cannot be made"),
        ("types:SimpleNamespace", "is no detector"),
        ("groundin", "There is no detector named 'groundin'."),
    ],
)
def test_an_unknown_or_broken_detector_is_refused_with_exit_code_2(veriglot: Command, name: str, says: str) -> None:
    for jobs in ("1", "2"):
        outcome = veriglot("detect", "-", "--detector", name, "--processes", jobs, stdin=b"{}\n")
        assert outcome.code == 2
        assert says in outcome.err


def test_a_text_file_that_is_not_utf8_is_refused_with_line_and_byte(veriglot: Command, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\ntw\xff\n")
    outcome = veriglot("detect", "--evidence-text", "x", "--response", tmp_path / "a.txt", *WORD_ABSENCE)
    assert outcome.code == 1
    assert "a.txt, line 2: this is not valid UTF-8: byte 6 is 0xff" in outcome.err


def test_an_unforeseen_error_shows_no_traceback_unless_asked(veriglot: Command, tmp_path: Path) -> None:
    words = ("detect", *PAIR, "--detector", "word_absence:BrokenDescription")
    outcome = veriglot(*words)
    assert outcome.code == 1
    assert "ZeroDivisionError" in outcome.err
    assert "--debug" in outcome.err
    assert "Traceback" not in outcome.err
    with pytest.raises(ZeroDivisionError):
        veriglot(*words, "--debug")


def test_an_output_that_cannot_be_written_ends_without_a_traceback(veriglot: Command, tmp_path: Path) -> None:
    write_rows(tmp_path / "in.jsonl", 3)
    (tmp_path / "file").write_text("")
    outcome = veriglot("detect", tmp_path / "in.jsonl", "-o", tmp_path / "file" / "out.jsonl", *WORD_ABSENCE)
    assert outcome.code == 1
    assert "file" in outcome.err
    assert "Traceback" not in outcome.err

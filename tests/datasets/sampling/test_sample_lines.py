"""Inputs of a sample for translation: every container, columns by name, and unreadable rows."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from veriglot.datasets.sampling.filters import Cleaning, length_of, same_script
from veriglot.datasets.sampling.lines import Columns, Line, key_of, lines_of
from veriglot.errors import InputError, UsageError
from veriglot.records import Evidence, Sample, encode
from veriglot.storage.checkpoint import FailedRow

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [
    {"id": "a", "source": "Die Mühle", "target": "The mill", "qe": "0.5"},
    {"id": "b", "source": "Der \t Fluss", "target": 'The "river"', "qe": ""},
]
LINES = [Line("Die Mühle", "The mill", "a", 0, 1), Line("Der \t Fluss", 'The "river"', "b", 0, 2)]


def written(folder: Path, kind: str) -> Path:
    path = folder / f"data.{kind}"
    if kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), "utf-8")
    elif kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet

        pyarrow.parquet.write_table(pa.Table.from_pylist(ROWS), path)
    else:
        import csv

        with path.open("w", encoding="utf-8", newline="") as stream:
            rows = csv.DictWriter(stream, ROWS[0], delimiter="\t" if kind == "tsv" else ",")
            rows.writeheader()
            rows.writerows(ROWS)
    return path


def good(path: Path, columns: Columns | None = None) -> list[tuple[Line, tuple[float, ...]]]:
    rows = list(lines_of([str(path)], columns or Columns()))
    assert not any(isinstance(row, FailedRow) for row in rows), rows
    return rows  # type: ignore[return-value]


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "csv", "tsv"])
def test_tables_give_lines_and_scores(kind: str, tmp_path: Path) -> None:
    found = good(written(tmp_path, kind), Columns(given=("qe",)))
    assert [(line.source, line.target, line.id) for line, _ in found] == [(x.source, x.target, x.id) for x in LINES]
    assert [line.number for line, _ in found] == ([2, 3] if kind in {"csv", "tsv"} else [1, 2])
    assert found[0][1] == (0.5,)
    assert math.isnan(found[1][1][0])


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text('{"de": "Ja", "en": "Yes", "n": 7, "source": "crawl"}\n', "utf-8")
    assert good(path, Columns("de", "en", "n")) == [(Line("Ja", "Yes", "7", 0, 1), ())]


def test_samples_of_our_own_are_translations(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    sample = Sample("s1", "The mill.", language="en", evidence=(Evidence("Die"), Evidence("Mühle.")))
    path.write_bytes(encode(sample) + b"\n")
    assert good(path) == [(Line("Die\nMühle.", "The mill.", "s1", 0, 1), ())]


def test_plain_text_is_a_source_a_line_and_translations_stand_beside_it(tmp_path: Path) -> None:
    sources, targets = tmp_path / "a.de.txt", tmp_path / "a.en.txt"
    sources.write_text("eins\n\ndrei\nvier\n", "utf-8")
    targets.write_text("one\ntwo\n\nfour", "utf-8")
    alone = [Line("eins", None, None, 0, 1), Line("drei", None, None, 0, 3), Line("vier", None, None, 0, 4)]
    assert [line for line, _ in good(sources)] == alone
    beside = Columns(targets=(str(targets),))
    assert [(line.source, line.target) for line, _ in good(sources, beside)] == [
        ("eins", "one"), ("drei", None), ("vier", "four"),
    ]  # fmt: skip
    targets.write_text("one\ntwo\nthree\n", "utf-8")
    with pytest.raises(InputError, match="differ in their number of lines: 4 and 3"):
        good(sources, beside)


def test_bytes_that_are_no_text_cost_one_line(tmp_path: Path) -> None:
    sources, targets = tmp_path / "a.de.txt", tmp_path / "a.en.txt"
    sources.write_bytes("eins\nzwei\nfünf\n".encode())
    targets.write_bytes(b"one\n\xff\xfe\nfive\n")
    rows = list(lines_of([str(sources)], Columns(targets=(str(targets),))))
    assert isinstance(rows[1], FailedRow)
    assert [row[0].target for row in (rows[0], rows[2])] == ["one", "five"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"target": "x"}, "source"),
        ({"source": 5}, "int"),
        ({"source": "a", "target": ["b"]}, "list"),
        ({"source": "a", "qe": "high"}, "'high' is no number"),
        ({"source": "a", "qe": True}, "bool"),
        ({"source": "a"}, "qe"),
        (["a"], "no object"),
        ({"evidence": "x", "response": "y", "qe": 1}, "no list of passages"),
    ],
)
def test_what_cannot_be_read_says_why_and_the_rest_is_read(row: Any, told: str, tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps(row) + '\n{"source": "b", "qe": 1}\n', "utf-8")
    bad, (line, given) = lines_of([str(path)], Columns(given=("qe",)))  # type: ignore[misc]
    assert isinstance(bad, FailedRow)
    assert told in str(bad.as_error())
    assert bad.line == 1
    assert (line.source, given) == ("b", (1.0,))


def test_files_of_other_kinds_are_refused(tmp_path: Path) -> None:
    (tmp_path / "data.xml").write_text("<a/>", "utf-8")
    with pytest.raises(UsageError, match="is none of"):
        good(tmp_path / "data.xml")
    text = tmp_path / "data.txt"
    text.write_text("eins\n", "utf-8")
    with pytest.raises(UsageError, match="no columns of scores"):
        good(text, Columns(given=("qe",)))
    with pytest.raises(UsageError, match="as many inputs"):
        good(text, Columns(targets=(str(text), str(text))))
    with pytest.raises(InputError, match="no such file"):
        good(tmp_path / "absent.jsonl")


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("", 0),
        (" \n\t", 0),
        ("abc d", 4),
        ("上田的磨坊", 10),
        ("カタカナ", 8),
        ("한국", 4),
        ("हिन्दी", 3),
        ("a\u200db.", 3),
    ],
)
def test_lengths_are_visible_characters(text: str, length: int) -> None:
    assert length_of(text) == length


@pytest.mark.parametrize(
    ("found", "asked", "same"),
    [
        ("de", "de", True),
        ("de", "en", False),
        ("zh-Hans", "zh-Hans", True),
        ("zh-Hant", "zh-Hans", False),
        ("zh-Hant", "zh", True),
        ("sr-Latn", "sr-Cyrl", False),
        ("yue", "zh-Hant", False),
    ],
)
def test_a_script_counts_where_it_is_named(found: str, asked: str, same: bool) -> None:
    assert same_script(found, asked) is same


def test_keys_tell_texts_apart_and_not_white_space() -> None:
    assert key_of("Die  Mühle\n") == key_of(" Die Mühle")
    assert len({key_of("a", "b"), key_of("ab", ""), key_of("ab"), key_of("b", "a"), key_of("a b"), key_of("A")}) == 6


@pytest.mark.parametrize(
    "wrong", [{"min_length": 9, "max_length": 8}, {"min_length": -1}, {"min_confidence": 1.5}, {"near": 0}, {"near": 2}]
)
def test_cleaning_out_of_range_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Cleaning("de", **wrong)

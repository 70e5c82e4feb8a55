"""CSV files as spreadsheets write them: encodings, quotes, errors in cells, size."""

from __future__ import annotations

import csv
import gzip
import logging
import tracemalloc
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import veriglot
from veriglot.errors import InputError
from veriglot.formats.reader import read_rows
from veriglot.storage.checkpoint import FailedRow

if TYPE_CHECKING:
    from pathlib import Path

EVIDENCE = "The bridge was opened in 1897."
RAG = {"question": "When was it opened?", "context": EVIDENCE, "answer": "It was opened in 1879."}


def as_table(path: Path, rows: list[dict[str, str]], *, delimiter: str = ",", encoding: str = "utf-8") -> None:
    with path.open("w", newline="", encoding=encoding) as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


def test_quoted_fields_with_line_breaks_and_any_length_are_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    long = 'He said "no",\nthen; left.\r\n' * 20_000
    as_table(path, [{**RAG, "context": long}, RAG], delimiter=";", encoding="utf-8-sig")
    first, second = veriglot.read(path)
    assert first.evidence[0].text == long
    assert second.evidence[0].text == EVIDENCE
    assert second.id == "a-40003"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it has no rows"), (b"question,context,answer\n", "it has no rows"), (b" \n[ ]\n", "it has no rows"),
        (b"\x7fELF\0\0", "this is binary data"), (b"[1, 2", "not valid JSON"),
        (b"PK\x03\x04xx", "Excel workbook"),
        ("context;answer\nМост открыт в 1897;Он открыт\n".encode("koi8-r"), "not UTF-8, and in no other encoding"),
        (b"context,context2,answer\na,b\n", "Check for a quote"),
        (gzip.compress(b"context,answer\nx,y\n", mtime=0)[:-9], "gzip file is damaged: .* file is complete"),
        (b"\x28\xb5\x2f\xfdxx", "compressed .zstd.. Unpack it"), (b"BZh9xx", "compressed .bzip2.. Unpack it"),
        (b"\xd0\xcf\x11\xe0xx", "old Excel workbook. Unpack it, or save it as CSV"),
    ],
)  # fmt: skip
def test_a_file_of_another_encoding_or_kind_is_refused_with_a_remedy(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message):
        list(veriglot.read(path))


def test_a_large_table_is_streamed(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    as_table(path, [{**RAG, "context": EVIDENCE * 2000}] * 300, encoding="cp1252")
    tracemalloc.start()
    assert sum(1 for _ in veriglot.read(path)) == 300
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size > 16 << 20
    assert peak < 8 << 20


@pytest.mark.parametrize(
    ("encoding", "context", "answer"),
    [
        ("cp1250", "Most łączący Śródmieście z Żoliborzem otwarto w 1897 roku.", "Jego długość to ćwierć kilometra."),
        ("cp1250", "Ez itt az év: 1897, a híd épült", "A híd 1879-ben épült, az új ő"),
        ("cp1251", "Мост открыт", "в 1879"), ("cp1252", "Málaga está à côté", "señor"),
        ("cp1252", "Elle a ouvert en été 1897", "en été"), ("cp1252", "Ura është hapur në 1897.", "Ajo është e gjatë."),
        ("cp1252", "Die Brücke wurde 1897 eröffnet.", "Sie wurde 1879 eröffnet."),
        ("cp1253", "Η γέφυρα άνοιξε το 1897", "Άνοιξε το 1879"),
        ("cp1254", "Köprü 1897 yılında açıldı.", "Şehrin ışığı"),
        ("cp1255", "הגשר נפתח בשנת 1897", "נפתח בשנת 1879"), ("cp1256", "افتتح الجسر عام 1897", "افتتح عام 1879"),
        ("cp1257", "Tiltas atidarytas 1897 metais, jį statė šimtai žmonių.", "Jį atidarė 1879 metais."),
        ("cp874", "สะพานเปิดในปี 1897 และมีความยาวสี่สิบเมตร", "เปิดในปี 1879"),
        ("cp932", "橋は1897年に開通した。", "1879年に開通した。"),
        ("cp949", "다리는 1897년에 개통되었다.", "1879년에 개통되었다."),
        ("gb18030", "大桥于1897年开放，是这里的第一座桥。", "大桥于1879年开放。"),
        ("cp950", "這座橋於1897年開通，是這裡的第一座橋。", "它於1879年開通。"),
    ],
)  # fmt: skip
def test_other_encodings_of_excel_are_recognised(
    encoding: str, context: str, answer: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.csv"
    caplog.set_level(logging.INFO)
    path.write_bytes(f"Quelle;answer\n{context};{answer}\n".encode(encoding))
    (sample,) = veriglot.read(path, columns={"response": "answer", "evidence": "Quelle"})
    assert (sample.evidence[0].text, sample.response) == (context, answer)
    assert f"as {encoding}; if letters look wrong, save it as UTF-8" in caplog.text  # though all columns are stated


@pytest.mark.parametrize(
    ("encoding", "context", "answer", "others"),
    [
        ("cp1252", "Die Brücke wurde 1897 eröffnet.", "Ja, schön.", (40, 6)),
        ("cp1251", "Мост построен в 1897 году.", "Он построен в 1879 году.", (40, 6)),
        ("cp1253", "Η γέφυρα άνοιξε το 1897", "Άνοιξε το 1879", (40, 6)),
        ("cp1256", "افتتح الجسر عام 1897", "افتتح عام 1879", (40, 6)),
        ("cp932", "橋は1897年に開通した。", "開通した。", (40,)),
    ],
)  # fmt: skip
def test_a_line_of_utf_8_in_a_file_of_another_encoding_is_read_as_such(
    encoding: str, context: str, answer: str, others: tuple[int, ...], tmp_path: Path
) -> None:
    """Only in cp1252: elsewhere its letters were replaced by others, without a word."""
    line = f"{context};{answer}\n"
    for count in others:
        lines = [b"Quelle;answer\n", *[line.encode(encoding)] * count, line.encode()]
        (tmp_path / "a.csv").write_bytes(b"".join(lines))
        samples = veriglot.read(tmp_path / "a.csv", columns={"response": "answer", "evidence": "Quelle"})
        assert Counter(sample.response for sample in samples) == {answer: count + 1}


def test_a_line_that_is_utf_8_by_chance_is_read_as_its_file(tmp_path: Path) -> None:
    """ÓŁ in cp1250 are the bytes of a letter of Kurdish in UTF-8."""
    lines = ["context;answer", *["Książka leży na półce w żółtej szafie.;Na półce, obok łóżka."] * 9, "dom;PÓŁKA"]
    (tmp_path / "a.csv").write_bytes("\n".join(lines).encode("cp1250"))
    assert [sample.response for sample in veriglot.read(tmp_path / "a.csv")][-1] == "PÓŁKA"


def test_one_line_of_another_encoding_in_a_file_of_utf_8_is_a_bad_row_that_says_what_to_do(tmp_path: Path) -> None:
    """It said that the file had to be converted, which it is, except for that line."""
    lines = [b"context;answer\n", *["Мост открыт в 1897.;В 1879.\n".encode()] * 3]
    lines.insert(2, "Мост открыт в 1897.;В 1879.\n".encode("cp1251"))
    (tmp_path / "a.csv").write_bytes(b"".join(lines))
    (failed,) = (row for row in read_rows(tmp_path / "a.csv") if isinstance(row, FailedRow))
    assert failed.line == 3
    assert failed.remedy == "Save the file as UTF-8; if only some lines are not, convert these."


@pytest.mark.parametrize("cell", ["#NAME?", "#NAZWA?", "#¡REF!", "#DIV/0!", "#Н/Д", "#N/A", "Err:508"])
def test_an_error_of_a_spreadsheet_is_neither_response_nor_evidence(cell: str, tmp_path: Path) -> None:
    as_table(tmp_path / "a.csv", [{**RAG, "answer": cell}, {**RAG, "context": cell}, {**RAG, "answer": "#1, says it!"}])
    failed, bare, other = read_rows(tmp_path / "a.csv")
    assert isinstance(failed, FailedRow)
    assert f"the cell holds {cell}, an error of the spreadsheet" in failed.message
    assert not isinstance(bare, FailedRow)
    assert not bare.evidence
    assert not isinstance(other, FailedRow)


def test_a_table_without_a_header_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text(f"{EVIDENCE}\t{RAG['answer']}\t1\n" * 2, "utf-8")
    with pytest.raises(InputError, match="Has it no header line") as error:
        list(veriglot.read(tmp_path / "a.tsv"))
    assert "--map" not in str(error.value)

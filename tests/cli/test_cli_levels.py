"""`--level` of `veriglot detect` and `veriglot evaluate`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from json_lines import write_lines
from settings_file import with_settings
from veriglot.formats.reader import read_predictions
from veriglot.records import Annotation, Evidence, Kind, Sample, Span

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Outcome

    Command = Callable[..., Outcome]

WORD_ABSENCE = ("--detector", "word_absence:WordAbsence")
SOURCE = "Mira Holt was born in Odense in 1902. She died in Lima."
ANSWER = "Mira Holt, a Danish painter, was born in Odense in 1901. She died in Lima."
PAIR = ("detect", "--evidence-text", SOURCE, "--response-text", ANSWER, "--language", "en", *WORD_ABSENCE)


def labelled(count: int = 3) -> list[Sample]:
    year, apposition = ANSWER.index("1901"), ANSWER.index("a Danish painter")
    spans = (Span(apposition, apposition + 16, "hallucination"), Span(year, year + 4, "hallucination"))
    return [
        Sample(f"s{n}", ANSWER, language="en", evidence=(Evidence(SOURCE),),
               annotations=(Annotation("gold", Kind.HUMAN, "hat", spans=spans if n else ()),))
        for n in range(count)
    ]  # fmt: skip


def test_facts_and_sentences_of_a_pair(veriglot: Command) -> None:
    plain, facts, sentences = (
        json.loads(veriglot(*PAIR, *more).out) for more in ((), ("--level", "fact"), ("--level", "sentence"))
    )
    assert "units" not in plain
    assert [(unit["kind"], unit["score"]) for unit in facts["units"]] == [
        ("clause", 0.1), ("aside", 0.9), ("name", 0.1), ("date", 0.9), ("sentence", 0.1),
    ]  # fmt: skip
    assert facts["units"][0]["parts"] == [[0, 9], [29, 37]]
    assert [unit["kind"] for unit in sentences["units"]] == ["sentence", "sentence"]
    assert sentences["units"][0]["score"] == pytest.approx(1 - 0.1 * 0.1**0.5 * 0.9**0.25 * 0.9**0.125, abs=1e-4)
    assert "words" not in facts
    for other in (facts, sentences):
        assert {key: other[key] for key in ("score", "spans")} == {key: plain[key] for key in ("score", "spans")}


def test_response_is_the_level_that_is_there_anyway(veriglot: Command) -> None:
    assert veriglot(*PAIR, "--level", "response").out == veriglot(*PAIR).out


def test_an_unknown_level_is_refused(veriglot: Command) -> None:
    found = veriglot(*PAIR, "--level", "paragraph")
    assert found.code == 2
    assert "fact" in found.err


def test_the_terminal_shows_units(veriglot: Command) -> None:
    found = veriglot(*PAIR, "--level", "fact", "--to", "terminal").out
    assert ".90  aside\n      “a Danish painter”" in found
    assert "“Mira Holt … was born”" in found
    assert "aside" not in veriglot(*PAIR, "--to", "terminal").out


def test_files_parquet_processes_and_resuming(veriglot: Command, tmp_path: Path) -> None:
    write_lines(tmp_path / "in.jsonl", labelled(20))
    command = ("detect", tmp_path / "in.jsonl", *WORD_ABSENCE, "--level", "fact")
    for name, jobs in (("one.jsonl", 1), ("two.jsonl", 2), ("all.parquet", 2)):
        assert veriglot(*command, "-o", tmp_path / name, "--processes", jobs).code == 0
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    rows = list(read_predictions(tmp_path / "one.jsonl"))
    assert list(read_predictions(tmp_path / "all.parquet")) == rows
    assert all(len(row.units or ()) == 5 for row in rows)
    other = veriglot(
        "detect", tmp_path / "in.jsonl", *WORD_ABSENCE, "--level", "sentence", "-o", tmp_path / "one.jsonl"
    )
    assert other.code != 0, "an output of facts does not go on as one of sentences"


def test_evaluate_gives_figures_of_facts(veriglot: Command, tmp_path: Path) -> None:
    write_lines(tmp_path / "in.jsonl", labelled())
    command = with_settings(["evaluate", tmp_path / "in.jsonl", *WORD_ABSENCE, "--levels", "fact", "--quiet"])
    found = veriglot(*command, "--json")
    figures = {(row["name"], row["language"]): row for row in json.loads(found.out)["figures"]}
    assert {row["level"] for row in json.loads(found.out)["figures"]} == {"fact"}
    assert figures["f1", "en"]["value"] == pytest.approx(2 * 4 / (2 * 4 + 2))  # marked in all three, right in two
    assert figures["f1", "en"]["n_units"] == 15
    assert figures["support", "en"]["value"] == pytest.approx((1 + 0.6 + 0.6) / 3)
    assert figures["support_found", "en"]["value"] == pytest.approx(0.6)
    assert figures["support_expected", "en"]["value"] == pytest.approx(1 - (3 * 0.1 + 2 * 0.9) / 5)
    table = veriglot(*command).out
    assert "Atomic facts" in table
    assert "Share of a response's facts" in table
    assert "Sentences" not in table


def test_evaluate_counts_facts_of_predictions_and_of_stored_counts(veriglot: Command, tmp_path: Path) -> None:
    write_lines(tmp_path / "in.jsonl", labelled())
    veriglot("detect", tmp_path / "in.jsonl", *WORD_ABSENCE, "--words", "-o", tmp_path / "p.jsonl")
    again = ("--levels", "fact", "--resamples", 0, "--json", "--quiet")
    commands = (
        ("evaluate", tmp_path / "in.jsonl", *WORD_ABSENCE, "--counts", tmp_path / "c.json", *again),
        ("evaluate", tmp_path / "in.jsonl", "--predictions", tmp_path / "p.jsonl", "--threshold", 0.5, *again),
        ("evaluate", tmp_path / "c.json", *again),
    )
    asked, given, stored = [veriglot(*with_settings(list(command))) for command in commands]
    values = [[row.get("value") for row in json.loads(found.out)["figures"]] for found in (asked, given, stored)]
    assert values[0] == values[1] == values[2]

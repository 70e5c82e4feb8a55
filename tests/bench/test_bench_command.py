"""`veriglot bench`: run, show and statistics, as a user types them."""

from __future__ import annotations

import csv
import json
from io import StringIO
from typing import TYPE_CHECKING

import msgspec
import pytest
from small_bench import samples, written

from json_lines import write_lines
from veriglot.cli import main
from veriglot.records import Annotation, Kind, Sample, encode

if TYPE_CHECKING:
    from pathlib import Path

BENCH = """
[bench]
title = "Two scorers & a detector"
resamples = 20
[[systems]]
detector = "absent_words:AbsentWords"
label = "absent"
[[systems]]
scorer = "rouge-l"
threshold = 0.5
[[data]]
name = "animals"
path = "animals.jsonl"
levels = ["word", "response"]
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("command")
    written(place, BENCH)
    assert main(["bench", "run", str(place / "bench.toml"), "-q"]) == 0
    return place


def test_a_run_writes_every_view_beside_the_file(place: Path) -> None:
    folder = place / "bench"
    assert {path.name for path in folder.iterdir()} >= {
        "results.json", "leaderboard.html", "leaderboard.md", "leaderboard.tex", "tables", "cells",
    }  # fmt: skip
    page = place / "page.md"
    assert main(["report", str(folder), "-o", str(page)]) == 0
    assert page.read_text("utf-8") == (folder / "leaderboard.md").read_text("utf-8")
    assert main(["report", str(folder), "--to", "csv", "--table", "figure"]) == 2
    assert main(["report", str(folder), "--to", "html", "--table", "wins"]) == 2
    names = {path.stem for path in (folder / "tables").iterdir()}
    assert names >= {"leaderboard_word", "leaderboard_response", "languages", "wins", "cells", "data", "figures"}


def test_show_prints_a_table_as_csv(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(place / "bench"), "--to", "csv", "--table", "leaderboard_response"]) == 0
    rows = list(csv.DictReader(StringIO(capsys.readouterr().out)))
    assert {row["system"] for row in rows} == {"absent", "rouge-l"}
    for row in rows:
        ends = row["animals_low"], row["animals_high"]
        if abs(float(row["animals"])) == 1.0:
            assert ends == ("", ""), "all resamples agree"
        else:
            assert float(ends[0]) <= float(row["animals"]) <= float(ends[1])


def test_show_prints_json_and_the_terminal_view(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(place / "bench" / "results.json"), "--to", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "Two scorers & a detector"
    assert main(["report", str(place / "bench")]) == 0
    shown = capsys.readouterr().out
    assert "mcc of words" in shown
    assert "rouge-l" in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["record", "{place}/nowhere", "-o", "x"], "results.json"),
        (["run", "{place}/nowhere.toml"], "there is no such file"),
    ],
)
def test_wrong_calls_say_what_to_do(
    place: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["bench", *(word.format(place=place) for word in words)]) in {1, 2}
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("spans", "levels"), [(True, ["word", "response"]), (False, ["response"])], ids=["of words", "none"]
)
def test_labelled_data_and_names_are_a_bench(tmp_path: Path, *, spans: bool, levels: list[str]) -> None:
    rows = samples() if spans else [msgspec.structs.replace(sample, annotations=()) for sample in samples()]
    path = tmp_path / "gold.jsonl"
    write_lines(path, rows)
    assert main(["bench", str(path), "--systems", "absent_words:AbsentWords,rouge-l", "-q"]) == 0
    results = json.loads((tmp_path / "gold-bench" / "results.json").read_bytes())
    assert [system["name"] for system in results["systems"]] == ["absent_words:AbsentWords", "rouge-l"]
    assert [system["kind"] for system in results["systems"]] == ["detector", "scorer"]
    assert results["data"][0]["levels"] == levels


def test_data_of_the_short_form_may_hold_bad_rows_but_no_unclear_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gold.jsonl"
    path.write_bytes(b'{"id": "cut off\n' + b"".join(encode(sample) + b"\n" for sample in samples()))
    assert main(["bench", str(path), "--systems", "rouge-l", "-q"]) == 0
    unclear = tmp_path / "unclear.csv"
    unclear.write_text("context,answer,label\nIn 1897.,In 1879.,vielleicht\n")
    assert main(["bench", str(unclear), "--systems", "rouge-l"]) == 1
    assert capsys.readouterr().err.count("the label 'vielleicht' in 'label' is not known") == 1


def _whole(sample: Sample) -> Sample:
    """The same label without a place."""
    rating = float(bool(sample.annotations[0].spans))
    label = Annotation("gold", Kind.HUMAN, "hat", ratings={"unsupported": rating})
    return msgspec.structs.replace(sample, annotations=(label,))


def test_labels_of_whole_responses_are_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = []
    for name in ("spans", "whole"):
        rows = [_whole(row) if name == "whole" else row for row in samples()]
        path = tmp_path / f"{name}.jsonl"
        write_lines(path, rows)
        assert main(["bench", str(path), "--systems", "absent_words:AbsentWords"]) == 0
        results = json.loads((tmp_path / f"{name}-bench" / "results.json").read_bytes())
        (data,) = results["data"]
        shown = [
            each for each in results["figures"] if each["level"] == "response" and each["measure"] in {"f1", "mcc"}
        ]
        figures.append((data["nonfactual"]["response"], [each["value"] for each in shown]))
    assert figures[0] == figures[1]
    assert figures[0][1]
    assert "no labels" not in capsys.readouterr().err


@pytest.mark.parametrize("words", [["bench"], ["bench", "statistics"]], ids=["run", "statistics"])
@pytest.mark.parametrize(
    ("header", "stated"), [("kb,said,wrong", "response=said,evidence=kb"), ("context,answer,label", "supported=label")]
)
def test_columns_that_are_not_known_are_stated_and_nothing_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], header: str, stated: str, words: list[str]
) -> None:
    path = tmp_path / "own.csv"
    path.write_text(f"{header}\nThe bridge was opened in 1897.,It was opened in 1879.,1\n", "utf-8")
    assert main([*words, str(path)]) == 1
    error = capsys.readouterr().err
    assert f"--map {stated}" in error
    assert "labels are not used" not in error
    assert "This command has no --map" not in error
    assert list(tmp_path.iterdir()) == [path]
    systems = ["--systems", "absent_words:AbsentWords"] if words == ["bench"] else []
    assert main([*words, str(path), "--map", stated, *systems]) == 0


def test_columns_of_the_command_line_are_those_of_data_sets_that_state_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [(f"It has {n} arches.", f"It has {n + n % 2} arches.", n % 2) for n in range(1, 9)]
    for name, header in (("one", "kb,reply,wrong"), ("two", "notes,text,bad")):
        lines = [",".join(map(str, row)) for row in rows]
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *lines]) + "\n", "utf-8")
    own = 'columns = {response = "text", evidence = "notes", unsupported = "bad"}'
    tables = f'[[data]]\nname = "one"\npath = "one.csv"\n[[data]]\nname = "two"\npath = "two.csv"\n{own}\n'
    path = tmp_path / "two.toml"
    path.write_text(tables + '[[systems]]\ndetector = "absent_words:AbsentWords"\n', "utf-8")
    assert main(["bench", str(path)]) == 1
    assert "--map response=reply,evidence=kb" in capsys.readouterr().err
    assert main(["bench", str(path), "--map", "response=reply,evidence=kb,unsupported=wrong", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert [data["name"] for data in results["data"]] == ["one", "two"]


def test_a_page_of_labels_of_whole_responses_has_no_empty_table(tmp_path: Path) -> None:
    path = tmp_path / "whole.jsonl"
    path.write_bytes(b"".join(encode(_whole(row)) + b"\n" for row in samples()))
    assert main(["bench", str(path), "--systems", "absent_words:AbsentWords", "-q"]) == 0
    page = (tmp_path / "whole-bench" / "leaderboard.html").read_text("utf-8")
    assert "Statistics of the test parts" not in page
    assert '<th scope="col" class="number">split' not in page
    assert main(["bench", "record", str(tmp_path / "whole-bench"), "-o", str(tmp_path / "figures.json")]) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{place}/animals.jsonl", "--systems", "groundin"], "Did you mean grounding"),
        (["{place}/bench.toml", "--systems", "grounding"], "names its systems itself"),
        (["{place}/nowhere.csv"], "there is no such file or folder"),
        (["statitics", "{place}"], "Did you mean 'statistics'"),
    ],
)
def test_what_is_no_bench_is_refused(
    place: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["bench", *(word.format(place=place) for word in words)]) in {1, 2}
    assert message in capsys.readouterr().err


def test_statistics_are_by_language(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "statistics", str(place / "animals.jsonl"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["en"]["samples"] == found["de"]["samples"] == 20
    assert found["en"]["sentence_rate"] == 0.5
    assert main(["bench", "statistics", str(place / "animals.jsonl")]) == 0
    assert "character_rate" in capsys.readouterr().out


@pytest.mark.parametrize(("response", "code"), [("…", 3), ("No number at all.", 0)])
def test_samples_that_failed_end_with_code_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], response: str, code: int
) -> None:
    text = BENCH.replace('scorer = "rouge-l"\nthreshold = 0.5', 'scorer = "number-agreement"')
    text = text.replace("absent_words:AbsentWords", "grounding")
    rows = written(tmp_path, text).with_name("animals.jsonl").read_text("utf-8").splitlines()
    data = [json.loads(row) for row in rows]
    for row in data[:20:2]:  # those without a mark
        row["response"] = response  # without a word a detector fails; without a number a scorer has nothing to compare
    (tmp_path / "animals.jsonl").write_text("".join(json.dumps(row) + "\n" for row in data), "utf-8")
    assert main(["bench", "run", str(tmp_path / "bench.toml"), "--json"]) == code
    printed = capsys.readouterr()
    assert ("--retry" in printed.err) == (code == 3)
    assert json.loads(printed.out)["cells"]


def test_a_judge_is_counted_by_calls_tokens_and_money(tmp_path: Path) -> None:
    text = """
[bench]
resamples = 0
[[systems]]
detector = "judge:spans"
options = { client = "scripted", rules = "RULES" }
price_in = 2.0
price_out = 1e6
[[data]]
name = "animals"
path = "animals.jsonl"
"""
    rules = tmp_path / "rules.toml"
    rules.write_text("""[[rules]]\nreply = '{"spans": []}'\n""", "utf-8")
    path = written(tmp_path, text.replace("RULES", str(rules)))
    assert main(["bench", "run", str(path), "-q", "--processes", "2"]) == 0
    results = json.loads((tmp_path / "bench" / "results.json").read_bytes())
    cost = results["cells"][0]["cost"]
    assert cost["calls"] == cost["rows"] == 40
    assert cost["tokens_in"] > 40
    assert cost["money"] == pytest.approx((2.0 * cost["tokens_in"] + 1e6 * cost["tokens_out"]) / 1e6)
    assert results["systems"][0]["options"]["client"] == '"scripted"'


def test_labels_of_one_class_are_no_leader(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clean = [one for number, one in enumerate(samples()) if number % 2 == 0]
    path = written(tmp_path, BENCH.replace('levels = ["word", "response"]', 'levels = ["response"]'), clean)
    assert main(["bench", "run", str(path), "-q"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    why = "no threshold could be tuned: no item is unsupported"
    assert f"Responses: no system has a figure of mcc: {why}" in printed
    assert "leads" not in printed

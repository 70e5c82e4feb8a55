"""`veriglot report` on the results of a study, as a command."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from veriglot.report.study import study_table
from veriglot.report.study_page import write_study

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "report"))
from study_figures import study_figures

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Outcome

    Command = Callable[..., Outcome]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "results.json").write_bytes(msgspec.json.encode(study_figures()))
    return folder


def test_the_page_goes_into_the_folder_of_the_run(veriglot: Command, run: Path, tmp_path: Path) -> None:
    outcome = veriglot("report", run)
    assert (outcome.code, outcome.out.strip()) == (0, str(run / "report.html"))
    write_study(study_figures(), tmp_path / "same.html")
    assert (run / "report.html").read_bytes() == (tmp_path / "same.html").read_bytes()


def test_one_file_makes_the_page_again_byte_for_byte_and_the_page_holds_it(
    veriglot: Command, run: Path, tmp_path: Path
) -> None:
    assert veriglot("report", run).code == 0
    page = (run / "report.html").read_bytes()
    alone = tmp_path / "alone" / "results.json"
    alone.parent.mkdir()
    data = re.search(rb'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    texts = json.loads(data[1])["texts"]
    alone.write_text(texts["results.json"], "utf-8")
    assert veriglot("report", alone).code == 0
    assert (alone.parent / "report.html").read_bytes() == page
    assert texts["rates.tex"] == study_table(study_figures(), "latex")
    assert b'data-csv="results.json"' in page


def test_the_file_of_results_will_do(veriglot: Command, run: Path) -> None:
    assert veriglot("report", run / "results.json", "--to", "csv").out == study_table(study_figures(), "csv")


@pytest.mark.parametrize(
    ("name", "begins"),
    [("t.md", "**Six"), ("t.tex", "% needs"), ("t.json", "{"), ("t.csv", "model,"), ("t.html", "<!d")],
)
def test_the_suffix_says_the_format(veriglot: Command, run: Path, tmp_path: Path, name: str, begins: str) -> None:
    assert veriglot("report", run, "-o", tmp_path / name).code == 0
    assert (tmp_path / name).read_text("utf-8").startswith(begins)
    assert [path.name for path in tmp_path.iterdir() if path != run] == [name], "nothing else is left behind"


def test_one_table_for_a_program(veriglot: Command, run: Path) -> None:
    found = list(csv.DictReader(io.StringIO(veriglot("report", run, "--table", "ranks").out)))
    assert len(found) == len(study_figures().ranks)
    whole = json.loads(veriglot("report", run, "--to", "json", "--table", "ranks").out)
    assert [row["model"] for row in whole] == [row["model"] for row in found]


def test_every_table_into_a_folder(veriglot: Command, run: Path, tmp_path: Path) -> None:
    outcome = veriglot("report", run, "--table", "all", "-o", tmp_path / "tables")
    assert outcome.code == 0
    assert sorted(outcome.out.split()) == sorted(str(path) for path in (tmp_path / "tables").iterdir())


def test_the_terminal_view_also_goes_into_a_pipe(veriglot: Command, run: Path) -> None:
    outcome = veriglot("report", run, "--to", "terminal")
    assert outcome.code == 0
    assert "\x1b" not in outcome.out
    assert outcome.out.count("cov. ") == len(study_figures().cells)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("nowhere",), 1, "veriglot study status"),
        (("nowhere",), 1, "detect ROWS -o page.html"),
        (("RUN", "--to", "csv", "--table", "rank"), 2, "Did you mean rank"),
        (("RUN", "--table", "all"), 2, "--output FOLDER"),
        (("RUN", "--table", "ranks", "--to", "html"), 2, "--table goes with"),
        (("RUN", "-o", "figure.docx"), 2, "kind of output"),
    ],
)
def test_what_cannot_be_done_is_told(
    veriglot: Command, run: Path, words: tuple[str, ...], code: int, told: str
) -> None:  # fmt: skip
    outcome = veriglot("report", *(run if word == "RUN" else word for word in words))
    assert outcome.code == code
    assert told in outcome.err
    assert outcome.out == ""


def test_a_file_that_holds_no_results_is_told_with_its_place(veriglot: Command, run: Path) -> None:
    (run / "results.json").write_text('{"title": "x"}')
    outcome = veriglot("report", run)
    assert outcome.code == 1
    assert str(run / "results.json") in outcome.err
    assert "unit" in outcome.err
    assert not (run / "report.html").exists()


def test_predictions_are_told_as_such_with_what_takes_them(veriglot: Command, run: Path, tmp_path: Path) -> None:
    """A second line was no valid JSON."""
    path = tmp_path / "my marked.jsonl"
    line = '{"id": "a", "status": "scored", "detector": "d@1", "score": 0.1, "spans": []}\n'
    for rows, words in ((1, ()), (2, ()), (2, (run, "--site", tmp_path / "public"))):
        path.write_text(line * rows, "utf-8")
        outcome = veriglot("report", path, *words)
        assert outcome.code == 1
        assert "this holds predictions, not the results of a study" in outcome.err
        assert f"veriglot estimate '{path}' --samples ROWS" in outcome.err
    assert not (tmp_path / "public").exists()


def test_several_runs_are_a_site(veriglot: Command, run: Path, tmp_path: Path) -> None:
    outcome = veriglot("report", run, run / "results.json", "--site", tmp_path / "public")
    assert (outcome.code, outcome.out.strip()) == (0, str(tmp_path / "public" / "index.html"))
    assert (tmp_path / "public" / "leaderboards.csv").is_file()
    assert len([path for path in (tmp_path / "public").iterdir() if path.is_dir()]) == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "Add --site DIR"),
        (["--site", "public", "--to", "csv"], "--to"),
        (["--site", "p", "--table", "ranks"], "--table"),
    ],
)
def test_what_goes_with_no_site_says_so(veriglot: Command, run: Path, words: list[str], told: str) -> None:
    outcome = veriglot("report", run, run, *words)
    assert outcome.code == 2
    assert told in outcome.err

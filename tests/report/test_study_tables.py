"""A study as tables and on the terminal: every figure is there, and none that the data do not support."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from rich.console import Console
from study_figures import LANGUAGES, MODELS, study_figures, two_profiles

from veriglot.errors import UnknownNameError
from veriglot.records import Estimator, Reliability
from veriglot.report.study import paper_texts, render_study, study_table, study_tables
from veriglot.report.tables import write_csv
from veriglot.report.text_layout import percent
from veriglot.study.rates import CONTRADICTS

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.study.results import StudyResults

ODD = 0.77731
EVERY = {
    "rates", "models", "languages", "ranks", "comparisons", "correlations", "types", "coverage", "quality", "cells",
    "replicates", "settings", "examples",
}  # fmt: skip


def odd() -> StudyResults:
    """One rate has a number that occurs nowhere else, and is unreliable."""
    results = study_figures()
    cells = []
    for cell in results.cells:
        if (cell.model, cell.language) == ("lark-9b", "de"):
            rate = msgspec.structs.replace(
                cell.rates[0], rate=ODD, low=0.7, high=0.888, status=Reliability.UNRELIABLE, reason="It cannot be told."
            )
            cell = msgspec.structs.replace(cell, rates=(rate, *cell.rates[1:]))
        cells.append(cell)
    return msgspec.structs.replace(results, cells=tuple(cells))


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def shown(results: StudyResults, **options: Any) -> str:
    console = Console(file=io.StringIO(), **options)
    render_study(results, console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_csv_carries_every_rate_at_full_precision() -> None:
    results = study_figures()
    found = {(r["model"], r["language"], r["estimator"]): r for r in rows(study_table(results, "csv"))}
    assert len(found) == sum(len(cell.rates) for cell in results.cells)
    for cell in results.cells:
        for rate in cell.rates:
            row = found[cell.model, cell.language, rate.estimator.value]
            sound = rate.status is Reliability.OK
            assert row["rate"] == (repr(rate.rate) if sound else "")
            assert row["unreliable_rate"] == ("" if sound or rate.rate is None else repr(rate.rate))
            assert row["status"] == rate.status.value
            assert row["reason"] == (rate.reason or "")
            assert float(row["coverage"]) == rate.coverage


def test_json_holds_every_table_and_one_by_name() -> None:
    results = study_figures()
    whole = json.loads(study_table(results, "json"))
    assert whole["tables"].keys() == EVERY
    assert whole["signature"] == results.signature
    assert whole["warnings"] == list(results.warnings)
    assert json.loads(study_table(results, "json", table="ranks")) == whole["tables"]["ranks"]
    assert len(whole["tables"]["ranks"]) == len(results.ranks)
    sound = [row for row in whole["tables"]["rates"] if row["status"] == "ok"]
    assert all(row["rate"] is not None and row["unreliable_rate"] is None for row in sound)
    doubtful = [row for row in whole["tables"]["rates"] if row["status"] != "ok"]
    assert doubtful
    assert all(row["rate"] is None and row["low"] is None and row["reason"] for row in doubtful)


@pytest.mark.parametrize("format_", ["markdown", "latex", "terminal"])
def test_an_unreliable_rate_is_no_plain_number(format_: str) -> None:
    results = odd()
    text = shown(results, width=300) if format_ == "terminal" else study_table(results, format_)
    places = {text[at.start() - 15 : at.end() + 4] for at in re.finditer(r"77\.7", text)}
    assert places
    for place in places:
        assert re.search(r"\(77\.7\\?%\?\)", place), place
    assert ("unreliable (77.7%?)" if format_ != "latex" else r"\emph{unreliable}") in text
    assert "88.8" not in text


def test_rates_by_two_profiles_stand_side_by_side_with_their_differences() -> None:
    results = two_profiles()
    text = " ".join(shown(results, width=300).split())
    assert "2 cells with a reliable rate by both profiles" in text
    assert "is +1.0 percentage points on average and 2.0 in size; the largest is +3.0 (lark-2b, German)" in text
    assert "r of the 15 cells is 0.83 (p = 0.00013)" in text
    assert "unreliable (70.0%?) ± 1.3" in text
    table = {(r["model"], r["language"]): r for r in rows(study_table(results, "csv", table="profiles"))}
    assert (table["lark-2b", "de"]["rate"], table["lark-2b", "de"]["compared_rate"]) == ("0.08", "0.05")
    assert float(table["lark-9b", "de"]["difference"]) == pytest.approx(-0.01)
    assert (table["lark-2b", "ar"]["rate"], table["lark-2b", "ar"]["difference"]) == ("", "")
    assert "profiles" not in study_tables(study_figures())


@pytest.mark.parametrize("format_", ["markdown", "latex", "terminal"])
def test_means_of_unlike_languages_are_said_to_be(format_: str) -> None:
    for languages, unlike in ((LANGUAGES, True), (("de", "fr", "zh-Hans"), False)):
        results = study_figures(MODELS, languages)
        text = shown(results, width=300) if format_ == "terminal" else study_table(results, format_)
        assert ("Do not order the models by their means" in " ".join(text.split())) == unlike


def test_markdown_is_the_table_of_a_paper() -> None:
    results = study_figures()
    text = study_table(results, "markdown")
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(LANGUAGES) + 1
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
    heads = [cell.strip() for cell in lines[0].strip("|").split("|")]
    assert heads == ["Language", *(average.name for average in results.by_model), "Mean"]
    french = next(line for line in lines if "(fr)" in line)
    cell = next(c for c in results.cells if (c.model, c.language) == (heads[1], "fr"))
    assert percent(cell.rates[0].rate) in french
    assert f"cov. {percent(cell.rates[0].coverage, 0)}" in french
    assert f"Signature: `{results.signature}`" in text
    for warning in results.warnings:
        assert warning.split(":")[0] in text


def test_latex_is_balanced_and_escaped() -> None:
    model = msgspec.structs.replace(MODELS[0], name=r"50%_a&b\c{d}#1$x^2~<z>")
    results = study_figures((model, *MODELS[1:]))
    text = study_table(results, "latex")
    body = text[text.index(r"\begin{table*}") : text.index(r"\end{table*}")]
    assert (
        r"50\%\_a\&b\textbackslash{}c\{d\}\#1\$x\textasciicircum{}2\textasciitilde{}\textless{}z\textgreater{}" in body
    )
    for latex in (text, *paper(results).values()):
        sound(latex)


def paper(results: StudyResults) -> dict[str, str]:
    """Everything of a study that goes into a LaTeX document."""
    tables = {name: study_table(results, "latex", table=name) for name in study_tables(results)}
    return tables | {name: text for name, text in paper_texts(results).items() if name.endswith(".tex")}


def sound(latex: str) -> None:
    """LaTeX without comments has braces in pairs, nothing special bare, rows of one length, no argument of a break."""
    body = re.sub(r"(?m)(^| )% .*$", "", latex)
    bare = re.sub(r"\\[\\%&#$_{}]", "", body)
    assert bare.count("{") == bare.count("}")
    assert not re.search(r"[%#~|]", bare)
    for number, part in enumerate(re.split(r"\\(?:toprule|bottomrule)", body)):
        rows = [line.removesuffix(r"\\") for line in part.splitlines() if line.endswith(r"\\")]
        assert len({len(re.findall(r"(?<!\\)&", row)) for row in rows}) <= 1
        assert not any(row.startswith(("[", "*")) for row in rows)
        assert bool(rows) == bool(number % 2)


def test_no_row_is_taken_for_an_argument_of_the_one_above() -> None:
    results = study_figures(
        tuple(msgspec.structs.replace(MODELS[0], name=name) for name in ("[a]", "*b")), ("de", "ar")
    )
    assert "{}*" in study_table(results, "latex", table="ranks")
    for latex in paper(results).values():
        sound(latex)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex and booktabs")
def test_latex_compiles_and_fits_the_page(tmp_path: Path) -> None:
    names = ("50%_a&b\\c{d}#1$x^2~<z>|", "[a]", "*b", "a-model-with-a-name-of-forty-letters-and-1", *"cdefgh")
    models = tuple(msgspec.structs.replace(MODELS[0], name=name) for name in names)
    settings = {f"a_setting_{n}": "a value that is rather long, " * (n % 3) for n in range(9)}
    models = (msgspec.structs.replace(models[0], settings=settings), *models[1:])
    for name, text in paper(study_figures(models)).items():
        if name in {"replicates", "examples"}:  # thousands of rows as those of `rates`; texts in scripts of their own
            continue
        columns = "two" if name.endswith(".tex") else "one"  # a longtable needs one
        head = rf"\documentclass[{columns}column]{{article}}\usepackage[T1]{{fontenc}}\usepackage{{booktabs,"
        page = head + "longtable}\n\\begin{document}\n" + text + "\\end{document}"
        (tmp_path / "page.tex").write_text(page)
        command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "page.tex"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
        assert done.returncode == 0, done.stdout
        assert not re.search(r"Overfull \\hbox \(\d{2,}", done.stdout), (name, done.stdout)


def test_latex_of_a_large_study_is_in_parts_that_fit_a_page() -> None:
    models = tuple(msgspec.structs.replace(MODELS[0], name=name) for name in ("a_b", "نموذج", *"cdefgh"))
    languages = ("en", "de", "fr", "es", "it", "pt", "nl", "pl", "cs", "ru", "uk", "tr", "ar", "fa", "he", "hi", "bn",
                 "ur", "ta", "th", "vi", "id", "zh-Hans", "ja", "ko", "sw")  # fmt: skip
    results = study_figures(models, languages)
    text = study_table(results, "latex")
    assert "LuaLaTeX" in text
    assert "LuaLaTeX" not in study_table(study_figures(), "latex")
    parts = re.findall(r"\\begin\{table\*\}\n(.*?)\\end\{table\*\}", text, re.DOTALL)
    assert [re.findall(r"\\label\{(.+?)\}", part) for part in parts] == [[f"tab:rates-{n}"] for n in range(1, 7)]
    shown = set()
    for number, part in enumerate(parts, start=1):
        lines = [line.removesuffix(r" \\") for line in part.splitlines() if line.endswith(r"\\")]
        head, *rows = [re.split(r"(?<!\\) & ", line) for line in lines]
        columns = re.search(r"\\begin\{tabular\}\{(l c*|lc*)\}", part)
        assert columns is not None
        assert {len(row) for row in (head, *rows)} == {len(columns[1])}
        assert len(head) <= 1 + 6 + 1
        assert len(rows) <= 2 * (18 + 1)
        shown |= {(row[0], model) for row in rows for model in head[1:] if not row[0].startswith("{")}
        caption = part[part.index(r"\caption{") :].splitlines()[0]
        for what in (f"part {number} of 6", "Share of words (in \\%)", "by label-shift", "95\\% intervals", "n = "):
            assert what in caption, caption
        assert "Unreliable: " in caption
    assert len({name for name, _ in shown} - {"Mean", ""}) == len(languages)
    sound(text)


def test_a_plain_table_in_markdown() -> None:
    text = study_table(study_figures(), "markdown", table="correlations")
    assert text.splitlines()[0].startswith("| name | of |")
    assert len(text.splitlines()) == 2 + 4


def test_unknown_names_suggest_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="latex"):
        study_table(study_figures(), "latx")
    with pytest.raises(UnknownNameError, match="ranks"):
        study_table(study_figures(), "csv", table="rank")


def test_text_that_a_spreadsheet_would_run_is_disarmed() -> None:
    model = msgspec.structs.replace(MODELS[0], name="=1+1", family="@SUM(A1)")
    results = study_figures((model, *MODELS[1:]))
    found = rows(study_table(results, "csv", table="settings"))
    assert (found[0]["model"], found[0]["family"]) == ("'=1+1", "'@SUM(A1)")
    numbers = rows(study_table(results, "csv", table="correlations"))
    assert numbers[0]["r"] == "-0.52", "a negative number stays a number"


def test_every_table_is_written_and_reads_back(tmp_path: Path) -> None:
    results = study_figures()
    written = write_csv(study_tables(results), tmp_path / "tables")
    assert {path.stem for path in written} == EVERY
    assert sorted(written) == sorted((tmp_path / "tables").iterdir())
    for path in written:
        with path.open(encoding="utf-8", newline="") as file:
            found = list(csv.reader(file))
        table = study_tables(results)[path.stem]
        assert tuple(found[0]) == table.columns
        assert len(found) == 1 + len(table.rows)


def test_the_terminal_shows_every_rate_with_its_coverage() -> None:
    results = study_figures()
    text = shown(results, width=300)
    for cell in results.cells:
        if cell.rates[0].status is Reliability.OK:
            assert percent(cell.rates[0].rate) in text
    assert text.count("cov. ") == len(results.cells)
    assert text.count("unreliable") == 9
    for average in results.by_model:
        assert average.name in text
    for warning in results.warnings:
        assert warning in text
    assert results.signature in text


def test_a_narrow_terminal_gets_more_tables_and_loses_no_column() -> None:
    results = study_figures()
    text = shown(results, width=60, force_terminal=True)
    assert text.count("cov. ") == len(results.cells)
    tables = text[: text.index("Models, over languages")]
    assert tables.count("Language") >= 3
    assert max(len(line) for line in tables.splitlines()[2:]) <= 60


def test_hostile_names_steer_no_terminal() -> None:
    model = msgspec.structs.replace(MODELS[0], name="[bold]x\x1b[31m\u202e")
    text = shown(study_figures((model, *MODELS[1:])), width=300, force_terminal=True, color_system=None)
    assert "\x1b[31m" not in text
    assert "\u202e" not in text
    assert "[bold]x" in text


def test_contradictions_and_what_to_quote_come_first() -> None:
    results = study_figures()
    cell = results.cells[0]
    reason = f"{CONTRADICTS} the labels of these responses, 43.9% [23.7, 66.6]: quote ppi"
    own = msgspec.structs.replace(cell.rates[0], status=Reliability.UNRELIABLE, reason=reason)
    ppi = msgspec.structs.replace(
        own, status=Reliability.OK, reason=None, rate=0.4, low=0.3, high=0.5, estimator=Estimator.PPI
    )
    changed = msgspec.structs.replace(cell, rates=(own, *cell.rates[1:], ppi))
    console = Console(file=io.StringIO(), width=200, no_color=True)
    results = msgspec.structs.replace(results, cells=(changed, *results.cells[1:]))
    render_study(results, console)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines[1].startswith(f"Contradiction: {cell.model} in ")
    assert "43.9% [23.7, 66.6]" in lines[1]
    assert any("Quote ppi in 1 cell" in line for line in lines)
    assert sum("43.9%" in line for line in lines) == 1, "said once"

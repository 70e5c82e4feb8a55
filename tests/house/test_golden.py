"""Golden outputs: a difference that counts is seen, what differs between two runs is not, and every case can run."""

from __future__ import annotations

import importlib.util
import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from veriglot.cli import main

if TYPE_CHECKING:
    from types import ModuleType

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "golden.py"
PREDICTION = {
    "id": "a", "status": "scored", "score": 0.97, "detector": "grounding@1.0",
    "spans": [{"start": 32, "end": 36, "text": "1879", "confidence": 0.93}],
    "signature": "detector:grounding@1.0|weights:73860edd125f", "seconds": 0.25,
}  # fmt: skip
PAGE = """<h1>Rates</h1><p>Made 2026-11-22T19:50:02Z at {folder}, by detector:a@1|unit:word.</p>
<table><thead><tr><th>model</th><th>rate</th><th>CPU seconds</th></tr></thead>
<tbody><tr><td>m</td><td>12.5%</td><td>3.1</td></tr></tbody></table>
<p>It says <mark>in 1879</mark>.</p><script type="application/json">{{"rate": 0.125}}</script>"""


def _script() -> ModuleType:
    sys.path.append(str(SCRIPT.parent))  # it imports its neighbour, the way Python runs a script
    spec = importlib.util.spec_from_file_location("golden", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["golden"] = module
    spec.loader.exec_module(module)
    return module


golden = _script()


@pytest.fixture
def records(tmp_path: Path) -> tuple[Path, Path]:
    """Two records of one case, as two runs of one code leave them."""
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        (folder / "one").mkdir(parents=True)
        (folder / "one" / "out.jsonl").write_text(json.dumps(PREDICTION) + "\n", "utf-8")
        (folder / "one" / "page.html").write_text(PAGE.format(folder=folder), "utf-8")
        (folder / "one" / "rates.csv").write_text("model,rate,seconds\nm,0.125,1.5\n", "utf-8")
        (folder / "one" / "tables.md").write_text(
            "Rates\n\n| model | rate | a second |\n|--|--|--|\n| m | 12.5% | 3.1 |\n"
        )
        (folder / "one" / "work.lock").write_text(str(folder), "utf-8")
        about = {"outputs": ["*.jsonl", "*.html", "*.csv", "*.md"], "skipped": "", "cpu_s": 1.0}
        (folder / "golden.json").write_text(json.dumps({"roots": {str(folder): "<out>"}, "cases": {"one": about}}))
    return old, new


def _changed(path: Path, before: str, after: str) -> None:
    text = path.read_text("utf-8")
    assert before in text
    path.write_text(text.replace(before, after), "utf-8")


def test_two_runs_of_one_code_are_equal(records: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    old, new = records
    assert golden.main(["compare", str(old), str(new)]) == 0
    assert capsys.readouterr().out == "one: equal\n"


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("out.jsonl", '"confidence": 0.93', '"confidence": 0.9300000001'),
        ("out.jsonl", '"score": 0.97', '"score": 0.970'),
        ("out.jsonl", '"start": 32', '"start": 31'),
        ("page.html", "12.5%", "12.6%"),
        ("page.html", "in 1879", "1879"),
        ("page.html", '{"rate": 0.125}', '{"rate": 0.124}'),
        ("page.html", "<p>It", "<h2>More</h2><p>It"),
        ("rates.csv", "0.125", "0.126"),
        ("tables.md", "12.5%", "12.6%"),
    ],
)
def test_a_difference_that_counts_is_seen(
    records: tuple[Path, Path], capsys: pytest.CaptureFixture[str], file: str, before: str, after: str
) -> None:
    old, new = records
    _changed(new / "one" / file, before, after)
    assert golden.main(["compare", str(old), str(new)]) == 1
    assert f"  {file}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("out.jsonl", '"seconds": 0.25', '"seconds": 4.5'),
        ("out.jsonl", "73860edd125f", "83860edd125e"),
        ("page.html", "2026-11-22T19:50:02Z", "2027-01-02T03:04:05Z"),
        ("page.html", "<td>3.1</td>", "<td>2.9</td>"),
        ("page.html", "It says", "There it says"),
        ("rates.csv", "1.5", "2.5"),
        ("tables.md", "3.1", "2.9"),
    ],
)
def test_what_differs_between_runs_or_in_words_is_not(
    records: tuple[Path, Path], file: str, before: str, after: str
) -> None:
    old, new = records
    _changed(new / "one" / file, before, after)
    assert golden.main(["compare", str(old), str(new)]) == 0


def test_renamed_names_are_given(records: tuple[Path, Path], tmp_path: Path) -> None:
    old, new = records
    _changed(new / "one" / "out.jsonl", '"detector": "grounding@1.0"', '"detector": "words@1.0"')
    _changed(new / "one" / "out.jsonl", '"status"', '"state"')
    (new / "one" / "rates.csv").rename(new / "one" / "shares.csv")
    names = tmp_path / "names.toml"
    names.write_text('"grounding@1.0" = "words@1.0"\nstatus = "state"\n"rates.csv" = "shares.csv"\n', "utf-8")
    assert golden.main(["compare", str(old), str(new)]) == 1
    assert golden.main(["compare", str(old), str(new), "--names", str(names)]) == 0


@pytest.mark.parametrize("change", ["file", "case"])
def test_what_is_missing_is_a_difference(records: tuple[Path, Path], change: str) -> None:
    old, new = records
    if change == "file":
        (new / "one" / "rates.csv").unlink()
    else:
        shutil.rmtree(new / "one")
        _changed(new / "golden.json", '"one"', '"two"')
    assert golden.main(["compare", str(old), str(new)]) == 1


def _commands() -> dict[tuple[str, ...], set[str]]:
    """The commands of all cases, each with the options that cases give it."""
    commands: dict[tuple[str, ...], set[str]] = {}
    for case in golden.CASES:
        for step in case.steps:
            words = shlex.split(step)
            words = words[words.index("veriglot") + 1 :] if "veriglot" in words else []
            depth = 2 if words and words[0] in {"bench", "dataset", "studio", "study"} else 1
            if words:
                options = {word for word in words if word.startswith("-") and len(word) > 1}
                commands.setdefault(tuple(words[:depth]), set()).update(options)
    return commands


@pytest.mark.parametrize("command", _commands(), ids=" ".join)
def test_every_case_names_commands_and_options_that_exist(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--help"]) == 0
    page = capsys.readouterr().out
    assert {option for option in _commands()[command] if option not in page} == set()


def test_cases_read_what_stands_before_them() -> None:
    before: set[str] = set()
    for case in golden.CASES:
        assert before.issuperset(case.after), case.name
        assert all(f"../{name}/" in " ".join(case.steps) for name in case.after), case.name
        assert case.name not in before
        before.add(case.name)

"""The documentation says what is there: generated pages, links, file names, make targets, commands, Python."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from misbehaving import ModelServer

from veriglot.bench.config import load as bench_of
from veriglot.cli import main
from veriglot.cli.app import VERBS, load_verb
from veriglot.detectors.judge.judges import JUDGES
from veriglot.detectors.registry import DETECTORS
from veriglot.records import Confusion, DataSource, ErrorProfile, LanguageProfile
from veriglot.scorers.registry import SCORERS
from veriglot.study.config import load as study_of
from veriglot.training import load_trainer

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GENERATE = runpy.run_path(str(DOCS / "generate.py"))
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md")])

LINK = re.compile(r"\[[^\]]*\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
SOURCE_FILE = re.compile(r"`((?:[\w.]+/)*\w+\.(?:py|json|toml|onnx|txt))`")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, kind: str) -> list[str]:
    return [body for found, body in FENCE.findall(page.read_text("utf-8")) if found == kind]


def shell_lines() -> list[tuple[str, str]]:
    """Every command line of the pages that people write, with its page."""
    lines = []
    for page in PAGES:
        for body in blocks(page, "sh"):
            joined = body.replace("\\\n", " ")
            lines += [(page.name, line) for line in joined.splitlines() if line and not line.startswith("#")]
    return lines


def options_of(*verb: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])(--?[a-z][\w-]*)", GENERATE["help_page"](list(verb))))


@pytest.mark.slow
@pytest.mark.parametrize("name", GENERATE["PAGES"])
def test_generated_pages_do_not_drift(name: str) -> None:
    assert (DOCS / name).read_text("utf-8") == GENERATE["PAGES"][name](), "run: make docs"


def test_the_page_of_commands_says_nothing_twice_of_shared_options_and_of_groups() -> None:
    text = " ".join((DOCS / "cli.md").read_text("utf-8").split())
    assert text.count("Seed of all random draws. Default: 0.") == 1
    assert text.count("Describe labelled data by language:") == 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = [target for target in LINK.findall(page.read_text("utf-8")) if not (page.parent / target).exists()]
    assert not broken


def test_the_architecture_page_names_files_that_exist() -> None:
    named = SOURCE_FILE.findall((DOCS / "architecture.md").read_text("utf-8"))
    assert len(named) > 20
    package = ROOT / "src" / "veriglot"
    assert not [name for name in named if not (package / name).exists() and not (ROOT / name).exists()]


def test_every_area_stands_on_the_architecture_page() -> None:
    text = (DOCS / "architecture.md").read_text("utf-8")
    areas = {path.name for path in (ROOT / "src" / "veriglot").iterdir() if (path / "__init__.py").exists()}
    assert not [area for area in areas if f"`{area}/" not in text]


def test_extras_are_installed_in_the_same_words_everywhere() -> None:
    """`.[reader]` works in a checkout alone; `veriglot[reader]` adds to what is installed, from any folder."""
    texts = [*PAGES, *(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    found = [line for path in texts for line in re.findall(r"pip install [^\n]*\w\[[^\n]*", path.read_text("utf-8"))]
    found += [line for path in PAGES for line in re.findall(r"pip install [^\n]*\.\[.*", path.read_text("utf-8"))]
    assert len(found) > 20
    assert not [line for line in found if not re.search(r"(?<!\S)'veriglot\[[^']+\]'", line)]


SAME_RUN = re.compile(r" (?:--max-rate \S+|--fail-on \S+|--dry-run|#.*)")  # what changes no row of an output


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_command_of_a_block_writes_over_the_output_of_another(page: Path) -> None:
    """Commands that resume refuse the output of other settings, so that the second would end with exit code 2."""
    for body in blocks(page, "sh"):
        outputs: dict[str, set[str]] = {}
        for line in body.replace("\\\n", " ").splitlines():
            command = SAME_RUN.sub("", line).strip()
            if command.startswith(("veriglot detect ", "veriglot dataset ")) and "dataset card" not in command:
                for output in re.findall(r" -o (\S+)", command):
                    outputs.setdefault(output, set()).add(command)
        assert not {output: lines for output, lines in outputs.items() if len(lines) > 1}


def test_make_commands_are_targets() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    asked = {word for _, line in shell_lines() if line.startswith("make ") for word in line.split()[1:]}
    assert {"demo", "test"} <= asked
    assert {word for word in asked if "=" not in word} <= targets


NESTED = {"bench", "dataset", "models", "studio", "study", "train"}  # verbs with verbs of their own


@pytest.mark.slow
def test_commands_are_verbs_with_their_options() -> None:
    seen = 0
    for page, line in shell_lines():
        for part in re.split(r"\s[|]\s", line):
            words = shlex.split(part, comments=True)
            if words[:1] != ["veriglot"]:
                continue
            seen += 1
            assert words[1] in {*VERBS, "--version", "--help"}, f"{page}: {line}"
            if words[1] in VERBS:
                given = {word.partition("=")[0] for word in words[2:] if re.match(r"--?[a-z]", word)}
                nested = words[1] in NESTED
                verb = words[1:3] if nested else words[1:2]
                assert given <= options_of(*verb), f"{page}: {line}"
    assert seen > 5


@pytest.mark.slow
@pytest.mark.parametrize("body", blocks(ROOT / "README.md", "python"))
def test_the_python_of_the_readme_runs(body: str, tmp_path: Path) -> None:
    (tmp_path / "samples.jsonl").write_bytes((ROOT / "examples" / "samples.jsonl").read_bytes())
    done = subprocess.run([sys.executable, "-c", body], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


ROWS = [(paper["name"], row) for paper in GENERATE["papers"]() for row in paper["rows"]]


@pytest.fixture
def parse(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """The values that the real command line takes from a line; no command is run."""
    values: dict[str, Any] = {}

    def load(name: str) -> Any:
        verb = load_verb(name)
        for command in (getattr(verb, "commands", None) or {name: verb}).values():
            command.callback = values.update
        return verb

    def taken(line: str) -> dict[str, Any]:
        values.clear()
        program, *words = shlex.split(line)
        assert (program, main(words)) == ("veriglot", 0), line
        return values

    monkeypatch.setattr("veriglot.cli.app.load_verb", load)
    return taken


@pytest.mark.parametrize(("paper", "row"), ROWS, ids=lambda part: part if isinstance(part, str) else part["number"])
def test_the_rows_of_the_papers_hold(paper: str, row: dict[str, Any], parse: Callable[[str], dict[str, Any]]) -> None:
    """The real command line takes each command, its systems are known, its files are there, and no row is empty."""
    assert all(text.strip() for text in (paper, row["number"], row["shows"]))
    assert row["commands"] or row["files"]
    assert not [file for file in row["files"] if not (ROOT / file).is_file()]
    for line in row["commands"]:
        values = parse(line)
        for name in filter(None, [values.get("detector"), *(values.get("systems") or "").split(",")]):
            assert (SCORERS if name in SCORERS else DETECTORS).entry(name), line
            assert not name.startswith("judge:") or name.removeprefix("judge:") in JUDGES, line
        assert (values.get("table") or "rates") in re.split(r"\W+", GENERATE["help_page"](["report"])), line


RATES = LanguageProfile.of([Confusion(tp=1, fp=1, fn=1, tn=1)])
PROFILE = msgspec.json.encode(ErrorProfile("word", 0.5, "grounding", {"de": RATES}, RATES, DataSource("0", "gold"), ""))
READERS: dict[str, Callable[[Path], object]] = {
    "bench run": bench_of,
    "study run": study_of,
    "train tokens": lambda path: load_trainer("tokens").read_config(path),
}
FILES = [(paper, name) for paper in GENERATE["papers"]() for name in paper.get("toml", ())]


@pytest.mark.slow
@pytest.mark.parametrize(("paper", "name"), FILES, ids=lambda part: part if isinstance(part, str) else part["name"])
def test_the_files_of_the_papers_are_read(paper: dict[str, Any], name: str, tmp_path: Path) -> None:
    """Each is named by a command, whose own reader takes it."""
    lines = [line for row in paper["rows"] for line in row["commands"] if line.split()[3:4] == [name]]
    verb = " ".join(lines[0].split()[1:3])
    for data in re.findall(r"\w[\w./-]*\.jsonl?\b", text := paper["toml"][name]):
        (tmp_path / data).parent.mkdir(exist_ok=True)
        (tmp_path / data).write_bytes(PROFILE)
    (tmp_path / name).write_text(text, "utf-8")
    assert READERS[verb](tmp_path / name)


def commands_of(page: str) -> list[str]:
    """The commands of a page, without those that fetch: tests open no connection."""
    lines = [line for name, line in shell_lines() if name == page and line.startswith("veriglot ")]
    return [line for line in lines if not line.startswith("veriglot models get ")]


def lay_out(folder: Path, base_url: str) -> None:
    """The files that the commands name; the study asks the server at `base_url`."""
    samples = (ROOT / "examples" / "samples.jsonl").read_bytes()
    for path in ("answers/samples.jsonl", "answers.jsonl", "labelled.jsonl"):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(samples)
    (folder / "samples.jsonl").write_text(blocks(ROOT / "README.md", "json")[0], "utf-8")
    (folder / "source.txt").write_text("The bridge was opened in 1897.", "utf-8")
    (folder / "answer.txt").write_text("The bridge was opened in 1879.", "utf-8")
    questions = (ROOT / "examples" / "study" / "queries.jsonl").read_text("utf-8").splitlines(keepends=True)
    chosen = [line for line in questions if line.startswith(('{"id":"en-', '{"id":"de-', '{"id":"ar-'))]
    (folder / "questions.jsonl").write_text("".join(chosen), "utf-8")
    study = blocks(DOCS / "study.md", "toml")[0]
    (folder / "study.toml").write_text(re.sub(r'https?://[^"]+/v1', base_url, study), "utf-8")


def run_commands(page: str, folder: Path, server: ModelServer) -> set[str]:
    """Run the commands of a page in order, and return the paths that are there after them."""
    lay_out(folder, server.base_url)
    environment = {**os.environ, "MODEL_B_KEY": "a-key", "VERIGLOT_OFFLINE": "1"}
    for line in commands_of(page):
        words = [Path(sys.executable).with_name("veriglot"), *shlex.split(line, comments=True)[1:]]
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.slow
def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    """All of them, in order, in a folder that holds the files they name, and none of a checkout."""
    with ModelServer(models=["model-a", "model-b"]) as server:
        made = run_commands("README.md", tmp_path, server)
    assert {"predictions.html", "profile.json", "marked.jsonl", "out/study/report.html"} <= made
    assert "labelled-bench/leaderboard.html" in made


@pytest.mark.slow
def test_the_commands_of_the_page_on_studies_run(tmp_path: Path) -> None:
    """Those of docs/study.md, beside a server with the models of its file."""
    with ModelServer(models=["model-a", "model-b"]) as server:
        made = run_commands("study.md", tmp_path, server)
    assert server.paid, "nobody was asked"
    assert "study/report.html" in made

"""Help pages are what users see, so they are kept as files: a change shows up in review.

To write them anew: UPDATE_GOLDEN=1 pytest tests/cli/test_cli_help.py
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from programs import printed
from veriglot.cli.app import VERBS

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Outcome

    Command = Callable[..., Outcome]

GOLDEN = Path(__file__).parent / "golden"
PAGES = ["", *VERBS, "train grounding", "dataset silver"]


def name_of(page: str) -> str:
    return page.replace(" ", "_") or "veriglot"


def page_of(veriglot: Command, verb: str) -> str:
    outcome = veriglot(*verb.split(), "--help")
    assert (outcome.code, outcome.err) == (0, "")
    return outcome.out


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


@pytest.mark.parametrize("verb", PAGES)
def test_help_is_as_it_was(veriglot: Command, verb: str) -> None:
    golden = GOLDEN / f"{name_of(verb)}.txt"
    page = page_of(veriglot, verb)
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(page, "utf-8")
    assert page == golden.read_text("utf-8"), "to accept it: UPDATE_GOLDEN=1 pytest tests/cli/test_cli_help.py"


def test_no_page_is_left_of_a_verb_that_is_gone() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == {name_of(verb) for verb in PAGES}


@pytest.mark.parametrize("verb", PAGES[1:])
def test_every_option_has_help_that_says_its_default(veriglot: Command, verb: str) -> None:
    options = page_of(veriglot, verb).partition("\nOptions:\n")[2]
    entries = [" ".join(entry.split()) for entry in re.split(r"\n(?=  -)", "\n" + options) if entry.strip()]
    assert entries
    for entry in entries:
        if "--help" not in entry:
            assert re.search(r"[Dd]efault: |\[required\]|Required, here or", entry), entry


@pytest.mark.parametrize("verb", list(VERBS))
def test_the_list_of_verbs_says_what_each_is_for(veriglot: Command, verb: str) -> None:
    assert re.search(rf"^  {verb} +[A-Z]", page_of(veriglot, ""), re.MULTILINE)


def test_without_words_help_is_shown_and_usage_is_wrong(veriglot: Command) -> None:
    outcome = veriglot()
    assert outcome.code == 2
    assert outcome.err.startswith("Usage: veriglot")


def test_version(veriglot: Command) -> None:
    from veriglot import __version__

    assert veriglot("--version") == (0, f"veriglot {__version__}\n", "")


@pytest.mark.parametrize(("word", "near"), [("detct", "detect"), ("doctr", "doctor")])
def test_an_unknown_verb_suggests_the_nearest(veriglot: Command, word: str, near: str) -> None:
    outcome = veriglot(word)
    assert outcome.code == 2
    assert f"There is no command named '{word}'." in outcome.err
    assert f"Did you mean {near}" in outcome.err


def test_an_unknown_option_of_the_root(veriglot: Command) -> None:
    outcome = veriglot("--verison")
    assert outcome.code == 2
    assert "--version" in outcome.err


HEAVY = ("numpy", "onnxruntime", "pyarrow", "torch", "py3langid", "icu4py", "rich", "multiprocessing")


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["detect", "--help"], ["doctor", "--help"]])
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    code = (
        f"import sys; from veriglot.cli import main; main({words!r}); print([n for n in {HEAVY!r} if n in sys.modules])"
    )
    assert printed(code).splitlines()[-1] == "[]"

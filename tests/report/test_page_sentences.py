"""No page prints a sentence that no test holds to the figures.

`sentences.toml` lists every sentence of the modules and templates that word pages, as it stands there, with … for what
is filled in: under `fixed` those that define, name or instruct, and claim nothing about figures; the others under the
checker that works out from the records whether they are so, over random results, or the test file that does. A new
sentence belongs into one of these.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from sentences import HELD, HOLE, ROOT, SOURCES, pattern_of, sentences_of

LISTED: dict[str, dict[str, str]] = tomllib.loads((Path(__file__).parent / "sentences.toml").read_text("utf-8"))
FIXED = "fixed"


def listed(name: str) -> dict[str, str]:
    """The sentences of a file, each with its checker."""
    return {
        line: checker for checker, text in LISTED.get(name, {}).items() for line in text.splitlines() if line.strip()
    }


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_every_sentence_is_held_by_a_checker_or_claims_nothing(path: Path) -> None:
    known, written = listed(str(path.relative_to(ROOT))), sentences_of(path)
    assert written - known.keys() == set(), "put them into sentences.toml: under a checker that holds them, or fixed"
    assert known.keys() - written == set(), "these are gone"


def test_every_file_with_sentences_is_walked() -> None:
    assert LISTED.keys() == {str(path.relative_to(ROOT)) for path in SOURCES if sentences_of(path)}


@pytest.mark.parametrize("file", sorted({name for parts in LISTED.values() for name in parts if name.endswith(".py")}))
def test_another_test_that_is_named_knows_the_sentence(file: str) -> None:
    """Three words of it, one after the other, stand in the test file that is named as its checker."""
    text = " ".join(re.sub(r"[\"'\\]\s+f?r?[\"']", "", (ROOT / file).read_text("utf-8")).split())
    for name in LISTED:
        for sentence, checker in listed(name).items():
            words = sentence.split()
            runs = (" ".join(words[at : at + 3]) for at in range(max(len(words) - 2, 1)))
            assert checker != file or any(run in text for run in runs if HOLE not in run), sentence


@pytest.mark.slow
def test_no_sentence_is_held_in_vain() -> None:
    """Each came up, filled in, and its checker found it to be so."""
    from sentence_checks import all_of_them

    all_of_them()
    missing = [
        f"{checker}: {sentence} ({name})"
        for name in LISTED
        for sentence, checker in listed(name).items()
        if checker != FIXED and not checker.endswith(".py")
        if not any(re.search(pattern_of(sentence), text) for text in HELD[checker])
    ]
    assert missing == []

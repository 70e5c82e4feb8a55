"""The interface's words: every one that the page asks for is there, in every language with its plurals and places."""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from importlib.resources import files
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from veriglot.rates.estimators import estimate, label_findings
from veriglot.studio import adjudication, dashboard, exam, people, rates, review, web
from veriglot.studio.project import PaceEntry
from veriglot.studio.tables import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

FOLDER = files("veriglot.studio") / "words"
PAGE = files("veriglot.studio") / "page"
TAGS = sorted(entry.name.removesuffix(".json") for entry in FOLDER.iterdir())
FORMS = {"zero", "one", "two", "few", "many", "other"}
# The plurals of a language after the browser's CLDR, and those of them that stand for one number alone.
PLURALS = """tag => {
  const rules = new Intl.PluralRules(tag), numbers = {};
  for (let n = 0; n <= 1000; n++) (numbers[rules.select(n)] ??= []).push(n);
  return [rules.resolvedOptions().pluralCategories, Object.keys(numbers).filter((form) => numbers[form].length === 1)];
}"""


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Page:
    return browser.new_page()


def words(tag: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((FOLDER / f"{tag}.json").read_text("utf-8"))
    return found


def split(key: str) -> tuple[str, str | None]:
    before, _, last = key.rpartition(".")
    return (before, last) if last in FORMS else (key, None)


def keys(tag: str) -> set[str]:
    return {split(key)[0] for key in words(tag)}


def test_every_file_is_a_language_that_the_browser_knows(tab: Page) -> None:
    assert tab.evaluate("tags => Intl.PluralRules.supportedLocalesOf(tags)", TAGS) == TAGS


@pytest.mark.parametrize("tag", TAGS)
def test_languages_have_the_same_words(tag: str) -> None:
    assert keys("en") - keys(tag) == set()
    assert keys(tag) - keys("en") == set()


@pytest.mark.parametrize("tag", TAGS)
def test_plurals_and_places_are_complete(tab: Page, tag: str) -> None:
    own, english = words(tag), words("en")
    plurals, of_one_number = tab.evaluate(PLURALS, tag)
    for key, text in own.items():
        assert text.strip() or key == "translation.notice", key
        name, form = split(key)
        places = set(re.findall(r"\{(\w+)\}", english.get(f"{name}.other") or english[key]))
        said = set(re.findall(r"\{(\w+)\}", text))
        assert said <= places, key
        if form not in of_one_number:
            assert said == places, key
        if form is not None:
            assert {one for one in FORMS if f"{name}.{one}" in own} == set(plurals), key


def test_every_word_that_the_page_asks_for_is_there() -> None:
    asked = set()
    for folder in (PAGE, PAGE / "lead"):
        for entry in folder.iterdir():
            if entry.name.endswith(".js"):
                asked |= set(re.findall(r"""\bt\(\s*"([\w.]+)\"""", entry.read_text("utf-8")))
    assert len(asked) > 150
    asked |= {f"state.{state}" for state in State}  # of an assignment; the history of an item names its moves by them
    assert asked - keys("en") == set()


def written(source: Any) -> list[str]:
    """The sentences in the source of a module or a function, with a 3 for what is filled in."""
    nodes = list(ast.walk(ast.parse(textwrap.dedent(inspect.getsource(source)))))
    filled = {part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    texts = [
        "".join(str(part.value) if isinstance(part, ast.Constant) else "3" for part in node.values)
        for node in nodes
        if isinstance(node, ast.JoinedStr)
    ]
    texts += [str(node.value) for node in nodes if isinstance(node, ast.Constant) and node not in filled]
    return [text for text in texts if " " in text]


def flags() -> Iterator[str]:
    """What every flag of somebody's work says."""

    def item(**values: Any) -> Any:
        return SimpleNamespace(**{"seconds": 10.0, "words": 5, "marks": 1, "check": 0.9, "others": 0.9, **values})

    fast: Any = [item(skipped=True)] * 20
    for flag in dashboard._flag_totals(fast, fast, fast, [0.1] * 3, PaceEntry(), 0.7):
        yield flag.reason
    for flag in dashboard._flag_drift([item()] * 20 + [item(seconds=1.0, marks=9, check=0.1, others=0.1)] * 20, 20):
        yield flag.reason


def test_what_the_server_says_in_english_has_words_in_every_language() -> None:
    source = (PAGE / "texts.js").read_text("utf-8")
    patterns = re.findall(r'^  \[/(.+)/, "(\w+)"\],$', source, re.MULTILINE)
    reasons = [text for text in written(rates._language) if "labelled yet" in text or text.startswith("3 ")]
    reasons += [text for text in written(estimate) if text.startswith("no unit")]
    reasons.append(label_findings(3, 1, 9)[0].replace(" with labels", ""))  # as of a study with few texts
    reasons += [*label_findings(3, 1, 9), *label_findings(10, 1, 2), *flags()]
    for reason in ("forged", "unknown", "expired", "revoked"):
        error = web.InvitationError(reason)
        reasons += [error.message, error.remedy]
    patterns = [(pattern.replace("(?<", "(?P<"), name) for pattern, name in patterns]
    refused = [text for module in (adjudication, exam, people, review, web.Rates.count) for text in written(module)]
    reasons += [text for text in refused if any(re.search(pattern, text) for pattern, _ in patterns)]
    asked = set()
    for reason in reasons:
        names = [name for pattern, name in patterns if re.search(pattern, reason)]
        assert len(names) == 1, (reason, names)
        asked.update(names)
    assert asked == {name for _, name in patterns} == {key[7:] for key in keys("en") if key.startswith("server.")}

"""Translations in a card: counts of rows and of attempts, and no cost without a count."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from json_lines import read_lines
from veriglot.datasets.cards.card import card, card_page, read_given, trace
from veriglot.datasets.translation.job import TranslationSettings, translate
from veriglot.datasets.translation.projection import LexicalAligner
from veriglot.datasets.translation.translators import FunctionTranslator
from veriglot.records import Annotation, Kind, Sample, Span

if TYPE_CHECKING:
    from pathlib import Path

GERMAN = {"The bridge was opened in 1879.": "Die Brücke wurde 1879 eröffnet."}


def samples() -> list[Sample]:
    marks = (Annotation("gold", Kind.HUMAN, "fava", spans=(Span(25, 29, "entity"),)),)
    texts = [*GERMAN, "The mill was built in 1734.", "The tower burnt down in 1812."]
    return [Sample(f"s{n}", text, language="en", annotations=marks if n == 0 else ()) for n, text in enumerate(texts)]


@pytest.fixture
def translated(tmp_path: Path) -> Path:
    """Three rows: one has a translation, the reply for the other two is the original text."""
    output = tmp_path / "de.jsonl"
    translator = FunctionTranslator(lambda text, source, target: GERMAN.get(text, text), "a table@1")
    translate(output, samples(), ["de"], translator, aligner=LexicalAligner(), settings=TranslationSettings())
    return output


def test_rows_that_were_set_aside_are_counted_apart_from_replies_that_were_not_taken(translated: Path) -> None:
    account = json.loads(translated.with_name("de.jsonl.account.json").read_text())["total"]
    lines = read_lines(translated.with_name("de.jsonl.rejected.jsonl"))
    assert (account["rows"], account["kept"], account["row_reasons"]) == (3, 1, {"untranslated": 2})
    (step,) = trace([str(translated)])
    assert (step.rejected_rows, step.rejected) == (2, {"untranslated": 2})
    assert len(lines) > 2
    assert sum(step.tries.values()) == len(lines) - 2
    assert step.tries["response: untranslated"] == 2
    page = card_page(card([str(translated)]))
    assert "- rejected rows: 2: untranslated 2\n" in page
    assert f"- rejected replies or attempts: {len(lines) - 2}: " in page


@pytest.mark.parametrize("prices", ["", '[cost]\ncurrency = "EUR"\nprompts = 2.0\nreplies = 8.0\n'])
def test_a_translator_that_counts_nothing_costs_nobody_knows_what(translated: Path, prices: str) -> None:
    given = translated.with_name("about.toml")
    given.write_text(prices, "utf-8")
    page = card_page(card([str(translated)], given=read_given(given)))
    assert "| de.jsonl | unknown | unknown | unknown | unknown |" in page


@pytest.mark.parametrize("kind", ["hf", "ct2"])
def test_a_model_here_calls_no_service(translated: Path, kind: str) -> None:
    manifest = translated.with_name("de.jsonl.progress")
    manifest.write_text(manifest.read_text().replace("translator:function|", f"translator:{kind}|"))
    page = card_page(card([str(translated)]))
    assert "| de.jsonl | none of a service: the model runs here | unknown | unknown | unknown |" in page


def test_calls_that_were_counted_are_told_though_no_token_was(translated: Path) -> None:
    path = translated.with_name("de.jsonl.account.json")
    account = json.loads(path.read_text())
    account["total"]["calls"] = 4
    path.write_text(json.dumps(account))
    assert "| de.jsonl | 4 | unknown | unknown | unknown |" in card_page(card([str(translated)]))


def test_a_seed_whose_sentences_became_rows_was_not_set_aside(tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text('{"id": "a/s1"}\n{"id": "c"}\n')
    lines = [("a", "passage", "short"), ("a/s2", "entity", "glued"), ("a/s2", "row", "loop"), ("b", "passage", "short")]
    told = [json.dumps({"id": id_, "seed": "x", "type": type_, "reason": why}) for id_, type_, why in lines]
    (tmp_path / "out.jsonl.rejected.jsonl").write_text("\n".join(told))
    (step,) = trace([str(tmp_path / "out.jsonl")])
    assert (step.rejected_rows, step.rejected) == (2, {"loop": 1, "short": 1})
    assert step.tries == {"passage: short": 1, "entity: glued": 1}

"""Judges keep to the contract of detectors: order, batches, words, thresholds, processes, hostile texts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pytest
from detector_contract import check_contract, check_processes
from many_languages import TEXTS

from veriglot.detectors.registry import load_detector
from veriglot.records import Evidence, Sample, Status
from veriglot.testing import check_detector

if TYPE_CHECKING:
    from pathlib import Path

    from detector_contract import Load

HOSTILE = (
    "a\u0000b",
    "\u202eabc\u202c",
    "e\u0301" * 50,
    "👩‍👩‍👧‍👦 🇩🇪",
    "{}{{}}%s",
    "</response>",
    "ﷺ" * 20,
    "\ufeffx",
    "\n\n",
)


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """A judge whose three opinions mark the first word, the last one, and nothing."""
    first = r'{"spans": [{"before": "", "text": "\1", "type": "entity"}]}'
    last = r'{"spans": [{"before": "", "text": "\2", "type": "relation"}]}'
    rule = {"match": r"<response(?:-2)?>\n\W*(\w+)[^\n]*?(\w+)\W*\n</response", "reply": [first, last, '{"spans": []}']}
    rules = tmp_path / "rules.json"
    rules.write_bytes(msgspec.json.encode([rule, {"reply": '{"spans": []}'}]))
    return partial(load_detector, "judge:spans", client="scripted", rules=str(rules), samples=3)


@pytest.fixture
def samples() -> list[Sample]:
    told = [Sample(f"own-{tag}", t.changed, language=tag, evidence=(Evidence(t.evidence),)) for tag, t in TEXTS.items()]
    hostile = [
        Sample(f"hostile-{n}", text, language="en", evidence=(Evidence("A plain text."),))
        for n, text in enumerate(HOSTILE)
    ]
    unscored = [Sample("empty", " ", evidence=(Evidence("x"),)), Sample("bare", "One word.")]
    return [*told, *hostile, *unscored]


def test_the_contract_is_kept(load: Load, samples: list[Sample]) -> None:
    check_contract(load, samples)


def test_new_processes_say_the_same(load: Load, samples: list[Sample]) -> None:
    check_processes(load(words=True), samples[::5])


def test_half_a_surrogate_pair_is_not_scored(load: Load) -> None:
    evidence = (Evidence("A plain text."),)
    batch = [
        Sample("a", "x \ud800 y", language="en", evidence=evidence),
        Sample("b", "Ada.", language="en", evidence=evidence),
    ]
    found = load().predict(batch)
    assert [one.status for one in found] == [Status.FAILED, Status.SCORED]


@pytest.mark.parametrize(
    ("kind", "reply"),
    [
        ("translation", '{"reason": "r", "hallucination": true}'),
        ("translation-guided", '{"reason": "r", "hallucination": false}'),
        ("score", '{"reason": "r", "score": 62.5}'),
        ("pairs", '{"type": "relation"}'),
        ("facts", '{"verdicts": [{"claim": 1, "verdict": "contradicted"}]}'),
        ("spans", '{"spans": []}'),
    ],
)
def test_every_judge_keeps_it(kind: str, reply: str, tmp_path: Path) -> None:
    rules = tmp_path / "rules.json"
    rules.write_bytes(msgspec.json.encode([{"reply": reply}]))
    check_detector(partial(load_detector, f"judge:{kind}", client="scripted", rules=str(rules)))

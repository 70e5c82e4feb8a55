"""The account of a set: counts by model and language, and what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.build.factual.languages import REASONS
from veriglot.build.quality import Quality, QualityTally

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from veriglot.build.factual.languages import Verdict
    from veriglot.records import Sample

__all__ = ["CellTally", "FactualCell", "cells_table", "totals_of"]


class FactualCell(msgspec.Struct, frozen=True):
    """One model in one language.

    Attributes:
        model, language: which.
        asked: responses that were asked for: prompts times samples.
        failed: calls that gave nothing, after every retry.
        responses: the others; `kept`, `empty`, `undetected` and `language` add up to it.
        kept: responses of the set.
        empty, undetected, language_wrong: responses that were set aside; see `Verdict`.
        alone: of those kept, how many have no sister that was kept.
        pairs: rows of pairs: every kept response against each of its sisters.
        cross: rows of kept responses against the article in the other language (English).
        labelled: of those kept, how many have labels.
        tokens_in, tokens_out: of all responses, as the server counted them, or estimated.
        quality: of all responses, those that were set aside too (kang, Table 1); None where there are none.
    """

    model: str
    language: str
    asked: int = 0
    failed: int = 0
    responses: int = 0
    kept: int = 0
    empty: int = 0
    undetected: int = 0
    language_wrong: int = 0
    alone: int = 0
    pairs: int = 0
    cross: int = 0
    labelled: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    quality: Quality | None = None


_SUMMED = (
    "asked", "failed", "responses", "kept", "empty", "undetected", "language_wrong", "alone", "pairs", "cross",
    "labelled", "tokens_in", "tokens_out",
)  # fmt: skip
_COLUMNS = ("asked", "failed", "responses", "kept", "empty", "undetected", "language_wrong", "alone", "pairs", "cross")


class CellTally:
    """Counts of one model in one language, response by response; memory does not grow with them."""

    def __init__(self, model: str, language: str) -> None:
        self._about = (model, language)
        self._counts = dict.fromkeys(_SUMMED, 0)
        self._quality = QualityTally()

    def add(self, name: str, number: int = 1) -> None:
        """Add to a count of `FactualCell`."""
        self._counts[name] += number

    def judge(self, sample: Sample, verdict: Verdict) -> None:
        """Count a response with what was found of its language, and its tokens."""
        from veriglot.llm import estimate_tokens

        self.add("responses")
        self.add("kept" if verdict.reason is None else _COUNT[verdict.reason])
        self._quality.add(sample)
        texts = {"tokens_in": sample.question or "", "tokens_out": sample.response}
        for name, text in texts.items():
            counted = sample.meta.get(name)
            self.add(name, counted if isinstance(counted, int) else estimate_tokens(text))

    def cell(self) -> FactualCell:
        """The counts so far."""
        counts: dict[str, Any] = self._counts
        return FactualCell(*self._about, **counts, quality=self._quality.quality())


_COUNT = {reason: "language_wrong" if reason == "language" else reason for reason in REASONS}


def totals_of(cells: Iterable[FactualCell]) -> dict[str, int]:
    """All models and languages together."""
    every = list(cells)
    return {name: sum(getattr(cell, name) for cell in every) for name in _SUMMED}


def cells_table(cells: Sequence[FactualCell]) -> list[list[str]]:
    """The counts as rows of a table, its head first and, of several cells, their sum last.

    `right` is the share of the responses whose language can be told that are in the one that was asked for, `most in`
    the language that most of them are in, `words` their mean length.
    """
    head = ["model", "language", *(name.replace("language_wrong", "wrong language") for name in _COLUMNS)]
    rows = [[*head, "right", "most in", "words"]]
    for cell in cells:
        counts = [f"{getattr(cell, name):,}" for name in _COLUMNS]
        rows.append([cell.model, cell.language, *counts, *_said(cell.quality)])
    if len(cells) > 1:
        total = totals_of(cells)
        rows.append(["all", "", *(f"{total[name]:,}" for name in _COLUMNS), "", "", ""])
    return rows


def _said(quality: Any) -> list[str]:
    if quality is None:
        return ["-", "-", "-"]
    right = "-" if quality.right_language is None else f"{quality.right_language:.1%}"
    return [right, quality.most_frequent_language or "-", f"{quality.words:.1f}"]

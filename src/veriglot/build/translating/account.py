"""What a run of translation gave: rows and spans kept and dropped, per language and type, why, and what it cost."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from veriglot.run import Lost

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from veriglot.build.translating.records import TranslatedRow

__all__ = [
    "MarkAccount",
    "TranslationAccount",
    "TranslationLanguage",
    "load_translation_account",
    "translation_account_of",
    "translation_account_path",
]


class MarkAccount(msgspec.Struct, frozen=True):
    """The marks (spans and labelled units) of one type.

    Attributes:
        asked: marks of the rows whose texts could be translated.
        dropped: those of them without a place that is good enough.
        quality: mean quality of those that were kept, 0 to 1; None where none was.
        ways: how many of those that were kept each strategy placed; `sentence` are marks of whole sentences.
    """

    asked: int
    dropped: int
    quality: float | None
    ways: dict[str, int]

    @property
    def drop_rate(self) -> float | None:
        """The share that was dropped, 0 to 1; None where nothing was asked for."""
        return self.dropped / self.asked if self.asked else None


class TranslationLanguage(msgspec.Struct, frozen=True):
    """One language, or all of them.

    Attributes:
        rows: samples that were to be translated and did not fail; `TranslationAccount.failed` are further ones.
        kept: those that were.
        partial: those of them that lost a span.
        types: marks by type.
        row_reasons: rows that were set aside, by reason.
        reply_reasons: translations that were not taken, by what they were of and reason; a text that was translated
            another way in the end is counted too.
        calls, tokens_in, tokens_out: what it cost; tokens are estimated where a server did not say.
    """

    rows: int
    kept: int
    partial: int
    types: dict[str, MarkAccount]
    row_reasons: dict[str, int]
    reply_reasons: dict[str, dict[str, int]]
    calls: int
    tokens_in: int
    tokens_out: int

    @property
    def marks(self) -> MarkAccount:
        """The marks of all types."""
        asked = sum(one.asked for one in self.types.values())
        dropped = sum(one.dropped for one in self.types.values())
        total = sum((one.quality or 0.0) * (one.asked - one.dropped) for one in self.types.values())
        ways: Counter[str] = Counter()
        for one in self.types.values():
            ways.update(one.ways)
        return MarkAccount(asked, dropped, total / (asked - dropped) if asked > dropped else None, dict(ways))


class TranslationAccount(msgspec.Struct, frozen=True):
    """All of a run.

    Attributes:
        languages: by BCP 47 tag, in the order of the tags.
        total: all languages together; what it cost includes what was spent on failed rows, which are in no language.
        failed: rows that came to nothing because a call gave nothing, or that could not be read.
    """

    languages: dict[str, TranslationLanguage]
    total: TranslationLanguage
    failed: int = 0


class _Tally:
    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()
        self._quality: Counter[str] = Counter()
        self._ways: dict[str, Counter[str]] = {}
        self._reasons: dict[str, Counter[str]] = {}

    def add(self, row: TranslatedRow) -> None:
        counts = self._counts
        counts["rows"] += 1
        counts["kept"] += row.sample is not None
        counts["partial"] += row.sample is not None and any(not mark.kept for mark in row.marks)
        for name in ("calls", "tokens_in", "tokens_out"):
            counts[name] += getattr(row, name)
        for mark in row.marks:
            self._asked[mark.type] += 1
            self._dropped[mark.type] += not mark.kept
            if mark.kept:
                self._quality[mark.type] += mark.quality  # type: ignore[assignment]  # a Counter of floats
                self._ways.setdefault(mark.type, Counter())[mark.way or ""] += 1
        for one in row.rejections:
            self._reasons.setdefault(one.what, Counter())[one.reason] += 1

    def pay(self, lost: Lost) -> None:
        self._counts.update(calls=lost.calls, tokens_in=lost.tokens_in, tokens_out=lost.tokens_out)

    def account(self) -> TranslationLanguage:
        counts = self._counts
        types = {}
        for type_ in sorted(self._asked):
            kept = self._asked[type_] - self._dropped[type_]
            mean = self._quality[type_] / kept if kept else None
            types[type_] = MarkAccount(self._asked[type_], self._dropped[type_], mean, self._ranked(self._ways, type_))
        replies = {what: self._ranked(self._reasons, what) for what in sorted(self._reasons) if what != "row"}
        return TranslationLanguage(
            counts["rows"],
            counts["kept"],
            counts["partial"],
            types,
            self._ranked(self._reasons, "row"),
            replies,
            counts["calls"],
            counts["tokens_in"],
            counts["tokens_out"],
        )

    @staticmethod
    def _ranked(table: dict[str, Counter[str]], key: str) -> dict[str, int]:
        return dict(sorted(table.get(key, Counter()).items(), key=lambda item: (-item[1], item[0])))


def translation_account_of(rows: Iterable[TranslatedRow], *, failed: Lost = Lost()) -> TranslationAccount:  # noqa: B008
    """Account for what was translated, row by row; memory does not grow with them.

    Args:
        rows: what became of each.
        failed: rows that came to nothing, and what was spent on them.
    """
    languages: dict[str, _Tally] = {}
    total = _Tally()
    for row in rows:
        languages.setdefault(row.language, _Tally()).add(row)
        total.add(row)
    total.pay(failed)
    by_language = {tag: languages[tag].account() for tag in sorted(languages)}
    return TranslationAccount(by_language, total.account(), failed.rows)


def translation_account_path(output: Path) -> Path:
    """Where the account of an output is."""
    return output.with_name(output.name + ".account.json")


def load_translation_account(output: Path) -> TranslationAccount:
    """The account that lies beside an output."""
    return msgspec.json.decode(translation_account_path(output).read_bytes(), type=TranslationAccount)

"""What a run of silver data gave: the yield per type and language, why the rest was rejected, and what it cost."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from veriglot.build.injection.made import PASSAGE, ROW
from veriglot.run import Lost

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from veriglot.build.injection.made import Made

__all__ = ["Account", "LanguageAccount", "TypeAccount", "account_of", "account_path", "load_account"]


class TypeAccount(msgspec.Struct, frozen=True):
    """One type of error in one language, or the seed passages.

    Attributes:
        asked: rows that were to have an error of it (passages: that were to be seeds).
        taken: rows that have one.
        errors: errors of it in the rows; passages have none.
        reasons: rejections by reason, the most frequent first. A row that was asked for several times may have
            several, and one that succeeded in the end may have some.
    """

    asked: int
    taken: int
    errors: int
    reasons: dict[str, int]

    @property
    def share(self) -> float | None:
        """The yield: the share of what was asked for that was taken; None where nothing was asked for."""
        return self.taken / self.asked if self.asked else None


class LanguageAccount(msgspec.Struct, frozen=True):
    """One language.

    Attributes:
        seeds: seeds that were worked on.
        rows: silver rows.
        clean: those of them without an error.
        passages: the seed passages.
        types: by type.
        row_reasons: rows that were rejected whole, by reason.
        calls, tokens_in, tokens_out: what it cost; tokens are estimated where a server did not say.
    """

    seeds: int
    rows: int
    clean: int
    passages: TypeAccount
    types: dict[str, TypeAccount]
    row_reasons: dict[str, int]
    calls: int
    tokens_in: int
    tokens_out: int


class Account(msgspec.Struct, frozen=True):
    """All of a run, by language, in the order of the tags.

    Attributes:
        languages: by BCP 47 tag.
        total: all languages together; what it cost includes what was spent on failed seeds, which are in no language.
        failed: seeds that came to nothing because a call gave nothing, or that could not be read.
    """

    languages: dict[str, LanguageAccount]
    total: LanguageAccount
    failed: int = 0

    def money(self, price_in: float, price_out: float) -> float:
        """What all calls cost, at prices for a million tokens of prompts and of replies, in the prices' currency."""
        return (self.total.tokens_in * price_in + self.total.tokens_out * price_out) / 1e6


class _Tally:
    """Counts, seed by seed; memory does not grow with them."""

    def __init__(self, types: Sequence[str]) -> None:
        self._counts: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()
        self._taken: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._reasons: dict[str, Counter[str]] = {}
        self._types = types

    def add(self, made: Made) -> None:
        """Count one seed."""
        counts = self._counts
        counts["seeds"] += 1
        counts["rows"] += len(made.samples)
        for name in ("calls", "tokens_in", "tokens_out"):
            counts[name] += getattr(made, name)
        self._asked.update(made.asked)
        self._taken.update(made.taken)
        for sample in made.samples:
            spans = sample.annotations[-1].spans or ()
            counts["clean"] += not spans
            self._errors.update(span.type or "" for span in spans)
        for one in made.rejections:
            self._reasons.setdefault(one.type, Counter())[one.reason] += 1

    def pay(self, lost: Lost) -> None:
        """Count what was spent on seeds that failed."""
        self._counts.update(calls=lost.calls, tokens_in=lost.tokens_in, tokens_out=lost.tokens_out)

    def account(self) -> LanguageAccount:
        """The counts so far."""
        counts = self._counts
        return LanguageAccount(
            counts["seeds"],
            counts["rows"],
            counts["clean"],
            self._of(PASSAGE),
            {type_: self._of(type_) for type_ in self._types},
            self._ranked(ROW),
            counts["calls"],
            counts["tokens_in"],
            counts["tokens_out"],
        )

    def _of(self, type_: str) -> TypeAccount:
        return TypeAccount(self._asked[type_], self._taken[type_], self._errors[type_], self._ranked(type_))

    def _ranked(self, type_: str) -> dict[str, int]:
        reasons = self._reasons.get(type_, Counter())
        return dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))


def account_of(made: Iterable[Made], types: Sequence[str], *, failed: Lost = Lost()) -> Account:  # noqa: B008
    """Account for what was made.

    Args:
        made: seed by seed.
        types: of the errors, in the order to show them.
        failed: seeds that came to nothing, and what was spent on them.
    """
    languages: dict[str, _Tally] = {}
    total = _Tally(types)
    for one in made:
        languages.setdefault(one.language, _Tally(types)).add(one)
        total.add(one)
    total.pay(failed)
    return Account({tag: languages[tag].account() for tag in sorted(languages)}, total.account(), failed.rows)


def account_path(output: Path) -> Path:
    """Where the account of an output is."""
    return output.with_name(output.name + ".account.json")


def load_account(output: Path) -> Account:
    """The account that lies beside an output."""
    return msgspec.json.decode(account_path(output).read_bytes(), type=Account)

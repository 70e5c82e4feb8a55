"""Length, language and MinHash of lines: all that is looked at in a line by itself."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from veriglot.build.quality import same_language
from veriglot.build.sampling.fates import Fate
from veriglot.build.sampling.minhash import BANDS, minhash
from veriglot.build.sampling.shards import Found
from veriglot.build.sampling.shingles import dense_table, shingles
from veriglot.build.sampling.store import LineStore
from veriglot.text import identify
from veriglot.text.unicode_table import Kind, code_points, kind_table

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from veriglot.build.sampling.lines import Line
    from veriglot.build.sampling.settings import Cleaning

__all__ = ["Examiner", "compared_text", "length_of"]

_BATCH = 2_000  # lines whose n-grams are in memory at once


def length_of(text: str) -> int:
    """Visible characters; one of a Chinese, Japanese or Korean script counts as two, marks and white space as none."""
    codes = code_points(text)
    seen = kind_table()[codes] & (Kind.SPACE | Kind.MARK | Kind.EDGE) == 0
    return int(seen.sum() + (seen & dense_table()[codes]).sum())


def compared_text(line: Line, unique: str) -> str:
    """What a line is told from others by: its source, or source and target."""
    return line.source if unique == "source" else f"{line.source}\n{line.target or ''}"


class Examiner:
    """Looks at the lines that are kept so far.

    Args:
        store: folder of the lines.
        fates: file of the fates before.
        cleaning: what a line has to be.
    """

    def __init__(self, store: Path, fates: Path, cleaning: Cleaning) -> None:
        self._store = LineStore(store)
        self._fates = fates
        self._cleaning = cleaning

    def __call__(self, start: int, stop: int) -> Found:
        """Arrays `fates`, `bands` and `sketches` of lines `[start, stop)`; notes count the other languages."""
        fates: NDArray[np.uint8] = np.array(np.load(self._fates, mmap_mode="r")[start:stop])
        bands, sketches = np.zeros((BANDS, stop - start), np.uint64), np.zeros(stop - start, np.uint64)
        others: Counter[str] = Counter()
        for first in range(start, stop, _BATCH):
            last = min(first + _BATCH, stop)
            kept = np.flatnonzero(fates[first - start : last - start] == Fate.KEPT)
            lines = self._store.lines(first, last)
            for place in kept.tolist():
                fate, other = self._fate(lines[place].source)
                fates[first - start + place] = fate
                if other:
                    others[other] += 1
            if self._cleaning.near is not None:
                kept = kept[fates[kept + first - start] == Fate.KEPT]
                texts = [compared_text(lines[place], self._cleaning.unique) for place in kept.tolist()]
                bands[:, kept + first - start], sketches[kept + first - start] = minhash(shingles(texts))
        return Found({"fates": fates, "bands": bands, "sketches": sketches}, dict(others))

    def _fate(self, text: str) -> tuple[Fate, str]:
        """The fate of a source, and the language it is in where that is another than it should be."""
        asked = self._cleaning
        length = length_of(text)
        if length < asked.min_length:
            return Fate.TOO_SHORT, ""
        if length > asked.max_length:
            return Fate.TOO_LONG, ""
        found = identify(text)
        if found is None:
            return Fate.LANGUAGE_UNTOLD, ""
        if found.confidence < asked.min_confidence:
            return Fate.LANGUAGE_UNSURE, ""
        if not same_script(found.tag, asked.language):
            return Fate.OTHER_LANGUAGE, found.tag
        return Fate.KEPT, ""


def same_script(found: str, asked: str) -> bool:
    """Whether a text in `found` is one in `asked`: the same language, and the same script where both tags name one."""
    scripts = [_script(tag) for tag in (found, asked)]
    return same_language(found, asked) and (None in scripts or scripts[0] == scripts[1])


def _script(tag: str) -> str | None:
    return next((part for part in tag.split("-")[1:] if len(part) == 4 and part.isalpha()), None)

"""Chinese, Cantonese, Japanese and Korean told apart by their characters."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from veriglot.text.unicode_table import code_points, script_names, script_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["chinese_or_japanese"]

_CANTONESE = "嘅喺咗唔佢啲冇嚟咁哋嗰噉嘢攞乜睇喎㗎嘞畀瞓諗谂掂冚佮啱嗌踎揾搵"
_KANA_SHARE = 0.08  # of Han and kana: Japanese has about half, a Chinese text about Japan a few names
_HANGUL_SHARE = 0.2
_CANTONESE_SHARE = 0.01


class _Characters(msgspec.Struct):
    simplified: str
    traditional: str
    japanese: str


@cache
def _sets() -> dict[str, NDArray[np.uint32]]:
    data = files(__package__).joinpath("chinese_characters.json").read_bytes()
    table = msgspec.json.decode(data, type=_Characters)
    return {
        "simplified": code_points(table.simplified),
        "traditional": code_points(table.traditional),
        "japanese": code_points(table.japanese),
        "cantonese": code_points(_CANTONESE),
    }


def _count(letters: NDArray[np.uint32], name: str) -> int:
    return int(np.isin(letters, _sets()[name]).sum())


def chinese_or_japanese(letters: NDArray[np.uint32]) -> tuple[str, float]:
    """Tag and confidence (0 to 1) of a text by its letters, most of which are Han, kana, hangul or bopomofo."""
    names = script_names()
    counts = np.bincount(script_table()[letters], minlength=len(names))
    han, hangul = int(counts[names.index("Hani")]), int(counts[names.index("Hang")])
    kana = int(counts[names.index("Hira")] + counts[names.index("Kana")])
    if hangul > _HANGUL_SHARE * (han + kana + hangul):
        return "ko", 0.97
    if kana > _KANA_SHARE * (han + kana):
        return "ja", 0.97
    cantonese = _count(letters, "cantonese")
    if cantonese > _CANTONESE_SHARE * han:
        return "yue", 0.95 if cantonese > 1 else 0.7
    simplified, traditional = _count(letters, "simplified"), _count(letters, "traditional")
    if _count(letters, "japanese") > max(simplified, traditional):
        return "ja", 0.7
    total = simplified + traditional
    if not total:
        return "zh-Hans", 0.5  # nothing parts the two: CLDR's likely script
    share = (max(simplified, traditional) + 0.5) / (total + 1)
    return ("zh-Hans" if simplified >= traditional else "zh-Hant"), 0.97 * share

"""The lines that `mt_sample.py` samples: nonsense of which it is known how much repeats, and how bad its scores are."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["SCORERS", "generate"]

SCORERS = ("comet", "labse", "laser", "alti", "top-ngram", "log-probability")
"""Columns of scores, named as the models of hat (section 2.2); of `top-ngram` 1 is bad, of the others a low number."""

_FREQUENT = (
    "der", "die", "und", "in", "den", "von", "zu", "das", "mit", "sich", "des", "auf", "für", "ist", "im", "dem",
    "nicht", "ein", "eine", "als", "auch", "es", "an", "werden", "aus", "er", "hat", "dass", "sie", "nach", "wird",
    "bei", "einer", "um", "am", "sind", "noch", "wie", "einem", "über", "so", "zum", "war", "haben", "nur", "oder",
)  # fmt: skip
_STEMS = (
    "haus", "baum", "stadt", "wasser", "kirche", "garten", "schule", "wald", "brücke", "markt", "fluss", "berg",
    "feld", "mühle", "hof", "turm", "bahn", "post", "licht", "stein", "holz", "eisen", "wagen", "ring", "bild", "buch",
    "zeit", "land", "kraft", "werk", "dorf", "tal", "weg", "platz", "tor", "wand", "dach", "keller", "fenster",
)  # fmt: skip
_WORDS = (*_FREQUENT * 30, *(first + second for first in _STEMS for second in _STEMS))
_KINDS = {"repeated": 0.04, "near": 0.04, "English": 0.02, "short": 0.02, "new": 0.88}
_ENDINGS = (" !", " ?", "...", "s.", "n.")
_REMEMBERED = 10_000  # sources that may be repeated
_DETACHED, _PHRASES, _WORSE = 0.001, 0.00008, 2.0  # shares of the lines, and standard deviations
_UNSCORED = 0.001


def generate(path: Path, lines: int, seed: int) -> dict[str, int]:
    """Write JSON lines; returns how many are of which kind.

    Of 100 sources, 4 repeat an earlier one, 4 are the new one before with another ending, 2 are in English, 2 are too
    short, and 88 are new. One translation in 1,000 is detached from its source: one of a few phrases, each of which
    stands in 12 or 13 lines with different endings, and its scores are worse. The score of `alti` is missing from 1
    line in 1,000.
    """
    draw, kinds = random.Random(seed), Counter[str]()
    phrases = [_sentence(draw)[::-1] for _ in range(max(2, round(lines * _PHRASES)))]
    encode = msgspec.json.Encoder().encode
    with path.open("wb") as stream:
        for kind, source in _sources(draw, lines):
            kinds[kind] += 1
            detached = draw.random() < _DETACHED
            kinds["detached"] += detached
            target = draw.choice(phrases)[:-1] + draw.choice(_ENDINGS) if detached else source[::-1]
            stream.write(encode({"source": source, "target": target, **_scores(draw, detached=detached)}) + b"\n")
    return dict(kinds)


def _sources(draw: random.Random, lines: int) -> Iterator[tuple[str, str]]:
    last = _sentence(draw)
    remembered = [last]
    yield "new", last
    for number, kind in enumerate(draw.choices(list(_KINDS), list(_KINDS.values()), k=1)[0] for _ in range(1, lines)):
        if kind == "repeated":
            yield kind, draw.choice(remembered)
        elif kind == "near":
            yield kind, last[:-1] + draw.choice(_ENDINGS)
        elif kind == "English":
            yield kind, f"The old house near the river was built in {number} by the people of the town."
        elif kind == "short":
            yield kind, f"Ja {number}"
        else:
            last = _sentence(draw)
            yield kind, last
            if len(remembered) < _REMEMBERED:
                remembered.append(last)
            else:
                remembered[draw.randrange(_REMEMBERED)] = last


def _sentence(draw: random.Random) -> str:
    return " ".join(draw.choices(_WORDS, k=draw.randint(8, 18))).capitalize() + "."


def _scores(draw: random.Random, *, detached: bool) -> dict[str, Any]:
    scores: dict[str, Any] = {name: draw.gauss(-_WORSE if detached else 0.0, 1.0) for name in SCORERS}
    scores["top-ngram"] = float(draw.random() < 0.005)
    if draw.random() < _UNSCORED:
        scores["alti"] = None
    return scores

"""Language identification, offline: script, letters, a statistical model and frequent words.

The model is py3langid's (BSD, naive Bayes over byte n-grams). It is used only for scripts with several languages, only
its scores of languages with that script count, and it is loaded on the first such text (about half a second). Chinese
text is classified by characters: Cantonese by its own words, simplified and traditional by characters that only one of
them has, Japanese by its kana. Frequent words separate Serbian in Latin letters from Croatian and Bosnian.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from veriglot.plugins import read_package_data
from veriglot.text.unicode import Kind, code_points, kind_table, script_names, script_table

if TYPE_CHECKING:
    from veriglot.arrays import UInt32s
__all__ = ["Identified", "identify"]


# Chinese, Cantonese, Japanese and Korean, identified by their characters.


_CANTONESE = "嘅喺咗唔佢啲冇嚟咁哋嗰噉嘢攞乜睇喎㗎嘞畀瞓諗谂掂冚佮啱嗌踎揾搵"
_KANA_SHARE = 0.08  # of Han and kana; Japanese has about 0.5, a Chinese text about Japan only a few names
_HANGUL_SHARE = 0.2
_CANTONESE_SHARE = 0.01


@cache
def _sets() -> dict[str, UInt32s]:
    table = read_package_data(__package__, "chinese_characters.json", dict[str, str]) | {"cantonese": _CANTONESE}
    return {name: code_points(characters) for name, characters in table.items()}


def _count(letters: UInt32s, name: str) -> int:
    return int(np.isin(letters, _sets()[name], kind="table").sum())  # seven times as fast as the default


def chinese_or_japanese(letters: UInt32s) -> tuple[str, float]:
    """Tag and confidence (0 to 1) of a text, from its letters, which are mostly Han, kana, hangul or bopomofo."""
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
        return "zh-Hans", 0.5  # undecided: CLDR's likely script
    share = (max(simplified, traditional) + 0.5) / (total + 1)
    return ("zh-Hans" if simplified >= traditional else "zh-Hant"), 0.97 * share


_SAMPLE = 600  # code points of the text that are used; more did not help on our data
_MIN_LETTERS = 3
_MIN_CONFIDENCE = 0.3
# Weight of a letter, relative to alphabets.
_IDEOGRAPHIC = {"Hani": 2.5, "Hira": 2.0, "Kana": 1.5, "Hang": 2.0, "Bopo": 2.0}
_EAST_ASIAN = frozenset(_IDEOGRAPHIC)
_WORD_WEIGHT = 3.0  # likelihood ratio of one frequent word of a language
_MAX_WORDS = 6
_TOKEN = re.compile(r"[\w\u0591-\u05bd\u0900-\u0963\u0f71-\u0fbc]+")  # with vowel signs, which `\w` does not match
_CACHED_TOKENS = 1 << 16  # a few megabytes; frequent words are most of the look-ups
_SHORT = 80  # letters; on shorter texts the model is underconfident, as measured on our data


@dataclass(frozen=True)
class Identified:
    """The language of a text.

    Attributes:
        tag: a tag of the language table.
        confidence: probability that the tag is right, 0 to 1; lower if parts of the text are in other scripts.
        script: ISO 15924 code of the script of most letters.
    """

    tag: str
    confidence: float
    script: str


class _Knowledge(msgspec.Struct, frozen=True):
    one_language: dict[str, str]
    model_labels: dict[str, str]
    tags: dict[str, str]
    rare: dict[str, dict[str, float]]
    letters: dict[str, dict[str, str]]
    own_words: dict[str, dict[str, str]]
    words: list[dict[str, str]]


@cache
def _knowledge() -> _Knowledge:
    return read_package_data(__package__, "identification.json", _Knowledge)


class _Words:
    """A list of words and stems."""

    def __init__(self, listed: frozenset[str]) -> None:
        self._words = frozenset(word for word in listed if not word.endswith("*"))
        self._stems = frozenset(word[:-1] for word in listed if word.endswith("*"))
        self._lengths = sorted({len(stem) for stem in self._stems})

    def hits(self, tokens: list[str]) -> int:
        """Number of tokens that are on the list or begin with one of its stems."""
        return sum(
            token in self._words or any(token[:length] in self._stems for length in self._lengths) for token in tokens
        )


@cache
def _word_groups() -> list[dict[str, _Words]]:
    """The words of each group of languages, without those that all of its languages share."""
    groups = []
    for group in _knowledge().words:
        lists = {label: frozenset(words.split()) for label, words in group.items()}
        shared = frozenset.intersection(*lists.values())
        groups.append({label: _Words(words - shared) for label, words in lists.items()})
    return groups


@lru_cache(_CACHED_TOKENS)
def _groups_with(token: str) -> tuple[tuple[int, str], ...]:
    """The lists of frequent words with the token, as (index of the group, label of the language)."""
    groups = enumerate(_word_groups())
    return tuple((number, label) for number, group in groups for label, words in group.items() if words.hits([token]))


@cache
def _own_words(script: str) -> dict[str, _Words]:
    own = _knowledge().own_words.get(script, {})
    return {tag: _Words(frozenset(words.split())) for tag, words in own.items()}


@cache
def _model() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def identify(text: str) -> Identified | None:
    """The language of a text, or None if it is unknown: too short, no letters, or too low a confidence.

    There is no default such as English. A language outside of the tables is often identified as its nearest relative,
    with a low confidence.
    """
    sample = _sample(text)
    codes = code_points(sample)
    letters = codes[kind_table()[codes] & Kind.LETTER != 0]
    script, share = _main_script(letters)
    if script is None:
        return None
    if script in _EAST_ASIAN:
        tag, confidence = chinese_or_japanese(letters)
    else:
        tag, confidence = _alphabetic(sample, letters, script)
    confidence *= share
    return Identified(tag, confidence, script) if tag and confidence >= _MIN_CONFIDENCE else None


def _sample(text: str) -> str:
    """The text, or the beginning and the middle of a long one."""
    if len(text) <= _SAMPLE:
        return text
    half = _SAMPLE // 2
    middle = max(half, len(text) // 2)
    return f"{text[:half]} {text[middle : middle + half]}"


def _main_script(letters: UInt32s) -> tuple[str | None, float]:
    """The script with the highest weight of letters, and its share; East Asian scripts count as one."""
    counts = np.bincount(script_table()[letters], minlength=3)
    counts[:3] = 0
    names = script_names()
    weights = {names[i]: float(counts[i]) * _IDEOGRAPHIC.get(names[i], 1.0) for i in np.flatnonzero(counts).tolist()}
    east = sum(weights.pop(name, 0.0) for name in _EAST_ASIAN)
    if east:
        weights["Hani"] = east
    if not weights:
        return None, 0.0
    script = max(weights, key=weights.__getitem__)
    enough = weights[script] >= _MIN_LETTERS
    return (script if enough else None), weights[script] / sum(weights.values())


def _alphabetic(sample: str, letters: UInt32s, script: str) -> tuple[str, float]:
    """Tag and confidence for a script that is not East Asian; an empty tag if unknown."""
    known = _knowledge()
    tag, confidence = _by_letters(letters, script)
    if tag:
        return tag, confidence
    for tag, words in _own_words(script).items():
        tokens = _TOKEN.findall(sample.lower())
        if words.hits(tokens) > max(1, len(tokens) / 20):
            return tag, 0.95
    if script in known.one_language:
        return known.one_language[script], 0.97 if letters.size > 2 * _MIN_LETTERS else 0.9
    if script not in known.model_labels:
        return "", 0.0
    label, confidence = _by_model(sample, script)
    if letters.size < _SHORT:
        confidence **= 0.7
    if label == "sr":
        return f"sr-{script}", confidence
    return known.tags.get(label, label), confidence


def _by_letters(letters: UInt32s, script: str) -> tuple[str, float]:
    """The language of most unique letters, if over half of all unique ones and 1% of the text; else an empty tag."""
    own = _knowledge().letters.get(script, {})
    counts = {tag: int(np.isin(letters, code_points(chars)).sum()) for tag, chars in own.items()}
    tag = max(counts, key=counts.__getitem__, default="")
    if not tag or not counts[tag] or counts[tag] < letters.size / 100 or 2 * counts[tag] <= sum(counts.values()):
        return "", 0.0
    return tag, 0.97 if counts[tag] > 1 else 0.8


def _by_model(sample: str, script: str) -> tuple[str, float]:
    """The most probable label among those of the script, and its probability."""
    known = _knowledge()
    allowed = known.model_labels[script].split()
    scores = dict(_model().rank(sample))
    factors = known.rare.get(script, {})
    weights = {label: float(scores[label]) * factors.get(label, 1.0) for label in allowed}
    hits_by_list = Counter(key for token in _TOKEN.findall(sample.lower()) for key in _groups_with(token))
    for number, group in enumerate(_word_groups()):
        hits = {label: hits_by_list[number, label] for label in group if label in weights}
        inside = sum(weights[label] for label in hits)
        if not any(hits.values()) or inside < 0.2 * sum(weights.values()):
            continue
        most = max(hits.values())
        raised = {label: weights[label] * _WORD_WEIGHT ** -min(most - hits[label], _MAX_WORDS) for label in hits}
        scale = inside / (sum(raised.values()) or 1.0)
        weights.update({label: weight * scale for label, weight in raised.items()})
    best = max(weights, key=weights.__getitem__)
    return best, weights[best] / (sum(weights.values()) or 1.0)

"""Write the stop words of `veriglot.scorers`: `python tools/build_stop_words.py`.

It needs `spacy` 3.8 and `stopwordsiso` 0.7, both under the MIT License, which Veriglot itself does not need for this.
spaCy's lists come first, since those of Stopwords ISO hold more that is no function word; some are taken the other
way round, see below. What both have wrong, or neither has, was written for Veriglot (`stop_words_authored.json`): the
Urdu of both is garbled, and Sindhi and Cantonese have none.

Left out: what holds a digit or has a value, what our segmentation cuts into several words, since it can meet no word,
and lists that are no use (Malayalam's nine words).
"""

from __future__ import annotations

import json
import pkgutil
from importlib import import_module
from pathlib import Path
from typing import Any

from veriglot.scorers.rouge import tokens

_DATA = Path(__file__).parents[1] / "src" / "veriglot" / "scorers"
# spaCy's Vietnamese is joined by underscores, its Korean are stems, its Chinese and Thai go far beyond function words.
_FROM_ISO = frozenset({"vi", "zh", "th", "ko"})
_UNUSABLE = frozenset({"ml", "ur", "hsb", "dsb"})
_NAMES = {"ku": "ckb", "nb": "no", "kmr": "ku"}  # the `ku` of Stopwords ISO is Sorani
_LIKE = {"bs": "hr", "nn": "no"}
_LATIN = [*"abvgdđežzijkl", "lj", "m", "n", "nj", *"oprstćufhcč", "dž", "š"]
_SERBIAN = dict(zip("абвгдђежзијклљмнњопрстћуфхцчџш", _LATIN, strict=True))


def _spacy_lists() -> dict[str, set[str]]:
    lists: dict[str, set[str]] = {}
    for module in pkgutil.iter_modules(import_module("spacy.lang").__path__):
        try:
            lists[module.name] = set(import_module(f"spacy.lang.{module.name}.stop_words").STOP_WORDS)
        except ModuleNotFoundError:
            continue
    return lists


def _iso_lists() -> dict[str, set[str]]:
    iso: Any = import_module("stopwordsiso")
    return {tag: set(iso.stopwords(tag)) for tag in iso.langs()}


def _single_tokens(words: set[str], tag: str) -> set[str]:
    single = {cut[0] for word in words if len(cut := tokens(word, tag)) == 1}
    return {word for word in single if not any(char.isnumeric() for char in word)}


def main() -> None:
    """Write `stop_words.json`: language to its words in the form of `tokens`, sorted and parted by spaces."""
    spacy, iso = _spacy_lists(), _iso_lists()
    raw = {tag: words for tag, words in iso.items() if _NAMES.get(tag, tag) not in spacy or tag in _FROM_ISO}
    raw |= {tag: words for tag, words in spacy.items() if tag not in _FROM_ISO}
    table = {_NAMES.get(tag, tag): words for tag, words in raw.items() if tag not in _UNUSABLE}
    table |= {
        tag: set(words.split())
        for tag, words in json.loads((_DATA / "stop_words_authored.json").read_text("utf-8")).items()
    }
    table |= {tag: table[other] for tag, other in _LIKE.items()}
    table["sr-Latn"] = {"".join(_SERBIAN.get(char, char) for char in word.lower()) for word in table["sr"]}
    rows = (
        f"{json.dumps(tag)}: {json.dumps(' '.join(sorted(_single_tokens(words, tag))), ensure_ascii=False)}"
        for tag, words in sorted(table.items())
    )
    (_DATA / "stop_words.json").write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()

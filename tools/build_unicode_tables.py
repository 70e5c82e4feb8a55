"""Write the Unicode tables of `veriglot.text`: `python tools/build_unicode_tables.py`.

It needs two packages that Veriglot itself does not: `regex` (properties of the Unicode version it carries) and
`opencc` (traditional to simplified Chinese, one character each, from OpenCC, Apache-2.0). Run it when Unicode moves.
"""

from __future__ import annotations

import json
import sys
import unicodedata
from importlib import import_module
from pathlib import Path
from typing import Any

from veriglot.text.normalization import letter_forms
from veriglot.text.unicode import Kind

_DATA = Path(__file__).parents[1] / "src" / "veriglot" / "text"
_LAST = sys.maxunicode + 1
_SURROGATES = range(0xD800, 0xE000)

# Symbols that stand for written words or numbers (squared units, era names): words where letters-like is meant.
_SQUARED_WORDS = (range(0x3200, 0x3400), range(0x1F100, 0x1F1AD), range(0x1F200, 0x1F266))

_KINDS = {
    Kind.LETTER: r"[\p{L}\p{Nl}]",
    Kind.DIGIT: r"[\p{Nd}\p{No}]",
    Kind.MARK: r"[\p{M}\u200c\u200d]",
    Kind.EDGE: r"[[\p{Cf}\p{Pc}]--[\u200c\u200d]]",
    Kind.SPACE: r"\p{White_Space}",
    Kind.UPPER: r"[\p{Lu}\p{Lt}]",
    Kind.LOWER: r"\p{Ll}",
    Kind.RTL: r"[\p{bc=R}\p{bc=AL}]",
}


def _members(regex: Any, everything: str, pattern: str) -> list[int]:
    return [ord(c) for c in regex.findall(pattern, everything, flags=regex.V1)]


def _ranges(regex: Any) -> dict[str, Any]:
    everything = "".join(chr(c) for c in range(_LAST) if c not in _SURROGATES)
    kind = [0] * _LAST
    for flag, pattern in _KINDS.items():
        for code in _members(regex, everything, pattern):
            kind[code] |= flag
    for block in _SQUARED_WORDS:
        for code in block:
            plain = unicodedata.normalize("NFKC", chr(code))
            if plain != chr(code) and any(c.isalnum() for c in plain):
                kind[code] |= Kind.LETTER
    values: dict[str, int] = regex._regex_core.PROPERTIES["SCRIPT"][1]
    iso_of = {number: name.title() for name, number in values.items() if len(name) == 4 and name[:3] != "QAA"}
    codes = ["Zzzz", "Zyyy", "Zinh"]
    script = [0] * _LAST
    for _, iso in sorted(iso_of.items()):
        if iso not in codes:
            codes.append(iso)
        if iso != "Zzzz":
            for code in _members(regex, everything, rf"\p{{sc={iso}}}"):
                script[code] = codes.index(iso)
    starts = [c for c in range(_LAST) if c == 0 or (kind[c], script[c]) != (kind[c - 1], script[c - 1])]
    return {
        "about": "Runs of code points of one kind and script: starts, then the kind and the script of each run.",
        "scripts": codes,
        "starts": starts,
        "kind": [kind[c] for c in starts],
        "script": [script[c] for c in starts],
    }


def _folded(char: str, same: dict[str, str], simplified: dict[str, str]) -> str:
    """`char` in its folded form where that is one code point, else `char`."""
    if unicodedata.category(char) in ("Nd", "No"):
        value = unicodedata.digit(char, None)
        if value is not None:
            return str(value)
    char = same.get(char, char)
    plain = unicodedata.normalize("NFKC", char).casefold()
    if len(plain) != 1:
        plain = char.lower() if len(char.lower()) == 1 else char
    return simplified.get(plain, same.get(plain, plain))


def _simplified(convert: Any) -> dict[str, str]:
    """Traditional characters with exactly one simplified character."""
    blocks = (range(0x3400, 0xA000), range(0x20000, 0x2A6E0))
    pairs = {chr(c): convert(chr(c)) for block in blocks for c in block}
    return {source: target for source, target in pairs.items() if target != source and len(target) == 1}


def _pairs(simplified: dict[str, str]) -> dict[str, Any]:
    same = letter_forms()
    table = {c: _folded(c, same, simplified) for c in map(chr, range(_LAST)) if ord(c) not in _SURROGATES}
    for char, plain in list(table.items()):  # one pass must be enough: folding twice changes nothing
        while table[plain] != plain:
            plain = table[plain]
        table[char] = plain
    changed = {c: plain for c, plain in table.items() if c != plain}
    return {
        "about": "fold: each code point of `from` becomes the one at the same place in `to`.",
        "from": "".join(changed),
        "to": "".join(changed.values()),
    }


def _dictionary(path: Path) -> dict[str, set[str]]:
    lines = path.read_text("utf-8").splitlines()
    return {key: set(values.split()) for key, _, values in (line.partition("\t") for line in lines) if len(key) == 1}


def _chinese(folder: Path) -> dict[str, Any]:
    """Characters that only simplified Chinese, only traditional Chinese, or only Japanese uses."""
    to_traditional = _dictionary(folder / "STCharacters.txt")
    to_simplified = _dictionary(folder / "TSCharacters.txt")
    japanese = set().union(*_dictionary(folder / "JPVariants.txt").values())
    simplified = {char for char, forms in to_traditional.items() if char not in forms}
    traditional = {char for char, forms in to_simplified.items() if char not in forms}
    every = simplified | traditional | set().union(*to_traditional.values(), *to_simplified.values())
    return {
        "about": "From OpenCC (Apache-2.0): characters that only one way of writing uses.",
        "simplified": "".join(sorted(simplified - traditional - japanese)),
        "traditional": "".join(sorted(traditional - simplified - japanese)),
        "japanese": "".join(sorted(japanese - every)),
    }


def main() -> None:
    """Write `unicode_ranges.json`, `fold_pairs.json` and `chinese_characters.json`."""
    opencc: Any = import_module("opencc")
    simplified = _simplified(opencc.OpenCC("t2s").convert)
    tables = {
        "unicode_ranges.json": _ranges(import_module("regex")),
        "fold_pairs.json": _pairs(simplified),
        "chinese_characters.json": _chinese(Path(opencc.__file__).parent / "dictionary"),
    }
    for name, table in tables.items():
        lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in table.items()]
        (_DATA / name).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

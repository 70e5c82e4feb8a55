"""Whether a translation is one: in the right language and script, whole, of a plausible length, not in a loop."""

from __future__ import annotations

from typing import Literal

from veriglot.build.prompts import known_language
from veriglot.build.quality import same_language
from veriglot.build.repetition import is_repetitive
from veriglot.formats.garbled import garbled
from veriglot.text import fold, identify, script_shares, words

__all__ = ["Insane", "insanity"]

Insane = Literal[
    "no_text", "untranslated", "wrong_script", "wrong_language", "loops", "garbled", "too_short", "too_long"
]

_SCRIPTS = {"Jpan": {"Hira", "Kana", "Hani"}, "Kore": {"Hang", "Hani"}, "Hans": {"Hani"}, "Hant": {"Hani"}}
_MOST_FOREIGN = 0.5  # share of the letters in other scripts: names and formulas stand in every text
_LONG = 60  # letters from which a language can be told
_LONG_DENSE = 25
_DENSE = {"Jpan", "Kore", "Hans", "Hant", "Thai", "Laoo", "Khmr", "Mymr"}  # a code point says more, or spaces are few
_WEIGHT = {"Jpan": 2.2, "Hans": 3.0, "Hant": 3.0, "Kore": 2.0}  # code points of an alphabet that one of these is
_SURE = 0.9
_RATIO = 3.5  # times as long, or as short, in code points of an alphabet
_SLACK = 24
_FEW = 4  # words: a name may be the same in both languages
_NEIGHBOURS = (
    {"id", "ms"}, {"hr", "bs", "sr"}, {"no", "nn", "da"}, {"cs", "sk"}, {"gl", "pt", "es"},
    {"hi", "mr", "ne", "mai", "bho"}, {"fa", "tg"}, {"bg", "mk"},
    {"zh", "yue", "wuu", "ja"}, {"zu", "xh"}, {"rw", "rn"},
)  # fmt: skip


def insanity(source: str, translation: str, source_tag: str, target_tag: str) -> tuple[Insane, str] | None:
    """What speaks against a translation, and the same in words; None where nothing does.

    A heuristic, and wide on purpose: it tells what is no translation from what may be one, not good from bad.

    Args:
        source: the text.
        translation: of it, without markers.
        source_tag, target_tag: BCP 47 tags.
    """
    if not any(char.isalnum() for char in translation):
        return ("no_text", "there is no word in it")
    if fold(source).split() == fold(translation).split() and len(words(source, source_tag)) > _FEW:
        if not same_language(source_tag, target_tag):
            return ("untranslated", "it is the text itself")
        return None
    broken = garbled(translation)
    if broken is not None and garbled(source) is None:
        return ("loops" if broken == "looping" else "garbled", broken.replace("_", " "))
    if _repeats(translation, target_tag) and not _repeats(source, source_tag):
        return ("loops", "it says the same over and over")
    return _wrong_tongue(translation, target_tag, source) or _wrong_length(source, translation, source_tag, target_tag)


def _repeats(text: str, tag: str) -> bool:
    folded = fold(text)
    return is_repetitive([folded[start:end] for start, end in words(folded, tag)], text)


def _wrong_tongue(text: str, tag: str, source: str) -> tuple[Insane, str] | None:
    entry = known_language(tag)
    if entry is None:
        return None
    shares = script_shares(text)
    own = _SCRIPTS.get(entry.script, {entry.script})
    letters = sum(char.isalpha() for char in text)
    foreign = sum(share for script, share in shares.items() if script not in own)
    of_source = sum(share for script, share in script_shares(source).items() if script not in own)
    if shares and foreign > _MOST_FOREIGN and (letters >= _SLACK or of_source <= _MOST_FOREIGN):
        return ("wrong_script", f"{foreign:.0%} of its letters are not in the script of {entry.name}")
    if letters < (_LONG_DENSE if entry.script in _DENSE else _LONG):
        return None
    found = identify(text)
    if found is None or found.confidence < _SURE or same_language(found.tag, tag):
        return None
    bases = {found.tag.partition("-")[0], entry.base}
    if any(bases <= group for group in _NEIGHBOURS):
        return None
    return ("wrong_language", f"it is in {found.tag}, not in {entry.tag}")


def _wrong_length(source: str, text: str, source_tag: str, target_tag: str) -> tuple[Insane, str] | None:
    before, after = _size(source, source_tag), _size(text, target_tag)
    if after > _RATIO * before + _SLACK:
        return ("too_long", f"{len(text)} code points for {len(source)}")
    if before > _RATIO * after + _SLACK:
        return ("too_short", f"{len(text)} code points for {len(source)}")
    return None


def _size(text: str, tag: str) -> float:
    entry = known_language(tag)
    return len(text.strip()) * (_WEIGHT.get(entry.script, 1.0) if entry is not None else 1.0)

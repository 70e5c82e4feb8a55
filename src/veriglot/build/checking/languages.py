"""Whether a text is in the language and the script that it says."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from veriglot.build.checking.faults import Fault
from veriglot.build.checking.index import plain
from veriglot.errors import UnknownNameError
from veriglot.formats.garbled import garbled
from veriglot.records import Task
from veriglot.records.languages import language
from veriglot.text import identify, script_shares

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.records import Sample
    from veriglot.text import Identified

__all__ = ["LanguageCheck", "TextFacts"]

_WRITTEN_IN = {
    "Hans": {"Hani"}, "Hant": {"Hani"}, "Jpan": {"Hira", "Kana", "Hani"}, "Kore": {"Hang", "Hani"},
}  # fmt: skip
_MOST = 0.6  # share of the letters from which a text is in a script
_FEWEST_LETTERS = 24
_SURE = 0.9
_NEIGHBOURS = (  # what identification takes for one another
    {"id", "ms"}, {"hr", "bs", "sr"}, {"nb", "nn", "no", "da"}, {"cs", "sk"}, {"gl", "pt", "es"}, {"hi", "mr", "ne"},
    {"fa", "prs", "tg"}, {"bg", "mk"},
)  # fmt: skip
_OWN = 0.1  # share of the letters from which the script of its language makes a text one of it
_FOREIGN = 0.25  # share of the letters from which a reference is as much in the script of the response as in its own
_SHORTEST_LOOP = 64  # letters of a response; less is emphasis or a stock phrase
_SHORTEST_GARBLED = 150  # letters of a reference: titles, headings and lists repeat themselves too
_DENSE_LETTER = 2.5  # what a letter counts that is a syllable or a word
_NO_LETTERS = re.compile(r"[\W_]+")
_REMEMBERED = 1 << 16
_LOOKED_AT = 4000  # code points


class TextFacts(NamedTuple):
    """What is known of one text.

    Attributes:
        letters: how many letters it has, of what was looked at.
        script: the ISO 15924 code that most of them are of, or None.
        shares: of each script among the letters, 0 to 1.
        identified: its language, or None.
    """

    letters: int
    script: str | None
    shares: dict[str, float]
    identified: Identified | None


class LanguageCheck:
    """Holds texts against what they say; texts that come again are looked at once."""

    def __init__(self) -> None:
        self._known: dict[int, TextFacts] = {}

    def facts(self, text: str) -> TextFacts:
        """What is known of a response or a passage."""
        key = hash(text)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            found = self._known[key] = _facts(text)
        return found

    def faults(self, sample: Sample) -> Iterator[Fault]:
        """Script and language of the response and of its evidence, and garbled evidence."""
        response = self.facts(sample.response)
        if _broken(sample.response) == "looping":
            yield Fault("looping_response", "it goes round in circles", text=sample.response)
        tag = sample.language
        wrong = None if tag is None else _misfit(tag, response)
        if wrong is not None and not self._quoted(sample):
            detail = f"it says {tag} and is in {wrong[1]}"
            yield Fault(f"wrong_{wrong[0]}", detail, f"{tag}: {wrong[1]}", sample.response)
        whole = "\n".join(passage.text for passage in sample.evidence)
        broken = garbled_in(whole)
        if broken is not None:
            yield Fault("garbled_reference", broken.replace("_", " "), broken, whole)
            return
        for tag, text in _by_tag(sample):
            yield from self._evidence_faults(sample, tag, text, response if wrong is None else None)

    def _quoted(self, sample: Sample) -> bool:
        """Whether the response stands in evidence that is in the language it says, as names and titles do."""
        if sample.task is Task.TRANSLATION:
            return False
        said = plain(sample.response)
        return any(
            said in plain(passage.text)
            and _misfit(passage.language or sample.language or "", self.facts(passage.text)) is None
            for passage in sample.evidence
        )

    def _evidence_faults(self, sample: Sample, tag: str, text: str, response: TextFacts | None) -> Iterator[Fault]:
        known = self.facts(text)
        same = sample.language is not None and _base(tag) == _base(sample.language)
        own = response.script if response is not None else None
        apart = own and known.script and _apart(own, known.script)
        if same and own and apart and known.shares.get(own, 0.0) < _FOREIGN:
            yield Fault("reference_script", f"the response is in {own}, the reference in {known.script}",
                        f"{own}/{known.script}", text)  # fmt: skip
        wrong = _misfit(tag, known)
        if (wrong is not None and wrong[0] == "language") or (wrong is not None and not same):
            yield Fault("reference_language", f"it says {tag} and is in {wrong[1]}", f"{tag}: {wrong[1]}", text)


@lru_cache(maxsize=4096)
def garbled_in(text: str) -> str | None:
    """Why the evidence of a row is unusable, `looping` or `unknown_characters`; None where it looks sound."""
    why = _broken(text)
    if why != "looping":
        return why
    dense = sum("\u2e80" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7a3" for char in text)
    letters = len(_NO_LETTERS.sub(" ", text)) + (_DENSE_LETTER - 1) * dense
    return why if letters >= _SHORTEST_GARBLED else None


def _by_tag(sample: Sample) -> Iterator[tuple[str, str]]:
    """The beginnings of the passages, those that say one language together; what says none is left out."""
    if not sample.evidence:
        return
    assumed = None if sample.task is Task.TRANSLATION else sample.language
    share = max(_FEWEST_LETTERS * 4, _LOOKED_AT // len(sample.evidence))
    parts: dict[str, list[str]] = {}
    for passage in sample.evidence:
        tag = passage.language or assumed
        if tag is not None:
            parts.setdefault(tag, []).append(passage.text[:share])
    for tag, texts in parts.items():
        yield tag, "\n".join(texts)


def _facts(text: str) -> TextFacts:
    part = text if len(text) <= _LOOKED_AT else text[:_LOOKED_AT]
    letters = sum(map(str.isalpha, part))
    if letters < _FEWEST_LETTERS:
        return TextFacts(letters, None, {}, None)
    shares = script_shares(part)
    script, share = next(iter(shares.items()), (None, 0.0))
    return TextFacts(letters, script if share >= _MOST else None, shares, identify(text))


def _broken(text: str) -> str | None:
    """As `garbled`, but rows of exclamation marks and a phrase that is said thrice are no loop."""
    why = garbled(text)
    if why != "looping":
        return why
    letters = _NO_LETTERS.sub(" ", text)
    return why if len(letters) >= _SHORTEST_LOOP and garbled(letters) == "looping" else None


def _misfit(tag: str, known: TextFacts) -> tuple[str, str] | None:
    """`script` or `language`, and what the text is in instead; None where it fits or cannot be told."""
    if known.script is None:
        return None
    try:
        expected = language(tag)
    except UnknownNameError:
        return None
    own = _WRITTEN_IN.get(expected.script, {expected.script})
    if known.script not in own:
        return ("script", known.script) if sum(known.shares.get(one, 0.0) for one in own) < _OWN else None
    found = known.identified
    if found is None or found.confidence < _SURE or _base(found.tag) == expected.base:
        return None
    pair = {_base(found.tag), expected.base}
    return None if any(pair <= group for group in _NEIGHBOURS) else ("language", found.tag)


def _apart(first: str, second: str) -> bool:
    """Whether two scripts are not parts of one way of writing."""
    return first != second and not any({first, second} <= scripts for scripts in _WRITTEN_IN.values())


def _base(tag: str) -> str:
    try:
        return language(tag).base
    except UnknownNameError:
        return tag.partition("-")[0]

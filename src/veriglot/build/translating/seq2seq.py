"""What translation models of every make have in common: languages told in their own codes, and texts that fit."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

from veriglot.build.translating.translator import Translated
from veriglot.records.languages import language
from veriglot.records.translation_codes import FAMILIES, code_of, tags_of
from veriglot.text import words
from veriglot.text.spacing import space_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.build.translating.translator import Wanted
    from veriglot.records.translation_codes import Family

__all__ = ["Output", "SequenceTranslator", "Tongue"]

_BREAK = re.compile(r"[,;:،؛、，；：—–]\s*")


class Output(NamedTuple):
    """What a model gave: token ids without special ones at the front, and whether it ended by itself."""

    ids: list[int]
    ended: bool


class Tongue:
    """How a tokenizer is told the languages.

    Args:
        tokenizer: of transformers.
        prefix: stands before every text; `{source}` and `{target}` are the languages' English names.
        codes: the model's own codes by tag, over those of the table.
    """

    def __init__(self, tokenizer: Any, *, prefix: str = "", codes: dict[str, str] | None = None) -> None:
        self.tokenizer = tokenizer
        self._prefix = prefix
        self._codes = codes or {}
        self.family = _family(tokenizer)
        self._vocabulary = _tokens(tokenizer)
        known = [code_of(tag, self.family) for tag in tags_of(self.family)] if self.family else []
        self._languages = {self.token(code) for code in known if code is not None}  # never part of a text
        marian = getattr(tokenizer, "supported_language_codes", None) or []
        self._marian = {re.sub(r"[<>]", "", code): code for code in marian}

    def code(self, tag: str) -> str | None:
        """What the model calls a language; None where it does not have it, or is not told."""
        if tag in self._codes:
            return self._codes[tag]
        if self.family is not None:
            found = code_of(tag, self.family)
            return found if found is not None and self.token(found) is not None else None
        if self._marian:
            entry = language(tag)
            known = [f"{alias}_{entry.script}" for alias in (*entry.aliases, entry.base)]
            return next((c for c in (entry.base, *entry.aliases, *known) if c in self._marian), None)
        return None

    def token(self, code: str) -> int | None:
        """The id of the token that stands for a language."""
        name = f"__{code}__" if self.family == "m2m100" else code
        return self._vocabulary.get(name)

    def unsupported(self, wanted: Wanted) -> str | None:
        """Which language of a pair the model does not have; None where it has both, or is made for one pair."""
        if self.family is not None:
            return next((tag for tag in (wanted.source, wanted.target) if self.code(tag) is None), None)
        if self._marian and self.code(wanted.target) is None:
            return wanted.target
        return None

    def encode(self, text: str, wanted: Wanted) -> list[int]:
        """Token ids of a text, with all that tells the languages; never cut."""
        if self.family is not None:
            self.tokenizer.src_lang = self.code(wanted.source)
        elif self._marian:
            text = f"{self._marian[self.code(wanted.target) or '']} {text}"
        if self._prefix:
            names = {"source": language(wanted.source).name, "target": language(wanted.target).name}
            text = self._prefix.format(**names) + text
        return list(self.tokenizer(text, truncation=False, verbose=False)["input_ids"])

    def forced(self, wanted: Wanted) -> int | None:
        """The token that a translation has to begin with."""
        code = self.code(wanted.target) if self.family is not None else None
        return self.token(code) if code is not None else None

    def decode(self, ids: Sequence[int]) -> str:
        """The text of a translation."""
        said = [token for token in ids if token not in self._languages]
        text: str = self.tokenizer.decode(said, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text.strip()


def _tokens(tokenizer: Any) -> dict[str, int]:
    """Every token with its id; some tokenizers keep those of the languages apart."""
    apart = (getattr(tokenizer, name, None) or {} for name in ("lang_code_to_id", "lang_token_to_id"))
    found: dict[str, int] = {**tokenizer.get_vocab(), **tokenizer.added_tokens_encoder}
    for table in apart:
        found.update(table)
    return found


def _family(tokenizer: Any) -> Family | None:
    """Whose language codes a tokenizer has."""
    vocabulary = _tokens(tokenizer)
    if not hasattr(tokenizer, "src_lang"):
        return None
    for family, shape in zip(FAMILIES, ("{}", "__{}__", "{}"), strict=True):
        known = [code_of(tag, family) for tag in ("en", "de", "fr", "zh", "ar", "ru", "es")]
        if any(shape.format(code) in vocabulary for code in known if code):
            return family
    return None


class SequenceTranslator(ABC):
    """A model that maps a sequence to a sequence, sentence by sentence.

    A sentence that is longer than the model takes is parted at its commas and the like, and if need be between words:
    nothing is cut. A translation that does not end by itself is `cut`.

    Args:
        tongue: the tokenizer.
        room: tokens that the model takes, special ones included; None for any number.
    """

    by_sentence = True
    varies = False
    signature = ""

    def __init__(self, tongue: Tongue, room: int | None) -> None:
        self._tongue = tongue
        self._room = room

    def translate(self, wanted: Sequence[Wanted]) -> list[Translated]:
        """As `Translator`."""
        parted: list[list[str]] = []
        rows: list[tuple[list[int], int | None]] = []
        refused: dict[int, str] = {}
        for number, one in enumerate(wanted):
            missing = self._tongue.unsupported(one)
            if missing is not None:
                refused[number] = missing
                parted.append([])
                continue
            parts = self._fitting(one.text, one)
            parted.append(parts)
            rows += [(self._tongue.encode(part, one), self._tongue.forced(one)) for part in parts]
        outputs = iter(self.run(rows))
        found = []
        for number, (one, parts) in enumerate(zip(wanted, parted, strict=True)):
            own = [next(outputs) for _ in parts]
            if number in refused:
                detail = f"the model has no {refused[number]}"
                found.append(Translated("", "unsupported_language", detail))
            else:
                found.append(self._joined(own, one))
        return found

    @abstractmethod
    def run(self, rows: Sequence[tuple[list[int], int | None]]) -> list[Output]:
        """Translate rows of token ids, each with the token that its translation begins with, in order."""

    def most_new(self, length: int) -> int:
        """Tokens that a translation of so many may have: twice as many and some, and no more than the model has."""
        most = 2 * length + 32
        return most if self._room is None else min(most, self._room)

    def _joined(self, outputs: Sequence[Output], wanted: Wanted) -> Translated:
        text = space_of(wanted.target).join(self._tongue.decode(output.ids) for output in outputs)
        if not all(output.ended for output in outputs):
            return Translated(text, "cut", "the translation did not end within the model's length")
        return Translated(text, None if text.strip() else "no_text", "" if text.strip() else "nothing came back")

    def _fitting(self, text: str, wanted: Wanted) -> list[str]:
        """The text in as few pieces as fit."""
        if self._room is None or len(self._tongue.encode(text, wanted)) <= self._room:
            return [text]
        cut = _middle(text, [found.end() for found in _BREAK.finditer(text)])
        if cut is None:
            cut = _middle(text, [start for start, _ in words(text, wanted.source)])
        cut = cut if cut is not None else len(text) // 2
        halves = (text[:cut].strip(), text[cut:].strip())
        if len(text) < 2 or not all(halves):
            return [text]
        return [part for half in halves for part in self._fitting(half, wanted)]


def _middle(text: str, places: Sequence[int]) -> int | None:
    """The place that is nearest to the middle, and not at either end."""
    inner = [place for place in places if text[:place].strip() and text[place:].strip()]
    return min(inner, key=lambda place: abs(place - len(text) / 2), default=None)

"""What a translator is: texts in, translations out, each with whatever went wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["FunctionTranslator", "Translated", "Translator", "Unfit", "Wanted"]

Unfit = Literal["no_text", "refused", "held_back", "cut", "unsupported_language", "no_reply"]


class Wanted(msgspec.Struct, frozen=True):
    """A text to translate.

    Attributes:
        text: never empty.
        source, target: BCP 47 tags.
        marked: whether it holds markers such as `<1>` and `</1>` that have to come back.
        attempt: which try it is, from 1; a translator that draws at random gives another translation to another one.
    """

    text: str
    source: str
    target: str
    marked: bool = False
    attempt: int = 1


class Translated(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a text.

    Attributes:
        text: the translation; whatever came back where it cannot be used.
        unfit: why it cannot be used, or None: `no_text` (nothing came back), `refused` (the model declines),
            `held_back` (by its provider), `cut` (at its length), `unsupported_language`, `no_reply` (the call failed; a
            later run may try again).
        detail: the same in words.
        calls, tokens_in, tokens_out: what it cost, where it costs anything.
    """

    text: str
    unfit: Unfit | None = None
    detail: str = ""
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


class Translator(Protocol):
    """Translates texts. A class of one's own with these four is a translator too.

    Attributes:
        signature: one line that says what translates, without anything secret. A run that was stopped goes on only
            with the same one.
        by_sentence: whether it wants sentences; others are given whole texts. What is longer than it takes it has to
            part itself, or to say `cut`.
        varies: whether another attempt may give another translation.
    """

    signature: str
    by_sentence: bool
    varies: bool

    def translate(self, wanted: Sequence[Wanted]) -> Sequence[Translated]:
        """One translation per text, in order.

        Args:
            wanted: any number, of any pairs of languages.

        Raises:
            VeriglotError: what every further text would meet too, such as a spending limit.
        """
        ...


class FunctionTranslator:
    """A function of text, source and target as a translator.

    Args:
        function: gives the translation of one text; the tags are BCP 47. Empty text means that there is none.
        name: what tells it apart from another function; raise its version with every change.
        by_sentence: as `Translator`.
    """

    varies = False

    def __init__(self, function: Callable[[str, str, str], str], name: str, *, by_sentence: bool = True) -> None:
        from veriglot.provenance import signature

        self._function = function
        self.by_sentence = by_sentence
        self.signature = signature(translator="function", name=name)

    def translate(self, wanted: Sequence[Wanted]) -> list[Translated]:
        """As `Translator`."""
        found = []
        for one in wanted:
            text = self._function(one.text, one.source, one.target)
            found.append(Translated(text, None if text.strip() else "no_text"))
        return found

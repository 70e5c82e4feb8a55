"""The words that lexical scorers compare: ours in every script, or the ASCII runs of the common implementations."""

from __future__ import annotations

import re
from functools import lru_cache

from veriglot.text import fold, normalise, word_bounds

__all__ = ["ascii_tokens", "tokens", "tokens_with_places"]

_ASCII = re.compile("[a-z0-9]+")


@lru_cache(maxsize=32)  # the sisters of a response, or the samples of one article
def tokens(text: str, language: str | None = None) -> tuple[str, ...]:
    """The words of a text in one form for all ways of writing them.

    Composition, case, width, digits, Arabic and Hebrew letter forms, vowel marks, invisible characters and
    traditional or simplified characters make no difference; accents do.

    Args:
        text: any text.
        language: a BCP 47 tag, or None; see `veriglot.text.word_bounds`.
    """
    plain = normalise(text, fold_case=False).text
    folded = fold(plain)
    return tuple(folded[start:end] for start, end in word_bounds(plain, language).tolist())


def tokens_with_places(text: str, language: str | None = None) -> list[tuple[str, int, int]]:
    """The words of a text as `tokens` writes them, each with its place in the text: half-open, in code points."""
    places = word_bounds(text, language).tolist()
    return [(_form(text[start:end]), start, end) for start, end in places]


@lru_cache(maxsize=1 << 16)
def _form(word: str) -> str:
    return fold(normalise(word, fold_case=False).text)


def ascii_tokens(text: str) -> tuple[str, ...]:
    """Runs of a-z and 0-9 of the text in lower case, as `rouge-score` and `torchmetrics` cut it without a stemmer.

    Every other character parts words: `für` is `f` and `r`, and a Thai text has none.
    """
    return tuple(_ASCII.findall(text.lower()))

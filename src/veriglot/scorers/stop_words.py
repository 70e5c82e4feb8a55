"""Stop words: what ROUGE-1 leaves out, language by language.

The lists stand in `stop_words.json`; `stop_words_build` says where they are from. They differ in length, from some 30
words to 1,300, as their sources do.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec

from veriglot.errors import UnknownNameError
from veriglot.provenance import digest
from veriglot.records.languages import language

__all__ = ["stop_words", "stop_words_languages", "stop_words_revision"]


@cache
def _data() -> bytes:
    return files(__package__).joinpath("stop_words.json").read_bytes()


@cache
def _table() -> dict[str, frozenset[str]]:
    return {tag: frozenset(words.split()) for tag, words in msgspec.json.decode(_data(), type=dict[str, str]).items()}


@cache
def stop_words(tag: str) -> frozenset[str] | None:
    """The stop words of a language, in the form of `veriglot.scorers.tokens.tokens`; None where there is no list.

    Args:
        tag: a BCP 47 tag or another name of the language; a script of its own (`sr-Latn`) has its own list.
    """
    try:
        found = language(tag)
    except UnknownNameError:
        return None
    return _table().get(found.tag) or _table().get(found.base)


def stop_words_languages() -> tuple[str, ...]:
    """The tags of the languages that have a list, sorted."""
    return tuple(sorted(_table()))


@cache
def stop_words_revision() -> str:
    """Eight hexadecimal digits that change with any list."""
    return digest([_data()])[:8]

"""Whether a response declines to answer: phrases per language, looked for near its beginning."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files

import msgspec

from veriglot.build.prompts import known_language

__all__ = ["refusals_version", "refuses"]

_LOOKED_AT = 240  # code points: who declines says so at once, and an answer may hold such words further on
_CLAUSE = r"(?:^|[^\w\s]|\n)\s*"  # before a clause stand punctuation, a quotation mark, a new line, or nothing
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


class _Refusals(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: str
    phrases: dict[str, tuple[str, ...]]


@cache
def _refusals() -> _Refusals:
    text = files(__package__).joinpath("refusals.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _Refusals)


def refusals_version() -> str:
    """Name and version of the phrases, such as `refusals@1`."""
    return f"refusals@{_refusals().version}"


def refuses(text: str, tag: str | None) -> bool:
    """Whether a response begins by declining or by saying that it does not know.

    A rule of thumb over phrases in the response's language and in English, in the first 240 code points; languages
    without phrases of their own (`docs/build.md` lists those that have them) are checked for the English ones only.

    Args:
        text: the response.
        tag: BCP 47 tag of the language that was asked in, or None.
    """
    entry = known_language(tag) if tag else None
    found = _pattern(entry.tag if entry else "en").search(_plain(text[:_LOOKED_AT]))
    return found is not None


@cache
def _pattern(tag: str) -> re.Pattern[str]:
    phrases = _refusals().phrases
    own = phrases.get(tag, ()) if tag != "en" else ()
    return re.compile("|".join(_expression(phrase) for phrase in (*own, *phrases["en"])))


def _expression(phrase: str) -> str:
    stem, clause = phrase.endswith("*"), phrase.startswith("^")
    plain = _plain(phrase.removesuffix("*").removeprefix("^"))
    before = _CLAUSE if clause else "" if _UNSPACED.match(plain[0]) else r"(?<!\w)"
    after = "" if stem or _UNSPACED.match(plain[-1]) or not plain[-1].isalnum() else r"(?!\w)"
    return before + re.escape(plain) + after


def _plain(text: str) -> str:
    from veriglot.text import fold, normalise

    return fold(normalise(text).text)

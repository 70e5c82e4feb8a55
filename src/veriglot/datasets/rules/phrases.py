"""What rules need to know of a language: how it negates, words and their opposites, judgements, claims.

One data file a language, `phrases/TAG.toml`, written for Veriglot. Its keys:

- `negations`: a form and its negation, a pair a line (`is = is not`); `-` before both makes them what the last
  word of a sentence ends with. Read from left to right it puts a negation in, from right to left it takes one out.
- `negators`: words that make a sentence a negative one already.
- `not_after`: words after which a form is left alone, such as clitics that would have to change places.
- `not_before`: words before which it is left alone, such as pronouns that the negation would have to follow.
- `inside`: a form is left alone where no other word follows right after it (`ist` at the end of a German clause).
- `opposites`: two forms that say the opposite of each other, a pair a line: `more = less` both ways, `after > before`
  from left to right only, where the second has other meanings that the first is no opposite of.
- `determiners`, `noun_after`, `noun_endings`: where nouns have capital letters too, words that stand before a noun and
  not before a name, what others of them end with, and what nouns end with.
- `judgements`: sentences that say what somebody thinks; `openings` stand before one of them.
- `claims`: sentences that nobody can check, with `{year}` and `{number}`; `hedges` make one of any `{sentence}`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from veriglot.records.languages import find_language
from veriglot.text.identification import identify

__all__ = ["Phrases", "phrase_languages", "phrases_of", "phrases_version"]

_VERSION = "2"
_WRITTEN_BOTH_WAYS = frozenset({"zh-Hans", "zh-Hant"})


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    """One language as it stands in its file."""

    negations: str
    opposites: str
    judgements: list[str]
    claims: list[str]
    hedges: list[str]
    negators: str = ""
    not_after: str = ""
    not_before: str = ""
    openings: list[str] = []
    inside: bool = False
    determiners: str = ""
    noun_after: str = ""
    noun_endings: str = ""


@dataclass(frozen=True)
class Phrases:
    """One language, as its data file says; see above.

    Attributes:
        negations: pairs of a form and its negation, the longest form first.
        endings: the same of what words end with, without the hyphen.
        opposites: pairs of a form and what says the opposite, the longest form first.
    """

    negations: tuple[tuple[str, str], ...]
    endings: tuple[tuple[str, str], ...]
    opposites: tuple[tuple[str, str], ...]
    negators: frozenset[str]
    not_after: frozenset[str]
    not_before: frozenset[str]
    inside: bool
    judgements: tuple[str, ...]
    openings: tuple[str, ...]
    claims: tuple[str, ...]
    hedges: tuple[str, ...]
    determiners: frozenset[str]
    noun_after: tuple[str, ...]
    noun_endings: tuple[str, ...]


def phrases_version() -> str:
    """The version of the rules and their data, for signatures."""
    return f"phrases@{_VERSION}"


@cache
def phrase_languages() -> tuple[str, ...]:
    """The tags of the languages that have a data file, sorted."""
    folder = files(__package__).joinpath("phrases")
    return tuple(sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")))


def phrases_of(language: str, text: str = "") -> Phrases | None:
    """The phrases of a language, or None where there are none.

    Args:
        language: BCP 47 tag.
        text: what they are put into; Chinese that states the one script is often written in the other.
    """
    known = find_language(language)
    tag = known.tag if known else language
    if tag in _WRITTEN_BOTH_WAYS and text:
        identified = identify(text)
        tag = identified.tag if identified is not None and identified.tag in _WRITTEN_BOTH_WAYS else tag
    return _read(tag) if tag in phrase_languages() else None


@cache
def _read(tag: str) -> Phrases:
    data: dict[str, Any] = tomllib.loads(
        files(__package__).joinpath("phrases").joinpath(f"{tag}.toml").read_text("utf-8")
    )
    entry = msgspec.convert(data, type=_Entry)
    pairs = _pairs(entry.negations)
    return Phrases(
        negations=tuple(p for p in pairs if not p[0].startswith("-")),
        endings=tuple((a[1:], b[1:]) for a, b in pairs if a.startswith("-")),
        opposites=_opposites(entry.opposites),
        negators=frozenset(entry.negators.casefold().split()),
        not_after=frozenset(entry.not_after.casefold().split()),
        not_before=frozenset(entry.not_before.casefold().split()),
        inside=entry.inside,
        judgements=tuple(entry.judgements),
        openings=tuple(entry.openings),
        claims=tuple(entry.claims),
        hedges=tuple(entry.hedges),
        determiners=frozenset(entry.determiners.casefold().split()),
        noun_after=tuple(entry.noun_after.casefold().split()),
        noun_endings=tuple(entry.noun_endings.casefold().split()),
    )


def _opposites(lines: str) -> tuple[tuple[str, str], ...]:
    """Every form with its opposite, the first one named where a form has several."""
    pairs: dict[str, tuple[str, str]] = {}
    for line in filter(None, map(str.strip, lines.splitlines())):
        form, other = _sides(line, ">" if ">" in line else "=")
        pairs.setdefault(form.casefold(), (form, other))
        if ">" not in line:
            pairs.setdefault(other.casefold(), (other, form))
    return tuple(sorted(pairs.values(), key=lambda pair: -len(pair[0])))


def _pairs(lines: str) -> list[tuple[str, str]]:
    """The pairs of `one = other`, a pair a line, the longest first.

    Raises:
        ValueError: a line is no pair, or only one side has the hyphen of an ending.
    """
    pairs = []
    for line in filter(None, map(str.strip, lines.splitlines())):
        form, other = _sides(line, "=")
        if form.startswith("-") != other.startswith("-"):
            raise ValueError(f"{line!r} is no pair")
        pairs.append((form, other))
    return sorted(pairs, key=lambda pair: -len(pair[0]))


def _sides(line: str, mark: str) -> tuple[str, str]:
    form, _, other = (part.strip() for part in line.partition(mark))
    if not (form and other):
        raise ValueError(f"{line!r} is no pair")
    return form, other

"""How far the length of a translation is from what is usual between its languages."""

from __future__ import annotations

import math
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec

from veriglot.errors import UsageError
from veriglot.judging.base import NotScored, text_language
from veriglot.records import Direction, Status
from veriglot.records.languages import find_language
from veriglot.scorers.base import Measured, SampleScorer
from veriglot.signatures import signature

if TYPE_CHECKING:
    from veriglot.records import Sample

__all__ = ["LengthRatio"]

_LEAST = 1e-9


class _Lengths(msgspec.Struct, frozen=True):
    source: str
    unit: str
    relative: dict[str, float]


@cache
def _lengths() -> _Lengths:
    return msgspec.json.decode(files(__package__).joinpath("lengths.json").read_bytes(), type=_Lengths)


def usual_ratio(source: str, target: str) -> float | None:
    """The usual length of a text in `target` to that of the same text in `source`; None where it was not measured.

    Lengths are code points but white space. The table was measured on the Universal Declaration of Human Rights
    (median over its articles); other kinds of text differ from it by up to a fifth in most languages.

    Args:
        source: BCP 47 tag.
        target: BCP 47 tag.
    """
    lengths = [_length(tag) for tag in (source, target)]
    return lengths[1] / lengths[0] if lengths[0] and lengths[1] else None


def _length(tag: str) -> float | None:
    entry = find_language(tag)
    relative = _lengths().relative
    return None if entry is None else relative.get(entry.tag) or relative.get(entry.base)


class LengthRatio(SampleScorer):
    """The distance of the length ratio from the usual one: `|ln(observed / usual)|`; 0 is as usual, ln 2 is double.

    Lengths are code points but white space. `smoothing` is added to the response's length and to the one expected,
    since a short text's length says little. Languages that are not given are identified.

    Args:
        usual: the usual ratio, where it is known better than from the table, for every pair of languages.
        smoothing: code points.

    Raises:
        UsageError: `usual` is not positive, or `smoothing` is negative.
    """

    name = "length-ratio@1"
    direction = Direction.HIGHER_IS_WORSE
    no_evidence = "there is no source to hold the response's length against"

    def __init__(self, usual: float | None = None, smoothing: float = 10.0) -> None:
        if usual is not None and not 0 < usual < math.inf:
            raise UsageError(f"usual is a ratio of lengths and above 0, not {usual}.")
        if not 0 <= smoothing < math.inf:
            raise UsageError(f"smoothing is a number of code points, not {smoothing}.")
        self.usual, self.smoothing = usual, smoothing

    @property
    def signature(self) -> str:
        """Name and settings."""
        return signature(
            scorer=self.name,
            usual=self.usual if self.usual is not None else "udhr",
            smoothing=self.smoothing,
        )

    def measure(self, sample: Sample) -> Measured | NotScored:
        """The ratio; `parts` holds `ratio`, without smoothing, and `usual`.

        Where a language is unknown, or not in the table, the status is `unsupported_language`.
        """
        source = " ".join(passage.text for passage in sample.evidence)
        usual, target = self.usual, sample.language
        if usual is None:
            origin = text_language(source, sample.evidence[0].language)
            target = text_language(sample.response, target)
            usual = usual_ratio(origin, target) if origin and target else None
            if usual is None:
                pair = " to ".join(tag or "an unknown language" for tag in (origin, target))
                reason = f"the usual length ratio of {pair} is not known"
                return NotScored(Status.UNSUPPORTED_LANGUAGE, reason)
        response_length, source_length = _letters(sample.response), _letters(source)
        smoothing = max(self.smoothing, _LEAST)  # an empty response is infinitely too short, which no number says
        value = abs(math.log((response_length + smoothing) / (usual * source_length + smoothing)))
        return Measured(value, {"ratio": response_length / source_length, "usual": usual}, target)


def _letters(text: str) -> int:
    return sum(not char.isspace() for char in text)

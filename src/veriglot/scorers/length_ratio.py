"""How far the length of a translation is from what is usual between its languages."""

from __future__ import annotations

import math
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec

from veriglot.errors import UnknownNameError, UsageError
from veriglot.provenance import signature
from veriglot.records import Direction, Score, Status
from veriglot.records.languages import language
from veriglot.text import identify

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.records import Sample

__all__ = ["LengthRatio", "usual_ratio"]

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
    try:
        found = language(tag)
    except UnknownNameError:
        return None
    relative = _lengths().relative
    return relative.get(found.tag) or relative.get(found.base)


class LengthRatio:
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

    def score(self, samples: Sequence[Sample]) -> list[Score]:
        """One score a sample; `parts` holds `ratio`, without smoothing, and `usual`.

        Without a source the status is `no_evidence`; where a language is unknown, or not in the table,
        `unsupported_language`.
        """
        return [self._one(sample) for sample in samples]

    def _one(self, sample: Sample) -> Score:
        source = " ".join(passage.text for passage in sample.evidence)
        if not source.strip():
            return self._none(sample, Status.NO_EVIDENCE, "there is no source to hold the response's length against")
        usual, target = self.usual, sample.language
        if usual is None:
            origin = sample.evidence[0].language or _identified(source)
            target = target or _identified(sample.response)
            found = usual_ratio(origin, target) if origin and target else None
            if found is None:
                pair = " to ".join(tag or "an unknown language" for tag in (origin, target))
                return self._none(sample, Status.UNSUPPORTED_LANGUAGE, f"the usual length ratio of {pair} is not known")
            usual = found
        response_length, source_length = _letters(sample.response), _letters(source)
        least = max(self.smoothing, _LEAST)  # an empty response is infinitely too short, which no number says
        value = abs(math.log((response_length + least) / (usual * source_length + least)))
        return Score(
            sample.id,
            Status.SCORED,
            self.name,
            value=value,
            parts={"ratio": response_length / source_length, "usual": usual},
            language=target,
            signature=self.signature,
        )

    def _none(self, sample: Sample, status: Status, reason: str) -> Score:
        return Score(sample.id, status, self.name, reason=reason, signature=self.signature)


def _letters(text: str) -> int:
    return sum(not char.isspace() for char in text)


def _identified(text: str) -> str | None:
    found = identify(text)
    return found.tag if found else None

"""Evidence too long for one question, in overlapping windows: nothing is cut, and support in any window is support."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.detectors.judge.judge import Judge
from veriglot.errors import UsageError
from veriglot.llm import estimate_tokens
from veriglot.text import sentences, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.detectors.judge.judge import Case
    from veriglot.records import Evidence

__all__ = ["Passages", "WindowedJudge", "evidence_windows"]

Range = tuple[int, int]
Passages = list[tuple[str, str]]

_SMALLEST = 64  # tokens: below it a window holds hardly a sentence
_OVERLAP = 4  # a quarter of a window stands in the next one too


class WindowedJudge(Judge):
    """A judge whose evidence may be long.

    Args:
        window: the most tokens of evidence in one question, as `llm.estimate_tokens` counts them; None for all of it in
            one question, which a model refuses where it is too long (status `too_long`).
        options: of `Judge`.
    """

    def __init__(self, *, window: int | None = None, **options: Any) -> None:
        if window is not None and window < _SMALLEST:
            raise UsageError(f"A window of {window} tokens is too small.", remedy=f"Set it to {_SMALLEST} or more.")
        self._window = window
        super().__init__(**options)
        self._options["window"] = window

    @classmethod
    def _own_options(cls) -> tuple[str, ...]:
        return ("window", *super()._own_options())

    def _parts(self) -> dict[str, object]:
        return {"window": self._window}

    def _windows(self, case: Case) -> list[Passages]:
        return evidence_windows(case.sample.evidence, self._window)


def evidence_windows(evidence: Sequence[Evidence], size: int | None) -> list[Passages]:
    """The passages, with their titles, in windows of so many tokens.

    A passage that fits stands whole in one window; a longer one is cut between sentences, or between words where a
    sentence is too long, and neighbouring pieces share a quarter.

    Args:
        evidence: the passages, in order.
        size: estimated tokens; None for one window.
    """
    if size is None:
        return [[(passage.title or "", passage.text) for passage in evidence]]
    windows: list[Passages] = []
    room = 0
    for passage in evidence:
        title = passage.title or ""
        for low, high in _pieces(passage.text, max(size // 2, size - estimate_tokens(title)), passage.language):
            piece = passage.text[low:high]
            cost = estimate_tokens(title) + estimate_tokens(piece)
            if not windows or cost > room:
                windows.append([])
                room = size
            windows[-1].append((title, piece))
            room -= cost
    return windows


def _pieces(text: str, size: int, language: str | None) -> list[Range]:
    if estimate_tokens(text) <= size:
        return [(0, len(text))]
    atoms = _atoms(text, max(1, size // _OVERLAP), language)
    costs = [estimate_tokens(text[low:high]) for low, high in atoms]
    pieces, first = [], 0
    while True:
        last, cost = first, costs[first]
        while last + 1 < len(atoms) and cost + costs[last + 1] <= size:
            last += 1
            cost += costs[last]
        pieces.append((atoms[first][0], atoms[last][1]))
        if last + 1 == len(atoms):
            return pieces
        first = _next_first(costs, first, last, size // _OVERLAP)


def _next_first(costs: list[int], first: int, last: int, overlap: int) -> int:
    """Where the next piece begins: as far before the end of this one as the overlap allows, but after its beginning."""
    start, shared = last + 1, 0
    while start - 1 > first and shared + costs[start - 1] <= overlap:
        start -= 1
        shared += costs[start]
    return start


def _atoms(text: str, size: int, language: str | None) -> list[Range]:
    """Ranges that cover the text without a gap: sentences with what follows them, or words where these are too long."""
    found: list[Range] = []
    for low, high in _covering(sentences(text, language), 0, len(text)):
        if estimate_tokens(text[low:high]) <= size:
            found.append((low, high))
        else:
            inside = [(low + start, low + end) for start, end in words(text[low:high], language)]
            found += _covering(inside, low, high)
    return found


def _covering(ranges: list[Range], start: int, end: int) -> list[Range]:
    """The ranges, each drawn out to the beginning of the next; together they cover `[start, end)`."""
    starts = [start, *(low for low, _ in ranges[1:])]
    return list(zip(starts, [*starts[1:], end], strict=True))

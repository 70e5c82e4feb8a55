"""Units, the spans that mark them, and the facts that contain them: counting, marking, matching and scoring.

Spans are matched one to one in three ways, each of which gives matched credit and the numbers of spans:

- `exact`: the same start and end.
- `overlap`: intersection over union of at least one half. The number of pairs is the largest possible (a maximum
  bipartite matching), so it does not depend on the order; if the spans of each side do not overlap among themselves,
  as a detector's never do, greedy matching gives the same number.
- `partial`: as in MUC-5, 1 for an exact match and 0.5 for a pair that overlaps at all, matched after the exact ones.

Typed matching also requires the same type.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from veriglot.errors import InputError, UnknownNameError, UsageError, requires_extra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from veriglot.arrays import Bools, Float64s, Int32s, Int64s
    from veriglot.records import Span, Word
    from veriglot.text.facts import Fact

    Array = Float64s
    Bounds = Int32s
    Mask = Bools
    Segmenter = Callable[[str, str | None], Bounds]
    Types = Sequence[str | None]

__all__ = [
    "MATCHES",
    "SCORING_RULE",
    "covered",
    "fact_marks",
    "fact_scores",
    "marked",
    "max_by_character",
    "probabilities",
    "ranges",
    "segmenter",
    "sentence_scores",
    "unit_marks",
    "unit_probabilities",
    "word_probabilities",
]


# Units. Every figure states its unit:
#
# - `char`: code points that are not white space. White space is left out, since marking the gap between two marked
#   words is a habit of the annotator, not a judgement.
# - `word`: the words of `veriglot.text.word_bounds`; punctuation is not a word.
# - `response`: the whole response.
# - `hf:<tokenizer>`: the tokens of a Hugging Face `tokenizers` tokenizer, by file or by name. White space at the edges
#   of a token is removed, and tokens of only white space (or empty ones, such as special tokens) are left out. A
#   character that a byte-level tokenizer splits gives several units with the same range.

NAMES = ("char", "word", "response", "hf:<tokenizer>")
_PREFIX = "hf:"
_FILE = "tokenizer.json"
_SPACES = np.array([point for point in range(0x3001) if chr(point).isspace()], np.uint32)


def is_space(text: str) -> Bools:
    """Which code points are white space, in the sense of `str.isspace`; shape `(len(text),)`."""
    from veriglot.text.unicode import code_points

    points = code_points(text)
    index = np.searchsorted(_SPACES, points)
    spaces: Bools = _SPACES[np.minimum(index, len(_SPACES) - 1)] == points
    return spaces


def char_bounds(text: str, language: str | None = None) -> Bounds:  # noqa: ARG001 - the same in every language
    """The code points that are not white space, as half-open ranges of shape `(n, 2)`."""
    starts = np.flatnonzero(~is_space(text)).astype(np.int32)
    return np.stack([starts, starts + 1], axis=1)


@lru_cache(8)
def _tokenizer(name: str) -> Any:
    with requires_extra(f"The unit {_PREFIX}{name}", "hf"):
        from tokenizers import Tokenizer
    path = Path(name)
    if path.is_dir():
        path = path / _FILE
    try:
        loaded = Tokenizer.from_file(str(path) if path.exists() else _fetched(name))
    except Exception as error:  # the library raises bare exceptions of its own
        raise InputError(
            f"the tokenizer cannot be loaded: {error}",
            "Give the path of a tokenizer.json, or the name of a tokenizer that can be downloaded.",
            path=name,
        ) from error
    loaded.no_truncation()
    loaded.no_padding()
    return loaded


def _fetched(name: str) -> str:
    from huggingface_hub import hf_hub_download

    from veriglot.hub.checkpoints import hub_options

    return str(hf_hub_download(name, _FILE, **hub_options(name)))


def token_bounds(name: str, text: str) -> Bounds:
    """The tokens of a text by tokenizer `name` (a file, a folder with a `tokenizer.json`, or a hub name)."""
    offsets = _tokenizer(name).encode(text, add_special_tokens=False).offsets
    raw = np.array(offsets, np.int64).reshape(-1, 2)
    solid = np.flatnonzero(~is_space(text))
    if not len(solid) or not len(raw):
        return np.zeros((0, 2), np.int32)
    first = np.searchsorted(solid, raw[:, 0])
    last = np.searchsorted(solid, raw[:, 1]) - 1
    filled = last >= first
    bounds = np.stack([solid[first[filled]], solid[last[filled]] + 1], axis=1).astype(np.int32)
    return bounds[np.lexsort((bounds[:, 1], bounds[:, 0]))]


def segmenter(unit: str) -> Segmenter:
    """The function `(text, language) -> bounds` of a unit.

    Raises:
        UnknownNameError: no such unit.
        UsageError: `hf:` without a tokenizer.

    Calling the result raises MissingExtraError if the package `tokenizers` is not installed, and InputError if the
    tokenizer cannot be loaded.
    """
    if unit == "char":
        return char_bounds
    if unit == "response":
        return lambda text, *_: np.array([[0, len(text)]], np.int32)[: len(text)]
    if unit == "word":
        from veriglot.text.segmentation import word_bounds

        return word_bounds
    if unit.startswith(_PREFIX):
        name = unit.removeprefix(_PREFIX)
        if not name:
            raise UsageError("The unit 'hf:' needs a tokenizer.", "Write hf:path/to/tokenizer.json.")

        def tokens(text: str, language: str | None = None) -> Bounds:  # noqa: ARG001 - the tokenizer is given
            return token_bounds(name, text)

        return tokens
    raise UnknownNameError("unit", unit, NAMES)


# Matching spans one to one.

IOU_THRESHOLD = 0.5


class Matched(NamedTuple):
    """Matched credit, and the numbers of predicted and of reference spans of one response."""

    matched: float
    predicted: int
    gold: int


def pairwise_iou(first: Bounds, second: Bounds) -> Float64s:
    """Intersection over union of every pair of half-open ranges, shape `(len(first), len(second))`."""
    low = np.maximum(first[:, None, 0], second[None, :, 0])
    high = np.minimum(first[:, None, 1], second[None, :, 1])
    shared = np.maximum(high - low, 0)
    sizes = (first[:, 1] - first[:, 0])[:, None] + (second[:, 1] - second[:, 0])[None, :]
    return shared / (sizes - shared) if shared.size else np.zeros(shared.shape)


def _maximum_matching(allowed: Bools) -> dict[int, int]:
    """Column to row of a maximum one-to-one matching, by augmenting paths (Kuhn 1955)."""
    row_of: dict[int, int] = {}
    edges = [np.flatnonzero(row).tolist() for row in allowed]

    def place(root: int) -> None:
        seen = set[int]()
        path = []  # (row, column) pairs tried on the way down
        pending = [(root, iter(edges[root]))]
        while pending:
            row, columns = pending[-1]
            for column in columns:
                if column in seen:
                    continue
                seen.add(column)
                path.append((row, column))
                if column not in row_of:
                    row_of.update({taken: by for by, taken in path})
                    return
                pending.append((row_of[column], iter(edges[row_of[column]])))
                break
            else:
                pending.pop()
                if path:
                    path.pop()

    for row in range(len(edges)):
        place(row)
    return row_of


def _matched(
    predicted: Bounds, gold: Bounds, threshold: float, types: Types | None, gold_types: Types | None
) -> Matched:
    close = pairwise_iou(predicted, gold) >= threshold
    if types is not None and gold_types is not None:
        same = np.array([[a is not None and a == b for b in gold_types] for a in types], bool)
        close &= same.reshape(close.shape)
    return Matched(len(_maximum_matching(close)), len(predicted), len(gold))


def exact(predicted: Bounds, gold: Bounds, types: Types | None = None, gold_types: Types | None = None) -> Matched:
    """Spans with the same start and end (and the same type, if types are given)."""
    return _matched(predicted, gold, 1.0, types, gold_types)


def overlap(predicted: Bounds, gold: Bounds, types: Types | None = None, gold_types: Types | None = None) -> Matched:
    """The most pairs with an intersection over union of at least one half, and the same type if types are given."""
    return _matched(predicted, gold, IOU_THRESHOLD, types, gold_types)


def partial(predicted: Bounds, gold: Bounds) -> Matched:
    """MUC credit: 1 for the same range, 0.5 for another pair that overlaps."""
    scores = pairwise_iou(predicted, gold)
    same = _maximum_matching(scores == 1.0)
    rest = scores > 0.0
    rest[list(same.values()), :] = False
    rest[:, list(same)] = False
    return Matched(len(same) + 0.5 * len(_maximum_matching(rest)), len(predicted), len(gold))


MATCHES: dict[str, Callable[..., Matched]] = {"exact": exact, "overlap": overlap, "partial": partial}
"""Name to a function of two arrays of ranges; `exact` and `overlap` also take the types of both."""


# From spans to units: which units are marked, with which types, and with what probability.
#
# A unit is marked if a span overlaps it in at least one code point.


def ranges(marks: Sequence[Span] | Sequence[Word]) -> Bounds:
    """Spans or words as an array of half-open ranges, shape `(n, 2)`."""
    return np.array([(mark.start, mark.end) for mark in marks], np.int32).reshape(-1, 2)


def marked(bounds: Bounds, spans: Bounds) -> Bools:
    """Which units overlap any span.

    Args:
        bounds: units, shape `(n, 2)`, with starts and ends in ascending order.
        spans: half-open ranges of shape `(m, 2)`, in any order, overlapping or not.
    """
    steps = np.zeros(len(bounds) + 1, np.int64)
    if len(spans) and len(bounds):
        first = np.searchsorted(bounds[:, 1], spans[:, 0], "right")
        after = np.searchsorted(bounds[:, 0], spans[:, 1], "left")
        hit = after > first
        np.add.at(steps, first[hit], 1)
        np.add.at(steps, after[hit], -1)
    return np.cumsum(steps[:-1]) > 0


def unit_marks(bounds: Bounds, spans: Bounds) -> Int64s:
    """Index of the mark that gives each unit its label, -1 if no mark overlaps it; shape `(n,)`.

    A mark with exactly a unit's range applies to that unit alone, since facts may be nested. Of several marks over a
    unit the shortest counts, since it is the most specific; of equally short ones the first.

    Args:
        bounds: units, half-open ranges of shape `(n, 2)`, in any order.
        spans: marks, half-open ranges of shape `(m, 2)`, in any order.
    """
    result = np.full(len(bounds), -1, np.int64)
    for index in sorted(range(len(spans)), key=lambda i: (int(spans[i, 0] - spans[i, 1]), -i)):  # the shortest last
        start, end = spans[index]
        own = (bounds[:, 0] == start) & (bounds[:, 1] == end)
        result[own if own.any() else (bounds[:, 1] > start) & (bounds[:, 0] < end)] = index
    return result


def covered(length: int, spans: Bounds) -> Bools:
    """Which of `length` code points are in any span, including white space; shape `(length,)`."""
    steps = np.zeros(length + 1, np.int64)
    np.add.at(steps, spans[:, 0], 1)
    np.add.at(steps, spans[:, 1], -1)
    return np.cumsum(steps[:-1]) > 0


def probabilities(length: int, words: Bounds, confidences: Float64s) -> Float64s:
    """The probability of each code point, from those of words; shape `(length,)`.

    A code point between two words (white space, punctuation) gets the smaller probability of its neighbours, and one
    before the first or after the last word gets 0: a gap is unsupported only if both sides are. If words overlap, the
    earlier one counts.
    """
    if not len(words):
        return np.zeros(length, np.float64)
    order = np.argsort(words[:, 0], kind="stable")
    edges = np.concatenate([[0], np.maximum.accumulate(words[order].ravel()), [length]])
    values_of_words = confidences[order]
    values = np.zeros(len(edges) - 1, np.float64)
    values[1::2] = values_of_words
    values[2:-1:2] = np.minimum(values_of_words[:-1], values_of_words[1:])
    return np.repeat(values, np.diff(edges))


def word_probabilities(length: int, words: Sequence[Word]) -> Array:
    """The probability of each code point from words with their confidences; see `probabilities`."""
    return probabilities(length, ranges(words), np.array([word.confidence for word in words], np.float64))


def unit_probabilities(bounds: Bounds, by_character: Float64s) -> Float64s:
    """The probability of each unit: the greatest of its code points; shape `(n,)`."""
    if not len(bounds):
        return np.zeros(0, np.float64)
    widths = bounds[:, 1] - bounds[:, 0]
    firsts = np.cumsum(widths) - widths
    places = np.repeat(bounds[:, 0] - firsts, widths) + np.arange(widths.sum())
    return np.maximum.reduceat(by_character[places], firsts)


def max_by_character(length: int, marks: Iterable[tuple[int, int, float]]) -> Array:
    """The greatest value of the ranges `(start, end, value)` that cover each code point, 0 for none; `(length,)`."""
    values = np.zeros(length, np.float64)
    for start, end, value in marks:
        values[start:end] = np.maximum(values[start:end], value)
    return values


# From confidences of words to scores of atomic facts, and of sentences from their facts.
#
# A fact's score is its highest word confidence: errors in words of one fact are not independent, so the confidences do
# not add up (a noisy-or over them predicts far too many errors). A sentence combines its facts, the highest score with
# full weight and each further one with half the weight of the one before: errors in facts are dependent too, but less.
# Both were chosen on held-out silver data; `benchmarks/facts.md` has the comparison.


SCORING_RULE = "max-halving.1"
"""Name of this scoring of facts and sentences, for signatures."""

_DECAY = 0.5


def fact_scores(facts: Sequence[Fact], by_character: Array) -> Array:
    """The score of each fact, shape `(n,)`: the greatest probability among its code points.

    Args:
        facts: of the response.
        by_character: probability that each code point is unsupported, shape `(length,)`.
    """
    scores = [max(by_character[start:end].max() for start, end in fact.parts) for fact in facts]
    return np.array(scores, np.float64)


def fact_marks(facts: Sequence[Fact], length: int, spans: Bounds) -> Bools:
    """Which facts of a response of `length` code points overlap any span, shape `(n,)`."""
    inside = covered(length, spans)
    return np.array([any(inside[start:end].any() for start, end in fact.parts) for fact in facts], bool)


def combine_scores(scores: Array) -> float:
    """The probability that any of several parts is unsupported, from the probability of each.

    `1 - prod((1 - p_k) ** (1/2) ** k)` over the scores in descending order, k = 0, 1, ...: a noisy-or with decreasing
    weights. It is never below the greatest score and never above the noisy-or.
    """
    ordered = np.sort(scores)[::-1]
    decay = _DECAY ** np.arange(len(ordered))
    return float(1.0 - np.prod((1.0 - ordered) ** decay))


def sentence_scores(sentences: Bounds, facts: Sequence[Fact], scores: Array, by_character: Array) -> Array:
    """The score of each sentence, from the facts that begin in it, shape `(m,)`.

    Args:
        sentences: half-open ranges in order, shape `(m, 2)`.
        facts: of the response, in order of their beginnings.
        scores: of the facts.
        by_character: for sentences in which no fact begins.
    """
    starts = np.array([fact.start for fact in facts], np.int64)
    result = np.zeros(len(sentences), np.float64)
    for index, (start, end) in enumerate(sentences.tolist()):
        inside = scores[(starts >= start) & (starts < end)]
        result[index] = combine_scores(inside) if len(inside) else by_character[start:end].max()
    return result

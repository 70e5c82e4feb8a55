"""What is counted: characters, words or the tokens of a tokenizer. Every figure states its unit.

- `char`: code points that are not white space. White space is left out because whether a gap between two marked
  words is marked is a habit of the annotator, not a judgement.
- `word`: the words of `veriglot.text.word_bounds`; punctuation is no word.
- `hf:<tokenizer>`: the tokens of a Hugging Face `tokenizers` tokenizer, by file or by name. White space at the edges
  of a token is not part of it, and tokens that hold nothing else (or nothing, as special tokens do) are left out. A
  character that a byte-level tokenizer splits gives several units with the same range.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from veriglot.errors import InputError, MissingExtraError, UnknownNameError, UsageError
from veriglot.hub.checkpoints import hub_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Bounds = NDArray[np.int32]
    Segmenter = Callable[[str, str | None], Bounds]

__all__ = ["char_bounds", "segmenter"]

NAMES = ("char", "word", "hf:<tokenizer>")
_PREFIX = "hf:"
_FILE = "tokenizer.json"
_SPACES = np.array([point for point in range(0x3001) if chr(point).isspace()], dtype=np.uint32)


def is_space(text: str) -> NDArray[np.bool_]:
    """Which code points are white space, in the sense of `str.isspace`; shape `(len(text),)`."""
    from veriglot.text.unicode import code_points

    points = code_points(text)
    index = np.searchsorted(_SPACES, points)
    spaces: NDArray[np.bool_] = _SPACES[np.minimum(index, len(_SPACES) - 1)] == points
    return spaces


def char_bounds(text: str, language: str | None = None) -> Bounds:  # noqa: ARG001 - the same in every language
    """The code points that are not white space, as half-open ranges of shape `(n, 2)`."""
    starts = np.flatnonzero(~is_space(text)).astype(np.int32)
    return np.stack([starts, starts + 1], axis=1)


def _word_bounds(text: str, language: str | None = None) -> Bounds:
    from veriglot.text.segmentation import word_bounds

    return word_bounds(text, language)


@lru_cache(maxsize=8)
def _tokenizer(name: str) -> Callable[[str], list[tuple[int, int]]]:
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"The unit {_PREFIX}{name}", "hf") from error
    path = Path(name)
    if path.is_dir():
        path = path / _FILE
    try:
        loaded = Tokenizer.from_file(str(path) if path.exists() else _fetched(name))
    except Exception as error:  # the library raises bare exceptions of its own
        raise InputError(
            f"the tokenizer cannot be loaded: {error}",
            remedy="Give the path of a tokenizer.json, or the name of a tokenizer that can be downloaded.",
            path=name,
        ) from error
    loaded.no_truncation()
    loaded.no_padding()

    def offsets(text: str) -> list[tuple[int, int]]:
        return list(loaded.encode(text, add_special_tokens=False).offsets)

    return offsets


def _fetched(name: str) -> str:
    from huggingface_hub import hf_hub_download

    return str(hf_hub_download(name, _FILE, **hub_options(name)))


def token_bounds(name: str, text: str) -> Bounds:
    """The tokens that tokenizer `name` (a file, a folder with a `tokenizer.json`, or a hub name) makes of a text.

    Returns:
        Half-open code point ranges of shape `(n, 2)`, in order.

    Raises:
        MissingExtraError: the package `tokenizers` is not installed.
        InputError: the tokenizer cannot be loaded.
    """
    raw = np.array(_tokenizer(name)(text), dtype=np.int64).reshape(-1, 2)
    solid = np.flatnonzero(~is_space(text))
    if not len(solid) or not len(raw):
        return np.zeros((0, 2), dtype=np.int32)
    first = np.searchsorted(solid, raw[:, 0])
    last = np.searchsorted(solid, raw[:, 1]) - 1
    filled = last >= first
    bounds = np.stack([solid[first[filled]], solid[last[filled]] + 1], axis=1).astype(np.int32)
    return bounds[np.lexsort((bounds[:, 1], bounds[:, 0]))]


def segmenter(unit: str) -> Segmenter:
    """The function `(text, language) -> bounds` behind the name of a unit.

    Raises:
        UnknownNameError: no such unit.
        UsageError: `hf:` without a tokenizer.
    """
    if unit == "char":
        return char_bounds
    if unit == "word":
        return _word_bounds
    if unit.startswith(_PREFIX):
        name = unit.removeprefix(_PREFIX)
        if not name:
            raise UsageError("The unit 'hf:' needs a tokenizer.", remedy="Write hf:path/to/tokenizer.json.")

        def tokens(text: str, language: str | None = None) -> Bounds:  # noqa: ARG001 - the tokenizer is given
            return token_bounds(name, text)

        return tokens
    raise UnknownNameError("unit", unit, NAMES)

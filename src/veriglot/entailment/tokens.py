"""A tokenizer of transformers: how many tokens a text has, where it may be parted, pairs as the network takes them."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from veriglot.entailment.windows import stretches
from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Tokens"]

_SURROGATE = re.compile("[\ud800-\udfff]")
_KEPT = 50_000  # texts whose number of tokens is remembered
_CUTS_KEPT = 256  # long texts whose stretches are remembered
_AT_ONCE = 2_000  # texts given to the tokenizer in one call


class Tokens:
    """See the module. Threads may share it: the libraries' tokenizers change their settings while they work.

    Args:
        tokenizer: of transformers.
        model: its name, for errors.

    Raises:
        UsageError: it does not say where its tokens stand.
    """

    def __init__(self, tokenizer: Any, model: str) -> None:
        if not tokenizer.is_fast:
            raise UsageError(
                f"The tokenizer of {model!r} does not say where its tokens stand.",
                remedy="Take a model whose folder has a tokenizer.json.",
            )
        self._tokenizer = tokenizer
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._cuts: OrderedDict[tuple[str, int, bool], list[tuple[int, int]]] = OrderedDict()
        self._lock = threading.Lock()
        spelled = [re.escape(token) for token in tokenizer.all_special_tokens if len(token) > 1]
        self._special_words = re.compile("|".join(spelled) or "(?!)")
        self.special = int(tokenizer.num_special_tokens_to_add(pair=True))

    def count(self, text: str) -> int:
        """Tokens of a text, without special ones."""
        known = self._counts.get(text)
        return known if known is not None else self.count_all([text])[0]

    def count_all(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text; each text is looked at once."""
        with self._lock:
            found = {text: self._counts[text] for text in texts if text in self._counts}
        new = [text for text in dict.fromkeys(texts) if text not in found]
        for start in range(0, len(new), _AT_ONCE):
            some = new[start : start + _AT_ONCE]
            ids = self._call([self._plain(text) for text in some], add_special_tokens=False)["input_ids"]
            found.update(zip(some, map(len, ids), strict=True))
        with self._lock:
            self._counts.update(found)
            while len(self._counts) > _KEPT:
                self._counts.popitem(last=False)
        return [found[text] for text in texts]

    def stretches(self, text: str, room: int, *, overlap: bool) -> list[tuple[int, int]]:
        """A text in stretches of at most `room` tokens, half-open code point ranges; see `windows.stretches`."""
        if self.count(text) <= room:
            return [(0, len(text))]
        key = (text, room, overlap)
        known = self._cuts.get(key)
        if known is None:
            known = self._cut(text, room, room, overlap=overlap)
            with self._lock:
                self._cuts[key] = known
                while len(self._cuts) > _CUTS_KEPT:
                    self._cuts.popitem(last=False)
        return known

    def _cut(self, text: str, room: int, allowed: int, *, overlap: bool) -> list[tuple[int, int]]:
        """As `stretches`, of at most `allowed` tokens each as they stand in the text.

        A stretch by itself may have a token or two more than it had inside the text; then it is cut again.
        """
        found = []
        bounds = stretches(text, self._bounds(text), allowed, overlap=overlap)
        counts = self.count_all([text[start:end] for start, end in bounds])
        for (start, end), count in zip(bounds, counts, strict=True):
            if count <= room or allowed <= 1:
                found.append((start, end))
            else:
                again = self._cut(text[start:end], room, max(min(allowed, count) * 3 // 4, 1), overlap=overlap)
                found += [(start + low, start + high) for low, high in again]
        return found

    def pairs(self, premises: list[str], hypotheses: list[str]) -> Any:
        """Both texts of each pair as tensors, padded to the longest and cut nowhere."""
        return self._call(
            [self._plain(text) for text in premises],
            [self._plain(text) for text in hypotheses],
            padding=True,
            return_tensors="pt",
        )

    def _bounds(self, text: str) -> NDArray[np.int64]:
        found = self._call([self._plain(text)], add_special_tokens=False, return_offsets_mapping=True)
        return np.maximum.accumulate(np.array(found["offset_mapping"][0], np.int64).reshape(-1, 2), axis=0)

    def _plain(self, text: str) -> str:
        """A text as long as before, of characters that UTF-8 can write, in which no special token is spelled out.

        Otherwise a response that holds `</s>` or `[SEP]` would end there for the network.
        """
        return self._special_words.sub(lambda found: "(" + found[0][1:], _SURROGATE.sub("\ufffd", text))

    def _call(self, *texts: list[str], **options: Any) -> Any:
        with self._lock:
            return self._tokenizer(*texts, truncation=False, verbose=False, **options)

"""How sure a judge was of a label that it wrote: from the log probabilities of its tokens."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from veriglot.llm import Reply, Token

__all__ = ["label_probabilities", "list_probability"]

_THOUGHTS_END = re.compile(r"</think(?:ing)?>")


def label_probabilities(reply: Reply, field: str, labels: list[str]) -> list[float] | None:
    """The probability of each value of a field, given all that the judge had written before it.

    Args:
        reply: the reply, with its tokens.
        field: a name in its JSON.
        labels: the values, in the order of the reply, as JSON has them without quotation marks.

    Returns:
        Probabilities between 0 and 1, shape (n,); None where the server gave no probability for one of the tokens, or
        the tokens do not spell these labels at as many places, so that none would be sure to belong to its label.
    """
    if reply.logprobs is None:
        return None
    text, start = _spelled(reply.logprobs)
    places = [m.span("value") for m in _value_of(field).finditer(text, start)]
    if [text[low:high] for low, high in places] != labels:
        return None
    found = [_probability(reply.logprobs, low, high) for low, high in places]
    return None if None in found else [value for value in found if value is not None]


def list_probability(reply: Reply, field: str) -> float | None:
    """The probability of the token by which the judge ended a list of its JSON at once, or began its first element.

    Returns:
        Between 0 and 1; None where it is not known, or the field stands in the reply more than once.
    """
    if reply.logprobs is None:
        return None
    text, start = _spelled(reply.logprobs)
    places = list(re.compile(rf'(?<!\\)"{re.escape(field)}"\s*:\s*\[\s*(?P<value>[\]{{])').finditer(text, start))
    return _probability(reply.logprobs, *places[0].span("value")) if len(places) == 1 else None


def _value_of(field: str) -> re.Pattern[str]:
    return re.compile(rf'(?<!\\)"{re.escape(field)}"\s*:\s*"?(?P<value>[^",\s}}\]]+)')


def _spelled(tokens: tuple[Token, ...]) -> tuple[str, int]:
    """What the tokens spell, and where in it the answer begins, after any thoughts."""
    text = "".join(token.text for token in tokens)
    ends = [found.end() for found in _THOUGHTS_END.finditer(text)]
    return text, ends[-1] if ends else 0


def _probability(tokens: tuple[Token, ...], low: int, high: int) -> float | None:
    """The product over the tokens that hold some of `[low, high)`; None where one of them has no probability."""
    total, place = 0.0, 0
    for token in tokens:
        end = place + len(token.text)
        if place < high and end > low:
            if token.logprob is None:
                return None
            total += token.logprob
        place = end
    return min(1.0, math.exp(total))

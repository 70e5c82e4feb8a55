"""How sure a judge was of a label that it wrote: from the probabilities of its tokens and of those it passed over."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.llm import Reply, Token

__all__ = ["ALTERNATIVES", "label_probabilities", "list_probability"]

ALTERNATIVES = 5  # asked for at each place: what every server gives
_THOUGHTS_END = re.compile(r"</think(?:ing)?>")
_UNSEEN = 0.05  # of the probability of the choices that were seen
_BEGIN, _END = "{", "]"  # how a list of objects goes on: with an object, or not at all

Distribution = dict[str, float]


def label_probabilities(
    reply: Reply, field: str, labels: Sequence[str], choices: Sequence[str]
) -> list[Distribution] | None:
    """The probability of each choice where the judge wrote each value of a field, given all that it wrote before.

    With the alternatives of the label's first token these are the shares of those that begin one choice. What else had
    probability there is left out: a server that holds a model to a form shows what the model would have liked better.
    A choice that no alternative begins can be no likelier than the last of them; where all such choices together could
    have more than a twentieth, nothing is known. Without alternatives only the label's own probability is known, that
    of all its tokens; it is taken from one half on, since below it nothing says where the rest went.

    Args:
        reply: the reply, with its tokens.
        field: a name in its JSON.
        labels: the values, in the order of the reply, as JSON has them without quotation marks.
        choices: all values that there are.

    Returns:
        One mapping per label; a choice that is not in it shares in what is missing to 1. None where something is not
        known of one of the labels, or the tokens do not spell these labels at as many places, so that none would be
        sure to belong to its label.
    """
    if reply.logprobs is None:
        return None
    text, start = _spelled(reply.logprobs)
    places = [found.span("value") for found in _value_of(field).finditer(text, start)]
    if [text[low:high] for low, high in places] != list(labels):
        return None
    found = [_distribution(reply.logprobs, low, high, text[low:high], choices) for low, high in places]
    return None if None in found else [one for one in found if one is not None]


def list_probability(reply: Reply, field: str) -> float | None:
    """The probability that a list of objects in a judge's JSON is not empty.

    It is that of the token with which the judge ended the list at once, or began its first object.

    Returns:
        Between 0 and 1; None where it is not known, or the field stands in the reply more than once.
    """
    if reply.logprobs is None:
        return None
    text, start = _spelled(reply.logprobs)
    places = list(re.compile(rf'(?<!\\)"{re.escape(field)}"\s*:\s*\[\s*(?P<value>[\]{{])').finditer(text, start))
    if len(places) != 1:
        return None
    low, high = places[0].span("value")
    found = _distribution(reply.logprobs, low, high, text[low:high], (_BEGIN, _END))
    return None if found is None else found[_BEGIN] if _BEGIN in found else 1.0 - found[_END]


def _value_of(field: str) -> re.Pattern[str]:
    return re.compile(rf'(?<!\\)"{re.escape(field)}"\s*:\s*"?(?P<value>[^",\s}}\]]+)')


def _spelled(tokens: tuple[Token, ...]) -> tuple[str, int]:
    """What the tokens spell, and where in it the answer begins, after any thoughts."""
    text = "".join(token.text for token in tokens)
    ends = [found.end() for found in _THOUGHTS_END.finditer(text)]
    return text, ends[-1] if ends else 0


def _distribution(
    tokens: tuple[Token, ...], low: int, high: int, label: str, choices: Sequence[str]
) -> Distribution | None:
    """The probabilities of the choices at `[low, high)`, where the label stands."""
    held = _holding(tokens, low, high)
    offset, first = held[0]
    shares: Distribution = {}
    for text, logprob in {**dict(first.alternatives), first.text: first.logprob}.items():
        choice = _begun(text, first.text[:offset], choices)
        if choice is not None and logprob is not None:
            shares[choice] = shares.get(choice, 0.0) + math.exp(logprob)
    if first.alternatives and shares.get(label):
        total = sum(shares.values())
        unseen = len(set(choices) - shares.keys()) * math.exp(min(logprob for _, logprob in first.alternatives))
        return {choice: share / total for choice, share in shares.items()} if unseen <= _UNSEEN * total else None
    logprobs = [token.logprob for _, token in held if token.logprob is not None]
    sure = min(1.0, math.exp(sum(logprobs)))
    return {label: sure} if len(logprobs) == len(held) and sure >= 0.5 else None


def _holding(tokens: tuple[Token, ...], low: int, high: int) -> list[tuple[int, Token]]:
    """The tokens that hold some of `[low, high)`, each with where in it that begins."""
    held, place = [], 0
    for token in tokens:
        if place < high and place + len(token.text) > low:
            held.append((max(0, low - place), token))
        place += len(token.text)
    return held


def _begun(text: str, before: str, choices: Sequence[str]) -> str | None:
    """The one choice that a token begins, after what it holds before the label; None where it is none or several."""
    rest = text.removeprefix(before) if text.startswith(before) else text.lstrip(' \n\t"')
    found = [choice for choice in choices if rest and (choice.startswith(rest) or rest.startswith(choice))]
    return found[0] if len(found) == 1 else None

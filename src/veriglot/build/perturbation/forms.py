"""Where a form of a language's data file stands in a text, and another one written in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["cased", "differing_words", "occurrences"]

_TIES = frozenset("'’-\u00ad־")  # marks that tie a word to its neighbour: `c'est`, `s-a`


def occurrences(text: str, bounds: list[tuple[int, int]], form: str) -> Iterator[tuple[int, int]]:
    """Where a form stands, from the beginning of a word to the end of one, not tied to its neighbours by a mark.

    Args:
        text: half-open places in it are yielded, in code points.
        bounds: of its words.
        form: one word or several, in any case.
    """
    lowered, wanted = text.lower(), form.lower()
    if len(lowered) != len(text):  # a letter that lowers to two, such as the dotted capital I
        lowered = text
    at = lowered.find(wanted)
    if at < 0:
        return
    starts, ends = {s for s, _ in bounds}, {e for _, e in bounds}
    while at >= 0:
        end = at + len(form)
        tied = (at > 0 and text[at - 1] in _TIES) or text[end : end + 1] in _TIES
        if at in starts and end in ends and not tied:
            yield at, end
        at = lowered.find(wanted, at + 1)


def cased(form: str, like: str) -> str:
    """A form with a capital letter where what it stands for had one."""
    return form[0].upper() + form[1:] if like[0].isupper() else form


def differing_words(old: str, new: str) -> tuple[int, int, str]:
    """What `new` changes of `old`, without words that both begin or end with: half-open place, and what comes there."""
    before, after = old.split(" "), new.split(" ")
    first = 0
    while first < min(len(before), len(after)) - 1 and before[first] == after[first]:
        first += 1
    last = 0
    while last < min(len(before), len(after)) - first - 1 and before[-1 - last] == after[-1 - last]:
        last += 1
    start = len(" ".join([*before[:first], ""]))
    end = len(old) - len(" ".join(["", *before[len(before) - last :]])) if last else len(old)
    return start, end, " ".join(after[first : len(after) - last])

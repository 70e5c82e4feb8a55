"""What a judge said, read strictly: one JSON value of the form that was asked for, or an error that says why not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from veriglot.llm import AnswerError, Reply, decode_answer
from veriglot.llm.thoughts import after_thoughts

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["read_answer"]

T = TypeVar("T")

_EXCERPT = 160
_DECODER = json.JSONDecoder()


def read_answer(reply: Reply, type_: type[T]) -> T:
    """The value that a reply holds.

    Thoughts before the answer and words around the JSON are passed over. What would have to be guessed is refused.

    Raises:
        AnswerError: the provider held the reply back; it was cut at its length; it holds no value of the type, such as
            that of a model which refuses in words; or it holds several that differ.
    """
    if reply.finish == "filter":
        raise AnswerError(f"The judge's provider held its reply back{_excerpt(reply.text)}")
    if reply.finish == "length":
        raise AnswerError(
            f"The judge's reply was cut at its length{_excerpt(reply.text)}", remedy="Raise the option max_tokens."
        )
    text = _whole(after_thoughts(reply.text))
    if not text.strip():
        raise AnswerError("The judge's reply is empty.")
    found = [value for value in _values(text) if _fits(value, type_)]
    if not found:
        return decode_answer(msgspec.structs.replace(reply, text=text), type_)  # which raises, and says where
    if any(value != found[0] for value in found[1:]):
        raise AnswerError(f"The judge's reply holds {len(found)} answers that differ{_excerpt(text)}")
    return msgspec.convert(found[0], type_)


def _values(text: str) -> Iterator[Any]:
    """The JSON objects of a text, from left to right, those within another not among them."""
    place = text.find("{")
    while place >= 0:
        try:
            value, end = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            yield value
        place = text.find("{", end)


def _fits(value: Any, type_: type[Any]) -> bool:
    try:
        msgspec.convert(value, type_)
    except msgspec.ValidationError:
        return False
    return True


def _whole(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _excerpt(text: str) -> str:
    shown = " ".join(text.split())
    return f"; it begins: {shown[:_EXCERPT]!r}" if shown else "."

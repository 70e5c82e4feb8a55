"""Answers as JSON: the schema of a type, how to ask for it in words, and how to read what came."""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

import msgspec

from veriglot.llm.client import AnswerError, Message, Reply, Request

__all__ = ["after_thoughts", "asked_in_words", "decode_answer", "parted_thoughts", "schema_of"]


T = TypeVar("T")

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL | re.IGNORECASE)
_EXCERPT = 200


def schema_of(type_: Any) -> dict[str, Any]:
    """The JSON schema of a msgspec type, in the form that strict servers take.

    No references, and every object names all its properties as required and allows no others.
    """
    (schema,), parts = msgspec.json.schema_components([type_], ref_template="{name}")
    flat: dict[str, Any] = _flat(schema, parts, ())
    return flat


def _flat(node: Any, parts: dict[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_flat(item, parts, inside) for item in node]
    if not isinstance(node, dict):
        return node
    name = node.get("$ref")
    if isinstance(name, str):
        if name in inside:
            raise ValueError(f"{name} holds itself, which a schema without references cannot say")
        return _flat(parts[name], parts, (*inside, name))
    flat = {key: _flat(value, parts, inside) for key, value in node.items() if key not in ("title", "default")}
    if isinstance(node.get("properties"), dict):
        flat["properties"] = {key: _flat(value, parts, inside) for key, value in node["properties"].items()}
        flat["required"] = list(node["properties"])
        flat["additionalProperties"] = False
    return flat


def asked_in_words(request: Request) -> Request:
    """The same request, with its schema in the text, for servers that take none.

    It stands at the end of the last message of the user, or of the prompt.
    """
    schema = json.dumps(request.schema, ensure_ascii=False, sort_keys=True)
    wish = f"\n\nAnswer with one JSON value that follows this JSON schema, and with nothing else:\n{schema}"
    if request.prompt is not None:
        return msgspec.structs.replace(request, prompt=f"{request.prompt}{wish}\n", schema=None)
    last = max((n for n, message in enumerate(request.messages) if message.role == "user"), default=-1)
    messages = list(request.messages)
    if last < 0:
        messages.append(Message("user", wish.strip()))
    else:
        messages[last] = Message("user", messages[last].content + wish)
    return msgspec.structs.replace(request, messages=tuple(messages), schema=None)


def decode_answer(reply: Reply, type_: type[T]) -> T:
    """The value that a reply holds, checked against a type.

    The reply is JSON, or has one JSON value in a fenced block, or one object or array with words before and after it.

    Raises:
        AnswerError: there is no such value, or it is not of the type; the message says where.
    """
    trouble = ""
    for candidate in _candidates(reply.text):
        try:
            return msgspec.json.decode(candidate, type=type_)
        except msgspec.ValidationError as error:
            trouble = trouble or f"its JSON is not as asked: {error}"
        except msgspec.DecodeError:
            continue
    text = " ".join(reply.text.split())
    shown = text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]} ..."
    cut = " The reply was cut at its length." if reply.finish == "length" else ""
    raise AnswerError(
        f"The reply is not what was asked for: {trouble or 'it holds no JSON'}.{cut} It begins: {shown!r}",
        remedy="Raise max_tokens." if cut else "Ask again with another seed, or ask a model that follows schemas.",
        retryable=False,
    )


def _candidates(text: str) -> list[str]:
    """The parts of a text that may be the value, the likeliest first."""
    candidates = [text.strip(), *(block.strip() for block in _FENCED.findall(text))]
    starts = [start for start in (text.find("{"), text.find("[")) if start >= 0]
    if starts:
        start = min(starts)
        end = text.rfind("}" if text[start] == "{" else "]")
        candidates.append(text[start : end + 1])
    return [candidate for candidate in candidates if candidate]


# What a model that thinks first wrote between `<think>` tags, and its answer.


_OPENED = re.compile(r"\s*<think(?:ing)?>(?P<thought>.*?)(?:</think(?:ing)?>|\Z)\s*", re.DOTALL)
_CLOSED = re.compile(r"(?P<thought>.*)</think(?:ing)?>\s*", re.DOTALL)


def parted_thoughts(text: str) -> tuple[str, str]:
    """The thoughts at the beginning, and what stands after them: nothing where they never end.

    Some chat templates end the prompt with the opening tag, so that the reply has the closing one alone.
    """
    match = _OPENED.match(text) or _CLOSED.match(text)
    return (match["thought"].strip(), text[match.end() :]) if match else ("", text)


def after_thoughts(text: str) -> str:
    """What stands after the thoughts; see `parted_thoughts`."""
    return parted_thoughts(text)[1]

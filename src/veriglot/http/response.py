"""The answer of a web server: status, headers and bytes, with the JSON in them."""

from __future__ import annotations

import json as json_
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Response"]

_UNREAD = object()


@dataclass(frozen=True)
class Response:
    """An answer that arrived whole.

    Attributes:
        status: the HTTP status, 200 to 299.
        headers: the headers, by lower-case name.
        data: the body, decompressed.
    """

    status: int
    headers: Mapping[str, str]
    data: bytes
    _decoded: list[Any] = field(default_factory=lambda: [_UNREAD], repr=False, compare=False)

    def json(self) -> Any:
        """The body as JSON; decoded once.

        Raises:
            ValueError: it is not JSON.
        """
        if self._decoded[0] is _UNREAD:
            self._decoded[0] = _decode(self.data)
        return self._decoded[0]

    def message(self) -> str:
        """What an error says in words, where it says it as JSON APIs do (`error.message` and the like); else empty."""
        try:
            content = self.json()
        except ValueError:
            return ""
        while isinstance(content, dict):
            content = content.get("error") or content.get("message") or content.get("detail")
        return content if isinstance(content, str) else ""


def _decode(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        # Python's own decoder also takes NaN, Infinity and half surrogate pairs, which model servers do write.
        return json_.loads(data)

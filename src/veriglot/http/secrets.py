"""Keys: read from the environment, sent in a header, and blacked out wherever they might show."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NoReturn

from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Secrets", "refuse_given_key", "refuse_secret_headers"]

_BLACK = "[secret]"
_NAME = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")  # what can be shown as the name of a variable without a second thought
_SECRET_HEADER = re.compile(
    r"(proxy-)?authorization|cookie|(.*[-_])?(api|access|auth|secret|subscription)?[-_]?(key|token|secret|password)"
)
_SHORTEST_IN_TEXT = 4
_SHORTEST_IN_DATA = 16  # local servers take words such as "ollama" for a key, and an answer may hold those


class Secrets:
    """Headers whose values nobody gets to see.

    Args:
        variables: header name -> name of the environment variable that holds its value. An `Authorization` whose value
            names no scheme is sent as `Bearer <value>`.

    Raises:
        UsageError: a variable is not set or empty, or its value cannot be sent in a header. A name that could be a key,
            given where the name of its variable belongs, is not shown.
    """

    __slots__ = ("_values", "variables")

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.variables = dict(variables)
        self._values = {header: _read(variable) for header, variable in variables.items()}

    def __repr__(self) -> str:
        return f"Secrets({self.variables})"

    def __bool__(self) -> bool:
        return bool(self._values)

    def __reduce__(self) -> NoReturn:
        raise TypeError("secrets are not written anywhere; give the names of the variables instead")

    def put(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The headers with the secret ones beside them; the one place where the values leave this object."""
        return {**headers, **{header: _with_scheme(header, value) for header, value in self._values.items()}}

    def black_out(self, text: str) -> str:
        """The text with every value of at least 4 characters replaced."""
        for value in self._parts():
            if len(value) >= _SHORTEST_IN_TEXT:
                text = text.replace(value, _BLACK)
        return text

    def black_out_data(self, data: bytes) -> bytes:
        """The bytes with every value of at least 16 characters replaced: a server may echo what it was sent."""
        for value in self._parts():
            if len(value) >= _SHORTEST_IN_DATA:
                data = data.replace(value.encode("latin-1"), _BLACK.encode())
        return data

    def _parts(self) -> list[str]:
        """The values, and what stands after a scheme in them; the longest first, so that none is left in part."""
        parts = {part for value in self._values.values() for part in (value, value.rpartition(" ")[2])}
        return sorted(parts - {""}, key=len, reverse=True)


def refuse_secret_headers(headers: Mapping[str, str]) -> None:
    """Refuse headers that hold keys by their names: those given openly end in logs, files and signatures.

    Raises:
        UsageError: there is such a header; its value is not shown.
    """
    for header in headers:
        if _SECRET_HEADER.fullmatch(header.strip().lower()):
            raise UsageError(
                f"The header {header!r} is given openly, and holds a key.",
                remedy="Put the key into an environment variable, and give the variable's name instead.",
            )


def refuse_given_key(variable: str) -> None:
    """Refuse what may be a key where the name of its variable belongs, before it is copied anywhere.

    Raises:
        UsageError: it does not look like the name of a variable, and there is none of that name. It is not shown.
    """
    if not _NAME.fullmatch(variable) and not os.environ.get(variable):
        raise UsageError(
            "There is no environment variable of the name that was given for the key. The name is not shown, as it may"
            " be the key itself.",
            remedy="Type: export API_KEY=<the key>, and give the name API_KEY.",
        )


def _read(variable: str) -> str:
    refuse_given_key(variable)
    value = os.environ.get(variable, "").strip()
    empty, sendable = not value, value.isascii() and value.isprintable()
    if value and sendable:
        return value
    del value  # a traceback can show the variables of the frames in it
    if empty:
        raise UsageError(
            f"The environment variable {variable} is not set.", remedy=f"Type: export {variable}=<the key>"
        )
    raise UsageError(
        f"The value of the environment variable {variable} cannot be sent: it is not plain ASCII in one line.",
        remedy="Copy the key again.",
    )


def _with_scheme(header: str, value: str) -> str:
    return f"Bearer {value}" if header.lower() == "authorization" and " " not in value else value

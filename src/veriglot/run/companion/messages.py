"""What goes over the pipe: one JSON object a line, in UTF-8.

The other side says `hello` as soon as it runs, and `ready` or `refused` once it was told to `open` a model. Then every
`batch` is answered by `results` of the same number, one row a row and in order. It leaves when its input ends.
"""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["PROTOCOL", "Batch", "Hello", "Message", "Open", "Ready", "Refusal", "Results", "Row"]

PROTOCOL = 1


class Hello(msgspec.Struct, frozen=True, tag_field="type", tag="hello"):
    """The other side runs.

    Attributes:
        protocol: the version that it speaks.
        engine: its name.
        python: version of the interpreter.
        packages: versions of what the engine stands on, by name.
    """

    protocol: int
    engine: str
    python: str
    packages: dict[str, str] = {}


class Open(msgspec.Struct, frozen=True, tag_field="type", tag="open"):
    """Load the model; `options` are the engine's own."""

    options: dict[str, Any]


class Ready(msgspec.Struct, frozen=True, tag_field="type", tag="ready"):
    """The model is loaded; `about` is what the engine says of it."""

    about: dict[str, Any] = {}


class Refusal(msgspec.Struct, frozen=True, tag_field="type", tag="refused"):
    """The model cannot be loaded: what happened, and what to do."""

    message: str
    remedy: str = ""


class Batch(msgspec.Struct, frozen=True, tag_field="type", tag="batch"):
    """Rows to work on."""

    id: int
    rows: list[dict[str, Any]]


class Row(msgspec.Struct, frozen=True):
    """What came of one row: a value, or an error.

    Attributes:
        value: a finite number; None with an error.
        parts: further numbers, by name.
        details: what else the engine gives, such as error spans.
        error: why there is no value.
        status: with an error, the status that the row ends in: `failed`, `too_long` or `unsupported_language`.
    """

    value: float | None = None
    parts: dict[str, float] = {}
    details: dict[str, Any] = {}
    error: str | None = None
    status: str = "failed"


class Results(msgspec.Struct, frozen=True, tag_field="type", tag="results"):
    """The answer to the batch of the same number."""

    id: int
    rows: list[Row]


Message = Hello | Ready | Refusal | Results

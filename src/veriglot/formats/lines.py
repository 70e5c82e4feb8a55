"""Lines of a byte stream, one at a time and never more of one than a bound: a huge line is skipped, not held."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from veriglot.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MAX_LINE_BYTES", "TooLongError", "iter_lines"]

MAX_LINE_BYTES = 32 << 20
"""A line longer than this many bytes is reported and skipped."""

_KEPT_OF_TOO_LONG = 4096
_SKIP_BLOCK = 1 << 20
_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


class TooLongError(InputError):
    """A line longer than the bound; `beginning` holds its first bytes."""

    def __init__(self, beginning: bytes, limit: int, line: int) -> None:
        super().__init__(
            f"the line is longer than {limit} bytes",
            remedy="If it is meant to be, raise max_line_bytes, or first `veriglot convert --max-line-mb`.",
            line=line,
        )
        self.beginning = beginning


def iter_lines(stream: BinaryIO, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[int, bytes | TooLongError]]:
    """Line number (from 1) and content of each line, line break included, UTF-8 byte order mark removed.

    Raises:
        InputError: the stream starts with a UTF-16 byte order mark.
    """
    number = 0
    while chunk := stream.readline(max_line_bytes + 2):
        number += 1
        if number == 1:
            chunk = _without_bom(chunk)
        if len(chunk) > max_line_bytes and not chunk.endswith(b"\n"):
            _skip_line(stream)
            yield number, TooLongError(chunk[:_KEPT_OF_TOO_LONG], max_line_bytes, number)
        else:
            yield number, chunk


def _without_bom(chunk: bytes) -> bytes:
    if chunk.startswith(_UTF16_BOMS):
        raise InputError("this is UTF-16, not UTF-8", remedy="Convert the file to UTF-8 first.", line=1)
    return chunk.removeprefix(_UTF8_BOM)


def _skip_line(stream: BinaryIO) -> None:
    while block := stream.readline(_SKIP_BLOCK):
        if block.endswith(b"\n"):
            return

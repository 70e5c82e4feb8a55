"""Readers and writers: one small class a format, in the table `FORMATS`; `read` guesses which one a file is in."""

from veriglot.formats.base import FileReport, Format, Losses, Report, TagReport
from veriglot.formats.containers import MAX_LINE_BYTES, BadRow
from veriglot.formats.reader import SeenIds, guess, read, read_predictions, read_rows
from veriglot.formats.registry import FORMATS, load_format
from veriglot.formats.tags import parse_tags
from veriglot.formats.writer import Writer, open_writer, write, write_predictions

__all__ = [
    "FORMATS",
    "MAX_LINE_BYTES",
    "BadRow",
    "FileReport",
    "Format",
    "Losses",
    "Report",
    "SeenIds",
    "TagReport",
    "Writer",
    "guess",
    "load_format",
    "open_writer",
    "parse_tags",
    "read",
    "read_predictions",
    "read_rows",
    "write",
    "write_predictions",
]

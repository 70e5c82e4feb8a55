"""Readers and writers: one small class a format, in the table `FORMATS`; `read` guesses which one a file is in."""

from veriglot.formats.format import Format, Reading, Sniff
from veriglot.formats.guessing import Guess, guess
from veriglot.formats.lines import MAX_LINE_BYTES
from veriglot.formats.reading import read, read_rows
from veriglot.formats.report import FileReport, Loss, Losses, Report, TagReport
from veriglot.formats.rows import BadRow
from veriglot.formats.table import FORMATS, load_format

__all__ = [
    "FORMATS",
    "MAX_LINE_BYTES",
    "BadRow",
    "FileReport",
    "Format",
    "Guess",
    "Loss",
    "Losses",
    "Reading",
    "Report",
    "Sniff",
    "TagReport",
    "guess",
    "load_format",
    "read",
    "read_rows",
]

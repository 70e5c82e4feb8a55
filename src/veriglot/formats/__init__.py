"""Readers and writers: one small class a format, in the table `FORMATS`; `read` guesses which one a file is in."""

from veriglot.formats.format import Format, Reading, Sniff
from veriglot.formats.guessing import Guess, guess
from veriglot.formats.lines import MAX_LINE_BYTES
from veriglot.formats.predictions import read_prediction_rows, read_predictions
from veriglot.formats.reading import SeenIds, read, read_rows
from veriglot.formats.report import FileReport, Loss, Losses, Report, TagReport
from veriglot.formats.rows import BadRow
from veriglot.formats.table import FORMATS, load_format
from veriglot.formats.tags import Tagged, parse_tags, render_tags
from veriglot.formats.writing import Writer, format_for, open_writer, write, write_predictions

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
    "SeenIds",
    "Sniff",
    "TagReport",
    "Tagged",
    "Writer",
    "format_for",
    "guess",
    "load_format",
    "open_writer",
    "parse_tags",
    "read",
    "read_prediction_rows",
    "read_predictions",
    "read_rows",
    "render_tags",
    "write",
    "write_predictions",
]

"""What checking a data set found, for people: the terminal, one HTML file, a page of Markdown."""

from veriglot.report.checking.markdown import check_markdown
from veriglot.report.checking.page import write_check
from veriglot.report.checking.terminal import render_check

__all__ = ["check_markdown", "render_check", "write_check"]

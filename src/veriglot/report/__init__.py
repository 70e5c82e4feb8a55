"""Views of judged samples and of studies: the terminal, self-contained HTML files, and tables."""

from veriglot.report.html import write_html
from veriglot.report.study.page import write_study
from veriglot.report.terminal import render_terminal

__all__ = ["render_terminal", "write_html", "write_study"]

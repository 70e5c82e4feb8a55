"""Views of judged samples: the terminal and one self-contained HTML file."""

from veriglot.report.html import write_html
from veriglot.report.terminal import render_terminal

__all__ = ["render_terminal", "write_html"]

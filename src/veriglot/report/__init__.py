"""Views of judged samples and of studies: the terminal, self-contained HTML files, and tables."""

from veriglot.report.pages import write_html
from veriglot.report.study import render_study, study_table, write_study, write_tables
from veriglot.report.terminal import render_terminal

__all__ = ["render_study", "render_terminal", "study_table", "write_html", "write_study", "write_tables"]

"""Views of a study's results: one self-contained HTML file, tables for papers and programs, and the terminal."""

from veriglot.report.study.documents import FORMATS, study_table, write_tables
from veriglot.report.study.page import write_study
from veriglot.report.study.terminal import render_study

__all__ = ["FORMATS", "render_study", "study_table", "write_study", "write_tables"]

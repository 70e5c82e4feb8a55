"""Views of a study's results: one self-contained HTML file, tables for papers and programs, and the terminal."""

from veriglot.report.study.findings import render_study
from veriglot.report.study.page import write_study
from veriglot.report.study.tables import study_table, write_tables

__all__ = ["render_study", "study_table", "write_study", "write_tables"]

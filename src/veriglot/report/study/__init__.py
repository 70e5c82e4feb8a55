"""Views of a study's results: one self-contained HTML file, tables for papers and programs, and the terminal."""

from veriglot.report.study.page import write_study

__all__ = ["write_study"]

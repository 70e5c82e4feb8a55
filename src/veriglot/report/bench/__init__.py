"""Views of a bench's results: one self-contained HTML file, tables for papers and programs, and the terminal."""

from veriglot.report.bench.page import write_bench
from veriglot.report.bench.tables import bench_document, render_bench, write_bench_tables

__all__ = ["bench_document", "render_bench", "write_bench", "write_bench_tables"]

"""Views of a bench's results: one self-contained HTML file, tables for papers and programs, and the terminal."""

from veriglot.report.bench.documents import FORMATS, bench_document, write_bench_tables
from veriglot.report.bench.page import write_bench
from veriglot.report.bench.terminal import render_bench

__all__ = ["FORMATS", "bench_document", "render_bench", "write_bench", "write_bench_tables"]

"""Views of a bench's results: one self-contained HTML file, tables for papers and programs, and the terminal."""

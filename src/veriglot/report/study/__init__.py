"""Views of a study's results: one self-contained HTML file, tables for papers and programs, and the terminal."""

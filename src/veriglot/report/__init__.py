"""Views of judged samples and of studies: the terminal, self-contained HTML files, and tables."""

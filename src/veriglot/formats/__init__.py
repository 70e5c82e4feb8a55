"""Readers and writers: one small class a format, in the table `FORMATS`; `read` guesses which one a file is in."""

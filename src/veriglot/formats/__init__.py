"""Readers and writers: one small class per format, in the registry `FORMATS`; `read` detects the format of a file."""

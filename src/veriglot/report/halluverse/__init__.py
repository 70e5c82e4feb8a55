"""A set as HalluVerse25 is, for people: one HTML file with its yields and the diversity of those whom it is about."""

from veriglot.report.halluverse.page import write_set

__all__ = ["write_set"]

"""Samples of translations for people to annotate, out of tens of millions of lines (HAT, section 2)."""

"""Samples of translations for annotation, from tens of millions of lines (HAT, section 2)."""

"""Checks on data sets: what is wrong with them, with counts and examples, and a cleaned copy with reasons."""

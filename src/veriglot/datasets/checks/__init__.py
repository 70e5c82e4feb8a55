"""Checks data sets: lists problems with counts and examples, and writes a cleaned copy."""

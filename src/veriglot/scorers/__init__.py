"""Scorers: a number a sample, with its direction stated."""

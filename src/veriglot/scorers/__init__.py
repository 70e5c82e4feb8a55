"""Scorers: a score per sample, with its direction stated."""

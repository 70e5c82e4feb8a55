"""Errors that a model inserts into texts, and the check of every silver row."""

"""Detectors and scorers against labelled data."""

__all__: list[str] = []

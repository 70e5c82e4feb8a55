"""Detectors and scorers against labelled data."""

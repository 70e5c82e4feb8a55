"""Scorers that are networks: trained judges of faithfulness and of translations (docs/neural_scorers.md)."""

"""Data cards."""

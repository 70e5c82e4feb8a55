"""Crash-safe files: atomic writes, locks, row-by-row outputs and their manifests."""

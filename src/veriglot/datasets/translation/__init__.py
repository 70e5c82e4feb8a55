"""Annotated samples in other languages, with their spans."""

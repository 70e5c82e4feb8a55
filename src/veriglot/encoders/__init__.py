"""Encoders: vectors of sentences and of tokens, with code point offsets; loaded by name."""

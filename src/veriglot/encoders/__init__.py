"""Encoders: texts in, vectors of sentences and of tokens out, with code point offsets; by name, loaded on use."""

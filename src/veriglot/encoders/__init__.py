"""Encoders: texts in, vectors of sentences and of tokens out, with code point offsets; by name, loaded on use."""

from veriglot.encoders.registry import load_encoder

__all__ = ["load_encoder"]

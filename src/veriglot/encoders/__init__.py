"""Encoders: texts in, vectors of sentences and of tokens out, with code point offsets; by name, loaded on use."""

from veriglot.encoders.base import Encoded, Encoder, Strength, word_vectors
from veriglot.encoders.registry import ENCODERS, load_encoder

__all__ = ["ENCODERS", "Encoded", "Encoder", "Strength", "load_encoder", "word_vectors"]

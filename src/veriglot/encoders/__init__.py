"""Encoders: texts in, vectors of sentences and of tokens out, with code point offsets; by name, loaded on use."""

from veriglot.encoders.encoder import Encoded, Encoder, Strength, Tokens
from veriglot.encoders.table import ENCODERS, load_encoder
from veriglot.encoders.word_vectors import word_vectors

__all__ = ["ENCODERS", "Encoded", "Encoder", "Strength", "Tokens", "load_encoder", "word_vectors"]

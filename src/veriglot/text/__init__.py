"""Scripts, language identification, sentences, words and normalisation, with offsets exact in code points."""

from veriglot.text.folding import fold
from veriglot.text.words import word_bounds, words

__all__ = ["fold", "word_bounds", "words"]

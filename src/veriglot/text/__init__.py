"""Scripts, language identification, sentences, words and normalisation, with offsets exact in code points."""

from veriglot.text.folding import fold
from veriglot.text.normalisation import Normalised, normalise
from veriglot.text.sentences import sentences
from veriglot.text.words import word_bounds, words

__all__ = ["Normalised", "fold", "normalise", "sentences", "word_bounds", "words"]

"""Scripts, language identification, sentences, words and normalisation, with offsets exact in code points."""

from veriglot.text.facts import Fact, fact_languages, facts
from veriglot.text.identification import Identified, identify
from veriglot.text.normalization import fold, normalise
from veriglot.text.segmentation import sentences, word_bounds, words
from veriglot.text.unicode import direction_of, script_of, script_shares, scripts

__all__ = [
    "Fact",
    "Identified",
    "direction_of",
    "fact_languages",
    "facts",
    "fold",
    "identify",
    "normalise",
    "script_of",
    "script_shares",
    "scripts",
    "sentences",
    "word_bounds",
    "words",
]

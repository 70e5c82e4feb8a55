"""Scripts, language identification, sentences, words and normalisation, with offsets exact in code points."""

from veriglot.text.facts import Fact, fact_languages, facts
from veriglot.text.folding import fold
from veriglot.text.identification import Identified, identify
from veriglot.text.normalisation import Normalised, normalise
from veriglot.text.script import direction_of, script_of, script_shares, scripts
from veriglot.text.sentences import sentences
from veriglot.text.words import word_bounds, words

__all__ = [
    "Fact",
    "Identified",
    "Normalised",
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

"""Scripts, language identification, sentences, words and normalisation, with offsets exact in code points."""

from veriglot.text.facts import facts

__all__ = ["facts"]

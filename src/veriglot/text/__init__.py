"""Scripts, language identification, sentences, words, facts and normalisation, with offsets exact in code points."""

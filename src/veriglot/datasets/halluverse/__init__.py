"""HalluVerse's data set in any language: pages about people, factual sentences, and one checked error in each."""

"""HalluVerse's set in any language: people's pages, factual sentences of them, an error in each, all of it checked."""

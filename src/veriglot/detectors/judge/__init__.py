"""Language models as judges: of spans, of translations, of atomic facts, of pairs. See `docs/judges.md`."""

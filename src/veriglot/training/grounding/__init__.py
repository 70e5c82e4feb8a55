"""Training the grounding detector."""

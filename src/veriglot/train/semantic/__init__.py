"""Training the semantic detector."""

"""Training the reader of the semantic detector."""

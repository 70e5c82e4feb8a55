"""The detector `reader`: question, response and evidence read together."""

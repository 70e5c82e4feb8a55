"""The embedded detector: holds every word of a response against the evidence, offline, in every language."""

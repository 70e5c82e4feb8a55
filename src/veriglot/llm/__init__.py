"""Talking to language models: one protocol, several clients, a cache that pays once, limits that stop cleanly."""

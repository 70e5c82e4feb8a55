"""Clients of language models: one protocol, a cache that avoids paying twice, and spending limits."""

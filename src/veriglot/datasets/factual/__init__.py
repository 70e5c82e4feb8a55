"""Kang's set: people with an article in every language, sampled biographies, and what each is held against."""

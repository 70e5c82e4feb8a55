"""Model files by name: what they are, their licence, where to get them, and whether they are what they should be."""

"""Model files by name: description, licence, sources, and verification."""

"""Stages over records: the local engine, the outputs it makes, and how they resume."""

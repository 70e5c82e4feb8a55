"""Processing of records: the local engine, its outputs, and how they resume."""

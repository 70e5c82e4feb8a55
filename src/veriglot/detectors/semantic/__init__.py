"""The semantic detector: support by meaning, across paraphrase and across languages. See `docs/semantic.md`."""

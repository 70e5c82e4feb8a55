"""The semantic detector: support by meaning, across paraphrase and across languages. See `docs/semantic.md`."""

from veriglot.detectors.semantic.detector import Semantic

__all__ = ["Semantic"]

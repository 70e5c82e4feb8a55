"""Guidelines: Markdown by interface language, made into harmless HTML."""

from veriglot.annotate.guidelines.choosing import Guidelines, guidelines
from veriglot.annotate.guidelines.rendering import render

__all__ = ["Guidelines", "guidelines", "render"]

"""Span types in the taxonomy that a format writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.errors import UsageError
from veriglot.records import taxonomy

if TYPE_CHECKING:
    from veriglot.records import Annotation, Span

__all__ = ["RAGTRUTH_LABELS", "type_in"]

# RAGTruth's names for the types of `support`; LettuceDetect's rows have them from there.
RAGTRUTH_LABELS = {"contradicted": "Evident Conflict", "unverified": "Evident Baseless Info"}


def type_in(target: str, annotation: Annotation, span: Span) -> str | None:
    """The span's type in the taxonomy `target`; None where it has no counterpart or the taxonomies no mapping."""
    try:
        return taxonomy(annotation.taxonomy).to(target).get(span.type or "")
    except UsageError:
        return None

"""What a sample belongs to: the language that it is counted under, and the text that it is resampled with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.errors import UnknownNameError
from veriglot.provenance import digest
from veriglot.records.languages import language

if TYPE_CHECKING:
    from veriglot.records import Sample

__all__ = ["UNDETERMINED", "cluster_of", "tag_of"]

UNDETERMINED = "und"


def tag_of(name: str | None) -> str:
    """The tag that a language is counted under: `zho`, `Chinese` and `zh-CN` are one, and unknown names stay."""
    if name is None:
        return UNDETERMINED
    try:
        return language(name).tag
    except UnknownNameError:
        return name


def cluster_of(sample: Sample) -> str:
    """What is resampled as one: the group that the source names, or else the text."""
    group = sample.meta.get("group")
    return f"group:{group}" if isinstance(group, str | int) else digest([sample.response])[:16]

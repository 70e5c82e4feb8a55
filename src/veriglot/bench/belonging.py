"""Which language and text a sample belongs to, and whether a prediction is of its response."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.errors import InputError, UnknownNameError
from veriglot.provenance import digest
from veriglot.records.languages import language

if TYPE_CHECKING:
    from veriglot.records import Prediction, Sample

__all__ = ["OF_OTHERS", "UNDETERMINED", "check_marks", "cluster_of", "quoted", "tag_of"]

UNDETERMINED = "und"
OF_OTHERS = "Are these predictions of other data? They are joined by id alone."
_SHOWN = 40  # code points of a text that an error quotes


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


def check_marks(found: Prediction, sample: Sample, *, path: str | None = None) -> None:
    """Refuse a prediction whose marks show that it was made of another text than the sample of its id.

    Args:
        found: the prediction.
        sample: of the same id.
        path: where the prediction was read, for the error.

    Raises:
        InputError: a mark ends beyond the response, or the `text` of a span is not what stands there.
    """
    spans = found.spans or ()
    end = max([0, *(one.end for marks in (spans, found.words or (), found.units or ()) for one in marks)])
    if end > len(sample.response):
        raise InputError(
            f"the prediction of {sample.id!r} marks up to {end}, but its response has {len(sample.response)}"
            " characters",
            path=path,
            field="spans",
            remedy="Are these predictions of other data, or offsets in bytes or UTF-16? They are in code points.",
        )
    for span in spans:
        there = sample.response[span.start : span.end]
        if span.text is not None and span.text != there:
            raise InputError(
                f"the prediction of {sample.id!r} marks {quoted(span.text)}, but its response has {quoted(there)} at"
                f" [{span.start}, {span.end})",
                path=path,
                field="spans",
                remedy=OF_OTHERS,
            )


def quoted(text: str) -> str:
    """The beginning of a text, in quotation marks."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")

"""The table of formats: name to class, imported on use."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from veriglot.lazy import Entry, Table

if TYPE_CHECKING:
    from veriglot.formats.format import Format

__all__ = ["FORMATS", "load_format"]

_HERE = "veriglot.formats"

FORMATS = Table(
    "format",
    "veriglot.formats",
    {
        "jsonl": Entry(f"{_HERE}.native:NativeLines", summary="the native format, one JSON object a line"),
        "parquet": Entry(f"{_HERE}.native:NativeParquet", summary="the native format in Parquet"),
        "mfava": Entry(f"{_HERE}.mfava:Mfava", summary="mFAVA JSON, gold and silver"),
        "mfava-queries": Entry(f"{_HERE}.queries:MfavaQueries", summary="mFAVA references and queries"),
        "xsum": Entry(f"{_HERE}.xsum:XsumSpans", summary="hallucinated spans in XSum summaries"),
        "ragtruth": Entry(f"{_HERE}.ragtruth:RagTruth", summary="RAGTruth JSONL"),
        "mu-shroom": Entry(f"{_HERE}.mu_shroom:MuShroom", summary="Mu-SHROOM JSONL, SemEval-2025 task 3"),
        "wice": Entry(f"{_HERE}.wice:Wice", summary="WiCE claims and non-supported tokens"),
        "squad": Entry(f"{_HERE}.squad:Squad", summary="SQuAD and XQuAD: right answers with their paragraph"),
    },
)


def load_format(name: str) -> Format:
    """The format of that name.

    Raises:
        UnknownNameError: there is none; the error suggests the nearest.
    """
    return cast("Format", FORMATS.load(name)())

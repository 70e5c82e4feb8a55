"""The table of formats: name to class, imported on use."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from veriglot.plugins import Entry, Table

if TYPE_CHECKING:
    from veriglot.formats.base import Format

__all__ = ["FORMATS", "load_format"]

_HERE = "veriglot.formats"

FORMATS = Table(
    "format",
    "veriglot.formats",
    {
        "jsonl": Entry(f"{_HERE}.native:NativeLines", summary="the native format, one JSON object a line"),
        "parquet": Entry(f"{_HERE}.native:NativeParquet", summary="the native format in Parquet"),
        "mfava": Entry(f"{_HERE}.mfava:Mfava", summary="mFAVA JSON, gold and silver"),
        "mfava-queries": Entry(f"{_HERE}.mfava:MfavaQueries", summary="mFAVA references and queries"),
        "xsum": Entry(f"{_HERE}.xsum:XsumSpans", summary="hallucinated spans in XSum summaries"),
        "ragtruth": Entry(f"{_HERE}.ragtruth:RagTruth", summary="RAGTruth JSONL"),
        "mu-shroom": Entry(f"{_HERE}.mu_shroom:MuShroom", summary="Mu-SHROOM JSONL, SemEval-2025 task 3"),
        "wice": Entry(f"{_HERE}.wice:Wice", summary="WiCE claims and non-supported tokens"),
        "fava": Entry(f"{_HERE}.inline:Fava", summary="FAVA records with <mark> and <delete>"),
        "halluverse": Entry(f"{_HERE}.halluverse:HalluVerse", summary="HalluVerse25 CSV"),
        "halomi": Entry(f"{_HERE}.halomi:HalOmi", summary="HalOmi TSV"),
        "hat": Entry(f"{_HERE}.hat:Hat", summary="HAT JSON, spans in translations"),
        "inline": Entry(f"{_HERE}.inline:Inline", summary="inline tags: text, or records with `tagged`"),
        "label-studio": Entry(f"{_HERE}.label_studio:LabelStudio", summary="Label Studio JSON export"),
        "lettucedetect": Entry(f"{_HERE}.lettucedetect:LettuceDetect", summary="LettuceDetect training rows"),
        "psiloqa": Entry(f"{_HERE}.psiloqa:PsiloQa", summary="PsiloQA rows"),
        "xcomet": Entry(f"{_HERE}.xcomet:Xcomet", summary="XCOMET rows with error_spans"),
        "token-labels": Entry(f"{_HERE}.token_labels:TokenLabels", summary="token labels of translations"),
        "guerreiro": Entry(f"{_HERE}.guerreiro:Guerreiro", summary="pathologies of translations, CSV"),
        "mlqe": Entry(f"{_HERE}.mlqe:Mlqe", summary="critical translation errors of MLQE-PE, TSV"),
        "mqm": Entry(f"{_HERE}.mqm:Mqm", summary="MQM error spans in translations, TSV"),
        "squad": Entry(f"{_HERE}.squad:Squad", summary="SQuAD and XQuAD: right answers with their paragraph"),
    },
)


def load_format(name: str) -> Format:
    """The format of that name.

    Raises:
        UnknownNameError: there is none; the error suggests the nearest.
    """
    return cast("Format", FORMATS.load(name)())

"""Columns in, columns out: a function for `datasets.map`, and the accessor `df.veriglot` of pandas."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

import msgspec

import veriglot
from veriglot.errors import UsageError
from veriglot.integrations import needing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ()  # veriglot.integrations offers what is here


def detect_batch(
    batch: Mapping[str, Sequence[Any]],
    response: str = "response",
    evidence: str = "evidence",
    question: str | None = None,
    **options: Any,
) -> dict[str, list[Any]]:
    """Judge the rows of a table, for `dataset.map(detect_batch, batched=True)` of datasets.

    Args:
        batch: columns by name, such as a batch of datasets or a DataFrame.
        response: the column of responses. A row without one is not checked, and says so.
        evidence: the column of evidence: a text or several in each row, without those that are missing.
        question: the column of questions, if there is one.
        options: as for `veriglot.detect_many`: `detector`, `strictness`, `language`.

    Returns:
        Columns in the order of the rows, whose types are the same in every batch: `veriglot_verdict`; `veriglot_score`,
        NaN where the row was not checked; `veriglot_spans`, a JSON list, or `null` where the row was not checked;
        `veriglot_reason`, why it was not, or nothing.

    Raises:
        UsageError: the table has no such column.
    """
    columns = {"response": response, "evidence": evidence} | ({"question": question} if question else {})
    for key, name in columns.items():
        if name not in batch:
            raise UsageError(
                f"The table has no column {name!r}, but {', '.join(map(repr, batch))}.",
                remedy=f"Say which column holds it: {key}=COLUMN.",
            )
    values = [[_plain(value) for value in batch[column]] for column in columns.values()]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]
    predictions = list(
        veriglot.detect_many(
            [{**row, "response": "" if row["response"] is None else row["response"]} for row in rows], **options
        )
    )
    judged = [(prediction.get_spans(None), prediction) for prediction in predictions]
    return {
        "veriglot_verdict": [str(prediction.verdict) for prediction in predictions],
        "veriglot_score": [nan if marked is None else prediction.score for marked, prediction in judged],
        "veriglot_spans": [msgspec.json.encode(marked).decode() for marked, _ in judged],
        "veriglot_reason": [prediction.reason or "" for prediction in predictions],
    }


def _plain(value: Any) -> Any:
    """A cell without the types of numpy; None for what is missing: NaN, or pandas' NA, which equals nothing."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list):
        return [part for part in map(_plain, value) if part is not None]
    return value if (value != value) is False else None


class _Accessor:
    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def detect(
        self, response: str = "response", evidence: str = "evidence", question: str | None = None, **options: Any
    ) -> Any:
        """The columns of `detect_batch` as a DataFrame with the same index: `df.join(df.veriglot.detect())`."""
        columns = detect_batch(self._frame, response, evidence, question, **options)
        return type(self._frame)(columns, index=self._frame.index)


def register_pandas() -> None:
    """Give every DataFrame of pandas the accessor `df.veriglot`.

    Raises:
        UsageError: pandas is not installed.
    """
    with needing("pandas"):
        import pandas
    if getattr(pandas.DataFrame, "veriglot", None) is not _Accessor:  # a second call is no second registration
        pandas.api.extensions.register_dataframe_accessor("veriglot")(_Accessor)

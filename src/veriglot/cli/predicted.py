"""What `veriglot convert --predictions` joins with the samples that it reads, and how it accounts for that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from veriglot.bench.annotating import PredictedLabels
    from veriglot.formats import BadRow
    from veriglot.records import Sample

__all__ = ["account_of", "labelled_rows", "predicted_labels"]

_NAMED = 3


def predicted_labels(path: str | None, annotator: str | None, taxonomy: str | None) -> PredictedLabels | None:
    """The predictions of a file; None where none is named.

    Raises:
        UsageError: an option that is of no use without a file.
        InputError: the file cannot be read, holds no predictions, or two of one id.
    """
    if path is None:
        for name, given in (("--annotator", annotator), ("--taxonomy", taxonomy)):
            if given is not None:
                raise UsageError(f"{name} is of predictions.", remedy="Add --predictions FILE.")
        return None
    from veriglot.bench.annotating import PredictedLabels
    from veriglot.formats import read_predictions

    try:
        return PredictedLabels.of(read_predictions(path), annotator=annotator, taxonomy=taxonomy)
    except InputError as error:
        raise error.at(path=path) from error


def labelled_rows(rows: Iterable[Sample | BadRow], labels: PredictedLabels, source: str) -> Iterator[Sample | BadRow]:
    """The rows, samples with their predictions as annotations; one that these cannot belong to is a bad row.

    Raises:
        InputError: not one of the predictions belongs to a sample.
    """
    from veriglot.formats import BadRow
    from veriglot.records import Sample, encode

    for row in rows:
        if not isinstance(row, Sample):
            yield row
            continue
        try:
            yield labels.put_into(row)
        except InputError as error:
            yield BadRow(source, 0, error.at(path=source), encode(row).decode())
    if len(labels.unused) == len(labels.predictions):
        raise InputError(
            f"not one of the {len(labels.predictions):,} predictions belongs to a sample: no id is the same",
            path=source,
            remedy="Give the samples that the predictions were made of.",
        )


def account_of(labels: PredictedLabels) -> Iterator[str]:
    """What became of the predictions, a sentence each."""
    yield (
        f"{labels.joined:,} samples got an annotation by {labels.annotator!r} (kind model, taxonomy {labels.taxonomy})."
    )
    if labels.unchecked:
        told = ", ".join(f"{status} {count:,}" for status, count in labels.unchecked.most_common())
        yield f"{labels.unchecked.total():,} samples were not checked and got none: {told}."
    for ids, what in (
        (labels.missing, "samples have no prediction and got no annotation"),
        (labels.unused, "predictions belong to no sample"),
    ):
        if ids:
            yield f"{len(ids):,} {what}, such as {', '.join(map(repr, ids[:_NAMED]))}."

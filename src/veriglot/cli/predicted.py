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

    Nothing is yielded before one of the predictions fits, so that what is written of the rows is not begun in vain.

    Raises:
        InputError: not one of the predictions fits a sample.
    """
    held: list[Sample | BadRow] = []  # at worst all rows: no more than the predictions, which are in memory too
    refused: InputError | None = None
    for row in rows:
        made, error = _labelled(row, labels, source)
        refused = refused or error
        held.append(made)
        if labels.fit:
            yield from held
            held.clear()
    if not labels.fit:
        raise _no_fit(labels, refused, source)


def _labelled(row: Sample | BadRow, labels: PredictedLabels, source: str) -> tuple[Sample | BadRow, InputError | None]:
    """A row with its prediction, or as a bad one with what stands against it."""
    from veriglot.formats import BadRow
    from veriglot.records import Sample, encode

    if not isinstance(row, Sample):
        return row, None
    try:
        return labels.put_into(row), None
    except InputError as error:
        return BadRow(source, 0, error.at(path=source), encode(row).decode()), error


def _no_fit(labels: PredictedLabels, refused: InputError | None, source: str) -> InputError:
    what, remedy = "no id is the same", "Give the samples that the predictions were made of."
    if refused is not None:
        what, remedy = f"{labels.refused:,} have the id of one, but the first of them: {refused.detail}", refused.remedy
    return InputError(
        f"not one of the {len(labels.predictions):,} predictions belongs to a sample: {what}",
        path=source,
        remedy=remedy,
    )


def account_of(labels: PredictedLabels) -> Iterator[str]:
    """What became of the predictions, a sentence each."""
    yield (
        f"{labels.joined:,} samples got an annotation by {labels.annotator!r} (kind model, taxonomy {labels.taxonomy})."
    )
    if labels.unchecked:
        told = ", ".join(f"{status} {count:,}" for status, count in labels.unchecked.most_common())
        yield f"{labels.unchecked.total():,} samples were not checked and got none: {told}."
    if labels.refused:
        yield f"{labels.refused:,} samples have a prediction that could not be put into them."
    for ids, what in (
        (labels.missing, "samples have no prediction and got no annotation"),
        (labels.unused, "predictions belong to no sample"),
    ):
        if ids:
            yield f"{len(ids):,} {what}, such as {', '.join(map(repr, ids[:_NAMED]))}."
    for what, loss in labels.losses.lost.items():
        yield f"lost: {what}, {loss.count:,} times, such as in {loss.example!r}."

"""Rows of a study's files, and predictions joined with the samples that they are of."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

import msgspec

from veriglot.errors import InputError
from veriglot.formats.containers import BadRow
from veriglot.formats.reader import SeenIds, files_in, read_rows
from veriglot.records import Prediction, Sample
from veriglot.records.languages import tag_of
from veriglot.storage.checkpoint import FailedRow, without_traces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

__all__ = ["Joining", "all_files", "made_samples", "pairs", "rows_of"]


R = TypeVar("R")


def all_files(paths: Sequence[Path]) -> list[Path]:
    """The files, and in place of a folder those inside it, in order of their names, without what runs left there."""
    return [file for path in paths for file in (without_traces(files_in(path)) if path.is_dir() else [path])]


def rows_of(paths: Sequence[Path], *, format_name: str | None, language: str | None) -> Iterator[Sample | FailedRow]:
    """The rows of several files in any readable format; those that cannot be read come as `FailedRow`.

    Args:
        paths: the files.
        format_name: their format; None to recognise it.
        language: of samples that state none.

    Raises:
        InputError: a file cannot be read at all.
    """
    seen = SeenIds()
    for path in paths:
        for row in read_rows(path, format=format_name, language=tag_of(language), seen=seen):
            if isinstance(row, BadRow):
                yield FailedRow.of(row.error.at(path=row.path, line=row.line or None), row.raw or None)
            elif row.language != (tag := tag_of(row.language)):
                yield msgspec.structs.replace(row, language=tag)
            else:
                yield row


def made_samples(path: Path) -> Iterator[Sample]:
    """The samples of a file that this run made."""
    return _decoded(path, msgspec.json.Decoder(Sample))


def pairs(responses: Path, predictions: Path) -> Iterator[tuple[Sample, Prediction]]:
    """Each response of a model with its prediction, in order.

    Raises:
        InputError: the two files do not belong together.
    """
    samples = made_samples(responses)
    for prediction in _decoded(predictions, msgspec.json.Decoder(Prediction)):
        sample = next(samples, None)
        if sample is None or sample.id != prediction.id:
            raise InputError(
                f"the prediction of {prediction.id!r} stands beside another response", path=str(predictions)
            )
        yield sample, prediction
    if next(samples, None) is not None:
        raise InputError("there are fewer predictions than responses", path=str(predictions))


def _decoded(path: Path, decoder: msgspec.json.Decoder[R]) -> Iterator[R]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise InputError(
                    f"it was changed after it was made: {error}",
                    path=str(path),
                    line=number,
                    remedy="Type the command again with --overwrite.",
                ) from None


class Joining:
    """Pairs of two streams. What comes early waits, so two files in the same order take no memory.

    Attributes:
        without_sample: predictions that no sample has the id of; known once the pairs were read.
        without_prediction: samples without a prediction, by (model, language, seed); likewise.
    """

    def __init__(self) -> None:
        self.without_sample = 0
        self.without_prediction: Counter[tuple[str | None, str | None, int | None]] = Counter()

    def pairs(
        self, samples: Iterable[Sample], predictions: Iterable[Prediction]
    ) -> Iterator[tuple[Sample, Prediction]]:
        """Each sample that has a prediction, with it; in the order of the predictions.

        Args:
            samples: each id once.
            predictions: in any order.

        Raises:
            InputError: two predictions share an id.
        """
        source = iter(samples)
        early: dict[str, Sample] = {}
        met = SeenIds()
        for prediction in predictions:
            if not met.is_new(prediction.id):
                raise InputError(f"the id {prediction.id!r} occurs twice among the predictions", field="id")
            sample = early.pop(prediction.id, None)
            while sample is None and (following := next(source, None)) is not None:
                if following.id == prediction.id:
                    sample = following
                else:
                    early[following.id] = following
            if sample is None:
                self.without_sample += 1
            else:
                yield sample, prediction
        for left in chain(early.values(), source):
            name, seed = (left.generator.name, left.generator.seed) if left.generator is not None else (None, None)
            self.without_prediction[name, tag_of(left.language), seed] += 1

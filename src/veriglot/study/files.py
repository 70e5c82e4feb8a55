"""Rows of the files that a study is told of, and of the files that it made itself."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeVar

import msgspec

from veriglot.errors import InputError, UnknownNameError
from veriglot.formats import BadRow, SeenIds, read_rows
from veriglot.formats.guessing import files_in
from veriglot.records import Prediction, Sample
from veriglot.records.languages import language as known_language
from veriglot.run import FailedRow
from veriglot.run.manifest import without_traces

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["all_files", "made_samples", "pairs", "rows_of", "tag_of"]

R = TypeVar("R")


def all_files(paths: Sequence[Path]) -> list[Path]:
    """The files, and in place of a folder those inside it, in order of their names, without what runs left there."""
    return [file for path in paths for file in (without_traces(files_in(path)) if path.is_dir() else [path])]


@cache
def tag_of(language: str | None) -> str | None:
    """The BCP 47 tag under which a language is counted: `zho` and `Chinese` are `zh-Hans`; unknown names stay."""
    if language is None:
        return None
    try:
        return known_language(language).tag
    except UnknownNameError:
        return language


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
                    remedy="Type the command again with --restart.",
                ) from None

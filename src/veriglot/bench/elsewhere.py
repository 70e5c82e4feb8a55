"""Systems that are predictions made elsewhere: read from files, joined with the samples by id, signed by the files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from veriglot import __version__
from veriglot.bench.belonging import check_marks
from veriglot.bench.cells import Said, cell_key
from veriglot.bench.results import BenchSystem, Cost
from veriglot.bench.systems import HIGHER_IS_WORSE, System
from veriglot.errors import InputError
from veriglot.formats import read_predictions
from veriglot.provenance import digest, file_sha256, signature
from veriglot.records import Prediction, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from veriglot.bench.entries import SystemEntry
    from veriglot.records import Sample

__all__ = ["MISSING", "Kept", "answers_kept", "kept_system"]

MISSING = "missing"
"""Stands in the notes of an answer, and in place of its status, where the files hold no prediction of a sample."""


@dataclass
class Kept:
    """Predictions that were made elsewhere.

    Attributes:
        paths: the files.
        predictions: by the id of their samples.
        threshold: what all of them were made at, as their signatures state it; None where they do not agree on one.
        used: id to the data set that it was joined with, so that no prediction stands for samples of two.
    """

    paths: tuple[Path, ...]
    predictions: dict[str, Prediction]
    threshold: float | None
    used: dict[str, str] = field(default_factory=dict)

    @property
    def types(self) -> frozenset[str]:
        """The types of all spans."""
        spans = (span for one in self.predictions.values() for span in one.spans or ())
        return frozenset(span.type for span in spans if span.type is not None)

    def unused(self) -> int:
        """How many belong to no sample that was asked about so far."""
        return len(self.predictions.keys() - self.used.keys())


def kept_system(entry: SystemEntry, paths: Sequence[Path]) -> System:
    """Read the predictions of a system.

    Args:
        entry: of the bench file.
        paths: where its files lie.

    Raises:
        InputError: a file cannot be read, a row is no prediction, or an id occurs twice.
    """
    found: dict[str, Prediction] = {}
    for path in paths:
        for prediction in read_predictions(path):
            if prediction.id in found:
                raise InputError(f"there are two predictions of {prediction.id!r}", path=str(path), field="id")
            found[prediction.id] = prediction
    if not found:
        raise InputError("there are no predictions", path=str(paths[0]))
    names = "+".join(sorted({one.asked for one in found.values()}))
    stated = {_threshold(one) for one in found.values()}
    threshold = stated.pop() if len(stated) == 1 else None
    hashed = digest(file_sha256(path) for path in paths)
    about = BenchSystem(
        name=entry.name,
        kind="predictions",
        made_by=entry.made_by,
        direction=HIGHER_IS_WORSE,
        description=names,
        signature=signature(predictions=hashed[:16], detector=names, threshold=threshold),
    )
    return System(entry, about, kept=Kept(tuple(paths), found, threshold))


def _threshold(prediction: Prediction) -> float | None:
    """The threshold that a prediction's signature states; None where it states none."""
    for part in (prediction.signature or "").split("|"):
        name, _, value = part.partition(":")
        if name == "threshold":
            try:
                found = float(value)
            except ValueError:
                return None
            return found if 0.0 <= found <= 1.0 else None
    return None


def answers_kept(system: System, data: str, samples: Sequence[Sample], *, data_hash: str) -> Said:
    """The predictions of a data set's samples, in order.

    A sample that the files do not hold has an answer that was not scored, with `MISSING` in its notes. It cost nothing
    here; what it cost where it was made is not known.

    Args:
        system: one of `kept_system`.
        data: name of the data set.
        samples: what would be judged, in order.
        data_hash: of the data set.

    Raises:
        InputError: marks that are not of the response, or a prediction that was joined with another data set before.
        ValueError: the system holds no predictions.
    """
    kept = system.kept
    if kept is None:
        raise ValueError(f"{system.name} holds no predictions")
    answers = tuple(_joined(kept, data, sample) for sample in samples)
    key = cell_key(system, data_hash, "response")
    made = signature(
        cell=key[:16],
        data=data_hash[:16],
        grain="response",
        system=(system.about.signature or "").replace("|", ";"),
        version=__version__,
    )
    return Said(answers, Cost(), key, made)


def _joined(kept: Kept, data: str, sample: Sample) -> Prediction:
    found = kept.predictions.get(sample.id)
    if found is None:
        reason = f"there is no prediction of it in {_names(kept.paths)}"
        return Prediction(sample.id, Status.FAILED, MISSING, language=sample.language, notes=(MISSING,), reason=reason)
    before = kept.used.setdefault(sample.id, data)
    if before != data:
        raise InputError(
            f"the id {sample.id!r} is in the data sets {before} and {data}, so that its prediction cannot be joined",
            path=_names(kept.paths),
            field="id",
            remedy="Make a system for each of them, with `data` naming its data set.",
        )
    check_marks(found, sample, path=_names(kept.paths))
    return found


def _names(paths: Iterable[Path]) -> str:
    return ", ".join(path.name for path in paths)

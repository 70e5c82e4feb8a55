"""Hold every response against its evidence: one output for each detector and model, all of which resume."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec

from veriglot.errors import InputError, UsageError
from veriglot.pipeline.engine import Engine, OutputJob, run_jobs
from veriglot.records import ErrorProfile, decode_json, encode, from_mapping
from veriglot.signatures import digest, file_sha256
from veriglot.storage.checkpoint import Checkpoint, Manifest
from veriglot.storage.files import write_whole
from veriglot.study.files import all_files, made_samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from veriglot.pipeline.engine import Description, Recipe
    from veriglot.records import Prediction, Sample
    from veriglot.storage.checkpoint import FailedRow
    from veriglot.study.config import Config, DetectorEntry, Folder

    Seen = Callable[[str, str, Prediction], None]

__all__ = ["Judge", "MakeRecipe", "Measure", "detect", "given_profile", "have_profiles", "read_profile"]

_REMEDY = "Measure it with `veriglot evaluate ... -o profile.json` as the study uses it."


class MakeRecipe(Protocol):
    """How a detector's name becomes a recipe; the command line knows names that the table of detectors does not."""

    def __call__(self, name: str, *, threshold: float | None, words: bool) -> Recipe:
        """The recipe."""


class Measure(Protocol):
    """Measures a detector on labelled data (`bench.evaluate`)."""

    def __call__(self, paths: Sequence[Path], recipe: Recipe, *, unit: str) -> ErrorProfile:
        """The error profile at the detector's threshold."""


@dataclass(frozen=True)
class Judge:
    """A detector of the study, as it was used.

    Attributes:
        label: its name in the run's folder.
        description: what it says of itself.
        profile: its error profile, or None.
        statuses: predictions by status.
    """

    label: str
    description: Description
    profile: ErrorProfile | None
    statuses: Counter[str]


def detect(
    config: Config,
    folder: Folder,
    models: Sequence[str],
    *,
    recipe: MakeRecipe,
    measure: Measure,
    jobs: int = 1,
    batch_size: int = 32,
    seen: Seen | None = None,
) -> list[Judge]:
    """Judge the responses of `models` with every detector of the study, or those that are not judged yet.

    Args:
        config: the study.
        folder: of the run, with the responses.
        models: whose responses there are.
        recipe: makes recipes.
        measure: measures the detectors that the study file gives labelled data for.
        jobs: processes; 0 for one a core.
        batch_size: most rows judged at once.
        seen: called with detector, model and prediction for each one that this call adds.

    Raises:
        UsageError: the profile is of another unit, threshold or detector; or predictions were begun otherwise.
        InputError: a profile cannot be read.
    """
    judges = []
    for entry in config.detectors:
        profile = _profile(config, folder, entry, recipe, measure)
        threshold = entry.threshold if entry.threshold is not None or profile is None else profile.threshold
        with Engine(recipe(entry.name, threshold=threshold, words=True), jobs=jobs, batch_size=batch_size) as engine:
            _fits(entry, profile, engine.description)
            label = entry.label or entry.name
            statuses = _judge(folder, label, models, engine, entry, seen)
            judges.append(Judge(label, engine.description, profile, statuses))
    return judges


def have_profiles(config: Config, folder: Folder, recipe: MakeRecipe, measure: Measure) -> None:
    """Have the error profile of every detector, before a model is asked: read and held against it, or measured.

    Raises:
        UsageError: a profile is of another unit, threshold or detector.
        InputError: a profile or labelled data cannot be read.
    """
    for entry in config.detectors:
        profile = _profile(config, folder, entry, recipe, measure)
        if entry.profile is not None and profile is not None:
            threshold = profile.threshold if entry.threshold is None else entry.threshold
            with Engine(recipe(entry.name, threshold=threshold, words=True)) as engine:
                _fits(entry, profile, engine.description)


def _judge(
    folder: Folder, label: str, models: Sequence[str], engine: Engine, entry: DetectorEntry, seen: Seen | None
) -> Counter[str]:
    statuses: Counter[str] = Counter()
    for model in models:
        source, output = folder.responses(model), folder.predictions(label, model)
        checkpoint = Checkpoint(
            output,
            inputs=[str(source)],
            signature=engine.description.signature,
            options={"detector": entry.name, "threshold": engine.description.threshold, "words": True},
            restart=_outdated(output, source),
            maker="detector",
        )

        def tell(_: Sample | FailedRow, prediction: Prediction | None, model: str = model) -> None:
            if seen is not None and prediction is not None:
                seen(label, model, prediction)

        def rows(source: Path = source) -> Iterable[Sample]:
            return made_samples(source)

        statuses.update(run_jobs([OutputJob(rows, checkpoint)], engine, seen=tell).statuses)
    return statuses


def _outdated(output: Path, source: Path) -> bool:
    """Whether predictions are of responses that have changed: calls that had failed were made up for."""
    manifest = Manifest.load(output.with_name(output.name + ".progress"))
    return manifest is not None and [file.sha256 for file in manifest.inputs] != [file_sha256(source)]


def _profile(
    config: Config, folder: Folder, entry: DetectorEntry, recipe: MakeRecipe, measure: Measure
) -> ErrorProfile | None:
    stored = folder.profile(entry.label or entry.name)
    if entry.profile is not None:
        profile = given_profile(config, entry)
        stored.parent.mkdir(parents=True, exist_ok=True)
        write_whole(stored, config.place(entry.profile).read_bytes())
        return profile
    if entry.labelled is None:
        return None
    paths = all_files([config.place(entry.labelled)])
    made = recipe(entry.name, threshold=entry.threshold, words=True)
    key = digest([encode(entry), config.study.unit, *(file_sha256(path) for path in paths)])
    mark = stored.with_name(stored.name + ".key")
    if stored.exists() and mark.exists() and mark.read_text("utf-8") == key:
        return read_profile(stored)
    profile = measure(paths, made, unit=config.study.unit)
    stored.parent.mkdir(parents=True, exist_ok=True)
    write_whole(stored, encode(profile) + b"\n")
    write_whole(mark, key.encode())
    return profile


def given_profile(config: Config, entry: DetectorEntry) -> ErrorProfile | None:
    """The error profile that the study file names for a detector; None where it names none.

    Raises:
        UsageError: it counts another unit than the study.
        InputError: it cannot be read.
    """
    if entry.profile is None:
        return None
    profile = read_profile(config.place(entry.profile))
    if profile.unit != config.study.unit:
        raise UsageError(
            f"The profile of {entry.label or entry.name!r} counts {profile.unit!r}, and the study"
            f" {config.study.unit!r}.",
            remedy=_REMEDY,
        )
    return profile


def read_profile(path: Path) -> ErrorProfile:
    """The error profile in a file that `veriglot evaluate -o` wrote.

    Raises:
        InputError: there is none, or it holds something else.
    """
    try:
        return from_mapping(decode_json(path.read_bytes()), ErrorProfile)
    except InputError as error:
        raise InputError(
            error.detail,
            path=str(path),
            field=error.field,
            remedy="An error profile is what `veriglot evaluate LABELLED -o profile.json` writes.",
        ) from None
    except OSError as error:
        raise InputError(f"it cannot be read: {error.strerror}", path=str(path), remedy="Check the path.") from error
    except msgspec.DecodeError as error:
        raise InputError(f"it cannot be read: {error}", path=str(path)) from error


def _fits(entry: DetectorEntry, profile: ErrorProfile | None, description: Description) -> None:
    """A profile says nothing of another detector or threshold."""
    if profile is None:
        return
    what = f"The profile of {entry.label or entry.name!r}"
    if profile.detector != description.name:
        raise UsageError(f"{what} is of {profile.detector}, and the study uses {description.name}.", remedy=_REMEDY)
    if abs(profile.threshold - description.threshold) > 1e-9:
        raise UsageError(
            f"{what} holds at the threshold {profile.threshold}, and the study marks from {description.threshold}.",
            remedy=_REMEDY,
        )

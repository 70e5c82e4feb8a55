"""Run a study: from its file to its results in one folder, resumable after a kill; and its progress.

Responses and predictions are kept row by row (`storage.checkpoint`), calls in a cache. Everything computed from them
(rates, results, tables, report) is written anew by every run: the same rows give the same bytes.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from veriglot.detectors.registry import uses_gpu
from veriglot.errors import InputError, UsageError
from veriglot.pipeline.engine import Description, Engine, OutputJob, run_jobs
from veriglot.pipeline.progress import ProgressReporter
from veriglot.pipeline.ray_engine import connected, open_engine
from veriglot.records import ErrorProfile, Prediction, Sample, encode
from veriglot.records.settings import Record
from veriglot.signatures import digest, file_sha256
from veriglot.storage.checkpoint import Checkpoint, FailedRow, Manifest, Progress
from veriglot.storage.files import Lock, write_whole
from veriglot.study.config import REMEASURE, Config, DetectorEntry, Folder, read_profile
from veriglot.study.methods import described
from veriglot.study.rates import ProfiledDetector, estimate_all
from veriglot.study.responses import Plan, all_files, make_responses, read_samples
from veriglot.study.results import StudyResults, assemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


__all__ = ["Status", "Tools", "run", "status"]


class Tools(NamedTuple):
    """Functions that a run gets from other areas and from higher layers.

    Attributes:
        recipe: returns the factory of a detector, from its name, its `threshold` and whether it gives `words`.
        measure: returns the error profile at the detector's threshold, from paths of labelled data, a factory and a
            `unit`.
        render: writes tables and report into the folder, each whole.
    """

    recipe: Callable[..., Callable[[], Any]]
    measure: Callable[..., ErrorProfile]
    render: Callable[[StudyResults, Folder], None]


class Outcome(NamedTuple):
    """Results as in `results.json`, and how many rows failed: not read, not answered or not scored."""

    results: StudyResults
    failed: int


def run(
    config: Config,
    folder: Folder,
    tools: Tools,
    *,
    jobs: int = 1,
    batch_size: int = 32,
    restart: bool = False,
    progress: ProgressReporter | None = None,
) -> Outcome:
    """Run a study, or its missing parts.

    Args:
        config: the study file.
        folder: of the run.
        tools: see `Tools`.
        jobs: processes for detection; 0 for one per core. The results do not depend on it.
        batch_size: maximum number of responses in a batch, likewise.
        restart: make everything anew except cached calls.
        progress: shows the steps, their finished rows and messages.

    Raises:
        UsageError: the folder belongs to another study, is in use, or has rows made with other settings.
        ModelError: a spending limit is reached, or no model answers; finished rows stay.
        VeriglotError: there is no Ray cluster; raised before the first call.
    """
    progress = progress or ProgressReporter()
    with ExitStack() as stack:
        stack.enter_context(connected(config.limits.engine, jobs))
        folder.prepare()
        stack.enter_context(Lock(folder.path / "run"))
        if restart:
            folder.clear()
        write_whole(folder.study, config.path.read_bytes())
        progress.begin("reading error profiles", None)
        profiles = [_profile(config, folder, entry, tools) for entry in config.detectors]
        plan, lost = make_responses(config, folder, progress)
        total = len(config.detectors) * sum(plan.responses(model) for model in plan.models)
        progress.begin("judging responses", total)
        detectors = []
        failed = 0
        for entry, profile in zip(config.detectors, profiles, strict=True):
            recipe, where = _recipe(tools, entry, profile), config.limits.engine
            gpu = where == "ray" and uses_gpu(entry.name)
            with open_engine(where, recipe, jobs=jobs, batch_size=batch_size, gpu=gpu, say=progress.say) as engine:
                compared = _compared_profile(config, folder, entry)
                for each in (profile, compared):
                    if each is not None:  # a profile may have been measured with an earlier revision of the detector
                        _check_profile(entry, each, engine.description)
                failed += _judge(folder, entry, plan.models, engine, progress)
                detectors.append(
                    ProfiledDetector(engine.description, profile, config.study, entry.unique_name, compared)
                )
        progress.begin("estimating rates", total)
        estimated = estimate_all(config, folder, plan, detectors, progress)
        progress.begin("surveying responses", total // len(detectors))
        results = described(assemble(config, folder, plan, estimated, progress), config, plan, estimated, lost)
        write_whole(folder.results, encode(results) + b"\n")
        progress.begin("writing the report", None)
        tools.render(results, folder)
    return Outcome(results, lost + failed)


# Detection: every response is compared with its evidence; one output for each detector and model, all resumable.


def _judge(
    folder: Folder, entry: DetectorEntry, models: Iterable[str], engine: Engine, progress: ProgressReporter
) -> int:
    """Score the responses of all models that have no prediction yet, in one run; returns how many failed."""

    def tell(_: Sample | FailedRow, prediction: Prediction | None) -> None:
        if prediction is not None:
            progress.advance()

    jobs = [_output_job(folder, entry, model, engine.description) for model in models]
    return run_jobs(jobs, engine, seen=tell).statuses["failed"]


def _output_job(folder: Folder, entry: DetectorEntry, model: str, description: Description) -> OutputJob:
    source, output = folder.responses(model), folder.predictions(entry.unique_name, model)
    manifest = Manifest.load(output)
    checkpoint = Checkpoint(
        output,
        inputs=[str(source)],
        signature=description.signature,
        options={"detector": entry.name, "threshold": description.threshold, "words": True},
        # If failed calls were repeated, responses have changed since the predictions.
        restart=manifest is not None and [file.sha256 for file in manifest.inputs] != [file_sha256(source)],
        maker="detector",
    )
    return OutputJob(partial(read_samples, source), checkpoint)


def _recipe(tools: Tools, entry: DetectorEntry, profile: ErrorProfile | None) -> Callable[[], Any]:
    threshold = entry.threshold if entry.threshold is not None or profile is None else profile.threshold
    return tools.recipe(entry.name, threshold=threshold, words=True)


def _profile(config: Config, folder: Folder, entry: DetectorEntry, tools: Tools) -> ErrorProfile | None:
    """The error profile of a detector: read and checked, or measured; None if there is none."""
    stored, unit = folder.profile(entry.unique_name), config.study.unit
    if entry.profile is None and entry.labelled is None:
        return None
    stored.parent.mkdir(parents=True, exist_ok=True)
    if entry.profile is not None:
        profile = read_profile(config.resolve(entry.profile))
        with Engine(_recipe(tools, entry, profile)) as engine:
            _check_profile(entry, profile, engine.description)
        write_whole(stored, config.resolve(entry.profile).read_bytes())
        return profile
    assert entry.labelled is not None
    paths = [config.resolve(entry.labelled)]
    key = digest([encode(entry), unit, *(file_sha256(path) for path in all_files(paths))])
    mark = stored.with_name(stored.name + ".key")
    if stored.exists() and mark.exists() and mark.read_text("utf-8") == key:
        return read_profile(stored)
    profile = tools.measure(paths, _recipe(tools, entry, None), unit=unit)
    write_whole(stored, encode(profile) + b"\n")
    write_whole(mark, key.encode())
    return profile


def _compared_profile(config: Config, folder: Folder, entry: DetectorEntry) -> ErrorProfile | None:
    """The second profile, for comparison, copied into the folder; None if there is none."""
    copy = folder.compared_profile(entry.unique_name)
    if entry.compare_profile is None:
        copy.unlink(missing_ok=True)
        return None
    copy.parent.mkdir(parents=True, exist_ok=True)
    write_whole(copy, config.resolve(entry.compare_profile).read_bytes())
    return read_profile(copy)


def _check_profile(entry: DetectorEntry, profile: ErrorProfile, description: Description) -> None:
    """Raise an error if a profile is of another detector or threshold."""
    what = f"The profile of {entry.unique_name!r}"
    if profile.detector != description.name:
        raise UsageError(f"{what} is of {profile.detector}, and the study uses {description.name}.", REMEASURE)
    if abs(profile.threshold - description.threshold) > 1e-9:
        raise UsageError(
            f"{what} is for the threshold {profile.threshold}, and the study marks from {description.threshold}.",
            REMEASURE,
        )


# Progress of a study, from the files of its folder alone; another process may be writing them.


class Step(Progress, frozen=True, kw_only=True):
    """Progress of one output of a run; the next run retries failed rows.

    Attributes:
        what: `responses` or `predictions`.
        model: of the output.
        detector: of the predictions; None for responses.
        planned: planned number of rows; None if not known yet.
    """

    what: str
    model: str
    detector: str | None = None
    planned: int | None

    @classmethod
    def at(cls, output: Path, **named: Any) -> Step:
        """Progress of the output at a path."""
        return cls(**msgspec.structs.asdict(Progress.of(output)), **named)


class Status(Record):
    """Progress of a run.

    Attributes:
        title: of the study.
        running: whether a process is using the folder now.
        steps: responses by model, then predictions by detector and model.
        rates, results, report: whether these files exist and are newer than their inputs.
    """

    title: str
    running: bool
    steps: tuple[Step, ...]
    rates: bool
    results: bool
    report: bool

    @property
    def finished(self) -> bool:
        """Whether all files exist."""
        return all(step.finished for step in self.steps) and self.rates and self.results and self.report


def _read_plan(folder: Folder) -> Plan:
    try:
        return msgspec.json.decode(folder.plan.read_bytes(), type=Plan)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            "this is not the folder of a study's run",
            "Name the folder of -o. Without -o, `veriglot study run FILE.toml` makes the folder FILE beside it.",
            path=str(folder.path),
        ) from None
    except msgspec.DecodeError as error:
        raise InputError(f"it is damaged: {error}", path=str(folder.plan)) from error


def status(folder: Folder) -> Status:
    """Read the progress from the folder of a run; changes nothing.

    Raises:
        InputError: the folder is not that of a run, or its plan is damaged.
    """
    plan = _read_plan(folder)
    steps = []
    for model in plan.models:
        planned, path = plan.responses(model), folder.responses(model)
        if plan.asked:
            steps.append(Step.at(path, what="responses", model=model, planned=planned))
        else:
            there = path.exists()
            steps.append(Step(planned * there, 0, there, what="responses", model=model, planned=planned))
    answered = {step.model: step.done if step.finished else None for step in steps}
    steps += [
        Step.at(
            folder.predictions(detector, model),
            what="predictions",
            model=model,
            detector=detector,
            planned=answered[model],
        )
        for detector in plan.detectors
        for model in plan.models
    ]
    sources = (folder.study, *folder.path.glob("predictions/*/*.jsonl"))  # a run writes its study first
    latest = max((path.stat().st_mtime_ns for path in sources if path.exists()), default=0)
    rates, results, report = (
        path.exists() and path.stat().st_mtime_ns >= latest for path in (folder.rates, folder.results, folder.report)
    )
    return Status(plan.title, Lock.is_taken(folder.path / "run"), tuple(steps), rates, results, report)

"""A study from its file to its results in one folder, resumed after a kill; and how far it is.

Responses and predictions are kept row by row (`storage.checkpoint`), calls in a cache. What is made from them
(rates, results, tables, report) is made anew by every run and written whole: the same rows give the same bytes.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from veriglot.detectors.registry import uses_gpu
from veriglot.errors import InputError, UsageError
from veriglot.pipeline.engine import Description, Engine, OutputJob, run_jobs
from veriglot.pipeline.progress import Watch
from veriglot.pipeline.ray_engine import connected, open_engine
from veriglot.records import ErrorProfile, Prediction, Sample, encode
from veriglot.records.settings import Record
from veriglot.signatures import digest, file_sha256
from veriglot.storage.checkpoint import Checkpoint, FailedRow, Manifest, Progress
from veriglot.storage.files import Lock, write_whole
from veriglot.study.config import REMEASURE, Config, DetectorEntry, Folder, read_profile
from veriglot.study.methods import described
from veriglot.study.rates import Judging, estimate_all
from veriglot.study.responses import Plan, all_files, made_samples, make_responses
from veriglot.study.results import StudyResults, assemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


__all__ = ["Status", "Tools", "run", "status"]


class Tools(NamedTuple):
    """What a run needs of other areas and of the layers above.

    Attributes:
        recipe: from a detector's name, its `threshold` and whether it gives `words` to its recipe.
        measure: from paths of labelled data, a recipe and a `unit` to the error profile at the detector's threshold.
        render: writes tables and report into the folder, each whole.
    """

    recipe: Callable[..., Callable[[], Any]]
    measure: Callable[..., ErrorProfile]
    render: Callable[[StudyResults, Folder], None]


class Outcome(NamedTuple):
    """Results as they stand in `results.json`, and how many rows came to nothing: unread, unanswered or unjudged."""

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
    watch: Watch | None = None,
) -> Outcome:
    """Make a study, or what is missing of it.

    Args:
        config: the study file.
        folder: of the run.
        tools: see there.
        jobs: processes that detect; 0 for one a core. The results do not depend on it.
        batch_size: most responses judged at once, likewise.
        restart: make everything anew but the calls that the cache holds.
        watch: is told how far it is.

    Raises:
        UsageError: the folder is another's, is at work, or holds rows that were made otherwise.
        ModelError: a spending limit is reached, or no model answers; what is done is kept.
        VeriglotError: there is no Ray cluster, which is known before the first call.
    """
    watch = watch or Watch()
    with ExitStack() as stack:
        stack.enter_context(connected(config.limits.engine, jobs))
        folder.take()
        stack.enter_context(Lock(folder.path / "run"))
        if restart:
            folder.clear()
        write_whole(folder.study, config.path.read_bytes())
        watch.begin("reading error profiles", None)
        profiles = [_profile(config, folder, entry, tools) for entry in config.detectors]
        plan, lost = make_responses(config, folder, watch)
        total = len(config.detectors) * sum(plan.responses(model) for model in plan.models)
        watch.begin("judging responses", total)
        judgings = []
        failed = 0
        for entry, profile in zip(config.detectors, profiles, strict=True):
            recipe, where = _recipe(tools, entry, profile), config.limits.engine
            gpu = where == "ray" and uses_gpu(entry.name)
            with open_engine(where, recipe, jobs=jobs, batch_size=batch_size, gpu=gpu, say=watch.say) as engine:
                compared = _compared_profile(config, folder, entry)
                for each in (profile, compared):
                    if each is not None:  # a measured one may be of an earlier revision of the detector
                        _check_profile(entry, each, engine.description)
                failed += _judge(folder, entry, plan.models, engine, watch)
                judgings.append(Judging(engine.description, profile, config.study, entry.unique_name, compared))
        watch.begin("estimating rates", total)
        estimated = estimate_all(config, folder, plan, judgings, watch)
        watch.begin("surveying responses", total // len(judgings))
        results = described(assemble(config, folder, plan, estimated, watch), config, plan, estimated, lost)
        write_whole(folder.results, encode(results) + b"\n")
        watch.begin("writing the report", None)
        tools.render(results, folder)
    return Outcome(results, lost + failed)


# Detection: every response held against its evidence, one output for each detector and model, all of which resume.


def _judge(folder: Folder, entry: DetectorEntry, models: Iterable[str], engine: Engine, watch: Watch) -> int:
    """Judge the responses of all models in one run, or those that are not judged yet; how many failed."""

    def tell(_: Sample | FailedRow, prediction: Prediction | None) -> None:
        if prediction is not None:
            watch.advance()

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
        # Predictions are of responses that have changed where calls that had failed were made up for.
        restart=manifest is not None and [file.sha256 for file in manifest.inputs] != [file_sha256(source)],
        maker="detector",
    )
    return OutputJob(partial(made_samples, source), checkpoint)


def _recipe(tools: Tools, entry: DetectorEntry, profile: ErrorProfile | None) -> Callable[[], Any]:
    threshold = entry.threshold if entry.threshold is not None or profile is None else profile.threshold
    return tools.recipe(entry.name, threshold=threshold, words=True)


def _profile(config: Config, folder: Folder, entry: DetectorEntry, tools: Tools) -> ErrorProfile | None:
    """The error profile of a detector: read and held against it, or measured; None where there is none."""
    stored, unit = folder.profile(entry.unique_name), config.study.unit
    if entry.profile is None and entry.labelled is None:
        return None
    stored.parent.mkdir(parents=True, exist_ok=True)
    if entry.profile is not None:
        profile = read_profile(config.place(entry.profile))
        with Engine(_recipe(tools, entry, profile)) as engine:
            _check_profile(entry, profile, engine.description)
        write_whole(stored, config.place(entry.profile).read_bytes())
        return profile
    assert entry.labelled is not None
    paths = [config.place(entry.labelled)]
    key = digest([encode(entry), unit, *(file_sha256(path) for path in all_files(paths))])
    mark = stored.with_name(stored.name + ".key")
    if stored.exists() and mark.exists() and mark.read_text("utf-8") == key:
        return read_profile(stored)
    profile = tools.measure(paths, _recipe(tools, entry, None), unit=unit)
    write_whole(stored, encode(profile) + b"\n")
    write_whole(mark, key.encode())
    return profile


def _compared_profile(config: Config, folder: Folder, entry: DetectorEntry) -> ErrorProfile | None:
    """The profile that the study's own is held against, copied into the folder; None where there is none."""
    copy = folder.compared_profile(entry.unique_name)
    if entry.compare_profile is None:
        copy.unlink(missing_ok=True)
        return None
    copy.parent.mkdir(parents=True, exist_ok=True)
    write_whole(copy, config.place(entry.compare_profile).read_bytes())
    return read_profile(copy)


def _check_profile(entry: DetectorEntry, profile: ErrorProfile, description: Description) -> None:
    """A profile says nothing of another detector or threshold."""
    what = f"The profile of {entry.unique_name!r}"
    if profile.detector != description.name:
        raise UsageError(f"{what} is of {profile.detector}, and the study uses {description.name}.", REMEASURE)
    if abs(profile.threshold - description.threshold) > 1e-9:
        raise UsageError(
            f"{what} holds at the threshold {profile.threshold}, and the study marks from {description.threshold}.",
            REMEASURE,
        )


# How far a study is, from the files of its folder alone; another process may be writing them.


class Step(Progress, frozen=True, kw_only=True):
    """How far one output of a run is; what failed is tried again by the next run.

    Attributes:
        what: `responses` or `predictions`.
        model: whose.
        detector: whose predictions; None for responses.
        planned: rows that it is to have; None where that is not known yet.
    """

    what: str
    model: str
    detector: str | None = None
    planned: int | None

    @classmethod
    def at(cls, output: Path, **named: Any) -> Step:
        """How far the output at a path is."""
        return cls(**msgspec.structs.asdict(Progress.of(output)), **named)


class Status(Record):
    """How far a run is.

    Attributes:
        title: of the study.
        running: whether a process is at work in the folder now.
        steps: responses by model, then predictions by detector and model.
        rates, results, report: whether these files are there and newer than what they are made from.
    """

    title: str
    running: bool
    steps: tuple[Step, ...]
    rates: bool
    results: bool
    report: bool

    @property
    def finished(self) -> bool:
        """Whether everything is there."""
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
    """Look at the folder of a run; nothing is changed in it.

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

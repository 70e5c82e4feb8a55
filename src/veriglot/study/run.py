"""A study from its file to its results in one folder, resumed after a kill; its rehearsal, and how far it is.

Responses and predictions are kept row by row (`storage.checkpoint`), calls in a cache. What is made from them
(rates, results, tables, report) is made anew by every run and written whole: the same rows give the same bytes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from veriglot.errors import InputError, UsageError
from veriglot.pipeline.engine import Engine, OutputJob, Silent, run_jobs
from veriglot.records import ErrorProfile, Sample, decode_json, encode, from_mapping
from veriglot.signatures import digest, file_sha256
from veriglot.storage.checkpoint import Checkpoint, Manifest, Progress
from veriglot.storage.files import Lock, is_locked, write_json, write_whole
from veriglot.study.rates import Judging, estimate_all
from veriglot.study.responses import (
    Plan,
    all_files,
    ask_models,
    budgets,
    made_samples,
    planned_languages,
    rows_of,
    take_given,
)
from veriglot.study.summary import assemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from veriglot.pipeline.engine import Description, Watch
    from veriglot.records import Prediction
    from veriglot.storage.checkpoint import FailedRow
    from veriglot.study.config import Config, DetectorEntry, Folder
    from veriglot.study.results import StudyResults

__all__ = ["Rehearsal", "Status", "Tools", "read_profile", "rehearse", "run", "status"]


_REMEDY = "Measure it with `veriglot evaluate ... -o profile.json` as the study uses it."


class MakeRecipe(Protocol):
    """How a detector's name becomes a recipe; the command line knows names that the table of detectors does not."""

    def __call__(self, name: str, *, threshold: float | None, words: bool) -> Callable[[], Any]:
        """What makes the detector, in any process."""


class Measure(Protocol):
    """Measures a detector on labelled data (`bench.evaluate`)."""

    def __call__(self, paths: Sequence[Path], recipe: Callable[[], Any], *, unit: str) -> ErrorProfile:
        """The error profile at the detector's threshold."""


class Render(Protocol):
    """Writes what people look at (`report`, on a floor above)."""

    def __call__(self, results: StudyResults, folder: Folder) -> None:
        """Write the tables and the report of `results` into the folder, each whole."""


@dataclass(frozen=True)
class Tools:
    """What a run needs of other areas and of the floors above.

    Attributes:
        recipe: from a detector's name to its recipe.
        measure: the error profile of a detector on labelled data.
        render: writes tables and report.
    """

    recipe: MakeRecipe
    measure: Measure
    render: Render


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
    """
    watch = watch or Silent()
    folder.take()
    lock = Lock(folder.path / "run")
    try:
        if restart:
            folder.clear()
        write_whole(folder.study, config.path.read_bytes())
        watch.begin("reading error profiles", None)
        _have_profiles(config, folder, tools)
        plan, lost = _have_responses(config, folder, watch)
        models = list(plan.models)
        total = len(config.detectors) * sum(plan.responses(model) for model in models)
        watch.begin("judging responses", total)
        judgings, failed = _judge_all(config, folder, models, tools, watch, jobs, batch_size)
        watch.begin("estimating rates", total)
        estimated = estimate_all(config, folder, plan, judgings, watch)
        watch.begin("surveying responses", total // len(judgings))
        results = assemble(config, folder, plan, estimated, lost, watch)
        write_whole(folder.results, encode(results) + b"\n")
        watch.begin("writing the report", None)
        tools.render(results, folder)
    finally:
        lock.release()
    return Outcome(results, lost + failed)


def _have_responses(config: Config, folder: Folder, watch: Watch) -> tuple[Plan, int]:
    """Have the responses in the folder; the plan, and how many rows came to nothing."""
    labels = tuple(entry.label or entry.name for entry in config.detectors)
    if config.entries.responses is not None:
        watch.begin("reading responses", None)
        given = take_given(config, folder, seen=lambda _: watch.advance())
        models = {model: {tag: {"-": count} for tag, count in given.languages[model].items()} for model in given.models}
        if given.left_out:
            watch.say(f"{given.left_out:,} responses are in languages that the study does not ask for.")
        plan = Plan(config.title, labels, models, asked=False)
        write_json(folder.plan, plan)
        return plan, given.failed
    planned: dict[str, dict[str, int]] = {}
    for (tag, seed), count in planned_languages(config).items():
        planned.setdefault(tag, {})["-" if seed is None else str(seed)] = count
    plan = Plan(config.title, labels, {entry.name: planned for entry in config.models}, asked=True)
    write_json(folder.plan, plan)
    watch.begin("asking models", sum(plan.responses(model) for model in plan.models))
    failed = ask_models(config, folder, seen=lambda *_: watch.advance())
    return plan, sum(failed.values())


# Detection: every response held against its evidence, one output for each detector and model, all of which resume.


def _judge_all(
    config: Config, folder: Folder, models: Sequence[str], tools: Tools, watch: Watch, jobs: int, batch_size: int
) -> tuple[list[Judging], int]:
    """Judge the responses of `models` with every detector, or those that are not judged yet; and how many failed."""
    judgings, failed = [], 0
    for entry in config.detectors:
        profile = _profile(config, folder, entry, tools)
        threshold = entry.threshold if entry.threshold is not None or profile is None else profile.threshold
        recipe = tools.recipe(entry.name, threshold=threshold, words=True)
        with Engine(recipe, jobs=jobs, batch_size=batch_size) as engine:
            _check_profile(entry, profile, engine.description)
            label = entry.label or entry.name
            for model in models:
                failed += _judge(folder, label, model, engine, entry, watch)
            judgings.append(Judging(engine.description, profile, config.study, label))
    return judgings, failed


def _judge(folder: Folder, label: str, model: str, engine: Engine, entry: DetectorEntry, watch: Watch) -> int:
    source, output = folder.responses(model), folder.predictions(label, model)
    manifest = Manifest.load(output.with_name(output.name + ".progress"))
    checkpoint = Checkpoint(
        output,
        inputs=[str(source)],
        signature=engine.description.signature,
        options={"detector": entry.name, "threshold": engine.description.threshold, "words": True},
        # Predictions are of responses that have changed where calls that had failed were made up for.
        restart=manifest is not None and [file.sha256 for file in manifest.inputs] != [file_sha256(source)],
        maker="detector",
    )

    def tell(_: Sample | FailedRow, prediction: Prediction | None) -> None:
        if prediction is not None:
            watch.advance()

    def rows() -> Iterable[Sample]:
        return made_samples(source)

    return run_jobs([OutputJob(rows, checkpoint)], engine, seen=tell).statuses["failed"]


def _have_profiles(config: Config, folder: Folder, tools: Tools) -> None:
    """Have the error profile of every detector, before a model is asked: read and held against it, or measured."""
    for entry in config.detectors:
        profile = _profile(config, folder, entry, tools)
        if entry.profile is not None and profile is not None:
            threshold = profile.threshold if entry.threshold is None else entry.threshold
            with Engine(tools.recipe(entry.name, threshold=threshold, words=True)) as engine:
                _check_profile(entry, profile, engine.description)


def _profile(config: Config, folder: Folder, entry: DetectorEntry, tools: Tools) -> ErrorProfile | None:
    stored = folder.profile(entry.label or entry.name)
    if entry.profile is not None:
        profile = _given_profile(config, entry)
        stored.parent.mkdir(parents=True, exist_ok=True)
        write_whole(stored, config.place(entry.profile).read_bytes())
        return profile
    if entry.labelled is None:
        return None
    paths = all_files([config.place(entry.labelled)])
    recipe = tools.recipe(entry.name, threshold=entry.threshold, words=True)
    key = digest([encode(entry), config.study.unit, *(file_sha256(path) for path in paths)])
    mark = stored.with_name(stored.name + ".key")
    if stored.exists() and mark.exists() and mark.read_text("utf-8") == key:
        return read_profile(stored)
    profile = tools.measure(paths, recipe, unit=config.study.unit)
    stored.parent.mkdir(parents=True, exist_ok=True)
    write_whole(stored, encode(profile) + b"\n")
    write_whole(mark, key.encode())
    return profile


def _given_profile(config: Config, entry: DetectorEntry) -> ErrorProfile | None:
    """The error profile that the study file names for a detector; None where it names none."""
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


def _check_profile(entry: DetectorEntry, profile: ErrorProfile | None, description: Description) -> None:
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


# The rehearsal: what a study would take.


class ModelCost(msgspec.Struct, frozen=True):
    """What one model would take.

    Attributes:
        model: its name.
        calls: responses that the design asks for; for given responses, 0.
        done: how many of them the run's folder has already.
        impossible: queries that cannot be asked.
        tokens_in: tokens of all prompts, estimated roughly from their length.
        tokens_out: the most tokens of all replies; None where `max_tokens` is not set.
        cost: the most that all calls may cost, in the currency of the prices; None without prices or `tokens_out`.
        languages: responses by language.
    """

    model: str
    calls: int
    done: int
    impossible: int
    tokens_in: int
    tokens_out: int | None
    cost: float | None
    languages: dict[str, int]


class Rehearsal(msgspec.Struct, frozen=True):
    """What a study would take.

    Attributes:
        title: of the study.
        models: each.
        calls: calls that are still to be made, at most.
        judgements: responses that the detectors are to judge, all together.
        unreadable: rows of the input that cannot be read.
        limits: calls and tokens that may be spent; None for no bound.
        enough: whether the limits let the study finish; None where that is not known.
    """

    title: str
    models: tuple[ModelCost, ...]
    calls: int
    judgements: int
    unreadable: int
    limits: tuple[int | None, int | None]
    enough: bool | None


def rehearse(config: Config, folder: Folder) -> Rehearsal:
    """Count; nothing is asked, and nothing written.

    Raises:
        InputError: a file of the study cannot be read.
        UsageError: an error profile counts another unit than the study.
    """
    for entry in config.detectors:
        _given_profile(config, entry)
    models, unreadable = _asked(config, folder) if config.entries.queries is not None else _given(config)
    responses = sum(sum(model.languages.values()) for model in models)
    calls = sum(model.calls - model.done for model in models)
    limits = config.entries.limits
    return Rehearsal(
        title=config.title,
        models=tuple(models),
        calls=calls,
        judgements=responses * len(config.detectors),
        unreadable=unreadable,
        limits=(limits.calls, limits.tokens),
        enough=_enough(models, limits.calls, limits.tokens),
    )


def _asked(config: Config, folder: Folder) -> tuple[list[ModelCost], int]:
    costs = []
    for entry, budget in zip(config.models, budgets(config).values(), strict=True):
        cost = None
        if entry.price_in is not None and entry.price_out is not None and budget.tokens_out is not None:
            cost = (budget.tokens_in * entry.price_in + budget.tokens_out * entry.price_out) / 1e6
        costs.append(
            ModelCost(
                model=entry.name,
                calls=budget.calls,
                done=Progress.of(folder.responses(entry.name)).done,
                impossible=budget.impossible,
                tokens_in=budget.tokens_in,
                tokens_out=budget.tokens_out,
                cost=cost,
                languages=budget.languages,
            )
        )
    return costs, 0


def _given(config: Config) -> tuple[list[ModelCost], int]:
    entry = config.entries.responses
    assert entry is not None
    wanted = set(config.languages)
    counts: dict[str, Counter[str]] = {model.name: Counter() for model in config.models}
    unreadable = 0
    for row in rows_of(all_files(config.places(entry.path)), format_name=entry.format, language=entry.language):
        if not isinstance(row, Sample):
            unreadable += 1
        elif not wanted or row.language is None or row.language in wanted:
            name = row.generator.name if row.generator is not None else ""
            counts.setdefault(name, Counter())[row.language or "und"] += 1
    return [
        ModelCost(name, 0, 0, 0, 0, 0, None, dict(sorted(languages.items()))) for name, languages in counts.items()
    ], unreadable


def _enough(models: list[ModelCost], calls: int | None, tokens: int | None) -> bool | None:
    if calls is not None and sum(model.calls for model in models) > calls:
        return False
    if tokens is None:
        return True
    if sum(model.tokens_in for model in models) > tokens:
        return False
    if any(model.tokens_out is None for model in models):
        return None
    return sum(model.tokens_in + (model.tokens_out or 0) for model in models) <= tokens


# How far a study is, from the files of its folder alone; another process may be writing them.


class Step(msgspec.Struct, frozen=True):
    """One output of a run.

    Attributes:
        what: `responses` or `predictions`.
        model: whose.
        detector: whose predictions; None for responses.
        planned: rows that it is to have; None where that is not known yet.
        done: rows that it has.
        failed: rows that came to nothing; they are tried again by the next run.
        finished: whether nothing is left to do but what failed.
    """

    what: str
    model: str
    detector: str | None
    planned: int | None
    done: int
    failed: int
    finished: bool


class Status(msgspec.Struct, frozen=True):
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
            path=str(folder.path),
            remedy="Name what -o named; without -o, `veriglot study run FILE.toml` makes the folder FILE beside it.",
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
            steps.append(_step("responses", model, None, planned, path))
        else:
            steps.append(Step("responses", model, None, planned, planned * path.exists(), 0, path.exists()))
    answered = {step.model: step.done if step.finished else None for step in steps}
    steps += [
        _step("predictions", model, detector, answered[model], folder.predictions(detector, model))
        for detector in plan.detectors
        for model in plan.models
    ]
    sources = (folder.study, folder.given, *folder.path.glob("predictions/*/*.jsonl"))  # a run writes its study first
    latest = max((path.stat().st_mtime_ns for path in sources if path.exists()), default=0)
    return Status(
        title=plan.title,
        running=is_locked(folder.path / "run"),
        steps=tuple(steps),
        rates=_newer(folder.rates, latest),
        results=_newer(folder.results, latest),
        report=_newer(folder.report, latest),
    )


def _step(what: str, model: str, detector: str | None, planned: int | None, output: Path) -> Step:
    progress = Progress.of(output)
    return Step(what, model, detector, planned, progress.done, progress.failed, progress.finished)


def _newer(path: Path, moment: int) -> bool:
    return path.exists() and path.stat().st_mtime_ns >= moment

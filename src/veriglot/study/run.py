"""A study from its file to its results, in one folder: killed at any moment, it goes on from there.

Responses and predictions are kept row by row (`run.Stage`, `run.Ledger`), calls in a cache. What is made from them
(rates, results, tables, report) is made anew by every run and written whole: the same rows give the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from veriglot.records import encode
from veriglot.run.lock import Lock
from veriglot.run.manifest import write_whole
from veriglot.run.watch import Silent
from veriglot.study.asking import ask_models, planned_languages
from veriglot.study.assembling import assemble
from veriglot.study.detecting import detect, have_profiles
from veriglot.study.estimating import estimate_all
from veriglot.study.given import take_given
from veriglot.study.status import Plan, write_plan
from veriglot.study.survey import survey_all

if TYPE_CHECKING:
    from veriglot.run.watch import Watch
    from veriglot.study.config import Config
    from veriglot.study.detecting import MakeRecipe, Measure
    from veriglot.study.folder import Folder
    from veriglot.study.results import StudyResults

__all__ = ["Outcome", "Tools", "run"]


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


@dataclass(frozen=True)
class Outcome:
    """What came of a run.

    Attributes:
        results: as they stand in `results.json`.
        failed: rows that came to nothing: unreadable, unanswered or unjudged.
    """

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
        have_profiles(config, folder, tools.recipe, tools.measure)
        plan, lost = _responses(config, folder, watch)
        models = list(plan.models)
        total = len(config.detectors) * sum(plan.responses(model) for model in models)
        watch.begin("judging responses", total)
        judges = detect(
            config, folder, models,
            recipe=tools.recipe, measure=tools.measure, jobs=jobs, batch_size=batch_size,
            seen=lambda *_: watch.advance(),
        )  # fmt: skip
        watch.begin("estimating rates", total)
        estimated = estimate_all(config, folder, plan, judges, watch)
        watch.begin("surveying responses", total // len(judges))
        survey = survey_all(config, folder, plan.models, judges[0].label, watch)
        results = assemble(config, plan, estimated, survey, lost)
        write_whole(folder.results, encode(results) + b"\n")
        watch.begin("writing the report", None)
        tools.render(results, folder)
    finally:
        lock.release()
    return Outcome(results, lost + sum(judge.statuses["failed"] for judge in judges))


def _responses(config: Config, folder: Folder, watch: Watch) -> tuple[Plan, int]:
    """Have the responses in the folder; the plan, and how many rows came to nothing."""
    labels = tuple(entry.label or entry.name for entry in config.detectors)
    if config.entries.responses is not None:
        watch.begin("reading responses", None)
        given = take_given(config, folder, seen=lambda _: watch.advance())
        models = {model: {tag: {"-": count} for tag, count in given.languages[model].items()} for model in given.models}
        if given.left_out:
            watch.say(f"{given.left_out:,} responses are in languages that the study does not ask for.")
        plan = Plan(config.title, labels, models, asked=False)
        write_plan(folder, plan)
        return plan, given.failed
    planned: dict[str, dict[str, int]] = {}
    for (tag, seed), count in planned_languages(config).items():
        planned.setdefault(tag, {})["-" if seed is None else str(seed)] = count
    plan = Plan(config.title, labels, {entry.name: planned for entry in config.models}, asked=True)
    write_plan(folder, plan)
    watch.begin("asking models", sum(plan.responses(model) for model in plan.models))
    failed = ask_models(config, folder, seen=lambda *_: watch.advance())
    return plan, sum(failed.values())

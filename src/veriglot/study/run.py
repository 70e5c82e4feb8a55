"""A study from its file to its results in one folder, resumed after a kill; and its rehearsal.

Responses and predictions are kept row by row (`storage.checkpoint`), calls in a cache. What is made from them
(rates, results, tables, report) is made anew by every run and written whole: the same rows give the same bytes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec

from veriglot.pipeline.engine import Silent
from veriglot.records import Sample, encode
from veriglot.storage.checkpoint import Progress
from veriglot.storage.files import Lock, write_whole
from veriglot.study.counts import survey_all
from veriglot.study.detection import detect, given_profile, have_profiles
from veriglot.study.files import all_files, rows_of
from veriglot.study.rates import estimate_all
from veriglot.study.responses import ask_models, budgets, planned_languages, take_given
from veriglot.study.status import Plan, write_plan
from veriglot.study.summary import assemble

if TYPE_CHECKING:
    from veriglot.pipeline.engine import Watch
    from veriglot.study.config import Config, Folder
    from veriglot.study.detection import MakeRecipe, Measure
    from veriglot.study.results import StudyResults

__all__ = ["Rehearsal", "Tools", "rehearse", "run"]


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
        given_profile(config, entry)
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

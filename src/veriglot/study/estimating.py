"""From the files of a run to its rates: one pass over responses and predictions, then numbers only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from veriglot.records import Estimator
from veriglot.run.manifest import write_whole
from veriglot.study.cells import Counted, Judging, Made, cell_rate, replicates
from veriglot.study.files import pairs
from veriglot.study.gold import gold_counts, labels_of, without_response
from veriglot.study.tallying import Group, Tallying, together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.records import Kind, Rate
    from veriglot.run.watch import Watch
    from veriglot.study.config import Config
    from veriglot.study.detecting import Judge
    from veriglot.study.folder import Folder
    from veriglot.study.gold import Gold
    from veriglot.study.status import Plan

__all__ = ["Estimated", "Rated", "estimate_all"]


@dataclass(frozen=True)
class Rated:
    """One model in one language.

    Attributes:
        counted: what each detector marked.
        made: the rates over all, with their draws; the study's own estimator first.
        replicates: one rate for each detector and seed.
    """

    counted: tuple[Counted, ...]
    made: tuple[Made, ...]
    replicates: tuple[Rate, ...]


@dataclass(frozen=True)
class Estimated:
    """All rates of a study.

    Attributes:
        cells: (model, language) -> its rates.
        judgings: the detectors.
        languages: in the order of the study file, or else sorted.
        outside: responses that are in none of them, as the first detector found.
        labelled_by: who made the labels of the study's own responses; empty where it has none.
        unused_labels: labelled responses that are none of those that the first detector judged.
    """

    languages: tuple[str, ...]
    cells: dict[tuple[str, str], Rated]
    judgings: tuple[Judging, ...]
    outside: int
    labelled_by: frozenset[Kind]
    unused_labels: int


def estimate_all(config: Config, folder: Folder, plan: Plan, judges: Sequence[Judge], watch: Watch) -> Estimated:
    """Estimate every rate of a study, and write `rates.json`.

    Args:
        config: the study.
        folder: of the run, with responses and predictions.
        plan: models and languages.
        judges: the detectors, as they were used.
        watch: is told of every response that is read.

    Raises:
        InputError: a file was changed after it was made, or labels do not fit.
    """
    gold = gold_counts(config)
    models = list(plan.models)
    judgings = tuple(Judging(judge.description, judge.profile, config.study) for judge in judges)
    passes = [_count(config, folder, judge, models, watch, ids=bool(gold)) for judge in judges]
    languages = config.languages or _languages(plan, passes)
    cells = {
        (model, language): _rate(config, plan, (model, language), passes, judgings, gold)
        for model in models
        for language in languages
    }
    write_whole(folder.rates, _as_json(cells))
    outside = (group for key, group in passes[0].groups.items() if key.language not in languages)
    lost = sum(group.statuses.total() for group in outside)
    unused = without_response(gold, passes[0].groups.values())
    return Estimated(tuple(languages), cells, judgings, lost, gold.kinds, unused)


def _languages(plan: Plan, passes: Sequence[Tallying]) -> tuple[str, ...]:
    planned = {tag for tags in plan.models.values() for tag in tags} if plan.asked else set()
    return tuple(sorted(planned | {key.language for tallying in passes for key in tallying.groups}))


def _count(
    config: Config,
    folder: Folder,
    judge: Judge,
    models: Sequence[str],
    watch: Watch,
    *,
    ids: bool,
) -> Tallying:
    tallying = Tallying(config.study.unit, ids=ids)
    for model in models:
        for sample, prediction in pairs(folder.responses(model), folder.predictions(judge.label, model)):
            tallying.add(sample, prediction)
            watch.advance()
    return tallying


def _rate(
    config: Config,
    plan: Plan,
    place: tuple[str, str],
    passes: Sequence[Tallying],
    judgings: Sequence[Judging],
    gold: Gold,
) -> Rated:
    model, language = place
    asked = _asked(plan, model, language)
    counted = tuple(
        _counted(judging, {key.seed: group for key, group in tallying.groups.items()
                           if (key.model, key.language) == place}, asked, gold)
        for judging, tallying in zip(judgings, passes, strict=True)
    )  # fmt: skip
    made = tuple(cell_rate(model, language, counted, estimator) for estimator in config.estimators)
    return Rated(counted, made, replicates(model, language, counted, _of_one_seed(config)))


def _asked(plan: Plan, model: str, language: str) -> dict[int | None, int]:
    """Responses that the design asks for, by seed; none for given responses."""
    if not plan.asked:
        return {}
    planned = plan.models[model].get(language, {})
    return {None if seed == "-" else int(seed): count for seed, count in planned.items()}


def _counted(
    judging: Judging, groups: dict[int | None, Group], asked: dict[int | None, int], gold: Gold
) -> Counted:  # fmt: skip
    """What one detector marked. Calls that gave no response count as not judged."""
    seeds = {seed: group.tallies for seed, group in groups.items()}
    given = {seed: group.statuses.total() for seed, group in groups.items()}
    whole = together(groups.values())
    labels = labels_of(whole.ids, whole.tallies.units.tolist(), gold) if gold else None
    return Counted(
        judging, seeds, labels, {seed: max(given.get(seed, 0), asked.get(seed, 0)) for seed in given | asked}
    )


def _of_one_seed(config: Config) -> Estimator:
    """The estimator of replicates: labels are too few to part by seed, so with `ppi` these are raw shares."""
    wanted = config.study.estimator
    return Estimator.RAW if wanted is Estimator.PPI else wanted


def _as_json(cells: dict[tuple[str, str], Rated]) -> bytes:
    """The rates as `veriglot estimate --json` prints them, then those of single detectors and seeds."""
    rates = [made.rate for rated in cells.values() for made in rated.made]
    rates += [rate for rated in cells.values() for rate in rated.replicates]
    lines = b",\n".join(msgspec.json.encode(rate) for rate in rates)
    return b"[\n" + lines + b"\n]\n"

"""Hallucination rates from the labels: with intervals, how these shrink, and whether suggestions change the labels.

Rates are those of `veriglot estimate --estimator ppi` (prediction-powered inference): the imported predictions,
corrected by the gold of randomly chosen items. Without predictions, only the labels are used.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from fastapi import Response  # noqa: TC002  # the router reads annotations

from veriglot.errors import MissingExtraError
from veriglot.metrics.spans import unit_marks
from veriglot.rates.estimators import estimate
from veriglot.rates.plan import plan_sample_size
from veriglot.rates.proportion import FEWEST_CLUSTERS, Labels, Tallies
from veriglot.records import Estimator
from veriglot.records.settings import Record
from veriglot.studio.adjudication import label_of, lacks_label
from veriglot.studio.comparison import Comparison, annotations_by_item
from veriglot.studio.figures import FigureCache, Pending, Progress, figure
from veriglot.studio.items import draws_suggestions, not_by_chance
from veriglot.studio.layers import Layer, LayerSpan
from veriglot.studio.review import final_layers
from veriglot.studio.tables import WORK_ROLES, Assignment, Item
from veriglot.studio.web import Caller, Lead, Router, Studio
from veriglot.study.rates import query_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from veriglot.studio.project import Project
    from veriglot.studio.store import ReadTransaction

__all__ = ["languages_with_enough", "measure_rates", "router"]

_STEP = 100  # labels
_HALF_WIDTH = 0.02  # default


class RateStep(Record):
    """The rate from the first labels only; `rate`, `low` and `high` are shares."""

    labels: int
    rate: float | None
    low: float | None
    high: float | None
    reasons: tuple[str, ...]  # why it is unreliable; empty if reliable


class LanguageRate(Record):
    """How often the items of one language have hallucinations."""

    language: str
    estimator: Estimator  # `ppi` with predictions, else `raw`: only the labels
    items: int  # population of the rate
    labels: int  # randomly chosen items with gold, used for the rate
    chosen: int  # items with gold that were not chosen at random (uncertain ones, or picked by a lead): left out
    suggested: int  # of `labels`, those annotated with visible suggestions
    rate: float | None
    low: float | None
    high: float | None
    reasons: tuple[str, ...]  # of the last step, and remarks on items without labels
    steps: list[RateStep]  # after each hundred labels, in the order of labelling
    enough: bool  # whether the last step is reliable and as precise as required, with few disputes left
    needed: int | None  # total labels for that; None if unknown or impossible


class SuggestionEffect(Record):
    """What people marked with and without suggestions; in shares of words.

    `measure` is `marked`: of all words, or `followed`: of the words marked by suggestions.
    """

    measure: str
    shown: float | None
    blind: float | None
    difference: float | None  # shown - blind
    low: float | None  # of its 95% interval
    high: float | None
    shown_items: int
    blind_items: int
    reason: str | None  # why there is no difference


class ProjectRates(Record):
    """Rates by language, and the effect of suggestions; without suggestions in the project, no effect."""

    unit: str
    half_width: float  # required by the project
    stops: bool  # whether languages with enough labels get no new items
    languages: list[LanguageRate]
    effects: list[SuggestionEffect]


def measure_rates(tx: ReadTransaction, project: Project) -> ProjectRates:
    """The current rates, and the effect of suggestions on the labels."""
    unit = "word" if project.form.has_spans else project.form.unit or "response"
    by_language: dict[str, list[_Counted]] = {}
    for counted in _counted(tx, project):
        by_language.setdefault(counted.language, []).append(counted)
    languages = [
        tx.cached(tag, "rate", partial(_language, project, tag, rows), stamp=rows)
        for tag, rows in sorted(by_language.items())
    ]
    half_width = project.entries.work.half_width or _HALF_WIDTH
    return ProjectRates(unit, half_width, project.entries.work.stops, languages, list(_effects(tx, project)))


@dataclass
class _Counted:
    """The counts of an item; `marked` is None without a prediction, `unsupported` without a label."""

    language: str
    chosen: str | None = None  # how it was chosen, if not at random (`items.not_by_chance`)
    units: int = 0
    cluster: int = 0  # responses to one query share a cluster
    marked: int | None = None
    unsupported: int | None = None
    at: tuple[str, int] = ("", 0)  # when it was labelled
    suggested: bool = False
    lacks: int = 0  # number of people who submitted it, if it has no label


def _counted(tx: ReadTransaction, project: Project) -> Iterator[_Counted]:
    project_id = tx.project(project.slug).id
    by_item, chosen = annotations_by_item(tx, project_id), not_by_chance(tx, project)
    final_layer_of = final_layers(tx, project_id)
    for item in tx.items(project_id, role=WORK_ROLES):
        rows = by_item.get(item.id, [])
        make = partial(_count, tx, project, item, rows, final_layer_of)
        counted = replace(tx.cached(item.id, "counted", make), chosen=chosen.get(item.id))
        if counted.units or counted.lacks:
            yield counted


def _count(
    tx: ReadTransaction,
    project: Project,
    item: Item,
    rows: Sequence[Assignment],
    final_layer_of: Callable[[Assignment], Layer],
) -> _Counted:
    prediction, counted = tx.prediction(item.id), _Counted(item.language or "")
    if prediction is not None and "units" in prediction:
        counted.units, counted.marked, counted.cluster = (prediction[key] for key in ("units", "marked", "query"))
    label = label_of(tx, project, item, rows, final_layer_of)
    if label is not None and label[0].skip is None:
        sample = tx.original(item.id)
        comparison = Comparison(project.form, sample)
        counted.units, counted.cluster = len(comparison.units), query_of(sample)
        counted.unsupported = _touched(comparison, label[0])
        counted.at = max((str(row.submitted_at or row.changed_at) for row in rows), default=""), item.id
        counted.suggested = any(row.suggestions is not None for row in rows)
    else:
        counted.lacks = lacks_label(project, item, rows) and len(rows)
    return counted


def _touched(comparison: Comparison, layer: Layer) -> int:
    return int(np.count_nonzero(unit_marks(comparison.units, comparison.marks(layer).spans) >= 0))


def _language(project: Project, language: str, rows: Sequence[_Counted]) -> LanguageRate:
    has_predictions = any(row.marked is not None for row in rows)
    population = [row for row in rows if row.units and (row.marked is not None or not has_predictions)]
    order = sorted(
        (i for i, row in enumerate(population) if row.unsupported is not None and row.chosen is None),
        key=lambda i: population[i].at,
    )
    case = _Case(population, has_predictions)
    steps = [case.step(order[:size]) for size in (*range(_STEP, len(order), _STEP), len(order)) if size]
    half_width = project.entries.work.half_width or _HALF_WIDTH
    last = steps[-1] if steps else RateStep(0, None, None, None, ("no item that came by chance is labelled yet",))
    lacks = [row.lacks for row in rows if row.lacks and row.chosen is None]
    reasons = list(last.reasons)
    if lacks:
        reasons.append(
            f"{len(lacks)} handed in without a label, which can widen the interval: review, settle or exclude"
        )
    if picked := sum(row.chosen == "picked" for row in population):
        reasons.append(f"{picked} picked by a lead are not among the labels, which stand for the others alone")
    narrow = last.low is not None and last.high is not None and (last.high - last.low) / 2 <= half_width
    # Undisputed labels do not represent the disputed ones, and are mostly short: a tenth in dispute is too much.
    disputed = sum(people > 1 for people in lacks)
    enough = narrow and not last.reasons and 9 * disputed <= len(order)
    needed = case.plan(order, half_width) if order else None
    if not enough and (narrow or (needed or 0) <= len(order)):
        needed = None  # more labels would not help, or a few of them dominate: the plan does not cover this
    return LanguageRate(
        language,
        case.estimator,
        len(population),
        len(order),
        sum(row.unsupported is not None and row.chosen is not None for row in population),
        sum(population[i].suggested for i in order),
        last.rate,
        last.low,
        last.high,
        tuple(reasons),
        steps,
        enough,
        needed,
    )


@dataclass
class _Case:
    """The items of one language, and the computation of a rate from some of their labels."""

    population: Sequence[_Counted]
    has_predictions: bool

    @property
    def estimator(self) -> Estimator:
        return Estimator.PPI if self.has_predictions else Estimator.RAW

    def _inputs(self, chosen: Sequence[int]) -> tuple[Tallies, Labels | None]:
        """The tallies of all items with labels of the chosen ones; without predictions, the labels as tallies."""
        unsupported = np.array([self.population[i].unsupported for i in chosen], np.int64)
        rows = self.population if self.has_predictions else [self.population[i] for i in chosen]
        units, cluster = (np.array([getattr(row, name) for row in rows], np.int64) for name in ("units", "cluster"))
        if not self.has_predictions:
            return Tallies(unsupported, units, cluster), None
        marked = np.array([row.marked for row in rows], np.int64)
        return Tallies(marked, units, cluster), Labels(unsupported, np.array(chosen, np.int64))

    def step(self, chosen: Sequence[int]) -> RateStep:
        tallies, labels = self._inputs(chosen)
        result = estimate(tallies, estimator=self.estimator, labels=labels)
        return RateStep(len(chosen), result.value, result.low, result.high, result.reasons)

    def plan(self, chosen: Sequence[int], half_width: float) -> int | None:
        """Total labels for a half-width."""
        tallies, labels = self._inputs(chosen)
        of = "labels" if self.has_predictions else "responses"
        with suppress(MissingExtraError):
            plan = plan_sample_size(tallies, None, half_width, of=of, estimator=self.estimator, labels=labels)  # type: ignore[arg-type]
            if plan:
                return plan.responses
        return None


# Do suggestions change what people mark? The items that show any are drawn at random (`share` under [suggestions]), so
# a difference between the two groups is an effect of suggestions, or chance.


def _effects(tx: ReadTransaction, project: Project) -> Iterator[SuggestionEffect]:
    if project.entries.suggestions is None or not project.form.has_spans:
        return
    project_id, by_arm = tx.project(project.slug).id, dict[tuple[str, bool], list[tuple[int, int, int]]]()
    by_item = annotations_by_item(tx, project_id)
    for item in tx.items(project_id, role=WORK_ROLES):
        rows = [row for row in by_item.get(item.id, ()) if row.layer.skip is None]
        if rows:
            for arm, marked, words in tx.cached(item.id, "arms", partial(_arms, tx, project, item, rows)):
                by_arm.setdefault(arm, []).append((marked, words, item.id))
    for measure in ("marked", "followed"):
        arms = by_arm.get((measure, True), []), by_arm.get((measure, False), [])
        yield tx.cached("effects", measure, partial(_effect, measure, *arms), stamp=arms)


def _arms(
    tx: ReadTransaction, project: Project, item: Item, rows: Sequence[Assignment]
) -> list[tuple[tuple[str, bool], int, int]]:
    """For annotations of an item: the measure, whether suggestions were shown, the marked words, and all words."""
    offered, entry, result = _possible_suggestions(tx, project, item), project.entries.suggestions, []
    comparison = Comparison(project.form, tx.sample(item.id))
    for row in rows:
        arm = row.suggestions is not None
        if not arm and draws_suggestions(project, item.key):
            continue  # selected to show some, but none shown: they came later, or the detector returned none
        if offered is None and not arm and entry is not None and entry.detector is None:
            continue  # nothing could be shown
        result.append((("marked", arm), _touched(comparison, row.layer), len(comparison.units)))
        if offered is not None:
            pairs = comparison.label_pairs(row.layer, offered, typed=False)
            both, suggested = sum(bool(a and b) for a, b in pairs), sum(bool(b) for _, b in pairs)
            result.append((("followed", arm), both, suggested))
    return result


def _possible_suggestions(tx: ReadTransaction, project: Project, item: Item) -> Layer | None:
    """The suggestions of an item, shown or not; None if unknown."""
    entry = project.entries.suggestions
    if entry is None or entry.detector is not None:
        return None
    if entry.silver:
        return tx.silver(item.id)
    prediction = tx.prediction(item.id)
    if prediction is None:
        return None
    return Layer(spans=tuple(LayerSpan(s["id"], s["start"], s["end"], s["type"]) for s in prediction["spans"]))


def _effect(
    measure: str, shown: Sequence[tuple[int, int, int]], blind: Sequence[tuple[int, int, int]]
) -> SuggestionEffect:
    arms = [Tallies(*np.array(rows, np.int64).reshape(-1, 3).T) for rows in (shown, blind)]
    counts = [len(np.unique(arm.cluster[arm.units > 0])) for arm in arms]
    rates = [estimate(arm, estimator=Estimator.RAW) for arm in arms]
    first, second = (rate.value for rate in rates)
    if first is None or second is None or min(counts) < FEWEST_CLUSTERS:
        reason = f"{counts[0]} items with suggestions and {counts[1]} without; {FEWEST_CLUSTERS} of each are needed"
        return SuggestionEffect(measure, first, second, None, None, None, counts[0], counts[1], reason)
    low, high = (float(q) for q in np.quantile(rates[0].draws - rates[1].draws, (0.025, 0.975)))
    return SuggestionEffect(measure, first, second, first - second, low, high, counts[0], counts[1], None)


router = Router()


@router.call("GET", "/api/lead/rates", answer=ProjectRates, pending=Pending)
def show_rates(caller: Lead) -> Response:
    """How often models hallucinate according to the labels so far, with intervals, and the effect of suggestions."""
    return figure(caller, _rates)


def _rates(studio: Studio, tx: ReadTransaction, _: Progress) -> ProjectRates:
    return measure_rates(tx, studio.project)


def languages_with_enough(caller: Caller) -> frozenset[str]:
    """Languages whose last computed rate is as precise as the project requires: they get no new items.

    Stopping by the width of the interval, whatever the rate, keeps the interval's coverage for narrow intervals (Chow
    and Robbins 1965, doi:10.1214/aoms/1177700156).
    """
    if not caller.studio.project.entries.work.stops:
        return frozenset()
    figures: FigureCache = caller.request.app.state.figures
    report = figures.last(caller, _rates, ProjectRates)
    return frozenset() if report is None else frozenset(row.language for row in report.languages if row.enough)

"""A study's results: look-ups, the tables (CSV, JSON, Markdown, LaTeX), and the terminal view.

An `unreliable` rate has its own columns, so that no reader of the column `rate` takes it for a rate.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cached_property
from math import ceil
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from rich.text import Text

from veriglot.errors import UnknownNameError
from veriglot.rates.estimators import ESTIMATORS
from veriglot.records import Estimator, Rate, Reliability
from veriglot.records.languages import language_name
from veriglot.report.tables import Cell as TableCell
from veriglot.report.tables import Table, Value, as_json, escape_latex, escape_markdown, write_csv
from veriglot.report.text_layout import by_wording, count, interval, number, percent, points, printable, signed
from veriglot.storage.files import write_whole
from veriglot.study.methods import bibtex, methods_document
from veriglot.study.rates import contradictions
from veriglot.study.results import BY_COMPARED, Average, Cell, Comparison, RankInterval, StudyResults

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console


__all__ = [
    "ALL",
    "View",
    "findings",
    "leaders",
    "paper_texts",
    "profile_table",
    "rank_reach",
    "render_study",
    "study_table",
    "study_tables",
    "write_tables",
]


ALL = "*"
"""The name of all languages together."""

FORMATS = ("csv", "json", "markdown", "latex")


class View:
    """Look-ups in the results of one study.

    Attributes:
        results: the study's results.
        models: names of the models, the lowest rate first, those without a mean last.
        languages: tags, in the same order.
    """

    def __init__(self, results: StudyResults) -> None:
        self.results = results
        self._cells = {(cell.model, cell.language): cell for cell in results.cells if cell.coverage.planned}
        self._averages = {average.name: average for average in (*results.by_language, *results.by_model)}
        self.models = self._ordered(model.name for model in results.models)
        self.languages = self._ordered(results.languages)

    def _ordered(self, names: Iterable[str]) -> tuple[str, ...]:
        """Names by their averages, ascending; then those without one, in their original order."""

        def key(name: str) -> tuple[bool, float]:
            average = self.average(name)
            mean = average.mean if average is not None else None
            return mean is None, mean or 0.0

        return tuple(sorted(names, key=key))

    def cell(self, model: str, language: str) -> Cell | None:
        """The cell of one model in one language; None if it has no planned or given response."""
        return self._cells.get((model, language))

    @property
    def cells(self) -> Iterator[Cell]:
        """The cells, model by model."""
        pairs = ((model, language) for model in self.models for language in self.languages)
        return (self._cells[pair] for pair in pairs if pair in self._cells)

    def rate(self, model: str, language: str, estimator: str | None = None) -> Rate | None:
        """The rate of a cell by an estimator (None: the study's own); None if there is none."""
        cell = self.cell(model, language)
        wanted = estimator or self.results.estimator
        return next((rate for rate in cell.rates if rate.estimator == wanted), None) if cell else None

    def average(self, name: str) -> Average | None:
        """The average of a model or a language, by name or tag."""
        return self._averages.get(name)

    @staticmethod
    def is_reliable(rate: Rate | None) -> bool:
        """Whether a rate may be shown as a plain number: it exists, and is reliable."""
        return rate is not None and rate.status is Reliability.OK and rate.rate is not None

    def reliable(self, rates: Iterable[Rate | None]) -> list[float]:
        """The rates that may be shown as plain numbers, as numbers."""
        return [rate.rate for rate in rates if rate is not None and self.is_reliable(rate) and rate.rate is not None]

    def figures(self, rates: Iterable[Rate | None]) -> list[float]:
        """Comparable rates: reliable ones, and those that are unreliable only because another rate contradicts them."""
        return [
            rate.rate
            for rate in rates
            if rate is not None and rate.rate is not None
            if self.is_reliable(rate) or rate.reason == "; ".join(contradictions(rate))
        ]

    def shared_means(self, estimators: Sequence[str], models: Sequence[str]) -> tuple[dict[str, float] | None, int]:
        """The mean of each estimator over the cells where the study's own is reliable, and the number of these cells.

        Only cells with a figure by each count, including one that the study's own rate contradicts. The means are None
        if there is no such cell.
        """
        cells = [(model, tag) for model in models for tag in self.languages if self.is_reliable(self.rate(model, tag))]
        rates = ([self.rate(model, tag, name) for name in estimators] for model, tag in cells)
        complete = [values for values in map(self.figures, rates) if len(values) == len(estimators)]
        if not complete:
            return None, 0
        means = (fmean(values) for values in zip(*complete, strict=True))
        return dict(zip(estimators, means, strict=True)), len(complete)

    @staticmethod
    def doubt(rate: Rate) -> str:
        """An unreliable estimate in parentheses: `(13.2%?)`."""
        return "no estimate" if rate.rate is None else f"({percent(rate.rate)}?)"

    def rate_text(self, rate: Rate) -> str:
        """A rate in one line of text: `7.4% [6.1, 8.9]`, `unreliable (13.2%?)`, `unreliable, no estimate`."""
        if self.is_reliable(rate):
            return f"{percent(rate.rate)} {interval(rate.low, rate.high)}".rstrip()
        return f"unreliable{',' * (rate.rate is None)} {self.doubt(rate)}"

    @cached_property
    def estimators(self) -> tuple[Estimator, ...]:
        """Every estimator of the study, its own first, then in the order of their definition."""
        estimators = {rate.estimator for cell in self.results.cells for rate in cell.rates}
        own = self.results.estimator
        return tuple(sorted(estimators, key=lambda each: (each != own, list(Estimator).index(each))))

    @staticmethod
    def estimator_words(estimator: str) -> str:
        """What an estimator does, in a few words; an unknown name is returned unchanged."""
        return ESTIMATORS[Estimator(estimator)].title if estimator in set(Estimator) else estimator

    @cached_property
    def own_rates(self) -> tuple[Rate, ...]:
        """The rate of every cell by the study's estimator, model by model."""
        rates = (self.rate(cell.model, cell.language) for cell in self.cells)
        return tuple(rate for rate in rates if rate is not None)

    @cached_property
    def unreliable(self) -> tuple[Rate, ...]:
        """The rates among `own_rates` that may not be shown as plain numbers."""
        return tuple(rate for rate in self.own_rates if not self.is_reliable(rate))

    @cached_property
    def by_reason(self) -> dict[str, dict[str, list[Rate]]]:
        """The unreliable rates by reason and model; reasons that differ only in numbers are merged."""
        groups: dict[str, dict[str, list[Rate]]] = defaultdict(lambda: defaultdict(list))
        reasons = ((rate.reason or "there is no estimate", rate) for rate in self.unreliable)
        for reason, rates in by_wording(reasons).items():
            for rate in rates:
                groups[_sentence(reason)][rate.model or "unnamed"].append(rate)
        return groups

    @cached_property
    def contradicted(self) -> dict[str, list[str]]:
        """Cells (model and language, in words) whose rates contradict each other or their labels, by contradiction."""
        pairs = (
            (_sentence(reason), f"{rate.model or 'unnamed'} in {self.language(rate.language)}")
            for rate in self.own_rates
            for reason in contradictions(rate)
        )
        return by_wording(pairs)

    @cached_property
    def by_labels(self) -> list[Rate]:
        """The reliable rates by labels of the study itself (`ppi`), if the report's estimator is another."""
        if self.results.estimator == Estimator.PPI:
            return []
        rates = (self.rate(cell.model, cell.language, Estimator.PPI) for cell in self.cells)
        return [rate for rate in rates if rate is not None and self.is_reliable(rate)]

    @cached_property
    def shared_languages(self) -> tuple[str, ...]:
        """The languages in which all models with any reliable rate have one; ranks are over these."""
        return tuple(tag for tag in self.languages if self._reliable_in and all(tag in t for t in self._reliable_in))

    @property
    def shared_words(self) -> str:
        """The languages of the ranks and of the overall mean, in words."""
        ranked, every = len(self._reliable_in), "every model"
        if ranked < len(self.models):
            every = f"each of the {ranked} models that have any" if ranked > 1 else "the only model that has any"
        shared = len(self.shared_languages)
        return f"{count(shared, 'language') if shared else 'no language'} with a reliable rate of {every}"

    @cached_property
    def tests(self) -> dict[tuple[str, str], Comparison]:
        """The comparison of every two models, the lower one first: over languages, or in the only common language."""
        rows: dict[tuple[str, str], list[Comparison]] = defaultdict(list)
        for row in self.results.comparisons:
            rows[row.first, row.second].append(row)
        tests = {}
        for (first, second), own in rows.items():
            over = [row for row in own if row.language == ALL] or own
            if len(over) == 1:
                tests[(first, second) if over[0].difference < 0 else (second, first)] = over[0]
        return tests

    def is_clear(self, row: Comparison | None) -> bool:
        """Whether the difference is significant after correction."""
        return row is not None and row.p_adjusted < 1 - self.results.confidence and row.difference != 0

    @property
    def recommendation(self) -> str:
        """Which estimate to quote if the study has labels of its own responses, in words."""
        return (
            f"Quote ppi in {count(len(self.by_labels), 'cell')} with labels of the study's own responses: it holds"
            " whatever the detector's errors are here, if the labelled responses were drawn at random."
        )

    @cached_property
    def unlike_means(self) -> str | None:
        """A warning that the models' means are over different languages; None if they are not."""
        if len(set(self._reliable_in)) < 2:
            return None
        few, many = min(map(len, self._reliable_in)), max(map(len, self._reliable_in))
        reach = f"{few}" if few == many else f"{few} to {many}"
        ranks = f"Ranks and the mean of all are over the {self.shared_words}."
        if not self.shared_languages:
            ranks = f"There is {self.shared_words}, so no ranks over languages and no mean of all."
        return (
            f"Do not order the models by their means: they are not of the same languages ({reach} of"
            f" {len(self.languages)}), as only reliable rates count. {ranks}"
        )

    @cached_property
    def _reliable_in(self) -> list[frozenset[str]]:
        """The languages in which each model's rate is reliable, for models that have any."""
        languages: dict[str | None, set[str]] = {}
        for rate in self.own_rates:
            if self.is_reliable(rate):
                languages.setdefault(rate.model, set()).add(rate.language)
        return [frozenset(tags) for tags in languages.values()]

    @property
    def units(self) -> str:
        """The unit, in words: `words`, `characters`, `tokens of NAME`."""
        unit = self.results.unit
        return {"word": "words", "char": "characters"}.get(unit) or f"tokens of {unit.removeprefix('hf:')}"

    @cached_property
    def profiles_agree(self) -> str | None:
        """How far rates by two profiles agree, in words; None if the study has no second one."""
        both = [each for each in self.results.profiles if each.difference is not None]
        if not both:
            return "No rate is reliable by both profiles." if self.results.profiles else None
        differences = [each.difference or 0.0 for each in both]
        widest = max(both, key=lambda each: abs(each.difference or 0.0))
        related = [c for c in self.results.correlations if c.name.startswith(BY_COMPARED)]
        return " ".join(
            (
                f"{count(len(both), 'cell')} with a reliable rate by both profiles: the difference, profile minus"
                f" compare_profile, is {signed(fmean(differences))} percentage points on average and"
                f" {points(fmean(map(abs, differences)))} in size; the largest is {signed(widest.difference or 0.0)}"
                f" ({widest.rate.model}, {self.language(widest.rate.language)}).",
                *(f"Pearson's r of the {c.points} cells is {number(c.r, 2)} (p = {c.p:.2g})." for c in related),
                "Both rates are of the same marks, which alone makes them correlate: judge by the differences.",
            )
        )

    @property
    def level(self) -> str:
        """The level of the intervals: `95%`."""
        return f"{100 * self.results.confidence:g}%"

    @property
    def has_spread(self) -> bool:
        """Whether any cell has a standard deviation over detectors and seeds."""
        return any(cell.sd is not None for cell in self.results.cells)

    @property
    def all_judged(self) -> bool:
        """Whether every rate is over all responses, so that coverage need not be shown."""
        return all(rate.coverage >= 1 for cell in self.cells for rate in cell.rates)

    @property
    def judged_of_planned(self) -> tuple[int, int]:
        """Number of responses that the first detector scored, and of planned ones."""
        coverages = [cell.coverage for cell in self.results.cells]
        return sum(c.statuses.get("scored", 0) for c in coverages), sum(c.planned for c in coverages)

    def language(self, tag: str) -> str:
        """The English name of a language tag."""
        return "all languages" if tag == ALL else language_name(tag)

    def warnings(self) -> Iterator[tuple[str, str]]:
        """What to know before using the rates, each with its kind; `Contradiction` first."""
        for reason, cells in self.contradicted.items():
            yield "Contradiction", f"{'; '.join(cells)}: {reason}"
        if self.by_labels:
            yield "Note", self.recommendation
        for reason, by_model in self.by_reason.items():
            if all(contradictions(rate) for rates in by_model.values() for rate in rates):
                continue
            where = "; ".join(
                f"{model} in {', '.join(self.language(rate.language) for rate in rates)}"
                for model, rates in by_model.items()
            )
            yield "Unreliable", f"{reason} ({where})"
        if self.unlike_means:
            yield "Note", self.unlike_means
        yield from (("Warning", text) for text in self.results.warnings)


def rank_reach(rank: RankInterval) -> str:
    """The ranks that the data cannot exclude: `2`, `1–3`."""
    return str(rank.low) if rank.low == rank.high else f"{rank.low}–{rank.high}"


# Findings: sentences that follow from the figures and the corrected tests, and no more. Checked in `tests/report`.


_LISTED = 6  # maximum number of pairs of models in a sentence


def findings(view: View) -> Iterator[str]:
    """The findings of a study, the most important first."""
    for reason, cells in view.contradicted.items():
        yield f"Rates contradict each other in {'; '.join(cells)}: {reason}"
    if view.by_labels:
        yield view.recommendation
    yield _overall_words(view)
    yield from leaders(view)
    yield from _pairs(view)
    yield from _by_language(view)
    means, cells_used = view.shared_means(["raw", view.results.estimator], view.models)
    if view.results.estimator != "raw" and means:
        overall = view.results.overall  # of the same cells it says the mean before each rate is cut to [0, 1]
        yield (
            f"The detector marks {percent(means['raw'])} of the {view.units}; corrected for what it misses and marks"
            " wrongly, that is"
            f" {percent(overall.mean if overall.cells == cells_used else means[view.results.estimator])} (means over"
            f" the {count(cells_used, 'cell')} with a reliable corrected rate)."
        )
    if view.unlike_means:
        yield view.unlike_means


def _overall_words(view: View) -> str:
    overall = view.results.overall
    if overall.mean is None:
        why = f"There is {view.shared_words}" if view.unlike_means else "No rate is reliable"
        return f"{why}, so there is no mean of all."
    base = next((base for base in (100, 1000) if overall.mean * base >= 1), 10_000) if overall.mean else 100
    wrong = round(base * overall.mean)
    ends = interval(overall.low, overall.high)
    rate = f"{percent(overall.mean)}{f', {view.level} interval {ends}' if ends else ''}"
    return (
        f"Of {base:,} {view.units} that the models wrote, about {wrong:,} {'is' if wrong == 1 else 'are'} not"
        f" supported by the evidence ({rate}, mean of"
        f" {count(overall.cells, 'reliable rate')}{f' in the {view.shared_words}' if overall.unreliable else ''})."
    )


def leaders(view: View) -> Iterator[str]:
    """Which model hallucinates least, and which most, if ranks and corrected tests agree."""
    ranks = sorted((rank for rank in view.results.ranks if rank.language == ALL), key=lambda rank: rank.rank)
    if len(ranks) < 2:
        return
    ranked = {rank.model for rank in ranks}
    where = f" over the {view.shared_words}" if view.unlike_means else ""
    if not any(view.is_clear(row) for pair, row in view.tests.items() if ranked.issuperset(pair)):
        over = " over languages" if len(view.languages) > 1 else ""
        tested = f"No corrected test{over} tells apart" if view.tests else "No test compared"
        yield f"{tested} any two of the {len(ranks)} models{where}: none is shown to hallucinate least."
        return
    for word, low, top in (("least", True, ranks[0]), ("most", False, ranks[-1])):
        rows = {
            other: view.tests.get((top.model, other) if low else (other, top.model)) for other in ranked - {top.model}
        }
        if all(map(view.is_clear, rows.values())) and top.low == top.high:
            less = "less" if low else "more"
            worst = max(row.p_adjusted for row in rows.values() if row is not None)
            others = f"{less} than each other one" if len(rows) > 1 else f"{less} than the other one"
            tests = f"; in tests of pairs, {others}" if where else f": {others}"
            text = (
                f"{top.model} hallucinates {word} of the {len(ranks)} models{where}{_mean_of(view, top.model)}{tests}"
            )
            yield f"{text} (corrected p at most {ceil(1000 * worst) / 1000:.3f})."
        elif sum(rank.rank == top.rank for rank in ranks) == 1:
            rivals = [
                rank.model
                for rank in ranks
                if rank.model != top.model
                and (not view.is_clear(rows[rank.model]) or rank.low <= top.rank <= rank.high)
            ]
            text = f"{top.model} has the {'lowest' if low else 'highest'} mean rate{where}{_mean_of(view, top.model)}"
            if rivals:
                either = " or ".join([", ".join(rivals[:-1]), rivals[-1]] if len(rivals) > 1 else rivals)
                yield f"{text}, but the data do not exclude that it is {either}."
        if len(ranks) == 2:
            return  # with two models, one sentence is enough


def _mean_of(view: View, model: str) -> str:
    """`, 7.4% [6.1, 8.9]`; empty if means are over different languages."""
    average = view.average(model)
    if view.unlike_means or average is None:
        return ""
    return f", {percent(average.mean)} {interval(average.low, average.high)}".rstrip()


def _pairs(view: View) -> Iterator[str]:
    """How many differences are significant, over languages and within them, and which, if these are few."""
    single = [row for row in view.results.comparisons if row.language != ALL]
    over = [f"{first} less than {second}" for (first, second), row in view.tests.items() if view.is_clear(row)]
    within = [
        f"{' less than '.join((row.first, row.second)[:: 1 if row.difference < 0 else -1])} in"
        f" {view.language(row.language)}"
        for row in single
        if view.is_clear(row)
    ]
    below = f"(corrected p below {1 - view.results.confidence:.2g})"
    kinds = [(over, len(view.tests), "", "pair of models differs", "pairs of models differ")] * (len(view.models) > 2)
    if len({row.language for row in single}) > 1:
        kinds.append((within, len(single), "Within single languages, ", "difference is", "differences are"))
    for clear, every, start, one_is, many_are in kinds:
        if not every or (not clear and not start):
            continue
        verb = f"{one_is if every == 1 else many_are} beyond chance {below}"
        named = f": {'; '.join(clear)}" if 0 < len(clear) <= _LISTED else ""
        yield f"{start}{len(clear):,} of {every:,} {verb}{named}."


def _by_language(view: View) -> Iterator[str]:
    averages = [each for each in view.results.by_language if each.name in view.shared_languages]
    ends = [(percent(each.mean), view.language(each.name)) for each in averages]
    if len(ends) < 2 or ends[0][0] == ends[-1][0]:
        return
    over = "" if len(averages) == len(view.languages) else f", over the {view.shared_words}"
    yield (
        f"By language{over}, mean rates go from {ends[0][0]} in {ends[0][1]} to {ends[-1][0]} in {ends[-1][1]}; no test"
        " compares languages."
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


# Every table as rows.


def study_tables(results: StudyResults) -> dict[str, Table]:
    """Every table of a study that has rows, by name."""
    return {name: table for name, table in _tables(View(results)) if table.rows}


_RATE_COLUMNS = (
    "model language estimator rate low high status reason unreliable_rate unreliable_low unreliable_high unit units"
    " responses coverage detector seed signature"
)


def _tables(view: View) -> Iterator[tuple[str, Table]]:
    results, cells = view.results, list(view.cells)
    rates = [_rate_row(rate) for cell in cells for rate in cell.rates]
    yield "rates", Table.named("Rates by model, language and estimator", _RATE_COLUMNS, rates)
    average = "name mean low high sd cells unreliable"
    columns = "model mean low high sd languages unreliable_left_out"
    yield "models", Table.of("Mean rate of each model over languages", results.by_model, average, columns)
    columns = "language mean low high sd models unreliable_left_out"
    yield "languages", Table.of("Mean rate in each language over models", results.by_language, average, columns)
    yield "ranks", Table.of("Ranks with their intervals", results.ranks, "language model rank low high")
    title = "Differences between models, first minus second"
    fields = "first second language difference low high p p_adjusted effect paired queries method"
    yield "comparisons", Table.of(title, results.comparisons, fields)
    title = "Relations of rates with other quantities"
    yield "correlations", Table.of(title, results.correlations, "name of r low high p points method")
    title = "Marked units by type, as the first detector marked them (raw counts)"
    types = [(c.model, c.language, *item, results.unit) for c in cells for item in sorted(c.types.items())]
    yield "types", Table.named(title, "model language type marked_units unit", types)
    statuses = sorted({status for cell in cells for status in cell.coverage.statuses})
    coverage = [
        (c.model, c.language, n.planned, n.answered, n.failed, *(n.statuses.get(name, 0) for name in statuses))
        for c in cells
        for n in (c.coverage,)
    ]
    heads = ("model", "language", "planned", "answered", "failed", *statuses)
    yield "coverage", Table("Outcomes of the responses", heads, coverage)
    shares = "detectable most_frequent_language right_language refused repetitive truncated empty"
    fields = " ".join(f"quality.{name}" for name in f"words sentences {shares}".split())
    columns = f"model language mean_words mean_sentences {shares}"
    yield "quality", Table.of("Quality of the responses", cells, f"model language {fields}", columns)
    title = "Mean and standard deviation over detectors and seeds, and mean length"
    columns = "model language replicates_mean replicates_sd mean_length unit"
    lengths = [(c.model, c.language, c.mean, c.sd, c.length, results.unit) for c in cells]
    yield "cells", Table.named(title, columns, lengths)
    replicates = [_rate_row(rate) for cell in cells for rate in cell.replicates]
    yield "replicates", Table.named("Rates by detector and seed", _RATE_COLUMNS, replicates)
    yield "profiles", _profile_figures(results)
    keys = sorted({key for model in results.models for key in model.settings})
    settings = [
        (model.name, model.family, model.parameters, model.languages, *(model.settings.get(key) for key in keys))
        for model in results.models
    ]
    heads = ("model", "family", "parameters_billions", "declared_languages", *keys)
    yield "settings", Table("The models and their settings", heads, settings)
    title = "Marks of the examples; offsets are code points, half-open"
    marks = [
        (
            sample.generator.name if sample.generator else None, sample.language, sample.id, span.start, span.end,
            span.type, span.confidence, sample.response[span.start : span.end], example.prediction.detector,
        )
        for example in results.examples
        for sample in (example.sample,)
        for span in example.prediction.spans or ()
    ]  # fmt: skip
    yield "examples", Table.named(title, "model language sample start end type confidence text detector", marks)


def _profile_figures(results: StudyResults) -> Table:
    columns = "model language detector rate low high sd compared_rate compared_low compared_high compared_sd difference"
    rows = [
        (
            pair.rate.model, pair.rate.language, pair.rate.detector, *_reliable_columns(pair.rate), pair.sd,
            *_reliable_columns(pair.compared), pair.compared_sd, pair.difference,
        )
        for pair in results.profiles
    ]  # fmt: skip
    return Table.named("Rates by the profile and by the compare_profile of a detector", columns, rows)


def _reliable_columns(rate: Rate) -> tuple[Value, Value, Value]:
    return (rate.rate, rate.low, rate.high) if View.is_reliable(rate) else (None, None, None)


def _rate_row(rate: Rate) -> tuple[Value, ...]:
    numbers, nothing = (rate.rate, rate.low, rate.high), (None, None, None)
    sound = View.is_reliable(rate)
    return (
        rate.model, rate.language, rate.estimator.value, *(numbers if sound else nothing), rate.status.value,
        rate.reason, *(nothing if sound else numbers), rate.unit, rate.units, rate.responses, rate.coverage,
        rate.detector, rate.seed, rate.signature,
    )  # fmt: skip


def study_table(results: StudyResults, format: str, *, table: str | None = None) -> str:  # noqa: A002  # as in the CLI
    """One table of a study; or what a format shows by default.

    Args:
        results: the study's results.
        format: `csv` (default: `rates`), `json` (default: an object with every table), `markdown` or `latex` (default:
            rates, languages by models, as in papers).
        table: the name of a table: `rates`, `models`, `languages`, `ranks`, `comparisons`, `correlations`, `types`,
            `coverage`, `quality`, `cells`, `replicates`, `profiles`, `settings`, `examples`.

    Raises:
        UnknownNameError: no such format, or the study has no such table.
    """
    if format not in FORMATS:
        raise UnknownNameError("format of a table", format, FORMATS)
    tables = study_tables(results)
    if table is not None and table not in tables:
        raise UnknownNameError("table of this study", table, tables)
    if format == "csv":
        name = table or "rates"
        return tables[name].to_csv() if name in tables else ""
    if format == "json":
        return as_json(_records(results, tables) if table is None else tables[table].records())
    if table is None:
        return (_markdown if format == "markdown" else _latex)(View(results))
    return tables[table].to_markdown() if format == "markdown" else tables[table].to_latex()


def _records(results: StudyResults, tables: dict[str, Table]) -> dict[str, Any]:
    names = ("title", "unit", "estimator", "confidence", "warnings", "signature")
    head = {name: getattr(results, name) for name in names}
    return {**head, "tables": {name: table.records() for name, table in tables.items()}}


# Languages by models, as in papers.


def _notes(view: View) -> list[str]:
    unreliable = count(len(view.unreliable), "rate")
    head = f"Unreliable, and in no mean: {unreliable} of {len(view.own_rates)}."
    return [head] * bool(view.unreliable) + [text for _, text in view.warnings()]


def _markdown(view: View) -> str:
    """Title, table, unreliable rates with reasons, and the signature."""
    caption = (
        f"Share of {view.units} that the evidence does not support, by {view.results.estimator}, with {view.level}"
        " intervals in percentage points and coverage (judged responses over those asked for or given)."
    )
    lines = [f"**{escape_markdown(view.results.title)}**", "", escape_markdown(caption), ""]
    lines += [*(f"- {escape_markdown(text)}" for text in findings(view)), ""]
    lines += [_rate_table(view).to_markdown(), *(f"- {escape_markdown(text)}" for text in _notes(view))]
    return "\n".join([*lines, "", f"Signature: `{view.results.signature.replace('`', '')}`", ""])


def _latex(view: View) -> str:
    """Rates over their intervals as `table*`s for a paper."""
    text = _rate_table(view, coverage=False).to_latex_float(view.results.title, _latex_caption(view), "tab:rates")
    lines = (f"% {' '.join(printable(text).split())}\n" for text in (*_notes(view), view.results.signature))
    return text + "".join(lines)


def _latex_caption(view: View) -> str:
    """The notes that the printed table needs without the page."""
    judged, planned = view.judged_of_planned
    responses = [rate.responses for rate in view.own_rates] or [0]
    coverage = sorted(rate.coverage for rate in view.own_rates) or [1.0]
    in_cell = " to ".join(dict.fromkeys(f"{n:,}" for n in (min(responses), max(responses))))
    covered = " to ".join(dict.fromkeys(percent(share, 0) for share in (coverage[0], coverage[-1])))
    own = view.results.estimator
    text = (
        f"Share of {view.units} (in %) that the evidence does not support, estimated by {own}"
        f" ({view.estimator_words(own)}), with {view.level} intervals in brackets. n = {judged:,} judged of"
        f" {count(planned, 'planned response')} ({in_cell} in a cell{'' if view.all_judged else f', {covered} of it'});"
        f" detected by {', '.join(view.results.detectors) or 'an unnamed detector'}. Means are unweighted, of"
        " reliable rates."
    )
    doubt = " Unreliable: the data do not support a rate; what the estimator gave is in parentheses."
    return text + doubt * bool(view.unreliable)


def write_tables(results: StudyResults, folder: str | Path) -> list[Path]:
    """Write every table as CSV, `rates.tex`, and the methods as `methods.md`, `methods.tex` and `references.bib`.

    Args:
        results: of the study.
        folder: where to write; created if it does not exist.

    Returns:
        The files.

    Raises:
        OSError: a file cannot be written.
    """
    paths = write_csv(study_tables(results), folder)
    for name, text in paper_texts(results).items():
        paths.append(Path(folder) / name)
        write_whole(paths[-1], text.encode())
    return paths


def paper_texts(results: StudyResults) -> dict[str, str]:
    """The texts of a study for a paper, in addition to its tables, by file name."""
    methods = "\n\n".join(map(escape_latex, results.methods)).replace(r"\textbar{}", r"\textbar\allowbreak{}")
    references = bibtex(results)
    cited = ",".join(re.findall(r"(?m)^@\w+\{(.+?),", references))
    return {
        "methods.md": methods_document(results),
        **({"references.bib": references} if results.references else {}),
        "methods.tex": f"{methods}\n" + (f"\n\\nocite{{{cited}}} % of references.bib\n" if cited else ""),
        "rates.tex": study_table(results, "latex"),
    }


def render_study(results: StudyResults, console: Console) -> None:
    """Print a study; a table wider than the console is split into several.

    Without colours, unreliable rates are marked in words.
    """
    view = View(results)
    judged, planned = view.judged_of_planned
    caption = (
        f"Share of {view.units} that the evidence does not support, by {results.estimator}, with {view.level} interval;"
        f" below it the coverage. {judged:,} of {count(planned, 'response')} judged."
    )
    agreement = view.profiles_agree
    profiles = () if agreement is None else (profile_table(view), Text(printable(agreement)), Text())
    lines = [Text.assemble((f"{kind}: ", _KINDS[kind]), printable(text)) for kind, text in view.warnings()]
    for part in (
        Text(printable(results.title), style="bold"), *lines[: len(view.contradicted)], Text(caption, style="dim"),
        _rate_table(view), Text(), _model_table(view), Text(), *profiles,
        *lines[len(view.contradicted) :],
        Text(f"Signature: {printable(results.signature)}", style="dim"),
    ):  # fmt: skip
        if isinstance(part, Table):
            part.print(console)
        else:
            console.print(part, soft_wrap=True, markup=False, highlight=False, emoji=False)


_KINDS = {"Contradiction": "bold red", "Unreliable": "bold yellow", "Note": "bold", "Warning": "bold"}


def profile_table(view: View) -> Table:
    """The rates by two profiles, side by side (mFAVA, Figure 3), for people."""

    def words(rate: Rate, sd: float | None) -> TableCell:
        text = f"{view.rate_text(rate)}{'' if sd is None else f' ± {points(sd)}'}"
        return TableCell(text, kind="" if View.is_reliable(rate) else "doubtful")

    several = len({each.rate.detector for each in view.results.profiles}) > 1
    rows = [
        (
            f"{each.rate.model or ''}{f', by {each.rate.detector}' if several else ''}",
            view.language(each.rate.language), words(each.rate, each.sd), words(each.compared, each.compared_sd),
            "–" if each.difference is None else signed(each.difference),
        )
        for each in view.results.profiles
    ]  # fmt: skip
    heads = ("Model", "Language", "By profile", "By compare_profile", "Difference")
    return Table("Rates by two profiles, ± over seeds", heads, rows)


def _rate_table(view: View, *, coverage: bool = True) -> Table:
    """Rates of every model in every language, with means."""
    rows: list[tuple[Value | TableCell, ...]] = []
    for tag in view.languages:
        rates = (_rate_cell(view.rate(name, tag), coverage=coverage) for name in view.models)
        rows.append((TableCell(view.language(tag), f"({tag})"), *rates, _mean_cell(view.average(tag))))
    means = [_mean_cell(view.average(name)) for name in view.models]
    rows.append(("Mean", *means, _mean_cell(view.results.overall)))
    return Table("", ("Language", *view.models, "Mean"), rows, totals=1)


def _rate_cell(rate: Rate | None, *, coverage: bool) -> TableCell:
    if rate is None:
        return TableCell("not estimated", kind="absent")
    below = f"\ncov. {percent(rate.coverage, 0)}" * coverage
    if View.is_reliable(rate):
        return TableCell(percent(rate.rate), f"{interval(rate.low, rate.high) or 'no interval'}{below}", kind="strong")
    return TableCell("unreliable", f"{View.doubt(rate)}{below}", kind="doubtful")


def _mean_cell(average: Average | None) -> TableCell:
    if average is None or average.mean is None:
        return TableCell("no mean", kind="doubtful")
    left_out = f"\n({average.unreliable} left out)" if average.unreliable else ""
    return TableCell(percent(average.mean), interval(average.low, average.high) + left_out, kind="strong")


def _model_table(view: View) -> Table:
    ranks = {rank.model: rank for rank in view.results.ranks if rank.language == ALL}
    rows = []
    for average in view.results.by_model:
        rank = ranks.get(average.name)
        mean = "no mean" if average.mean is None else percent(average.mean)
        languages = f" of {average.cells + average.unreliable}" if average.unreliable else ""
        rows.append(
            (
                average.name, TableCell(mean, kind="doubtful" if average.mean is None else "strong"),
                interval(average.low, average.high), None if rank is None else rank.rank,
                "" if rank is None else rank_reach(rank), f"{average.cells}{languages}",
            )
        )  # fmt: skip
    return Table("Models, over languages", ("model", "mean", "interval", "rank", "not excluded", "languages"), rows)

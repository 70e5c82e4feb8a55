"""The results of a bench as records: the content of `results.json`, from which all reports are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from veriglot.records import Estimate, Interval
from veriglot.records.settings import Record, read_json_record

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "BenchAnswers",
    "BenchCell",
    "BenchComparison",
    "BenchConfusion",
    "BenchCorrelations",
    "BenchData",
    "BenchError",
    "BenchFigure",
    "BenchResults",
    "BenchStanding",
    "BenchSystem",
    "BenchThreshold",
    "BenchWin",
    "Cost",
    "Level",
    "read_results",
]


class BenchAnswers(Record, omit_defaults=True, kw_only=True):
    """A system's answers on data without labels; they show how much it marks, not whether it is right.

    Attributes:
        system, data, level: the cell.
        language: BCP 47 tag of the responses, or `mean` over the data set's languages.
        items, clusters: scored items, and texts among them.
        coverage: share of the items that were scored.
        flagged: share of the scored items that it marks at its own threshold; None if it has no threshold.
        flagged_low, flagged_high: 95% interval over resampled texts.
        mean: of its scores, in its own range and direction.
        mean_low, mean_high: 95% interval over resampled texts.
        signature: one line that says how it was made.
    """

    system: str
    data: str
    level: str
    language: str
    items: int = 0
    clusters: int = 0
    coverage: float = 0.0
    flagged: float | None = None
    flagged_low: float | None = None
    flagged_high: float | None = None
    mean: float | None = None
    mean_low: float | None = None
    mean_high: float | None = None
    signature: str = ""


Level = Literal["word", "fact", "sentence", "response"]
At = Literal["tuned", "own"]

SCHEMA = 1


class BenchData(Record):
    """A data set in a bench.

    Attributes:
        name: in every table.
        levels: the levels at which it is scored.
        languages: tag of the response's language to (test samples, texts among them).
        pairs: tag to the languages that a cell of it belongs to: its own, and in translations the source's.
        dev: number of samples for tuning thresholds; no figure includes them.
        bad_rows: rows that could not be read.
        unlabelled: samples without labels of the annotator; they are in no figure.
        items: level to number of items of the test part.
        nonfactual: level to number of items that the labels call unsupported.
        license: as the bench file states it; None if it does not.
        split: how dev and test were split, in words.
        seen: systems that were trained on this data: it is in no mean over data sets and in no win rate.
        sha256: of the samples as read, test and dev.
        note: from the bench file: what a reader must know about it.
        statistics: see `bench.data.statistics_row`, as names to numbers.
        labelled: whether it has labels; if not, it is in no figure, and `nonfactual` is empty.
    """

    name: str
    levels: tuple[Level, ...]
    languages: dict[str, tuple[int, int]]
    pairs: dict[str, tuple[str, ...]]
    dev: int
    bad_rows: int
    unlabelled: int
    items: dict[str, int]
    nonfactual: dict[str, int]
    license: str | None
    split: str
    seen: tuple[str, ...]
    sha256: str
    note: str | None = None
    statistics: dict[str, float] = {}
    labelled: bool = True


class BenchSystem(Record):
    """A system.

    Attributes:
        name: its label in every table.
        kind: `detector`, `scorer`, or `predictions` from files.
        made_by: the name that loads it, such as `nli:FOLDER` (`auto` loads it by this), or its files' names.
        options: its options, as JSON text by option.
        direction: whether a greater score is better or worse.
        description: its own name and revision; None if it was unavailable.
        signature: its own; None if it was unavailable.
        unavailable: why it could not be loaded, and what to do; None if it could.
    """

    name: str
    kind: Literal["detector", "scorer", "predictions"]
    made_by: str
    options: dict[str, str] = {}
    direction: str | None = None
    description: str | None = None
    signature: str | None = None
    unavailable: str | None = None


class Cost(Record):
    """What a cell cost, over all calls for it.

    Attributes:
        rows: samples (or sentences) with these times; fewer than all if a call was killed.
        wall: seconds.
        cpu: seconds of processor time, all processes together.
        calls: calls to models; 0 if the system makes none.
        tokens_in: tokens of their prompts.
        tokens_out: tokens of their replies.
        money: their cost, in the currency of the system's prices; None if no prices are given.
    """

    rows: int = 0
    wall: float = 0.0
    cpu: float = 0.0
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    money: float | None = None

    @property
    def speed(self) -> float | None:
        """Samples (or sentences) per second of wall time; None if nothing was timed."""
        return self.rows / self.wall if self.rows and self.wall > 0 else None


class BenchCell(Record):
    """One system on one data set at one level.

    Attributes:
        system, data, level: which.
        status: `done`; `partial` if some samples were not scored; `unscored` if none was, since their languages are
            not supported, or there is no evidence or nothing to compare; `unavailable` (the system cannot be loaded
            here); `unsuited` (it gives nothing at this level, or skips this data); `failed` (it raised an error, as a
            whole or on every sample).
        reason: why it is not `done`, with what to do; None if it is.
        statuses: language to status of a prediction (or `missing`) to number of samples (or sentences).
        coverage: share of the test samples that were scored; 0 where none were, never a zero figure.
        cost: time, calls, tokens and money.
        seen: whether the data was in the system's training data.
        notes: what a reader of the figures must know.
        signature: one line that says how the cell was made; None if it was not.
    """

    system: str
    data: str
    level: Level
    status: Literal["done", "partial", "unscored", "unavailable", "unsuited", "failed"]
    reason: str | None = None
    statuses: dict[str, dict[str, int]] = {}
    coverage: float = 0.0
    cost: Cost = Cost()
    seen: bool = False
    notes: tuple[str, ...] = ()
    signature: str | None = None


class BenchFigure(Estimate, omit_defaults=True, kw_only=True):
    """One measured number.

    Attributes:
        system, data, level: the cell.
        language: BCP 47 tag of the responses, or `mean`: over the data set's languages in which the measure is defined.
        measure: a name of `metrics.measures.ITEM_MEASURES`; at level `word` also `iou`, `soft_correlation`, `ece`.
        at: `tuned` on the dev part for this measure, `own` (the system's own threshold); None if none is needed.
        items, positives, clusters: number of scored items, of positive ones among them, and of texts.
        chance: value of a random baseline; None if that depends on how much it marks.
        coverage: share of the labelled items that were scored.
        p: two-sided p-value of a correlation; None for other measures.
        seen: whether the data was in the system's training data.
        reason: why value or interval is missing, or what to know about it.
        signature: one line that says how it was computed.
    """

    system: str
    data: str
    level: Level
    language: str
    measure: str
    at: At | None = None
    value: float | None = None
    items: int = 0
    positives: int = 0
    clusters: int = 0
    chance: float | None = None
    coverage: float = 0.0
    p: float | None = None
    seen: bool = False
    reason: str | None = None
    signature: str = ""


class BenchThreshold(Record):
    """A threshold that was tuned on the dev part of a data set.

    Attributes:
        system, data, level, measure: of the threshold.
        language: the language whose dev samples it was tuned on; `mean` for those of all.
        value: in the system's own scores; None if none could be tuned.
        direction: items are marked whose score reaches the value in the direction of worse.
        reached: the measure on the dev part.
        items, positives: number of scored items of the dev part, and of non-factual ones among them.
        reason: why there is no value.
    """

    system: str
    data: str
    level: Level
    measure: str
    language: str
    value: float | None
    direction: str
    reached: float | None
    items: int
    positives: int
    reason: str | None = None


class BenchWin(Interval):
    """How often a system is the best within a group of cells (data set and language).

    Attributes:
        level, measure, at: which figures were compared, at two decimals; a tie is a win for all.
        scope: the group of cells: `all`, `latin`, `high` ...
        system: its name.
        wins, ties: number of cells in which no system is better, and of those among them that it shares.
        cells, played: number of cells of the scope, and of those in which the system has a figure.
        rate: wins / cells; None if there are no cells.
        mean: its mean over the cells in which it has a figure; None if there are none.
    """

    level: Level
    measure: str
    at: At | None
    scope: str
    system: str
    wins: int
    ties: int
    cells: int
    played: int
    rate: float | None
    mean: float | None


class BenchComparison(Interval):
    """Two systems compared by paired bootstrap over texts.

    Attributes:
        data, level, measure, at: of the comparison; `mean` for the mean over all data that no system was trained on.
        system, baseline: the difference is system minus baseline.
        difference: of the means over languages, on items that both scored; None if it is undefined.
        p, adjusted: two-sided p-value, and the same corrected for all tests of the level.
        items, clusters: number of common items and texts.
        left_out: number of items that only the system, and only the baseline, scored.
        correction: `romano-wolf`, `holm` or `bh`.
        reason: why there is no difference.
    """

    data: str
    level: Level
    measure: str
    at: At | None
    system: str
    baseline: str
    difference: float | None = None
    p: float | None = None
    adjusted: float | None = None
    items: int = 0
    clusters: int = 0
    left_out: tuple[int, int] = (0, 0)
    correction: str = "romano-wolf"
    reason: str | None = None


class BenchStanding(Interval):
    """The rank of a system at one level, over all data that no system was trained on.

    Attributes:
        level, measure, at: what systems are ranked by.
        system: its name.
        value: mean over the data sets; its interval is over resampled texts.
        data_sets: number of data sets with a value.
        left_out: what it did not score and another did, in words; None for nothing.
        best, worst: the ranks that the tests of all pairs cannot exclude, among systems that left nothing out; None for
            a system that did.
    """

    level: Level
    measure: str
    at: At | None
    system: str
    value: float
    data_sets: int
    left_out: str | None = None
    best: int | None = None
    worst: int | None = None


class BenchCorrelations(Record):
    """Correlations between the scores of systems at one level, averaged over cells (data set and language).

    Attributes:
        level: of the items.
        method: `pearson` or `spearman` of their scores; `kappa` (Cohen's) of their verdicts at their own thresholds.
        systems: in the order of rows and columns.
        r: the mean correlation; None if no cell has one.
        cells: number of cells behind each.
        largest_p: the greatest p-value among them.
        scope: the group of cells: `all`, `high`, `latin` ...
    """

    level: Level
    method: str
    systems: tuple[str, ...]
    r: tuple[tuple[float | None, ...], ...]
    cells: tuple[tuple[int, ...], ...]
    largest_p: tuple[tuple[float | None, ...], ...]
    scope: str = "all"


class BenchConfusion(Record, omit_defaults=True, kw_only=True):
    """A confusion matrix of types, of one detector on one data set; see `bench.evaluation`.

    Attributes:
        system, data: of the matrix.
        language: BCP 47 tag of the responses, or `all`.
        of: `response` if each has one type at most (HalluVerse25), else `mark`.
        taxonomy: of the types; None if they cannot be compared.
        classes: the types of the labels, the rows; `none` among them if whole responses may be clean.
        answers: the predicted types, the columns: the classes, `none`, and answers that are not a class.
        counts: a row for each class.
        left_out: responses or marks without exactly one type in the taxonomy.
        seen: whether the data was in the system's training data.
        reason: why there is no matrix, or how types were mapped.
        signature: one line that says how it was computed.
    """

    system: str
    data: str
    language: str
    of: Literal["response", "mark"]
    taxonomy: str | None = None
    classes: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    counts: tuple[tuple[int, ...], ...] = ()
    left_out: int = 0
    seen: bool = False
    reason: str | None = None
    signature: str = ""


class BenchError(Record, omit_defaults=True, kw_only=True):
    """A response or sentence that a system got wrong (HAT, section 4.4).

    Attributes:
        system, data, level: of the error.
        language: BCP 47 tag of the response.
        kind: `false_positive` (a false alarm) or `false_negative` (a miss).
        number: rank among the errors of this kind, from 1 for the most confident.
        count: how many errors of this kind there are in this language of the data set.
        id: of the sample.
        score: of the system.
        threshold: from which the score counts as marked, in the system's own scores; None for the verdict of the
            system.
        source: the evidence, its first 2,000 code points.
        question: that the response answers.
        response: the response, or the sentence.
        labelled: texts in it that the labels mark.
        marked: texts in it that the system marks.
        notes: of the prediction, such as the reason that a judge gave.
    """

    system: str
    data: str
    level: str
    language: str
    kind: Literal["false_positive", "false_negative"]
    id: str
    source: str
    response: str
    question: str | None = None
    labelled: tuple[str, ...] = ()
    marked: tuple[str, ...] = ()
    score: float
    threshold: float | None = None
    notes: tuple[str, ...] = ()
    number: int
    count: int


class BenchResults(Record):
    """All results of a bench.

    Attributes:
        title: of the bench.
        measures: level to its measures, in order.
        rank_by: the measure that leaderboards are sorted by, if `ranking` names none.
        baseline: the system that others are compared with; None if there is none.
        seed, resamples: of the bootstrap.
        correction: of the p-values.
        data, systems: in the order of the bench file.
        cells: every system on every data set at every level, whatever its outcome.
        figures, thresholds, wins, comparisons, correlations, confusions, answers, errors: see their records.
        groups: scope to its cells, each as `data/language`.
        notes: what a reader must know.
        signature: one line that says how all results were made.
        version, schema: of Veriglot, and of these records.
        ranking: level to the measure that its leaderboard is sorted by.
        pairs: every two systems of a level, compared by the mean over data that none was trained on.
        standings: the ranks that follow, sorted by the measure; systems that left something out come last.
    """

    title: str
    measures: dict[str, tuple[str, ...]]
    rank_by: str
    baseline: str | None
    seed: int
    resamples: int
    correction: str
    data: tuple[BenchData, ...]
    systems: tuple[BenchSystem, ...]
    cells: tuple[BenchCell, ...]
    figures: tuple[BenchFigure, ...]
    thresholds: tuple[BenchThreshold, ...]
    wins: tuple[BenchWin, ...]
    comparisons: tuple[BenchComparison, ...]
    correlations: tuple[BenchCorrelations, ...]
    groups: dict[str, tuple[str, ...]]
    notes: tuple[str, ...]
    signature: str
    version: str
    schema: int = SCHEMA
    confusions: tuple[BenchConfusion, ...] = ()
    answers: tuple[BenchAnswers, ...] = ()
    errors: tuple[BenchError, ...] = ()
    ranking: dict[str, str] = {}
    pairs: tuple[BenchComparison, ...] = ()
    standings: tuple[BenchStanding, ...] = ()


def read_results(path: Path) -> BenchResults:
    """Read the results in the folder of a bench's run, or in their file.

    Raises:
        InputError: there is none, or it has other content.
    """
    remedy = "The results of a bench are the file results.json in the folder of its run."
    return read_json_record(path / "results.json" if path.is_dir() else path, BenchResults, remedy)

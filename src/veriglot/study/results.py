"""The results of a study as one record: everything that its report shows, and nothing that the run cannot remake.

No time stamp and no path stands in it, so the same study gives the same bytes.
"""

from __future__ import annotations

import msgspec

from veriglot.datasets.quality import Quality
from veriglot.records import Interval, Prediction, Rate, Sample

__all__ = [
    "Average",
    "Cell",
    "Comparison",
    "Correlation",
    "Coverage",
    "Example",
    "Model",
    "Quality",
    "RankInterval",
    "StudyResults",
]


class Model(msgspec.Struct, frozen=True, omit_defaults=True):
    """One model of the study and what the study file declares of it.

    Attributes:
        name: the name in every table.
        family: models of one maker and generation.
        parameters: billions of parameters.
        languages: number of languages that its makers declare.
        settings: what it was asked with (preset, temperature, prompt, server's model name ...).
    """

    name: str
    family: str | None = None
    parameters: float | None = None
    languages: int | None = None
    settings: dict[str, str | int | float | bool | None] = {}


class Coverage(msgspec.Struct, frozen=True):
    """What became of the responses that were planned. Counts; `statuses` adds up to `answered`.

    Attributes:
        planned: responses that the design asks for.
        answered: responses that exist.
        failed: calls that gave none, after every retry.
        statuses: predictions by status (`scored`, `unsupported_language` ...), of the first detector.
    """

    planned: int
    answered: int
    failed: int
    statuses: dict[str, int]


class Cell(msgspec.Struct, frozen=True):
    """One model in one language.

    Attributes:
        rates: the estimate by each estimator, over all seeds and detectors; the study's own estimator first.
        replicates: one rate per detector and seed, by the study's estimator (mFAVA: 3 x 5); raw where that is `ppi`.
        mean: mean of the reliable replicates' rates; None where there is none.
        sd: their sample standard deviation (ddof 1); None for fewer than two.
        types: unsupported units that were marked, by span type (raw counts of the first detector).
        length: mean units per judged response.
    """

    model: str
    language: str
    rates: tuple[Rate, ...]
    replicates: tuple[Rate, ...]
    mean: float | None
    sd: float | None
    coverage: Coverage
    quality: Quality
    types: dict[str, int]
    length: float


class Average(Interval, frozen=True):
    """Mean over the cells of one model or language: unweighted, with its sample standard deviation (mFAVA, Figure 4).

    Attributes:
        name: the model or the language tag.
        mean, sd: of the reliable cells' rates by the study's estimator; None where there are too few.
        cells: cells that the mean is of.
        unreliable: cells that were left out because their rate is unreliable.
    """

    name: str
    mean: float | None
    sd: float | None
    cells: int
    unreliable: int


class RankInterval(msgspec.Struct, frozen=True):
    """Where a model stands among all (1 hallucinates least), with the ranks that the data cannot exclude."""

    model: str
    language: str
    rank: int
    low: int
    high: int


class Comparison(Interval, frozen=True):
    """Two models held against each other in one language, or over all (`*`).

    Attributes:
        first, second: names of the models; `difference` is first minus second.
        difference: of the rates, as a share.
        p: two-sided p-value.
        p_adjusted: after correction for all comparisons of the study.
        effect: standardised difference (paired: mean over standard deviation of the differences).
        paired: whether both answered the same queries.
        queries: queries that were compared.
        method: test and correction, in words.
    """

    first: str
    second: str
    language: str
    difference: float
    p: float
    p_adjusted: float
    effect: float | None
    paired: bool
    queries: int
    method: str


class Correlation(Interval, frozen=True):
    """A relation of rates with something else: size, declared languages, response length, resourcedness.

    Attributes:
        name: what was held against the rate, in words.
        of: what the points are (`models`, `languages`, `cells`).
        r: the coefficient, or the standardised difference of a t-test.
        p: two-sided p-value.
        points: number of points.
        method: `pearson`, `spearman`, `welch` ...
    """

    name: str
    of: str
    r: float
    p: float
    points: int
    method: str


class Example(msgspec.Struct, frozen=True):
    """A response to read, with what was marked in it."""

    sample: Sample
    prediction: Prediction


class StudyResults(msgspec.Struct, frozen=True):
    """All of a study's results.

    Attributes:
        title: of the study.
        unit, estimator, confidence: what is counted, how rates are made, the level of intervals (0.95).
        detectors: name and revision of each.
        models, languages: in the order of the study file.
        cells: every model in every language that was asked for.
        by_model, by_language: averages, ascending.
        overall: average over all reliable cells.
        ranks, comparisons, correlations: as their records say.
        examples: the most confident marks, some per language.
        methods, assumptions, warnings: paragraphs in words, for the reader of the report.
        signature: one line that says how all of it was made.
    """

    title: str
    unit: str
    estimator: str
    confidence: float
    detectors: tuple[str, ...]
    models: tuple[Model, ...]
    languages: tuple[str, ...]
    cells: tuple[Cell, ...]
    by_model: tuple[Average, ...]
    by_language: tuple[Average, ...]
    overall: Average
    ranks: tuple[RankInterval, ...]
    comparisons: tuple[Comparison, ...]
    correlations: tuple[Correlation, ...]
    examples: tuple[Example, ...]
    methods: tuple[str, ...]
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    signature: str

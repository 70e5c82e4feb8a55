"""Do the bench's intervals and tests hold: simulated systems whose true figures are known.

    python benchmarks/figure_intervals.py

A world of texts of three sentences. What makes a sentence hard, and how a system sees a text, is in part shared by its
sentences, as in real data. The truth is the figure on 600,000 sentences. Of every simulated data set each measure
is given a 95% interval over texts, and another over sentences, as if they were independent; and two systems that are
equally good in truth are held against each other. Aim: cover the truth in 95%, tell equal systems apart in 5%.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from figures import command_line, show
from veriglot.bench.leaderboard import ThresholdedItems, difference
from veriglot.bench.results import BenchComparison
from veriglot.metrics.estimate import Resampling, percentile
from veriglot.metrics.measures import Items, draws

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

MEASURES = ("f1", "mcc", "auroc", "auc_pr_nonfactual", "auc_pr_factual", "pearson_support")
SENTENCES = 3
CUT = 0.9
TESTED = "auroc"


@dataclass(frozen=True)
class World:
    """One simulated data set: two systems of equal worth on the same items, and the text of each item."""

    first: Items
    second: Items
    texts: list[int]


def world(texts: int, seed: int) -> World:
    """Draw a data set in which three of ten sentences are non-factual."""
    generator = np.random.default_rng(seed)
    size = texts * SENTENCES

    def shared(by_text: float, alone: float) -> Array:
        found: Array = by_text * np.repeat(generator.normal(size=texts), SENTENCES) + alone * generator.normal(
            size=size
        )
        return found

    hardness = shared(0.7, 0.7)
    support = 1 / (1 + np.exp(2 * hardness - 1))
    nonfactual = hardness > 0.52
    first, second = (Items(1.2 * nonfactual + shared(0.8, 0.8), nonfactual, support) for _ in range(2))
    return World(first, second, [k // SENTENCES for k in range(size)])


def covered(texts: int, studies: int, resamples: int, truth: dict[str, float]) -> list[dict[str, Any]]:
    """One row a measure: how often each kind of interval holds the truth."""
    found = {(name, over): 0 for name in MEASURES for over in ("texts", "sentences")}
    told = 0
    for study in range(studies):
        drawn = world(texts, 1_000_003 * texts + study)
        over = {
            "texts": Resampling.of(drawn.texts, resamples=resamples, seed=study),
            "sentences": Resampling.of(range(len(drawn.texts)), resamples=resamples, seed=study),
        }
        for name, kind in found:
            low, high, _ = percentile(draws(name, drawn.first, over[kind], cut=CUT)[1:])
            found[name, kind] += low is not None and high is not None and low <= truth[name] <= high
        both = ThresholdedItems(drawn.first, CUT), ThresholdedItems(drawn.second, CUT)
        blank = BenchComparison("", "response", TESTED, None, "", "")
        told += (difference(*both, over["texts"], blank).row.p or 1.0) < 0.05
    return [
        {
            "texts": texts,
            "measure": name,
            "truth": truth[name],
            "covered %": 100 * found[name, "texts"] / studies,
            "over sentences %": 100 * found[name, "sentences"] / studies,
            "equal, told apart %": 100 * told / studies if name == TESTED else "",
        }
        for name in MEASURES
    ]


def main() -> None:
    """Simulate and print."""
    parser = command_line(__doc__)
    parser.add_argument("--studies", type=int, default=300, help="simulated data sets of each size (default 300)")
    parser.add_argument("--texts", type=int, nargs="+", default=[30, 100, 300], help="sizes (default 30 100 300)")
    parser.add_argument("--resamples", type=int, default=500, help="of each interval (default 500)")
    options = parser.parse_args()
    large = world(200_000, 0)
    alone = Resampling.of(range(len(large.texts)), resamples=0)
    truth = {name: float(draws(name, large.first, alone, cut=CUT)[0]) for name in MEASURES}
    rows = [row for texts in options.texts for row in covered(texts, options.studies, options.resamples, truth)]
    error = 100 * np.sqrt(0.05 * 0.95 / options.studies)
    notes = [
        f"{options.studies} data sets of each size, {options.resamples} resamples: ±{error:.1f} around 95 % and 5 %",
        "covered: 95 % intervals over texts that hold the truth; over sentences: as if these were independent",
        f"told apart: two systems of equal worth whose {TESTED} differs with p < 0.05",
    ]
    show("Do the bench's intervals and tests hold", rows, as_json=options.json, notes=notes)


if __name__ == "__main__":
    main()

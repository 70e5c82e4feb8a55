"""mFAVA's Figure 4 and the tests around it, recomputed by `veriglot.rates` and held against what the paper prints.

    python benchmarks/mfava_figure4.py --facts ../shared/facts

reads the paper's tables from a folder (Figure 4, Table 10, facts of the text) and prints one line a finding: what the
paper says, what comes out here, and whether they agree. Seventeen of the 330 cells are lost in the paper's text and
known within bounds only; a figure that needs one agrees where the printed value lies within what the bounds allow.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from figures import command_line, show
from mfava_figures import Figure4, facts, precision_recall, read_figure4
from veriglot.rates.comparison import average, correlate, statistics, t_test
from veriglot.rates.estimators import estimate
from veriglot.rates.proportion import Tallies
from veriglot.records import Confusion, LanguageProfile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mfava_figures import Array
    from veriglot.rates.comparison import Correlated, Mean, TTest

GOLD = ("Arabic", "Chinese", "German", "Russian", "Turkish")
HELD_AGAINST_GOLD = ("Llama-3-8B", "Qwen-2.5-7B", "Aya-23-8B")
UNITS = 10**9  # enough for every printed digit
ESTIMATES = 15  # of each cell: 3 detectors x 5 runs
# The families of Figure 5a, smaller and larger. Llama has two larger ones; Aya and Mistral come in one size.
SIZES = {
    "EuroLLM": ("EuroLLM-1.7B", "EuroLLM-9B"),
    "Gemma": ("Gemma-2-2B", "Gemma-2-9B"),
    "Llama": ("Llama-3.2-3B", "Llama-3-8B"),
    "Qwen": ("Qwen-2.5-3B", "Qwen-2.5-7B"),
}
SMALL = tuple(small for small, _ in SIZES.values())
# What the paper says of each family, section 4.2: smaller minus larger, and whether that is significant (at 0.05).
SAID = {"EuroLLM": "no difference", "Gemma": "larger more", "Llama": "smaller more"}
SAID["Qwen"] = "smaller more"

VERDICTS = MATCHES, BOUNDS, OTHER, LOST = "matches", "in bounds", "differs", "not printed"


@dataclass(frozen=True)
class Finding:
    """One thing that the paper says, and what comes out here."""

    what: str
    paper: str
    here: str
    verdict: str


def main() -> None:
    """Print both tables."""
    parser = command_line(__doc__)
    parser.add_argument("--facts", type=Path, required=True, help="folder of the paper's tables")
    options = parser.parse_args()
    figure, said = read_figure4(options.facts), facts(options.facts)
    table = list(averages(figure))
    text = [*ranges(figure, said), *corrections(figure, options.facts), *validation(figure, options.facts, said)]
    text += [*sizes(figure, said), *relations(said)]
    cells = f"{figure.printed.sum()} of {figure.printed.size} cells are printed, the others known within bounds"
    for title, found in (("mFAVA, Figure 4: averages in percent", table), ("mFAVA, section 4: statements", text)):
        verdicts = [one.verdict for one in found]
        counts = ", ".join(f"{verdicts.count(kind)} {kind}" for kind in VERDICTS if kind in verdicts)
        show(title, [vars(one) for one in found], as_json=options.json, notes=[counts, cells])
    title = "The same marks by label-shift: language averages in percent, by the silver data's share of hallucinations"
    note = "27 languages; that share is not printed, so it is assumed; paper: the same whatever it is"
    show(title, list(shifted(figure, options.facts)), as_json=options.json, notes=[note])


# Means and standard deviations.


def averages(figure: Figure4) -> Iterator[Finding]:
    """Rows, columns and the whole: mean and sample standard deviation."""
    yield from _axis(figure, [average(row) for row in figure.rates], figure.by_language, figure.languages, 1)
    yield from _axis(figure, [average(column) for column in figure.rates.T], figure.by_model, figure.models, 0)
    whole = average(figure.rates.ravel())
    mean, sd = figure.overall
    verdict = MATCHES if _close(whole.mean, mean) and _close(whole.sd, sd) else OTHER
    yield Finding("average of all cells", f"{mean:.2f} ±{sd:.2f}", f"{whole.mean:.2f} ±{whole.sd:.2f}", verdict)


def _axis(
    figure: Figure4, means: list[Mean], paper: Array, names: Sequence[str], axis: int
) -> Iterator[Finding]:  # fmt: skip
    low, high = figure.mean_bounds(axis)
    slack = figure.sd_slack(axis)
    whole = np.all(figure.printed, axis)
    for index, (name, found, (mean, sd)) in enumerate(zip(names, means, paper, strict=True)):
        fits = low[index] <= mean <= high[index] and abs((found.sd or 0) - sd) <= slack[index]
        verdict = (MATCHES if whole[index] else BOUNDS) if fits else OTHER
        yield Finding(f"average, {name}", f"{mean:.2f} ±{sd:.2f}", f"{found.mean:.2f} ±{found.sd:.2f}", verdict)


def _close(value: float | None, printed: float) -> bool:
    return value is not None and abs(value - printed) < 0.01


def ranges(figure: Figure4, said: dict[str, list[float]]) -> Iterator[Finding]:
    """What section 4.2 says of the averages in words."""
    means = [mean.mean or 0.0 for mean in [average(column) for column in figure.rates.T]]
    low, high = said["model_average_range_text_pct"]
    inside = low <= min(means) and max(means) <= high + 0.5
    here = f"{min(means):.2f} to {max(means):.2f}"
    yield Finding("range of model averages", f"{low} to {high}", here, MATCHES if inside else OTHER)
    ordered = sorted(means) == means and sorted(figure.by_language[:, 0]) == list(figure.by_language[:, 0])
    yield Finding("averages ascend", "yes", "yes" if ordered else "no", MATCHES if ordered else OTHER)


# The correction P/R.


def corrections(figure: Figure4, folder: Path) -> Iterator[Finding]:
    """Equation 1 undone and done again: from what the detector marked to the rates, where Table 10 has the language."""
    marked = raw_averages(figure, folder)
    table, printed = precision_recall(folder), dict(zip(figure.languages, figure.by_language[:, 0], strict=True))
    again = {name: corrected(share / 100, *table["Silver", name]) * 100 for name, share in marked.items()}
    off = max(abs(again[name] - printed[name]) for name in marked)
    same = MATCHES if off < 1e-3 else OTHER
    yield Finding(f"equation 1, {len(marked)} languages", "-", f"largest deviation {off:.0e}", same)
    place = sorted(marked.values()).index(marked["Hebrew"]) + 1
    here = (
        f"marked: {marked['Hebrew']:.2f}, place {place} of {len(marked)}; P/R = {factor(table, 'Silver', 'Hebrew'):.2f}"
    )
    yield Finding("Hebrew has the highest rate", "16.81, place 30", here, MATCHES if place == len(marked) else OTHER)
    missing = [language for language in figure.languages if language not in marked]
    yield Finding("rates without P and R", "-", ", ".join(missing), LOST)


def raw_averages(figure: Figure4, folder: Path) -> dict[str, float]:
    """The average share that was marked, in percent, by language."""
    table = precision_recall(folder)
    return {
        language: float(mean) / factor(table, "Silver", language)
        for language, mean in zip(figure.languages, figure.by_language[:, 0], strict=True)
        if ("Silver", language) in table
    }


def factor(table: dict[tuple[str, str], tuple[float, float]], kind: str, language: str) -> float:
    """Precision over recall."""
    precision, recall = table[kind, language]
    return precision / recall


def corrected(
    marked: float, precision: float, recall: float, *, estimator: str = "paper", prevalence: float = 0.3
) -> float:
    """What `veriglot.rates` makes of a marked share, corrected by P and R of data with this prevalence.

    Equation 1 does not depend on the prevalence; label-shift does, because P, R and prevalence give the FPR.
    """
    unsupported = round(prevalence * UNITS)
    tp = round(recall * unsupported)
    fp = round(tp * (1 - precision) / precision)
    counts = Confusion(tp, fp, unsupported - tp, UNITS - unsupported - fp)
    tallies = Tallies(np.array([round(marked * UNITS)]), np.array([UNITS]), np.array([0]))
    found = estimate(tallies, LanguageProfile.of([counts]), estimator=estimator, draws=1)
    return float("nan") if found.value is None else found.value


def shifted(figure: Figure4, folder: Path) -> Iterator[dict[str, object]]:
    """What label-shift makes of the same marks: P, R and the share of hallucinated tokens in the silver data give FPR.

    The paper does not print that share, so several are tried.
    """
    table, marked = precision_recall(folder), raw_averages(figure, folder)
    paper = [float(figure.by_language[figure.languages.index(name), 0]) for name in marked]
    for prevalence in (0.1, 0.2, 0.3, 0.4):
        rates = [
            100 * corrected(share / 100, *table["Silver", name], estimator="label-shift", prevalence=prevalence)
            for name, share in marked.items()
        ]
        order = correlate(paper, rates, method="spearman")
        assert order is not None
        yield {
            "hallucinated in silver": f"{prevalence:.0%}",
            "mean, paper": float(np.mean(paper)),
            "mean, label-shift": float(np.mean(rates)),
            "lowest": min(rates),
            "highest": max(rates),
            "languages at 0": sum(rate == 0 for rate in rates),
            "same order (Spearman)": order.r,
        }


# Silver against gold (Figure 3).


def validation(figure: Figure4, folder: Path, said: dict[str, float]) -> Iterator[Finding]:
    """The correlation of estimates by silver and by gold P/R that justifies the silver ones."""
    silver, gold = silver_and_gold(figure, folder)
    found = correlate(silver, gold)
    assert found is not None
    r, p = said["silver_gold_pearson_r"], said["silver_gold_pearson_p"]
    low, high = _bounded_correlation(figure, folder)
    fits = low.r <= r + 0.005 and r - 0.005 <= high.r and high.p <= p <= low.p
    verdict = BOUNDS if fits else OTHER
    yield Finding("silver against gold: r", f"{r}", f"{found.r:.3f}, bounds {low.r:.3f} to {high.r:.3f}", verdict)
    yield Finding("silver against gold: p", f"{p:.2e}", f"{found.p:.2e}, {found.points} points", verdict)
    yield Finding("silver against gold: interval", "-", f"{found.low:.2f} to {found.high:.2f}", LOST)
    off = (np.asarray(gold) / np.asarray(silver)).reshape(len(GOLD), -1)[:, 0] - 1
    worst = ", ".join(f"{language[:2]} {share:+.0%}" for language, share in zip(GOLD, off, strict=True))
    yield Finding("gold over silver estimates", "similar", worst, OTHER if np.abs(off).max() > 0.1 else MATCHES)


def silver_and_gold(figure: Figure4, folder: Path) -> tuple[list[float], list[float]]:
    """Estimates of three models in five languages by the silver P/R, and by the gold ones from the same marks."""
    table = precision_recall(folder)
    cells = figure.rates
    silver, gold = [], []
    for language in GOLD:
        # The same marks by both: equation 1 is a factor, so one share gives it for all.
        silver_factor, gold_factor = (corrected(0.1, *table[kind, language]) for kind in ("Silver", "Gold"))
        for model in HELD_AGAINST_GOLD:
            rate = float(cells[figure.languages.index(language), figure.models.index(model)])
            silver.append(rate)
            gold.append(rate * gold_factor / silver_factor)
    return silver, gold


def _bounded_correlation(figure: Figure4, folder: Path) -> tuple[Correlated, Correlated]:
    """The smallest and the largest of 4,000 correlations with every cell somewhere within its bounds."""
    silver, gold = (np.array(side) for side in silver_and_gold(figure, folder))
    places = np.ix_(
        [figure.languages.index(one) for one in GOLD], [figure.models.index(one) for one in HELD_AGAINST_GOLD]
    )
    low, high, factors = figure.low[places].ravel(), figure.high[places].ravel(), gold / silver
    generator = np.random.default_rng(0)
    found = []
    for _ in range(4000):
        cells = generator.uniform(low, high)
        one = correlate(cells, cells * factors)
        assert one is not None
        found.append(one)
    found.sort(key=lambda one: one.r)
    return found[0], found[-1]


# Size (Figure 5a).


def sizes(figure: Figure4, said: dict[str, float]) -> Iterator[Finding]:
    """Smaller against larger models."""
    for family, (smaller, larger) in SIZES.items():
        test = t_test(figure.of(smaller)[:, 0], figure.of(larger)[:, 0], "paired")
        assert test is not None
        here = f"{test.difference:+.2f}, p = {test.p:.1g}, d = {test.d:+.2f}"
        yield Finding(f"{family}: smaller minus larger", SAID[family], here, verdict_of(test, SAID[family]))
    large = tuple(model for model in figure.models if model not in SMALL)
    paired = tuple(large for _, large in SIZES.values())
    p = said["size_effect_overall_p"]
    for name, models in (("all 7 larger", large), ("4 larger of families", paired)):
        least = least_p(figure, SMALL, models)
        verdict = OTHER if least >= p + 0.005 else BOUNDS
        yield Finding(f"small against {name}", f"p = {p}", f"p = {least:.2g} or more", verdict)


def verdict_of(test: TTest, said: str) -> str:
    """Whether a test over languages says what the paper says of a test over estimates."""
    if said == "no difference":
        return MATCHES if test.p >= 0.05 else OTHER
    sign = 1 if said.startswith("smaller") else -1
    return MATCHES if test.p < 0.05 and test.difference * sign > 0 else OTHER


def least_p(figure: Figure4, small: Sequence[str], large: Sequence[str]) -> float:
    """The smallest p-value that Student's test over 15 estimates a model can have, whatever these are.

    Their averages are printed, their spread is not. Spread within a model only adds to what lies between models, so
    the p-value is least where the 15 estimates of a model are all its average.
    """
    averages = dict(zip(figure.models, figure.by_model[:, 0], strict=True))
    first, second = ([averages[model] for model in group for _ in range(ESTIMATES)] for group in (small, large))
    test = t_test(first, second, "student")
    assert test is not None
    return test.p


# Relations (Figures 5b and 5c).


def correlation_p(r: float, points: int) -> float:
    """The two-sided p-value of a Pearson correlation that is known as a number only, of so many points."""
    t = abs(r) * np.sqrt((points - 2) / (1 - r * r))
    return float(2 * statistics("A correlation").t.sf(t, points - 2))


def relations(said: dict[str, float]) -> Iterator[Finding]:
    """The printed correlations, by their number of points."""
    r, p = said["language_support_pearson_r"], said["language_support_p"]
    points = [n for n in range(3, 31) if correlation_p(r + 0.005, n) <= p <= correlation_p(r - 0.005, n)]
    needs = " or ".join(str(n) for n in points)
    here = f"p needs {needs} points; {correlation_p(r, 6):.2f} of 6, {correlation_p(r, 11):.0e} of 11"
    yield Finding("declared languages: r, p", f"{r}, {p}", here, OTHER if points == [5] else MATCHES)
    r = said["response_length_rate_pearson_r"]
    yield Finding("length of responses: r", f"{r}", f"p = {correlation_p(r, 30):.2f} of 30 points", LOST)


if __name__ == "__main__":
    main()

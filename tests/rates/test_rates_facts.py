"""mFAVA's Figure 4, its size tests and its correlations come out of `veriglot.rates` as printed, where they can.

`benchmarks/mfava_figure4.py` prints the same comparison; these tests hold its findings, and CHECKS.md beside the facts
names the places where the paper does not agree with itself.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import mfava_figure4 as recomputed  # noqa: E402
from mfava_figure4 import correlation_p  # noqa: E402
from mfava_figures import Figure4, facts, precision_recall, read_figure4  # noqa: E402
from veriglot.rates.comparison import average, correlate, t_test  # noqa: E402


@pytest.fixture(scope="module")
def figure(shared_facts: Path) -> Figure4:
    return read_figure4(shared_facts)


def test_the_figure_is_read_whole(figure: Figure4) -> None:
    assert figure.rates.shape == (30, 11)
    assert figure.printed.sum() == 313  # M25: 16 inferred, 1 missing
    assert (figure.low < figure.high).all()
    assert (figure.high - figure.low)[figure.printed] == pytest.approx(0.01)
    assert (figure.high - figure.low).max() < 1.05


def test_complete_rows_and_columns_give_the_printed_mean_and_deviation(figure: Figure4) -> None:
    """M26a, M27a: to the last printed digit, with the sample standard deviation (ddof 1)."""
    rows, columns = figure.printed.all(axis=1), figure.printed.all(axis=0)
    assert (rows.sum(), columns.sum()) == (18, 6)
    for whole, means, printed in (
        (rows, [average(row) for row in figure.rates], figure.by_language),
        (columns, [average(column) for column in figure.rates.T], figure.by_model),
    ):
        for index in np.flatnonzero(whole):
            assert means[index].mean == pytest.approx(printed[index, 0], abs=0.0101)
            assert means[index].sd == pytest.approx(printed[index, 1], abs=0.0101)


def test_the_deviation_is_not_that_of_a_population(figure: Figure4) -> None:
    whole = figure.printed.all(axis=1)
    off = [abs(row.std(ddof=0) - sd) for row, sd in zip(figure.rates[whole], figure.by_language[whole, 1], strict=True)]
    assert min(off) > 0.05


def test_rows_and_columns_with_lost_cells_agree_within_bounds(figure: Figure4) -> None:
    """M26b, M27b."""
    for axis, means, printed in (
        (1, [average(row) for row in figure.rates], figure.by_language),
        (0, [average(column) for column in figure.rates.T], figure.by_model),
    ):
        low, high = figure.mean_bounds(axis)
        assert (low <= printed[:, 0]).all()
        assert (printed[:, 0] <= high).all()
        deviations = np.array([mean.sd for mean in means])
        assert (np.abs(deviations - printed[:, 1]) <= figure.sd_slack(axis)).all()
        assert (high - low).max() < 0.25  # the bounds say something


def test_the_whole_figure(figure: Figure4) -> None:
    """M28, M29, M31: mean, deviation, order, lowest and highest language."""
    whole = average(figure.rates.ravel())
    assert (whole.mean, whole.sd) == (pytest.approx(10.59, abs=0.01), pytest.approx(3.73, abs=0.01))
    assert tuple(figure.overall) == (10.59, 3.73)
    for means in ([average(column) for column in figure.rates.T], [average(row) for row in figure.rates]):
        values = [mean.mean for mean in means]
        assert values == sorted(values)  # type: ignore[type-var]
    assert (figure.languages[0], figure.languages[-1]) == ("Sindhi", "Hebrew")


def test_the_text_says_less_than_the_figure(figure: Figure4, shared_facts: Path) -> None:
    """M30: the text says 7 to 12."""
    means = [mean.mean for mean in [average(column) for column in figure.rates.T]]
    assert facts(shared_facts)["model_average_range_text_pct"] == [7, 12]
    assert (means[0], means[-1]) == (pytest.approx(7.06, abs=0.01), pytest.approx(12.89, abs=0.01))


def test_equation_1_gives_the_printed_estimates_back(figure: Figure4, shared_facts: Path) -> None:
    table = precision_recall(shared_facts)
    there = [language for language in figure.languages if ("Silver", language) in table]
    assert sorted(set(figure.languages) - set(there)) == ["Latin", "Polish", "Romanian"]  # M14
    for language in there:
        precision, recall = table["Silver", language]
        for rate in figure.rates[figure.languages.index(language)] / 100:
            marked = rate * recall / precision
            for prevalence in (0.05, 0.3):
                found = recomputed.corrected(marked, precision, recall, prevalence=prevalence)
                assert found == pytest.approx(rate, abs=1e-6)


def test_the_highest_rate_is_the_corrections_doing(figure: Figure4, shared_facts: Path) -> None:
    """M32: by what was marked, Hebrew is the sixth lowest of 27."""
    marked = recomputed.raw_averages(figure, shared_facts)
    assert marked["Hebrew"] == pytest.approx(6.70, abs=0.01)
    assert sorted(marked, key=lambda name: marked[name]).index("Hebrew") == 5
    factors = precision_recall(shared_facts)
    assert recomputed.factor(factors, "Silver", "Hebrew") == pytest.approx(2.51, abs=0.005)
    assert max(recomputed.factor(factors, "Silver", name) for name in marked if name != "Hebrew") < 1.6


def test_silver_and_gold_estimates_correlate_as_printed(figure: Figure4, shared_facts: Path) -> None:
    """Figure 3, M22: r = 0.83, p = 1.26e-4, from Figure 4 and Table 10; one of the 15 cells is known within bounds."""
    silver, gold = recomputed.silver_and_gold(figure, shared_facts)
    found = correlate(silver, gold)
    assert found is not None
    assert found.points == 15
    assert round(found.r, 2) == facts(shared_facts)["silver_gold_pearson_r"] == 0.83
    place = figure.languages.index("Chinese"), figure.models.index("Llama-3-8B")
    assert not figure.printed[place]
    at = recomputed.GOLD.index("Chinese") * 3 + recomputed.HELD_AGAINST_GOLD.index("Llama-3-8B")
    factor = gold[at] / silver[at]
    p_values = []
    for rate in np.linspace(figure.low[place], figure.high[place], 21):
        moved = correlate([*silver[:at], rate, *silver[at + 1 :]], [*gold[:at], rate * factor, *gold[at + 1 :]])
        assert moved is not None
        p_values.append(moved.p)
    assert min(p_values) < 1.4e-4
    assert max(p_values) < 1.6e-4
    rows = {one.what: one for one in recomputed.validation(figure, shared_facts, facts(shared_facts))}
    assert rows["silver against gold: r"].verdict == recomputed.BOUNDS
    assert rows["gold over silver estimates"].verdict == recomputed.OTHER  # German by gold is a quarter lower


@pytest.mark.parametrize(
    ("family", "larger", "significant", "smaller_hallucinates_more"),
    [
        ("EuroLLM", "EuroLLM-9B", False, False),
        ("Gemma", "Gemma-2-9B", True, False),
        ("Llama", "Llama-3-8B", True, True),
        ("Llama", "Llama-3.1-8B", True, True),
        ("Qwen", "Qwen-2.5-7B", True, True),
    ],
)
def test_size_tests_say_what_the_paper_says(
    figure: Figure4, family: str, larger: str, significant: bool, smaller_hallucinates_more: bool
) -> None:
    """Section 4.2, over languages: the 15 estimates a model that the paper tests are not printed."""
    smaller = recomputed.SIZES[family][0]
    found = t_test(figure.of(smaller)[:, 0], figure.of(larger)[:, 0], "paired")
    assert found is not None
    assert (found.p < 0.05) is significant
    assert (found.difference > 0) is smaller_hallucinates_more
    assert (found.low <= 0 <= found.high) is not significant


def test_smaller_models_hallucinate_more_on_average(figure: Figure4) -> None:
    """M33."""
    large = [model for model in figure.models if model not in recomputed.SMALL]
    assert figure.of(*recomputed.SMALL).mean() == pytest.approx(10.89, abs=0.01)
    assert figure.of(*large).mean() == pytest.approx(10.41, abs=0.01)


def test_the_overall_size_test_cannot_be_over_all_larger_models(figure: Figure4) -> None:
    """The printed p = 0.01 is below what any 15 estimates with the printed averages can give for 4 against 7 models."""
    large = tuple(model for model in figure.models if model not in recomputed.SMALL)
    assert len(large) == 7
    least = recomputed.least_p(figure, recomputed.SMALL, large)
    assert 0.07 < least < 0.08
    assert (
        0.009 < recomputed.least_p(figure, recomputed.SMALL, tuple(big for _, big in recomputed.SIZES.values())) < 0.01
    )


def test_spread_within_models_only_raises_that_p_value(figure: Figure4) -> None:
    large = tuple(model for model in figure.models if model not in recomputed.SMALL)
    least = recomputed.least_p(figure, recomputed.SMALL, large)
    printed = dict(zip(figure.models, figure.by_model[:, 0], strict=True))
    generator = np.random.default_rng(1)
    for spread in (0.01, 0.3, 3.0):
        groups = []
        for group in (recomputed.SMALL, large):
            noise = generator.normal(0, spread, (len(group), 15))
            centred = noise - noise.mean(axis=1, keepdims=True)
            groups.append((np.array([printed[model] for model in group])[:, None] + centred).ravel())
        found = t_test(*groups, "student")
        assert found is not None
        assert found.p >= least


def test_the_correlation_with_declared_languages_has_five_points(shared_facts: Path) -> None:
    """M23: neither the 6 families nor the 11 models of the study."""
    said = facts(shared_facts)
    r, p = said["language_support_pearson_r"], said["language_support_p"]
    fitting = [n for n in range(3, 31) if correlation_p(r + 0.005, n) <= p <= correlation_p(r - 0.005, n)]
    assert fitting == [5]
    assert correlation_p(said["response_length_rate_pearson_r"], 30) > 0.7


def test_label_shift_would_say_otherwise(figure: Figure4, shared_facts: Path) -> None:
    """Same marks, same P and R: what comes out depends on the prevalence that the silver data had."""
    rows = list(recomputed.shifted(figure, shared_facts))
    means = [row["mean, label-shift"] for row in rows]
    assert means == sorted(means, reverse=True)  # type: ignore[type-var]
    assert len({row["mean, paper"] for row in rows}) == 1
    assert rows[0]["mean, label-shift"] == pytest.approx(10.7, abs=0.2)  # at the prevalence of the estimates themselves
    assert rows[2]["mean, label-shift"] == pytest.approx(6.7, abs=0.2)


def test_the_benchmark_prints_it_all(shared_facts: Path) -> None:
    command = [sys.executable, BENCHMARKS / "mfava_figure4.py", "--facts", shared_facts, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    tables = [json.loads(line) for line in done.stdout.splitlines()]
    assert [len(table["rows"]) for table in tables] == [42, 17, 4]
    assert {row["verdict"] for row in tables[0]["rows"]} == {recomputed.MATCHES, recomputed.BOUNDS}
    assert sum(row["verdict"] == recomputed.MATCHES for row in tables[0]["rows"]) == 25

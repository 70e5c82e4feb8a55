from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.errors import InputError, UsageError
from veriglot.metrics.counts import Builder, Counts, CountsFile, Coverage, JudgedResponse
from veriglot.metrics.estimate import interval_of, stream, weights
from veriglot.metrics.measures import figures, reliability_tables
from veriglot.metrics.reference import Marks
from veriglot.metrics.scores import f1
from veriglot.metrics.spans import char_bounds

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.metrics.estimate import MetricResult

TYPES = ("entity", "invented")
TEXT = "ab cd ef gh. ij kl mn op."


def marks(*rows: tuple[int, int, str | None]) -> Marks:
    spans = np.array([row[:2] for row in rows], dtype=np.int32).reshape(-1, 2)
    return Marks(spans, tuple(row[2] for row in rows))


def judged(
    gold: Marks, predicted: Marks, *, name: str = "r", language: str = "de", cluster: str | None = None,
    probability: np.ndarray | None = None, soft: np.ndarray | None = None, score: float | None = None,
) -> JudgedResponse:  # fmt: skip
    return JudgedResponse(
        id=name, language=language, cluster=cluster or name, length=len(TEXT), bounds=char_bounds(TEXT),
        sentences=np.array([(0, 12), (13, 25)], dtype=np.int32), gold=gold, predicted=predicted,
        probability=probability, soft=soft, predicted_soft=probability, score=score,
    )  # fmt: skip


def counted(*rows: JudgedResponse, types: tuple[str, ...] = TYPES) -> Counts:
    builder = Builder("char", types)
    for row in rows:
        builder.add(row)
    return builder.counts()


def table(counts: Counts, **options: object) -> dict[tuple[str, str, str], MetricResult]:
    coverage = {tag: Coverage(9, 8, counts.languages.count(tag)) for tag in counts.languages}
    made = figures(counts, signature="s:1", coverage=coverage, **{"resamples": 50, **options})  # type: ignore[arg-type]
    return {(f.level, f.name, f.language): f for f in made}


places = st.tuples(st.integers(0, 24), st.integers(1, 9), st.sampled_from([*TYPES, None]))
random_marks = st.lists(places.map(lambda p: (p[0], min(p[0] + p[1], 25), p[2])), max_size=4).map(
    lambda rows: marks(*rows)
)
rows = st.lists(
    st.builds(
        lambda gold, predicted, seed, language, cluster: judged(
            gold, predicted, language=language, cluster=f"{language}{cluster}",
            probability=np.random.default_rng(seed).random(25), soft=np.random.default_rng(seed + 1).random(25),
            score=float(np.random.default_rng(seed).random()),
        ),
        random_marks, random_marks, st.integers(0, 99), st.sampled_from(["de", "tr"]), st.integers(0, 3),
    ),
    min_size=1, max_size=6,
)  # fmt: skip


def test_counts_of_one_response_are_those_counted_by_hand() -> None:
    counts = counted(
        judged(marks((0, 5, "entity"), (13, 15, "invented")), marks((3, 8, "entity"), (13, 15, "entity")), score=0.8)
    )
    # Visible characters: ab cd ef gh. = 9, ij kl mn op. = 9. Gold: ab cd ij = 6. Marked: cd ef ij = 6. Shared: cd ij.
    assert counts.blocks["unit"].tolist() == [[4, 2, 2, 10]]
    assert counts.blocks["types"].tolist() == [[2, 4, 2, 10, 0, 0, 2, 16]]
    assert counts.blocks["typing"].tolist() == [[2, 4]]
    assert counts.blocks["exact"].tolist() == [[1, 2, 2]]
    assert counts.blocks["typed_exact"].tolist() == [[0, 2, 2]]
    assert counts.blocks["overlap"].tolist() == [[1, 2, 2]]  # [0,5) and [3,8) share 2 of 8
    assert counts.blocks["partial"].tolist() == [[1.5, 2, 2]]
    assert counts.blocks["iou"].tolist() == [[4 / 10, 1]]
    assert counts.blocks["extent"].tolist() == [[7, 25]]
    assert counts.blocks["sentence"].tolist() == [[2, 0, 0, 0]]
    assert counts.blocks["response"].tolist() == [[1, 0, 0, 0]]
    found = table(counts)
    assert found["unit", "f1", "de"].value == pytest.approx(2 / 3)
    assert found["unit", "f1", "de"].prevalence == pytest.approx(6 / 18)
    assert found["category", "f1_macro", "de"].value == pytest.approx((2 * 2 / (4 + 4 + 2) + 0) / 2)
    assert found["category", "f1_micro", "de"].value == pytest.approx(2 * 2 / (2 * 2 + 4 + 4))
    assert found["category", "type_accuracy", "de"].value == 0.5
    assert found["span", "partial_f1", "de"].value == 0.75
    assert found["unit", "f1", "de"].n_units == 18
    assert found["span", "exact_f1", "de"].n_units == 2


@pytest.mark.fuzz
@given(rows)
def test_counts_add_up_and_order_is_nothing(given_rows: list[JudgedResponse]) -> None:
    counts = counted(*given_rows)
    for name in ("unit", "types", "sentence", "response"):
        assert (counts.blocks[name] >= 0).all()
    assert (counts.blocks["unit"].sum(axis=1) == 18).all()
    assert (counts.blocks["types"].reshape(len(counts), 2, 4).sum(axis=2) == 18).all()
    assert counts.histograms["unit"].values[:, :2].sum() == 18 * len(counts)
    backwards = counted(*given_rows[::-1])
    one, other = table(counts, resamples=0), table(backwards, resamples=0)
    assert one.keys() == other.keys()
    for key, figure in one.items():
        assert figure.value == pytest.approx(other[key].value), key


@pytest.mark.fuzz
@given(rows)
def test_joined_counts_equal_counts_at_once(given_rows: list[JudgedResponse]) -> None:
    half = len(given_rows) // 2
    joined = Counts.join([counted(*given_rows[:half]), counted(*given_rows[half:])])
    whole = counted(*given_rows)
    assert joined.ids == whole.ids
    assert table(joined) == table(whole)


@pytest.mark.fuzz
@given(rows, st.integers(0, 3))
def test_the_bootstrap_equals_a_naive_loop(given_rows: list[JudgedResponse], seed: int) -> None:
    """Draw clusters one by one, count the drawn responses again, and compare the intervals of three figures."""
    tag = given_rows[0].language
    mine = [row for row in given_rows if row.language == tag]
    names = list(dict.fromkeys(row.cluster for row in mine))
    found = table(counted(*given_rows), resamples=6, seed=seed)
    drawn = weights(len(names), 6, stream(seed, tag))
    values: dict[tuple[str, str], list[float]] = {("unit", "f1"): [], ("char", "iou"): [], ("unit", "ece"): []}
    for weight in drawn:
        again = [
            row for name, times in zip(names, weight, strict=True) for row in mine * int(times) if row.cluster == name
        ]
        resampled = table(counted(*again), resamples=0)
        for (level, name), column in values.items():
            value = resampled[level, name, tag].value
            column.append(float("nan") if value is None else value)
    for (level, name), column in values.items():
        figure = found[level, name, tag]
        if figure.value is None or len(names) < 2:
            assert figure.low is None
            continue
        low, high, _ = interval_of(np.array([figure.value, *column]), resampled=True)
        assert figure.low == pytest.approx(low, abs=1e-9)
        assert figure.high == pytest.approx(high, abs=1e-9)


@pytest.mark.fuzz
@given(st.lists(random_marks, min_size=1, max_size=4))
def test_a_perfect_detector_is_perfect(golds: list[Marks]) -> None:
    perfect = []
    for index, gold in enumerate(golds):
        inside = np.zeros(25)
        for start, end in gold.spans:
            inside[start:end] = 1.0
        perfect.append(
            judged(gold, gold, name=str(index), probability=inside, soft=inside, score=float(len(gold.spans) > 0))
        )
    for (level, name, _), figure in table(counted(*perfect)).items():
        if name in ("fpr", "ece", "ece_equal_mass", "brier"):
            assert figure.value in (0.0, None), (level, name)
        elif not level.startswith("type:") and level != "category" and not name.startswith("typed"):
            assert figure.value is None or figure.value == pytest.approx(1.0), (level, name)


def test_typed_figures_of_a_perfect_detector() -> None:
    gold = marks((0, 5, "entity"), (13, 15, "invented"))
    found = table(counted(judged(gold, gold)))
    for name in ("f1_macro", "f1_micro", "type_accuracy"):
        assert found["category", name, "pooled"].value == 1.0
    assert found["span", "typed_exact_f1", "pooled"].value == 1.0


def test_mean_and_pooled_over_languages() -> None:
    right, wrong = marks((0, 2, "entity")), marks((3, 5, "entity"))
    counts = counted(
        *(judged(right, right, name=f"a{i}", language="de") for i in range(3)),
        *(judged(right, wrong, name=f"b{i}", language="tr") for i in range(1, 3)),
    )
    found = table(counts)
    assert [found["unit", "f1", tag].value for tag in ("de", "tr", "mean", "pooled")] == [1.0, 0.0, 0.5, 0.6]
    assert found["unit", "f1", "pooled"].n_responses == 5
    assert found["unit", "f1", "mean"].coverage == 5 / 16


def test_a_language_without_the_figure_is_named_in_the_mean() -> None:
    right = marks((0, 2, None))
    counts = counted(
        *(judged(right, right, name=f"a{i}", language="de") for i in range(2)),
        *(judged(marks(), marks(), name=f"b{i}", language="tr") for i in range(2)),
    )
    mean = table(counts)["unit", "recall", "mean"]
    assert mean.value == 1.0
    assert mean.reason == "over 1 of 2 languages, without tr; no interval: all resamples agree"


def test_undefined_figures_say_why() -> None:
    found = table(counted(judged(marks(), marks()), judged(marks(), marks(), name="q"), types=()))
    for level, name in (("unit", "recall"), ("unit", "precision"), ("unit", "f1"), ("unit", "mcc"),
                        ("span", "exact_f1"), ("unit", "ece"), ("unit", "average_precision"),
                        ("char", "soft_correlation"), ("category", "f1_macro"), ("response", "auroc")):  # fmt: skip
        figure = found[level, name, "de"]
        assert figure.value is None, (level, name)
        assert figure.low is None
        assert figure.reason, (level, name)
        assert found[level, name, "mean"].reason == found[level, name, "pooled"].reason == figure.reason
    assert found["unit", "fpr", "de"].value == 0.0
    assert found["char", "iou", "de"].value == 1.0


def test_without_counts_every_figure_is_none_with_a_reason() -> None:
    made = figures(counted(), signature="s:1", coverage={"de": Coverage(3, 0, 0)})
    assert {figure.language for figure in made} == {"de", "mean", "pooled"}
    assert all(figure.value is None and figure.reason for figure in made)
    assert all(f.value is None for f in figures(counted(), signature="s:1", coverage={}))


def test_one_text_has_no_interval() -> None:
    gold = marks((0, 2, None))
    figure = table(counted(judged(gold, gold), judged(gold, gold)))["unit", "f1", "de"]
    assert (figure.value, figure.low, figure.n_clusters) == (1.0, None, 1)
    assert figure.reason == "one text: no interval"


def test_repeats_of_a_text_widen_the_interval() -> None:
    rng = np.random.default_rng(2)
    base = [judged(marks((0, 5, None)), marks((0, int(rng.integers(1, 25)), None)), name=f"t{i}") for i in range(20)]
    repeated = [replace(row, id=f"{row.id}-{copy}") for row in base for copy in range(5)]
    clustered = table(counted(*repeated), resamples=400)["unit", "f1", "de"]
    naive = table(counted(*(replace(row, cluster=row.id) for row in repeated)), resamples=400)["unit", "f1", "de"]
    assert clustered.value == naive.value
    assert clustered.high - clustered.low > 1.7 * (naive.high - naive.low)  # type: ignore[operator]


def test_same_seed_same_figures_and_order_of_languages_is_nothing() -> None:
    rng = np.random.default_rng(4)
    made = [
        judged(marks((0, 5, None)), marks((int(rng.integers(0, 9)), 14, None)), name=f"{tag}{i}", language=tag)
        for tag in ("de", "tr") for i in range(8)
    ]  # fmt: skip
    first, again = table(counted(*made)), table(counted(*made))
    alone = table(counted(*(row for row in made if row.language == "tr")))
    assert first == again
    assert first["unit", "f1", "tr"].low == alone["unit", "f1", "tr"].low
    assert first["unit", "f1", "tr"].low != table(counted(*made), seed=9)["unit", "f1", "tr"].low


def test_many_clusters_are_summed_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [
        judged(
            marks((0, 5, None)), marks((i % 9, 14, None)), name=str(i), probability=np.linspace(0, 1, 25) / (1 + i % 3),
        )
        for i in range(10)
    ]  # fmt: skip
    whole = table(counted(*made))
    monkeypatch.setattr("veriglot.metrics.counts._CLUSTERS", 3)
    blocked = table(counted(*made))
    for key, figure in whole.items():
        assert (figure.low, figure.high) == pytest.approx((blocked[key].low, blocked[key].high)), key


def test_levels_can_be_chosen() -> None:
    gold = marks((0, 2, "entity"))
    found = figures(counted(judged(gold, gold)), signature="", coverage={}, levels=["type", "char"])
    assert {figure.level for figure in found} == {"type:entity", "type:invented", "char"}


def test_signature_names_the_figure() -> None:
    gold = marks((0, 2, "entity"))
    figure = table(counted(judged(gold, gold)))["unit", "f1", "de"]
    assert figure.signature == "figure:unit.f1|language:de|s:1"


def test_reliability_counts_every_unit() -> None:
    counts = counted(
        judged(marks((0, 2, None)), marks(), probability=np.linspace(0, 1, 25), language="de"),
        judged(marks((0, 2, None)), marks(), probability=np.full(25, 0.35), language="tr"),
    )
    tables = reliability_tables(counts)
    assert {tag: sum(row.units for row in rows_) for tag, rows_ in tables.items()} == {"de": 18, "tr": 18, "pooled": 36}
    row = tables["tr"][5]
    assert (row.low, row.high, row.units) == (pytest.approx(1 / 3), pytest.approx(0.4), 18)
    assert row.confidence == pytest.approx(0.35)
    assert row.positive == pytest.approx(2 / 18)


def test_stored_counts_give_the_same_figures(tmp_path: Path) -> None:
    gold = marks((0, 2, "entity"))
    counts = counted(
        judged(gold, marks((1, 4, "entity")), probability=np.linspace(0, 1, 25), soft=np.linspace(1, 0, 25), score=0.3),
        judged(gold, gold, name="q", score=0.9),
    )
    path = tmp_path / "counts.json"
    stored = CountsFile(counts, {"de": Coverage(3, 2, 2, {"failed": 0})}, {"data": "00", "threshold": 0.5})
    stored.save(path)
    assert CountsFile.is_at(path)
    back = CountsFile.load(path)
    assert table(back.counts) == table(counts)
    assert (back.coverage, back.about) == (stored.coverage, stored.about)


def test_damaged_counts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "counts.json"
    CountsFile(counted(judged(marks(), marks(), score=0.4)), {}, {}).save(path)
    whole = path.read_text()
    for damaged in (whole[:-20], whole.replace('"ids":["r"]', '"ids":[]'), whole.replace('"bin":[', '"bin":[99999,')):
        path.write_text(damaged)
        with pytest.raises(InputError, match=r"counts\.json: these are no counts"):
            CountsFile.load(path)
    assert not CountsFile.is_at(tmp_path / "absent.json")


def test_counts_of_different_units_do_not_add() -> None:
    one = counted(judged(marks(), marks()))
    with pytest.raises(UsageError, match="cannot be added"):
        Counts.join([one, replace(one, unit="word")])


def test_intervals_mostly_contain_the_point() -> None:
    rng = np.random.default_rng(8)
    inside = total = 0
    for trial in range(15):
        made = [
            judged(
                marks((0, int(rng.integers(1, 25)), "entity")), marks((int(rng.integers(0, 12)), 20, "entity")),
                name=str(i), probability=rng.random(25), score=float(rng.random()),
            )
            for i in range(12)
        ]  # fmt: skip
        for figure in table(counted(*made), resamples=200, seed=trial, levels=["unit", "char", "span"]).values():
            if figure.low is not None and not figure.name.startswith("ece"):  # its resamples are biased upwards
                total += 1
                inside += figure.low - 1e-9 <= figure.value <= figure.high + 1e-9  # type: ignore[operator]
    assert inside / total > 0.97


def test_f1_of_a_stack_is_what_the_figure_shows() -> None:
    counts = counted(judged(marks((0, 5, None)), marks((3, 9, None))))
    assert table(counts)["unit", "f1", "de"].value == f1(counts.blocks["unit"])[0]

"""Benches of random systems on random items: figures, tests and ranks as a run makes them, without its detectors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from bench_made import bench_of
from hypothesis import strategies as st
from msgspec import structs

from veriglot.bench.figures import Measurement, ScoredSystem
from veriglot.bench.items import ItemTable, SystemScores
from veriglot.bench.leaderboard import standings, wins
from veriglot.bench.results import BenchAnswers, BenchCell, BenchResults, BenchSystem, Cost
from veriglot.metrics.estimate import Resampling

if TYPE_CHECKING:
    from collections.abc import Callable


class Plan(NamedTuple):
    """What a random bench is made of.

    Attributes:
        seed: of its random numbers.
        measure: that ranks.
        skills: how far numbers of right and wrong items lie apart for each system; below 0, not at all in the last set.
        left_out: share of the items that each system does not judge.
        sizes: texts of each data set in each of its two languages.
        seen: the data set that a system was trained on, or -1.
        one_kind: whether the second language of the last data set has right items alone.
        dev: texts of each language that thresholds are tuned on.
    """

    seed: int
    measure: str
    skills: tuple[float, ...]
    left_out: tuple[float, ...]
    sizes: tuple[int, ...]
    seen: tuple[int, ...]
    one_kind: bool = False
    dev: int = 20


@st.composite
def plans(draw: Callable[..., Any]) -> Plan:
    """Benches of one to four systems on one to three data sets."""
    count = draw(st.integers(1, 4))
    sets = draw(st.integers(1, 3))
    each = {"min_size": count, "max_size": count}
    return Plan(
        draw(st.integers(0, 10**6)),
        draw(st.sampled_from(["mcc", "auroc", "fpr"])),
        tuple(draw(st.lists(st.sampled_from([0.0, 0.5, 0.6, 2.0, 3.0, -1.0]), **each))),
        tuple(draw(st.lists(st.sampled_from([0.0, 0.0, 0.0, 0.02, 0.4]), **each))),
        tuple(draw(st.lists(st.sampled_from([3, 12, 40]), min_size=sets, max_size=sets))),
        tuple(draw(st.lists(st.sampled_from([-1, -1, -1, -1, 0]), **each))),
        draw(st.sampled_from([False, False, False, True])),
        draw(st.sampled_from([20, 20, 20, 0])),
    )


def random_bench(plan: Plan) -> tuple[BenchResults, dict[tuple[str, str], set[int]]]:
    """The bench of a plan, and system and data set to the items that it judged."""
    generator = np.random.default_rng(plan.seed)
    names = [f"s{index}" for index in range(len(plan.skills))]
    board = {f"d{index}": _measured(plan, names, index, generator) for index in range(len(plan.sizes))}
    against, pairs, ranks = standings("response", board, names[0], plan.measure, "romano-wolf")
    blank = bench_of(dict.fromkeys(names, (0.0, 0)))
    data = tuple(
        structs.replace(
            blank.data[0], name=name, languages={"de": (size, size), "tr": (size, size)},
            items={"response": 2 * size}, nonfactual={"response": size}, dev=2 * plan.dev,
            seen=tuple(who for who, seen in zip(names, plan.seen, strict=True) if name == f"d{seen}"),
        )
        for (name, size) in zip(board, plan.sizes, strict=True)
    )  # fmt: skip
    judged = {
        (each.name, name): set(np.flatnonzero(~np.isnan(each.test.badness)).tolist())
        for name, measured in board.items()
        for each in measured.systems
    }
    groups = {"all": tuple(f"{name}/{tag}" for name in board for tag in ("de", "tr"))}
    cells = [_cell(name, who, len(judged[who, name]), 2 * size) for name, size in zip(board, plan.sizes, strict=True)
             for who in names]  # fmt: skip
    systems = [BenchSystem(name, "scorer", name, signature=f"scorer:{name}") for name in names]
    if plan.seed % 3 == 0:  # what could not be made, and data without labels
        systems.append(BenchSystem("gone", "detector", "hf:x", unavailable="There is no folder x."))
        cells.append(BenchCell("gone", "d0", "response", "unavailable", "There is no folder x."))
        bare = structs.replace(blank.data[0], name="bare", labelled=False, nonfactual={})
        data = (*data, bare)
    answers = [
        BenchAnswers(system=name, data="bare", level="response", language="mean", items=9, clusters=9, coverage=1.0,
                     flagged=0.5, flagged_low=0.2, flagged_high=0.8, mean=0.3)
        for name in names
        if len(data) > len(board)
    ]  # fmt: skip
    results = structs.replace(
        blank, data=data, measures={"response": (plan.measure,)}, rank_by=plan.measure, baseline=names[0],
        wins=tuple(wins("response", board, groups)), groups=groups, cells=tuple(cells), answers=tuple(answers),
        ranking={"response": plan.measure}, systems=tuple(systems),
        figures=tuple(figure for each in board.values() for figure in each.figures), comparisons=tuple(against),
        pairs=tuple(pairs), standings=tuple(ranks), correction="romano-wolf", resamples=80,
    )  # fmt: skip
    return results, judged


def _cell(data: str, system: str, judged: int, every: int) -> BenchCell:
    counts = {"mean": {"scored": judged, "failed": every - judged}}
    coverage, cost = judged / every, Cost(every, 2.0, 1.5)
    if judged == every:
        return BenchCell(system, data, "response", "done", coverage=1.0, statuses=counts, cost=cost)
    status = "partial" if judged else "unscored"
    reason = f"{every - judged} of {every} were not scored"
    return BenchCell(system, data, "response", status, reason, statuses=counts, coverage=coverage, cost=cost)


def _measured(plan: Plan, names: list[str], index: int, generator: np.random.Generator) -> Measurement:
    test, dev = (_table(size, generator) for size in (plan.sizes[index], plan.dev))
    if plan.one_kind and index == len(plan.sizes) - 1:
        test = replace(test, nonfactual=test.nonfactual & (test.languages == "de"))
    languages = test.languages.tolist()
    resampling = Resampling.of(test.texts, languages, resamples=80, seed=plan.seed)
    measured = Measurement(f"d{index}", test, dev, resampling, "", {})
    for name, skill, left_out, seen in zip(names, plan.skills, plan.left_out, plan.seen, strict=True):
        opinions = [SystemScores(abs(skill) * t.nonfactual + generator.normal(size=len(t)), None) for t in (test, dev)]
        if skill < 0 and index == len(plan.sizes) - 1:
            opinions = [SystemScores(np.full(len(t), 0.5), None) for t in (test, dev)]
        hidden = generator.random(len(test)) < left_out
        opinions[0] = replace(opinions[0], badness=np.where(hidden, np.nan, opinions[0].badness))
        measured.systems.append(ScoredSystem(name, "higher_is_worse", *opinions, seen == index, f"{name}-{index}"))
    measured.measure([plan.measure], by_language=False)
    return measured


def _table(size: int, generator: np.random.Generator) -> ItemTable:
    count = 2 * size
    return ItemTable(
        level="response", samples=(), owner=np.arange(count), bounds=np.zeros((count, 2), dtype=np.int32),
        languages=np.array(["de"] * size + ["tr"] * size), texts=tuple(map(str, range(count))),
        nonfactual=np.arange(count) % 2 == generator.integers(2), support=None, unverified=None,
    )  # fmt: skip

# ruff: noqa: E501  # patterns are whole sentences
"""Lines that `veriglot estimate` and `veriglot study` print, and the page of results, held to random records."""

from __future__ import annotations

import io
import re
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

import numpy as np
from sentences import ROOT, held
from study_sentences import is_reliable

from veriglot.cli.estimate import _needed, _show_plans, _show_rates
from veriglot.cli.study import _print_cost, _print_status
from veriglot.rates.plan import Plan
from veriglot.records import Estimator
from veriglot.study.responses import ModelCost, StudyCost
from veriglot.study.run import Status, Step

sys.path.insert(0, str(ROOT / "benchmarks"))
import results as benchmark

if TYPE_CHECKING:
    from collections.abc import Callable

    from veriglot.records import Rate


def printed(show: Callable[[], object]) -> str:
    text = io.StringIO()
    with redirect_stdout(text):
        show()
    return text.getvalue()


def rates_hold(rates: list[Rate]) -> None:
    """`veriglot estimate`: each reason with its cells, contradictions first, and the note on unreliable rates."""
    text = printed(lambda: _show_rates(rates, None, 0.95))
    bad = [rate for rate in rates if not is_reliable(rate)]
    note = "unreliable: the data do not support the number; do not quote it."
    assert (note in text) == bool(bad)
    held("commands", note * bool(bad))
    reasons = [part for rate in rates for part in (rate.reason or "").split("; ") if part]
    against = [reason for reason in reasons if reason.startswith("its interval excludes")]
    lines = text.splitlines()
    first = [line for line in lines if line.startswith("Contradiction: ")]
    assert lines[: len(first)] == first
    assert bool(first) == bool(against)
    shape = re.compile(r"[\d.,–]+")
    shown = {shape.sub("#", line.partition(": ")[2]) for line in lines if line.endswith(".")}
    shown |= {shape.sub("#", line.removeprefix("Contradiction: ").partition(": ")[2]) for line in first}
    assert {shape.sub("#", f"{reason}.") for reason in reasons} <= shown
    rows = [line for line in lines if line.rstrip().endswith("unreliable")]
    assert len(rows) == len(bad)


def plans_hold(seed: int) -> None:
    """What more data would take: `never` names the half-width that remains."""
    draw = np.random.default_rng(seed)
    for _ in range(20):
        half, limit = draw.uniform(0.01, 0.1, 2)
        reached = limit < half
        plan = Plan(half, 0.2, limit, *((30, 1200) if reached else (None, None)))
        assert _needed(plan) == ("1,200" if reached else f"never: {limit:.2%}")
    assert _needed(None) == "too few to say"
    held("commands", "too few to say")
    text = printed(lambda: _show_plans([], 0.01, Estimator.PPI, None))
    assert "Intervals of at most 1.00% to either side, by ppi" in text
    held("commands", text)


def rehearsal_holds(seed: int) -> None:
    """What a study would take: sums over its models, and what its limits allow."""
    draw = np.random.default_rng(seed)
    models = tuple(
        ModelCost(model=f"m{index}", languages={"de": 9}, calls=int(draw.integers(5)), done=0, tokens_in=10,
                  tokens_out=None, cost=None, impossible=int(draw.integers(3)))
        for index in range(int(draw.integers(1, 4)))
    )  # fmt: skip
    enough = (True, False, None)[int(draw.integers(3))]
    unreadable = int(draw.integers(3))
    calls = sum(model.calls for model in models)
    text = printed(lambda: _print_cost(StudyCost("t", models, calls, 7, unreadable, (None, None), enough)))
    for pattern, wanted in (
        (rf"{calls} calls? to make, 7 judgements, 1 language: de\. Prompt tokens are estimated from the length of the"
         r" texts\.", True),
        (rf"Cannot be asked, as the run says: {sum(m.impossible for m in models)} planned (?:query|queries)\.",
         any(model.impossible for model in models)),
        (rf"Cannot be read: {unreadable} rows?\.", unreadable),
        (r"The limits of the study file stop it before it is finished\.", enough is False),
        (r"Whether the token limit is enough is not known: set max_tokens in the settings of every model\.", enough is None),
    ):  # fmt: skip
        match = re.search(pattern, text)
        assert bool(match) == bool(wanted), (pattern, text)
        held("commands", match[0] if match else "")


def status_holds(seed: int) -> None:
    """A run that is not finished says whether a process is at work."""
    draw = np.random.default_rng(seed)
    steps = tuple(Step(what="responses", model=f"m{index}", planned=3, done=int(n), failed=0, finished=n == 3)
                  for index, n in enumerate(draw.integers(2, 4, 2)))  # fmt: skip
    running, whole = bool(draw.integers(2)), bool(draw.integers(2))
    state = Status("t", running, steps, whole, whole, whole)
    text = printed(lambda: _print_status(state))
    for sentence, wanted in (
        ("A process is working in the folder.", running),
        ("No process is working: `veriglot study run` with the same study file and folder resumes the run.",
         not running and not state.finished),
    ):  # fmt: skip
        assert (sentence in text) == wanted
        held("commands", sentence * wanted)


def history_holds(seed: int) -> None:
    """The page of results names each set on which one version's printed figures differ, and no other."""
    draw = np.random.default_rng(seed)
    runs = ("first", "second", "third")[: int(draw.integers(1, 4))]
    systems, sets = ("reader 1.2", "grounding 1.0", "rouge-l"), ("xsum", "wice")
    rows = [
        benchmark.Figure(run, system, "response", data, "mcc", "tuned", "mean", value, value and "0.1", value and "0.9", "")
        for run in runs
        for system in systems
        for data in sets
        if draw.random() < 0.8
        for value in (str(draw.choice(["0.5004", "0.5001", "0.52", ""])),)
    ]  # fmt: skip
    letters = dict(zip(runs, "ABC", strict=False))
    text = "\n".join(benchmark._board(rows, "response", letters)) if rows else ""
    values: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        if row.value and row.system != "rouge-l":
            values.setdefault((row.system, row.data), {})[letters[row.run]] = f"{float(row.value):.3f}"
    unlike = {cell: own for cell, own in values.items() if len(set(own.values())) > 1}
    match = re.search(r"One version, different figures: (.+?)\. .+", text)
    assert bool(match) == bool(unlike)
    if match is not None:
        told = {}
        for part in match[1].split("; "):
            system, data, figures = re.fullmatch(r"(.+?) on (\w+), (.+)", part).groups()  # type: ignore[union-attr]
            told[system, data] = {run: value for value, run in re.findall(r"([\d.]+) in run (\w)", figures)}
        assert told == unlike
        held("results", match[0])
    for row in rows:  # each version of a detector in each of its runs; a scorer once
        lines = [line for line in text.splitlines() if line.startswith(f"| {row.system} |")]
        if row.system == "rouge-l":
            assert len(lines) <= 1
        elif row.value:
            assert any(line.startswith(f"| {row.system} | {letters[row.run]} |") for line in lines)
    head = "mcc at tuned thresholds, mean over the languages of each set, 95% intervals over texts:"
    assert not rows or head in text
    held("results", head)

"""Results of a bench on one data set, made by hand: what each system reached, in how many cells, on how many texts."""

from __future__ import annotations

from typing import Any

from veriglot.bench.results import BenchData, BenchFigure, BenchResults, BenchSystem, BenchWin


def bench_of(
    systems: dict[str, tuple[float | None, int]],
    *,
    cells: int = 5,
    texts: int = 60,
    dev: int = 12,
    reason: str | None = None,
    seen: tuple[str, ...] = (),
    **parts: Any,
) -> BenchResults:
    """Systems by name, each with its value (None for none) and its wins of `cells`; the last is the baseline."""
    data = BenchData(
        name="sums", levels=("response",), languages={"de": (texts, texts)}, pairs={}, dev=dev, bad_rows=0,
        unlabelled=0, items={"response": texts}, nonfactual={"response": texts // 2}, license=None, split="by hash",
        seen=seen, sha256="0" * 64,
    )  # fmt: skip
    figures = [
        BenchFigure(
            system=name, data="sums", level="response", language=language, measure="mcc", at="tuned", value=value,
            low=None if value is None else value - 0.1, high=value, items=texts, positives=texts // 2, clusters=texts,
            coverage=1.0, seen=name in seen, reason=reason if value is None else None,
        )
        for name, (value, _) in systems.items()
        for language in ("mean", "de")
    ]  # fmt: skip
    top = [wins for _, wins in systems.values()]
    wins = [
        BenchWin("response", "mcc", "tuned", "all", name, n, n if top.count(n) > 1 else 0, cells, cells, n / cells,
                 value, low=0.0, high=1.0)
        for name, (value, n) in systems.items()
        if not seen
    ]  # fmt: skip
    made: dict[str, Any] = {
        "title": "Made", "measures": {"response": ("mcc",)}, "rank_by": "mcc", "baseline": list(systems)[-1],
        "seed": 1, "resamples": 100, "correction": "holm", "data": (data,),
        "systems": tuple(BenchSystem(name, "scorer", name, signature=f"scorer:{name}") for name in systems),
        "cells": (), "figures": tuple(figures), "thresholds": (), "wins": tuple(wins), "comparisons": (),
        "correlations": (), "groups": {"all": ("sums/de",)}, "notes": (), "signature": "bench:0", "version": "0",
    }  # fmt: skip
    return BenchResults(**(made | parts))

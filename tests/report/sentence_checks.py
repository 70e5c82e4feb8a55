# ruff: noqa: E501  # patterns are whole sentences
"""Every checker of sentences over results that bring each sentence about, so that `sentences.HELD` has all of them."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from statistics import fmean

import msgspec
import numpy as np
import test_bench_leaders as leaders
import test_study_findings as studies
from bench_made import bench_of
from bench_random import Plan as BenchPlan
from bench_random import random_bench
from bench_sentences import page_holds, types_hold
from command_sentences import history_holds, plans_hold, rates_hold, rehearsal_holds, status_holds
from sentences import held
from set_sentences import births_hold, check_holds, misfits_hold, notes_hold, places_hold
from study_figures import MODELS, study_figures, two_profiles
from study_page import Page, page_of
from study_random import random_study
from study_sentences import PageTruth, is_reliable, texts_hold
from test_headlines import bench_headline_holds, of_results, study_page_holds

from veriglot.bench.results import BenchComparison
from veriglot.records import Prediction, Reliability, Sample, Span, Status
from veriglot.report.bench_findings import findings
from veriglot.report.bench_tables import View as BenchView
from veriglot.report.study import View
from veriglot.study.rates import ProfileComparison
from veriglot.study.results import Example, StudyResults

BENCHES = (
    *(plan for plan, _ in leaders.SURE),
    BenchPlan(9, "mcc", (3.0, 2.0, 0.5), (0, 0, 0), (3, 40), (-1, -1, 0)),
    BenchPlan(12, "mcc", (3.0, 0.6, 0.0), (0, 0.4, 0.02), (12, 40), (-1, -1, -1)),
    BenchPlan(15, "mcc", (3.0, 2.0, 2.0, 0.0), (0, 0, 0, 0), (40, 40), (-1,) * 4),
    *(BenchPlan(seed, "mcc", (0.5, 0.0), (0, 0.97), (3, 3), (-1, -1)) for seed in range(20, 26)),
    BenchPlan(31, "mcc", (3.0, -1.0, 0.5), (0, 0, 0), (12, 40), (-1, -1, -1)),
    BenchPlan(32, "mcc", (3.0, 2.0), (0, 0), (12, 40), (-1, -1), one_kind=True),
    BenchPlan(34, "mcc", (0.0, 3.0, 3.0, 3.0), (0, 0, 0, 0), (40, 40, 40), (-1,) * 4),
    BenchPlan(37, "mcc", (3.0, 2.0), (0, 0), (12, 40), (-1, -1), dev=0),
)


def all_of_them() -> None:
    """Run every checker."""
    for plan, _ in studies.SURE:
        studies.checked(plan)
        study_page_holds(plan)
        with tempfile.TemporaryDirectory() as folder:
            rates_hold([rate for cell in random_study(plan, Path(folder))[0].cells for rate in cell.rates])
    for made in made_studies():
        with tempfile.TemporaryDirectory() as folder:
            PageTruth(made, page_of(made, Path(folder))).holds()
        texts_hold(made)
    for plan in BENCHES:
        results, judged = random_bench(plan)
        set(leaders.checked(results, judged))
        page_holds(results)
        bench_headline_holds(plan, of_results)
    notes_hold()
    old = bench_of({"a": (0.9, 4), "b": (0.7, 1)})
    assert not old.pairs
    assert BenchView(old).levels
    held("bench", findings(BenchView(old))[0])  # no pair was tested
    halved = [msgspec.structs.replace(f, measure="f1", value=(f.value or 0.0) / 2, low=0.0) for f in old.figures]
    data = msgspec.structs.replace(old.data[0], languages={"de": (70, 60)})
    test = BenchComparison("sums", "response", "mcc", "tuned", "a", "b", 0.2, 0.01, 0.02, 90, 60, low=0.1, high=0.3)
    page_holds(msgspec.structs.replace(old, data=(data,), comparisons=(test,), measures={"response": ("mcc", "f1")}, ranking={"response": "mcc"},
                                       figures=(*old.figures, *halved), wins=()))  # fmt: skip
    bare = msgspec.structs.replace(old, data=(msgspec.structs.replace(old.data[0], labelled=False),), figures=())
    page_holds(bare)
    for seed in range(12):
        types_hold(seed)
        profiles_hold(seed)
        for check in (
            plans_hold,
            rehearsal_holds,
            status_holds,
            history_holds,
            check_holds,
            births_hold,
            misfits_hold,
            places_hold,
        ):
            check(seed)


def made_studies() -> list[StudyResults]:
    """Studies by hand, for what random ones are too small for."""
    whole = study_figures()
    cells = tuple(
        msgspec.structs.replace(cell, types={"entity": 7}, coverage=msgspec.structs.replace(
            cell.coverage, planned=9, answered=9, failed=0, statuses={"scored": 9}))
        for cell in whole.cells
    )  # fmt: skip
    long = Sample("long", "word " * 900, language="de")
    cards = (
        Example(long, Prediction("long", Status.SCORED, "d@1", 0.5, (Span(2000, 2004, "entity", 0.5),))),
        Example(Sample("empty", "", language="de"), Prediction("empty", Status.SCORED, "d@1", 0.1, ())),
    )
    return [
        whole, two_profiles(), study_figures(MODELS, ("de", "fr", "zh-Hans")), study_figures(MODELS[1:2], ("de",)),
        msgspec.structs.replace(whole, cells=cells, assumptions=(), examples=cards),
    ]  # fmt: skip


def profiles_hold(seed: int) -> None:
    """Rates by two profiles: how many differ, by how much on average, and where most."""
    draw, whole = np.random.default_rng(seed), study_figures()
    pairs = []
    for cell in whole.cells[: int(draw.integers(1, 40))]:
        if draw.random() < 0.5:
            first, second = cell.rates[0], cell.rates[1]
            if not seed:  # none is reliable by both
                first = msgspec.structs.replace(first, status=Reliability.UNRELIABLE, reason="few")
            pairs.append(ProfileComparison(first, second, 0.01, None))
    if not pairs:
        return
    results = msgspec.structs.replace(whole, profiles=tuple(pairs))
    both = [pair for pair in pairs if is_reliable(pair.rate) and is_reliable(pair.compared)]
    with tempfile.TemporaryDirectory() as folder:
        page: Page = page_of(results, Path(folder))
    section = next(node for node in page.root.all("section") if node.attrs.get("id") == "two-profiles")
    text = " ".join(section.text.split())
    assert (View(results).profiles_agree or "") in text
    nothing = "No rate is reliable by both profiles."
    assert (nothing in text) == (not both)
    held("study page", nothing * (not both))
    drawn = sum(pair.rate.rate is not None and pair.compared.rate is not None for pair in pairs)
    assert ("Hollow: unreliable by one of them." in text) == (drawn > 2)
    told = [node.attrs.get("aria-label") or "" for node in section.all("svg")]
    match = next(filter(None, (re.match(r"Scatter of (\d+) rates by profile against those by compare_profile\.", each)
                               for each in told)), None)  # fmt: skip
    assert (int(match[1]) if match else 0) == (drawn if drawn > 2 else 0)
    held("study page", f"Hollow: unreliable by one of them. {match[0]}" if match else "")
    if both:
        match = re.search(r"(\d+) cells? with a reliable rate by both profiles: the difference, profile minus compare_profile, is ([+−]?[\d.]+) percentage points on average and ([\d.]+) in size; the largest is ([+−]?[\d.]+) \((.+?), ([^()]+?(?: \([^()]+\))?)\)\. Both rates are of the same marks", text)  # fmt: skip
        assert match is not None, text
        gaps = [100 * ((pair.rate.rate or 0.0) - (pair.compared.rate or 0.0)) for pair in both]
        figures = [float(each.replace("−", "-")) for each in match.group(2, 3, 4)]
        assert int(match[1]) == len(both)
        wanted = [fmean(gaps), fmean(map(abs, gaps)), max(gaps, key=abs)]
        assert all(abs(shown - value) < 0.0501 for shown, value in zip(figures, wanted, strict=True))
        widest = both[int(np.argmax(np.abs(gaps)))].rate
        assert (match[5], match[6]) == (widest.model, View(results).language(widest.language))
        held("study page", text)

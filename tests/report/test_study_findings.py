"""Whatever a study's page says follows from its figures and its corrected tests, over random studies."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from sentences import held
from study_page import Page
from study_random import TAGS, Plan, Row, plans, random_study
from study_sentences import SHARED, PageTruth, close, methods_hold, number, reasons_hold, texts_hold

from veriglot.rates.estimators import estimate
from veriglot.rates.proportion import Tallies
from veriglot.records import Estimator, Kind, Rate, Reliability
from veriglot.records.languages import language_name
from veriglot.report.study import View, findings, leaders
from veriglot.report.study_page import write_study

if TYPE_CHECKING:
    from veriglot.study.results import Comparison, StudyResults

FIGURE = r"[\d.<>]+%"
MEAN = rf"(?: over the {SHARED})?(?:, ({FIGURE})(?: \[[\d., ]+\])?)?"
KINDS = {
    "contradiction": r"Rates contradict each other in (.+?): (Its interval excludes .+)",
    "recommendation": r"Quote ppi in (\d+) cells? with labels of the study's own responses: .+",
    "overall": r"Of ([\d,]+) words that the models wrote, about ([\d,]+) (?:is|are) not supported by the evidence"
    rf" \(({FIGURE})(?:, 95% interval \[([\d.]+), ([\d.]+)\])?, mean of (\d+) reliable rates?(?: in the {SHARED})?\)\.",
    "no mean": rf"(No rate is reliable|There is {SHARED}), so there is no mean of all\.",
    "unlike": r"Do not order the models by their means: they are not of the same languages"
    r" \((\d+)(?: to (\d+))? of (\d+)\), as only reliable rates count\."
    rf" (?:Ranks and the mean of all are over the|There is) {SHARED}"
    r"(, so no ranks over languages and no mean of all)?\.",
    "nobody": r"(No corrected test(?: over languages)? tells apart|No test compared) any two of the (\d+) models"
    rf"(?: over the {SHARED})?: none is shown to hallucinate least\.",
    "leader": rf"(m\d) hallucinates (least|most) of the (\d+) models{MEAN}(?:: |; in tests of pairs, )"
    r"(less|more) than (each other one|the other one) \(corrected p at most (\d\.\d{3})\)\.",
    "first": rf"(m\d) has the (lowest|highest) mean rate{MEAN}"
    r", but the data do not exclude that it is (.+)\.",
    "pairs": r"(Within single languages, )?(\d+) of (\d+) (?:pairs? of models differs?|differences? (?:is|are))"
    r" beyond chance \(corrected p below 0\.05\)(?:: (.+))?\.",
    "languages": rf"By language(?:, over the {SHARED})?, mean rates go from ({FIGURE}) in (\w+) to ({FIGURE}) in (\w+);"
    r" no test compares languages\.",
    "correction": rf"The detector marks ({FIGURE}) of the words; corrected for what it misses and marks wrongly, that"
    rf" is ({FIGURE}) \(means over the (\d+) cells? with a reliable corrected rate\)\.",
    "unreliable": r"Unreliable, and in no mean, rank or comparison: (\d+) of (\d+) rates?\. Each says why\.",
    "calls": r"Never made, as the calls failed: (\d+) of (\d+) planned responses?\.",
    "unjudged": r"Not judged, and in no rate: (\d+) of (\d+) responses?\.",
    "odd": r"Many responses (decline to answer|are in another .+ for|repeat themselves|were cut .+): of (.+)\.",
    "raw": r"The rates are raw: they hold the detector's false alarms and miss what it misses\.",
}
SURE = (  # kinds of sentence that random studies seldom bring about
    (Plan(1, Estimator.LABEL_SHIFT, (0.02, 0.3, 0.6), (30, 30)), {"leader", "pairs", "languages", "correction"}),
    (Plan(2, Estimator.LABEL_SHIFT, (0.1, 0.3, 0.31), (30, 30)), {"leader", "first"}),
    (Plan(2, Estimator.LABEL_SHIFT, (0.0, 0.0, 0.1), (30, 30)), {"overall", "correction"}),  # rates cut at 0
    (Plan(3, Estimator.LABEL_SHIFT, (0.3, 0.6), (30, 30), tpr=0.4, labelled=0.5), {"contradiction", "recommendation"}),
    (Plan(4, Estimator.LABEL_SHIFT, (0.1, 0.1), (20, 20, 3)), {"nobody", "unreliable"}),
    (Plan(5, Estimator.RAW, (0.3, 0.3), (20, 20), missing=0.05, failed=0.1), {"raw", "calls", "unjudged"}),
    (Plan(6, Estimator.LABEL_SHIFT, (0.3,), (3,)), {"no mean"}),
    (Plan(8, Estimator.PPI, (0.1, 0.3), (20, 10, 20), labelled=0.5), {"overall"}),
    (Plan(9, Estimator.LABEL_SHIFT, (0.1, 0.3), (20, 20), known=1, pooled=True, missing=0.6), {"unreliable"}),
    (Plan(10, Estimator.PPI, (0.0, 0.3), (20, 10, 3), labelled=0.5, known=1), {"unreliable"}),
    (Plan(11, Estimator.EM, (0.6, 0.9), (20, 20), tpr=0.4), {"overall"}),
    (Plan(12, Estimator.LABEL_SHIFT, (0.1, 0.3, 0.6), (20, 20), gaps=((0, 0), (0, 1)), seeds=2, cut=0.3), {"pairs"}),
    (Plan(13, Estimator.LABEL_SHIFT, (0.1, 0.3), (20, 20), gaps=((0, 0), (1, 1))), {"unlike", "no mean"}),
    (Plan(15, Estimator.PPI, (0.1, 0.3), (20, 0, 3), failed=0.0, labelled=0.1), {"unreliable"}),
    (Plan(14, Estimator.PAPER, (0.02,), (150,)), {"contradiction"}),
    # Of a seed with no judged response: its confidences are not missing.
    (Plan(149700, Estimator.EM, (0, 0.1), (3, 10), 0.6, tpr=0.4, gaps=((0, 0),), seeds=2), {"unjudged"}),
    (Plan(16, Estimator.PPI, (0.1, 0.3), (20,), labelled=0.6, labelled_by=(Kind.HUMAN, Kind.MODEL)), {"overall"}),
)  # fmt: skip


@pytest.mark.parametrize(("plan", "kinds"), SURE)
def test_each_kind_of_sentence_follows_from_the_figures(plan: Plan, kinds: set[str]) -> None:
    assert kinds <= checked(plan)


@settings(max_examples=settings.default.max_examples * 3 // 2)
@given(plans())
def test_no_sentence_says_more_than_the_figures_over_random_studies(plan: Plan) -> None:
    checked(plan)


def checked(plan: Plan) -> set[str]:
    """Check every sentence of a study's page; which kinds there were."""
    with tempfile.TemporaryDirectory() as folder:
        results, rows = random_study(plan, Path(folder))
        write_study(results, Path(folder) / "page.html")
        page = Page((Path(folder) / "page.html").read_text("utf-8"))
    truth = Truth(results, rows)
    truth.rates_agree()
    sentences = [node.text for node in page.root.all("ul", "findings")[0].all("li")]
    assert sentences == list(findings(View(results)))
    assert set(leaders(View(results))) <= set(sentences)  # those of a board
    warnings = [node.text for aside in page.root.all("aside", "warnings") for node in aside.all("li")]
    kinds = [truth.holds(text) for text in (*sentences, *warnings)]
    assert {"overall", "no mean"} & set(kinds)
    truth.charts_say_something(page)
    truth.methods_tell_what_was_done(plan)
    PageTruth(results, page).holds()
    texts_hold(results)
    known = TAGS[: min(plan.known, len(plan.queries))]
    counts = [dict(Counter((row.model, row.language) for row in rows if chosen(row))) for chosen in CHOSEN]
    reasons_hold(results, *counts, known)
    methods_hold(
        results, known, plan.failed is not None, plan.pooled, [row.labelled_by for row in rows if row.labelled]
    )
    return set(kinds)


CHOSEN = (lambda row: row.judged, lambda row: row.labelled)


class Truth:
    """What a study's figures and tests imply, read from its records, and counts from its responses."""

    def __init__(self, results: StudyResults, rows: list[Row]) -> None:
        self.results, self.rows = results, rows
        self.models = [model.name for model in results.models]
        self.own = {(c.model, c.language): c.rates[0] for c in results.cells if c.coverage.planned}
        self.sound = {cell: rate for cell, rate in self.own.items() if rate.status is Reliability.OK}
        self.candidates = {model for model, _ in self.sound}
        tags = {tag for _, tag in self.sound}
        self.shared = {tag for tag in tags if all((model, tag) in self.sound for model in self.candidates)}
        self.reliable_in = {m: {tag for model, tag in self.sound if model == m} for m in self.candidates}
        self.unlike = len(set(map(frozenset, self.reliable_in.values()))) > 1
        self.ranks = {rank.model: rank for rank in results.ranks if rank.language == "*"}
        self.name = {language_name(tag): tag for tag in results.languages}

    def lower(self, first: str, second: str, tag: str | None = None) -> bool:
        """Whether the corrected test parts the two, the first being lower: over languages, or in one."""
        row = self.test(first, second, tag)
        if row is None or row.p_adjusted >= 0.05:
            return False
        return row.difference < 0 if row.first == first else row.difference > 0

    def test(self, first: str, second: str, tag: str | None = None) -> Comparison | None:
        rows = [row for row in self.results.comparisons if {row.first, row.second} == {first, second}]
        if tag is not None:
            return next((row for row in rows if row.language == tag), None)
        over = [row for row in rows if row.language == "*"]
        return over[0] if over else rows[0] if len(rows) == 1 else None

    def rates_agree(self) -> None:
        """No two reliable rates of a cell are disjoint, nor one from its labels; partial cells are in no rank."""
        for cell in self.results.cells:
            reliable = [rate for rate in cell.rates if rate.status is Reliability.OK]
            assert not any(disjoint(first, second) for first, second in combinations(reliable, 2))
            labels = self.by_labels(cell.model, cell.language)
            assert not any(labels is not None and disjoint(rate, labels) for rate in reliable)
        assert set(self.ranks) <= self.candidates
        for row in self.results.comparisons:
            if row.language != "*":
                assert {(row.first, row.language), (row.second, row.language)} <= self.sound.keys()

    def by_labels(self, model: str, tag: str) -> object | None:
        own = [row for row in self.rows if (row.model, row.language, row.labelled) == (model, tag, True)]
        if not own:
            return None
        wrong = np.array([row.wrong for row in own])
        return estimate(Tallies(wrong, np.full(len(own), 20), np.arange(len(own))), estimator="raw")

    def holds(self, text: str) -> str:
        """Check one sentence; what kind it is of."""
        for kind, pattern in KINDS.items():
            match = re.fullmatch(pattern, text, re.DOTALL)
            if match is not None:
                shared = re.search(SHARED, text)
                if shared is not None:
                    self.shared_languages(shared)
                getattr(self, "_" + kind.replace(" ", "_"))(match)
                held("study", text)
                return kind
        raise AssertionError(f"no test holds this sentence to the figures: {text}")

    def shared_languages(self, match: re.Match[str]) -> None:
        count = match[1].split()[0]
        assert (0 if count == "no" else int(count)) == len(self.shared)
        every = re.fullmatch(r"each of the (\d+) models that have any", match[2])
        if every is not None:
            assert int(every[1]) == len(self.candidates) < len(self.models)
        else:
            assert len(self.candidates) == (len(self.models) if match[2] == "every model" else 1)

    def mean(self, cells: set[tuple[str, str]]) -> float | None:
        """The plain mean of reliable rates; None where one is cut to a share, as means are of uncut ones."""
        rates = [self.sound[cell].rate or 0.0 for cell in cells]
        return sum(rates) / len(rates) if all(0 < rate < 1 for rate in rates) else None

    def _contradiction(self, match: re.Match[str]) -> None:
        for cell in match[1].split("; "):
            model, _, language = cell.partition(" in ")
            own = self.own[model, self.name[language]]
            labels = self.by_labels(model, self.name[language])
            others = next(c.rates for c in self.results.cells if (c.model, c.language) == (model, self.name[language]))
            assert own.status is Reliability.UNRELIABLE
            assert any(disjoint(own, rate) for rate in others) or (labels is not None and disjoint(own, labels))

    def _recommendation(self, match: re.Match[str]) -> None:
        sound = [r for c in self.results.cells for r in c.rates if (r.estimator, r.status) == ("ppi", "ok")]
        assert int(match[1]) == len(sound)
        assert self.results.estimator != "ppi"

    def _overall(self, match: re.Match[str]) -> None:
        inside = {(model, tag) for model in self.candidates for tag in self.shared}
        base, wrong, mean = number(match[1]), number(match[2]), number(match[3])
        assert int(match[6]) == len(inside) > 0
        assert (match[7] is not None) == (len(inside) < len(self.own))
        assert abs(wrong - base * mean / 100) <= 0.5 + base * 0.001
        assert match[4] is None or number(match[4]) <= mean <= number(match[5])
        value = self.mean(inside)
        assert value is None or close(match[3], value)

    def _no_mean(self, match: re.Match[str]) -> None:
        assert not self.sound if match[1] == "No rate is reliable" else self.sound and not self.shared

    def _unlike(self, match: re.Match[str]) -> None:
        sizes = sorted(map(len, self.reliable_in.values()))
        assert self.unlike
        assert (int(match[1]), int(match[2] or match[1]), int(match[3])) == (
            sizes[0], sizes[-1], len(self.results.languages),
        )  # fmt: skip
        assert (match[6] is None) == bool(self.shared)
        assert bool(self.ranks) == (bool(self.shared) and len(self.candidates) > 1)

    def _nobody(self, match: re.Match[str]) -> None:
        pairs = list(combinations(self.ranks, 2))
        assert int(match[2]) == len(self.ranks) > 1
        assert not any(self.lower(*pair) or self.lower(*pair[::-1]) for pair in pairs)
        if match[1] == "No test compared":
            assert not any(self.test(*pair) for pair in pairs)
        if "over languages" not in match[1] and match[1] != "No test compared":
            assert len(self.results.languages) == 1

    def _leader(self, match: re.Match[str]) -> None:
        name, others = match[1], self.ranks.keys() - {match[1]}
        assert int(match[3]) == len(self.ranks) == len(others) + 1
        assert (match[8] == "the other one") == (len(others) == 1)
        assert (match[7] == "less") == (match[2] == "least")
        for other in others:
            pair = (name, other) if match[2] == "least" else (other, name)
            row = self.test(*pair)
            assert row is not None
            assert self.lower(*pair)
            assert row.p_adjusted <= number(match[9])
        place = 1 if match[2] == "least" else len(self.ranks)
        assert (self.ranks[name].low, self.ranks[name].high) == (place, place)
        self.own_mean(name, match[6], least=match[2] == "least")

    def own_mean(self, name: str, shown: str | None, *, least: bool) -> None:
        """The mean of one model, which is of the same languages as the others' and the lowest or highest of them."""
        means = {model: self.mean({(model, tag) for tag in self.shared}) for model in self.ranks}
        value = means[name]
        if None not in means.values() and value is not None:
            assert value == pytest.approx((min if least else max)(each for each in means.values() if each is not None))
        if shown is not None:
            assert not self.unlike
            assert value is None or close(shown, value)

    def _first(self, match: re.Match[str]) -> None:
        name, least = match[1], match[2] == "lowest"
        self.own_mean(name, match[5], least=least)
        place = min(r.rank for r in self.ranks.values()) if least else max(r.rank for r in self.ranks.values())
        assert [model for model, rank in self.ranks.items() if rank.rank == place] == [name]
        rivals = {
            other
            for other, rank in self.ranks.items()
            if other != name
            and (not self.lower(*((name, other) if least else (other, name))) or rank.low <= place <= rank.high)
        }
        assert set(re.findall(r"m\d", match[6])) == rivals

    def _pairs(self, match: re.Match[str]) -> None:
        if match[1]:
            rows = [row for row in self.results.comparisons if row.language != "*"]
            true = {
                (*pair, f" in {language_name(row.language)}")
                for row in rows
                for pair in ((row.first, row.second), (row.second, row.first))
                if self.lower(*pair, row.language)
            }
            every = len(rows)
        else:
            pairs = [pair for pair in combinations(self.models, 2) if self.test(*pair) is not None]
            true = {(*p, "") for pair in pairs for p in (pair, pair[::-1]) if self.lower(*p)}
            every = len(pairs)
        assert (int(match[2]), int(match[3])) == (len(true), every)
        named = set(re.findall(r"(m\d) less than (m\d)((?: in \w+)?)", match[4] or ""))
        assert named == (true if len(true) <= 6 else set())

    def _languages(self, match: re.Match[str]) -> None:
        means = {tag: self.mean({(model, tag) for model in self.candidates}) for tag in self.shared}
        for shown, language, best in ((match[3], match[4], min), (match[5], match[6], max)):
            value = means[self.name[language]]
            assert value is None or close(shown, value)
            if None not in means.values():
                assert value == pytest.approx(best(each for each in means.values() if each is not None))
        assert (match[1] is None) == (len(self.shared) == len(self.results.languages))

    def _correction(self, match: re.Match[str]) -> None:
        raw = {(c.model, c.language): r for c in self.results.cells for r in c.rates if r.estimator == "raw"}
        values = [(raw[cell].rate or 0.0, rate.rate or 0.0) for cell, rate in self.sound.items()]
        assert int(match[3]) == len(values)
        raw_mean, corrected = (sum(each) / len(each) for each in zip(*values, strict=True))
        overall = self.results.overall
        assert close(match[1], raw_mean)
        assert close(match[2], (overall.mean or 0.0) if overall.cells == len(values) else corrected), "as said above"

    def _unreliable(self, match: re.Match[str]) -> None:
        assert (int(match[1]), int(match[2])) == (len(self.own) - len(self.sound), len(self.own))

    def _calls(self, match: re.Match[str]) -> None:
        planned = sum(cell.coverage.planned for cell in self.results.cells)
        assert (int(match[1]), int(match[2])) == (planned - len(self.rows), planned)

    def _unjudged(self, match: re.Match[str]) -> None:
        assert (int(match[1]), int(match[2])) == (sum(not row.judged for row in self.rows), len(self.rows))

    def _odd(self, match: re.Match[str]) -> None:
        share = {
            "decline to answer": lambda quality: quality.refused,
            "repeat themselves": lambda quality: quality.repetitive,
            "were cut at the token limit": lambda quality: quality.truncated,
        }.get(match[1], lambda quality: None if quality.right_language is None else 1 - quality.right_language)
        shares = {
            (cell.model, cell.language): value
            for cell in self.results.cells
            if cell.coverage.answered and (value := share(cell.quality)) is not None and value > 0.1
        }
        named = re.findall(r"(m\d) \((?:(\d) languages, most in )?(\w+): (\d+)%\)", match[2])
        assert {model for model, *_ in named} == {model for model, _ in shares}
        for model, languages, language, most in named:
            own = {tag: value for (name, tag), value in shares.items() if name == model}
            assert len(own) == int(languages or 1)
            assert f"{max(own.values()):.0%}" == f"{own[self.name[language]]:.0%}" == f"{most}%"

    def _raw(self, _: re.Match[str]) -> None:
        assert self.results.estimator == "raw"

    def methods_tell_what_was_done(self, plan: Plan) -> None:
        """What is told and cited was done, and what was done is told; counts are those of the responses."""
        text = " ".join(self.results.methods)
        cited = [reference.text for reference in self.results.references]
        used = {rate.estimator.value for cell in self.results.cells for rate in cell.rates}
        assert ("prediction-powered" in text) == any("Angelopoulos" in name for name in cited) == ("ppi" in used)
        assert any("Saerens" in name for name in cited) == ("em" in used)
        assert any("Rogan" in name for name in cited) == ("label-shift" in used)
        assert ("Holm" in text) == any("Holm" in name for name in cited) == bool(self.results.comparisons)
        assert ("interval of a rank" in text) == any("Mogstad" in name for name in cited) == bool(self.results.ranks)
        assert any("Islam" in name for name in cited) == ("paper" in used or "Figure" in text or "replicates" in text)
        assert len({match.group() for match in citations(text)}) == len(self.results.references)
        planned, judged = (
            sum(cell.coverage.planned for cell in self.results.cells),
            sum(row.judged for row in self.rows),
        )
        counts = f"Of {planned} planned responses, {len(self.rows)} exist and {judged} were judged."
        if plan.failed is None:
            counts = f"The responses were given, not made by this run: {len(self.rows)}, of which {judged} were judged."
        assert counts in text
        labelled = sum(row.labelled for row in self.rows)
        assert (f"{labelled} judged response" in text) == ("ppi" in used)
        assert self.results.signature in text

    def charts_say_something(self, page: Page) -> None:
        """No chart has a single row, but where that holds several figures."""
        charts = [node for node in page.root.all("table", "strips") if len(node.all("tbody")[0].all("tr")) < 2]
        single = len(self.models) == len(self.results.languages) == 1
        for chart in charts:  # a single row is a chart only where it holds several figures
            assert chart.all("caption")[0].text.startswith("Mean of each estimator") or (
                "stacked" in chart.classes and single
            )


def citations(text: str) -> list[re.Match[str]]:
    return list(re.finditer(r"[A-Z]\w+(?: et al\.| and [A-Z]\w+)?, (?:19|20)\d\d[ab]?(?=[;)])", text))


def disjoint(first: Rate, second: Rate | object) -> bool:
    ends = first.low, first.high, second.low, second.high  # type: ignore[attr-defined]
    return None not in ends and (ends[1] < ends[2] or ends[3] < ends[0])

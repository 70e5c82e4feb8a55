"""Who leads a bench: every sentence follows from the tests below it, whatever the results."""

from __future__ import annotations

import csv
import re
from io import StringIO
from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from bench_made import bench_of
from bench_random import Plan, plans, random_bench
from hypothesis import example, given, settings
from sentences import held

from veriglot.bench.leaderboard import LESS_IS_BETTER
from veriglot.bench.results import BenchComparison, BenchStanding
from veriglot.report.bench import bench_document
from veriglot.report.bench_findings import findings
from veriglot.report.bench_tables import View

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.bench.results import BenchResults

    Judged = dict[tuple[str, str], set[int]]

LEAD = re.compile(
    r"(s\d) leads by (\w+), ([−.\d]+)(?: over (\d) data sets)?: better than (s\d|each of the (\d) others)"
    r" \(corrected p at most (0\.\d{3})\)(?:, though (.+?))?$"
)
SHARED = re.compile(
    r"((?:s\d \([−.\d]+\)(?:, | and )?)+) share the first ranks by (\w+): the tests do not tell them apart$"
)
ALONE = re.compile(
    r"(s\d) has the best (\w+), ([−.\d]+)(?: over \d data sets)?, but the tests do not tell it apart from (.+)$"
)
NONE = re.compile(
    r"no system leads by \w+: the tests do not tell the (\d) systems apart(?: \(on (\d+) texts, and under 30 .*\))?$"
)
ONLY = re.compile(r"only (s\d) (has figures that count|has a rank), (\w+) ([−.\d]+)(?: over (\d) data sets)?$")
NOBODY = {
    "no ranking: every system left out rows that another judged",
    "no system leads: one was trained on all data with figures (d0)",
}
DIFFERENCES = re.compile(
    r"(\d+) of (\d+) differences? from (s\d) beyond chance \(corrected p below 0.05\)(?:: (.+))?\.$"
)


def test_no_sentence_says_more_than_the_figures_over_random_results() -> None:
    seen: set[str] = set()

    @settings(deadline=None)
    @given(plans())
    def holds(plan: Plan) -> None:
        seen.update(checked(*random_bench(plan)))

    for plan, _ in SURE:
        holds = example(plan)(holds)
    holds()
    assert seen >= {"lead", "none", "only", "differences"}  # each kind came up, so that none was checked in vain


SURE = (  # kinds of sentence that random results seldom bring about
    (Plan(1, "mcc", (3.0, 3.0, 0.0), (0, 0, 0), (40,), (-1, -1, -1)), "shared"),
    (Plan(2, "mcc", (3.0, 0.5, 3.0), (0, 0, 0.4), (40, 40), (-1, -1, -1)), "lead"),
    (Plan(3, "fpr", (0.0, 3.0), (0, 0), (40, 40), (-1, -1)), "lead"),
    (Plan(4, "mcc", (3.0, 0.0), (0.4, 0.4), (40,), (-1, -1)), "nobody"),
    (Plan(5, "mcc", (3.0, 0.0), (0, 0.4), (40,), (-1, -1)), "only"),
    (Plan(6, "auroc", (0.0, 3.0), (0, 0), (12,), (0, -1)), "nobody"),
    (Plan(0, "mcc", (0.0, 0.0), (0, 0), (3,), (-1, -1)), "none"),
)


@pytest.mark.parametrize(("plan", "kind"), SURE)
def test_each_kind_of_sentence_follows_from_the_figures(plan: Plan, kind: str) -> None:
    assert kind in checked(*random_bench(plan))


def checked(results: BenchResults, judged: Judged) -> Iterator[str]:
    """Check every sentence against figures, pairs and comparisons; yields what kind each is of."""
    truth = Truth(results, judged)
    truth.ranks_follow()
    kinds: dict[str, str] = {}
    for text in findings(View(results)):
        if match := re.fullmatch(r"Responses: (.+)\.", text, re.DOTALL):
            kinds["headline"] = text
            yield truth.headline(match[1])
        elif match := DIFFERENCES.fullmatch(text):
            truth.differences(match)
            kinds["differences"] = text
            yield "differences"
        elif match := re.fullmatch(r"Without labels, and so without a ranking: (.+)\.", text):
            assert match[1].split(", ") == [data.name for data in results.data if not data.labelled]
            kinds["bare"] = text
        else:
            match = re.fullmatch(r"Not judged, being unavailable here: (.+)\.", text)
            assert match is not None, text
            assert match[1].split(", ") == [system.name for system in results.systems if system.unavailable]
            kinds["gone"] = text
        held("bench", text)
    assert ("bare" in kinds) == any(not data.labelled for data in results.data)
    assert ("gone" in kinds) == any(system.unavailable for system in results.systems)
    assert len(kinds) == len(findings(View(results)))


class Truth:
    """What the figures and tests of a bench imply, worked out from the records alone."""

    def __init__(self, results: BenchResults, judged: Judged) -> None:
        self.results = results
        self.sign = -1 if results.rank_by in LESS_IS_BETTER else 1
        self.fair = [data.name for data in results.data if data.labelled and not data.seen]
        figures = {(f.system, f.data, f.language): f for f in results.figures}
        names = [system.name for system in results.systems if not system.unavailable]
        values = {
            name: [f.value for data in self.fair if (f := figures[name, data, "mean"]).value is not None]
            for name in names
        }
        self.mean = {name: sum(own) / len(own) for name, own in values.items() if own}
        self.sets = {name: len(own) for name, own in values.items()}
        shared = {data: set.union(*(judged[name, data] for name in names)) for data in self.fair}
        valued = {
            (data, tag): {name for name in names if figures[name, data, tag].value is not None}
            for data in self.fair
            for tag in ("de", "tr")
        }
        self.partial = {
            name
            for name in self.mean
            if any(judged[name, data] < shared[data] for data in self.fair)
            or any(who and name not in who for who in valued.values())
        }
        self.complete = set(self.mean) - self.partial
        self.better = {
            (self.better_of(pair), self.worse_of(pair)): pair
            for pair in results.pairs
            if pair.adjusted is not None and pair.adjusted < 0.05 and pair.clusters >= 30 and pair.difference
        }

    def better_of(self, row: BenchComparison) -> str:
        assert row.difference
        return row.system if self.sign * row.difference > 0 else row.baseline

    def worse_of(self, row: BenchComparison) -> str:
        return row.baseline if self.better_of(row) == row.system else row.system

    def loses(self, name: str) -> bool:
        return any((other, name) in self.better for other in self.complete)

    def ranks_follow(self) -> None:
        """Ranks are bounded by tests, in the order of the measure, and nobody who left rows out has one."""
        board = View(self.results).board("response")
        assert {row.system.name for row in board.ranked} <= self.complete
        order = [self.sign * self.mean[row.system.name] for row in board.ranked]
        assert order == sorted(order, reverse=True)
        named = [row.system.name for row in board.rows if row.mean is not None]
        assert named[: len(board.ranked)] == [row.system.name for row in board.ranked]
        for row in board.ranked:
            name, others = row.system.name, {each.system.name for each in board.ranked}
            assert row.standing is not None
            assert row.mean == pytest.approx(self.mean[name])
            assert row.standing.value == pytest.approx(row.mean)
            assert row.standing.best == 1 + sum((other, name) in self.better for other in others)
            assert row.standing.worst == len(others) - sum((name, other) in self.better for other in others)
        for first, second in combinations([row.system.name for row in board.ranked], 2):
            assert (second, first) not in self.better  # no test contradicts the order
        for pair in self.results.pairs:  # the tests are of the figures that the board shows
            if {pair.system, pair.baseline} <= {row.system.name for row in board.ranked}:
                assert pair.difference == pytest.approx(self.mean[pair.system] - self.mean[pair.baseline])

    def headline(self, text: str) -> str:
        if text.startswith("no system has a figure of "):
            assert not any(f.value is not None for f in self.results.figures if f.language == "mean")
            return "nothing"
        if text in NOBODY:
            assert not self.mean or self.partial == set(self.mean)
            return "nobody"
        text, *more = text.split("; ")
        behind = {part.split()[0]: part for part in more if " ranks " in part}
        apart = [part for part in more if part.startswith("without a rank, as rows were left out: ")]
        assert len(behind) + len(apart) == len(more)
        assert set(re.findall(r"s\d", "".join(apart))) == (self.partial if len(self.mean) > 1 else set())
        for name, part in behind.items():
            self.behind(name, part)
        if match := LEAD.fullmatch(text):
            return self.lead(match)
        if match := SHARED.fullmatch(text):
            return self.shared(match)
        if match := ALONE.fullmatch(text):
            assert not self.loses(match[1])
            self.value(match[1], match[3])
            best = max(self.sign * self.mean[name] for name in self.complete)
            assert self.sign * self.mean[match[1]] == pytest.approx(best)
            for other in re.findall(r"s\d", match[4]):
                assert other in self.complete
                assert (match[1], other) not in self.better
            return "alone"
        if match := ONLY.fullmatch(text):
            assert match[1] in self.complete or len(self.mean) == 1
            assert len(self.complete) <= 1
            self.value(match[1], match[4])
            return "only"
        match = NONE.fullmatch(text)
        assert match is not None, text
        assert int(match[1]) == len(self.complete)
        assert not any({one, other} <= self.complete for one, other in self.better)
        return "none"

    def lead(self, match: re.Match[str]) -> str:
        name, others = match[1], self.complete - {match[1]}
        assert match[2] == self.results.rank_by
        assert name in self.complete
        assert all((name, other) in self.better for other in others)
        assert match[5] in others if match[6] is None else int(match[6]) == len(others) > 1
        worst = max(self.better[name, other].adjusted or 0.0 for other in others)
        assert worst <= float(match[7]) + 0.0005
        self.value(name, match[3])
        against = {
            (self.better_of(row), row.data)
            for row in self.sure()
            if name in {row.system, row.baseline} and self.better_of(row) != name
        }
        assert set(re.findall(r"(s\d) is ahead of it on (d\d)", match[8] or "")) == against  # none is left unsaid
        return "lead"

    def shared(self, match: re.Match[str]) -> str:
        values = dict(re.findall(r"(s\d) \(([−.\d]+)\)", match[1]))
        assert len(values) > 1
        assert values.keys() == {name for name in self.complete if not self.loses(name)}
        for name, value in values.items():
            self.value(name, value)
        assert not any((one, other) in self.better for one in values for other in values)
        return "shared"

    def behind(self, name: str, part: str) -> None:
        match = re.fullmatch(r"s\d ranks (\d)(?:–(\d))? of (\d)", part)
        assert match is not None
        assert self.loses(name)
        assert int(match[1]) == 1 + sum((other, name) in self.better for other in self.complete)
        assert int(match[3]) == len(self.complete)

    def value(self, name: str, shown: str) -> None:
        assert float(shown.replace("−", "-")) == pytest.approx(self.mean[name], abs=0.000501)

    def sure(self) -> list[BenchComparison]:
        """Comparisons with a winner, on data that neither was trained on."""
        seen = {data.name: data.seen for data in self.results.data}
        return [
            row
            for row in self.results.comparisons
            if row.adjusted is not None and row.adjusted < 0.05 and row.clusters >= 30 and row.difference
            and not {row.system, row.baseline} & set(seen[row.data])
        ]  # fmt: skip

    def differences(self, match: re.Match[str]) -> None:
        sure = self.sure()
        assert int(match[1]) == len(sure) <= int(match[2])
        won = re.findall(r"(s\d) is better than (s\d) on (d\d) \(responses\)", match[4] or "")
        assert len(won) == min(len(sure), 6)
        more = re.search(r"; (\d+) more in the table", match[4] or "")
        assert (int(more[1]) if more else 0) == len(sure) - len(won)
        assert set(won) <= {(self.better_of(row), self.worse_of(row), row.data) for row in sure}


def ranked(values: dict[str, float], parted: set[tuple[str, str]], left_out: str = "") -> BenchResults:
    """A bench by hand: values, and which pairs the tests part; one system may have left something out."""
    pairs = tuple(
        BenchComparison("mean", "response", "mcc", "tuned", one, two, values[one] - values[two], 0.001,
                        0.004 if (one, two) in parted else 0.6, 60, 60)
        for one, two in combinations(values, 2)
    )  # fmt: skip
    names = [name for name in values if name != left_out]
    ranks = tuple(
        BenchStanding("response", "mcc", "tuned", name, values[name], 1,
                      best=1 + sum((other, name) in parted for other in names),
                      worst=len(names) - sum((name, other) in parted for other in names))
        for name in names
    )  # fmt: skip
    apart = tuple(
        BenchStanding("response", "mcc", "tuned", name, values[name], 1, "20 of 60 responses of sums not judged")
        for name in values
        if name == left_out
    )
    return bench_of({name: (value, 0) for name, value in values.items()}, pairs=pairs, standings=ranks + apart)


@pytest.mark.parametrize(
    ("values", "parted", "sentence"),
    [
        (
            {"a": 0.61, "b": 0.5, "c": 0.4}, {("a", "b"), ("a", "c")},
            "a leads by mcc, 0.610: better than each of the 2 others (corrected p at most 0.004); c ranks 2–3 of 3.",
        ),
        ({"a": 0.61, "b": 0.6}, set(), "no system leads by mcc: the tests do not tell the 2 systems apart."),
        (
            {"a": 0.61, "b": 0.6, "c": 0.4}, {("a", "c"), ("b", "c")},
            "a (0.610) and b (0.600) share the first ranks by mcc: the tests do not tell them apart; c ranks 3 of 3.",
        ),
        (
            {"a": 0.61, "b": 0.6, "c": 0.5, "d": 0.1}, {("a", "c"), ("a", "d"), ("c", "b")},
            "a has the best mcc, 0.610, but the tests do not tell it apart from b; d ranks 2–4 of 4.",
        ),
    ],
)  # fmt: skip
def test_the_headline_says_who_leads(values: dict[str, float], parted: set[tuple[str, str]], sentence: str) -> None:
    assert findings(View(ranked(values, parted)))[0] == f"Responses: {sentence}"


def test_who_left_rows_out_is_compared_apart_and_leads_nobody() -> None:
    results = ranked({"easy": 0.9, "a": 0.6, "b": 0.3}, {("easy", "a"), ("easy", "b"), ("a", "b")}, left_out="easy")
    board = View(results).board("response")
    assert [(row.system.name, row.rank) for row in board.rows] == [("a", "1"), ("b", "2"), ("easy", "")]
    lead = "a leads by mcc, 0.600: better than b (corrected p at most 0.004); b ranks 2 of 2"
    assert findings(View(results))[0] == f"Responses: {lead}; without a rank, as rows were left out: easy."
    page = bench_document(results, "markdown")
    assert "| easy | 20 of 60 responses of sums not judged | a | 0.300 |" in page
    assert r"\textbf{0.900}" not in bench_document(results, "latex")
    assert r"\textbf{0.600}" in bench_document(results, "latex")


def test_a_comparison_that_contradicts_the_lead_is_told() -> None:
    row = BenchComparison("sums", "response", "mcc", "tuned", "b", "a", 0.06, 0.004, 0.01, 60, 60)
    results = ranked({"a": 0.61, "b": 0.5}, {("a", "b")})
    results = bench_of({"a": (0.61, 0), "b": (0.5, 0)}, pairs=results.pairs, standings=results.standings,
                       comparisons=(row,), baseline="a")  # fmt: skip
    first, second = findings(View(results))[:2]
    assert first.endswith("better than b (corrected p at most 0.004), though b is ahead of it on sums.")
    assert second == (
        "1 of 1 difference from a beyond chance (corrected p below 0.05): b is better than a on sums (responses)."
    )


def test_nobody_leads_where_a_system_was_trained_on_all_data() -> None:
    results = bench_of({"a": (0.61, 0), "b": (0.9, 0)}, seen=("b",))
    assert "no system leads: one was trained on all data with figures (sums)" in findings(View(results))[0]
    assert _ranks(results) == {"a": "", "b": ""}


def test_results_without_tests_of_all_pairs_rank_nobody() -> None:
    older = bench_of({"a": (0.9, 4), "b": (0.7, 1)})
    assert "no ranking: these results have no tests of all pairs. Rerun the bench" in findings(View(older))[0]
    assert _ranks(older) == {"a": "", "b": ""}


def test_those_without_a_figure_have_no_rank() -> None:
    nothing = bench_of({"a": (None, 0), "b": (None, 0), "c": (None, 0)})
    assert _ranks(nothing) == {"a": "", "b": "", "c": ""}
    assert findings(View(bench_of({"a": (0.61, 5), "b": (None, 0)})))[0] == (
        "Responses: only a has figures that count, mcc 0.610."
    )


def _ranks(results: BenchResults) -> dict[str, str]:
    rows = csv.DictReader(StringIO(bench_document(results, "csv", table="leaderboard_response")))
    return {row["system"]: row["best_rank"] for row in rows}


def test_more_texts_are_no_remedy_where_scores_are_all_alike() -> None:
    why = "no threshold could be tuned: mcc is undefined at every threshold (12 scored items)"
    alike = bench_of({"a": (None, 0), "b": (None, 0)}, reason=why)
    assert findings(View(alike))[0] == f"Responses: no system has a figure of mcc: {why}."

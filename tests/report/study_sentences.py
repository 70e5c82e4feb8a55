# ruff: noqa: E501  # patterns are whole sentences
"""What a study's page says outside of its findings, and its tables, terminal and reasons: held to the records."""

from __future__ import annotations

import io
import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from rich.console import Console
from sentences import held
from study_page import data_of

from veriglot.records import Rate, Reliability
from veriglot.records.languages import language_name
from veriglot.report.study import render_study, study_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from study_page import Node, Page

    from veriglot.records import Kind
    from veriglot.study.results import Cell, StudyResults

EVERY = r"every model|each of the \d+ models that have any|the only model that has any"
SHARED = rf"(\d+ languages?|no language) with a reliable rate of ({EVERY})"
NAMES = {"all languages": "*"}


def number(text: str) -> float:
    return float(text.strip("%<>").replace(",", "").replace("−", "-"))


def close(shown: str, value: float) -> bool:
    """Whether a share is what is printed of it, to a tenth of a percent."""
    return abs(number(shown) - 100 * value) <= (0.1 if shown[0] in "<>" else 0.0501)


def worded(reason: str) -> str:
    """A reason without its figures, as those that differ in figures alone are told once."""
    return re.sub(r"[\d.,–]+", "#", reason.rstrip(".")).casefold()


def is_reliable(rate: Rate | None) -> bool:
    return rate is not None and rate.status is Reliability.OK and rate.rate is not None


def plain_mean(rates: Iterable[Rate]) -> float | None:
    """None where there are none, or one is cut to a share: means are of uncut rates."""
    values = [rate.rate or 0.0 for rate in rates]
    return sum(values) / len(values) if values and all(0 < value < 1 for value in values) else None


class PageTruth:
    """What the records of a study imply for its page."""

    def __init__(self, results: StudyResults, page: Page) -> None:
        self.results, self.page = results, page
        self.cells = [cell for cell in results.cells if cell.coverage.planned]
        self.own = {
            (c.model, c.language): rate for c in self.cells for rate in c.rates if rate.estimator == results.estimator
        }
        self.sound = {cell: rate for cell, rate in self.own.items() if is_reliable(rate)}
        self.models, self.tags = [model.name for model in results.models], list(results.languages)
        self.tag_of = {language_name(tag): tag for tag in self.tags}
        main = page.root.all("main")[0]
        nodes = [n for tag in ("p", "h3", "caption", "li", "dd", "summary", "title", "span") for n in main.all(tag)]
        told = [n.attrs.get(name) or "" for n in main.all() for name in ("title", "aria-label")]
        self.text = "\n".join([*(" ".join(n.text.split()) for n in nodes), *told, *self.lines()])

    def lines(self) -> list[str]:
        """What is shown of the cell at hand."""
        return [line for facts in data_of(self.page).get("cells", {}).values() for line in facts["lines"]]

    def says(self, pattern: str, when: object = None) -> re.Match[str] | None:
        """Where the page says it; it says so just `when` it is so, where that is given."""
        match = re.search(pattern, self.text)
        assert when is None or bool(match) == bool(when), pattern
        if match is not None:
            held("study page", match[0])
        return match

    def section(self, name: str) -> Node | None:
        return next((node for node in self.page.root.all("section") if node.attrs.get("id") == name), None)

    def holds(self) -> None:
        """Check all of it."""
        for check in (
            self.head, self.heat, self.cell_by_cell, self.unreliable, self.ranks, self.matrix, self.differences,
            self.means_and_estimates,
            self.correction, self.points, self.types, self.coverage, self.facts, self.examples, self.methods,
        ):  # fmt: skip
            check()

    def head(self) -> None:
        judged, planned = judged_of(self.results.cells)
        shown = {n.all("dt")[0].text: n.all("dd")[0].text for n in self.page.root.all("dl", "tiles")[0].all("div")}
        mean = self.results.overall.mean
        (tile,) = (text for name, text in shown.items() if name.startswith("mean rate"))
        assert tile == "no mean" if mean is None else close(tile, mean)
        assert shown["models × languages"] == f"{len(self.models)} × {len(self.tags)}"
        assert number(shown["responses judged"]) == judged
        share = shown["of the planned responses judged"]
        assert (
            abs(number(share) - 100 * judged / planned) <= (1 if share[0] in "<>" else 0.501)
            if planned
            else share == "–"
        )
        held("study page", "of the planned responses judged")
        assert shown["rates unreliable"] == f"{len(self.own) - len(self.sound)} of {len(self.own)}"
        subtitle = self.page.root.all("p", "subtitle")[0].text
        match = re.match(r"Hallucination rates of (\d+) models? in (\d+) languages?", subtitle)
        assert match is not None
        assert (int(match[1]), int(match[2])) == (len(self.models), len(self.tags))
        held("study page", subtitle)

    def heat(self) -> None:
        """The order of the table, its means, what they leave out, and whether coverage is shown."""
        whole = all(rate.coverage >= 1 for cell in self.cells for rate in cell.rates)
        self.says(r"Every response was judged\.", whole)
        self.says(r"The bar under it is the coverage: which share of the responses was judged\.", not whole)
        self.says(r"Share of \w+ that the evidence does not support, with its .* Rows and columns go from the lowest mean to the highest\.")  # fmt: skip
        table = self.page.root.all("table", "heat")[0]
        models = [node.text for node in table.all("thead")[0].all("th")][1:-1]
        rows = table.all("tbody")[0].all("tr")
        tags = [row.all("th")[0].text.rpartition(" ")[2] for row in rows]
        groups = ([{cell for cell in self.own if cell[0] == name} for name in models],
                  [{cell for cell in self.own if cell[1] == tag} for tag in tags])  # fmt: skip
        shown = (table.all("tfoot")[0].all("td")[:-1], [row.all("td", "mean")[0] for row in rows])
        for cells, nodes in zip(groups, shown, strict=True):
            sound = [[self.sound[cell] for cell in group if cell in self.sound] for group in cells]
            empty = [not rates for rates in sound]
            assert empty == sorted(empty)
            means = [plain_mean(rates) for rates in sound]
            if None not in (known := [mean for mean, rates in zip(means, sound, strict=True) if rates]):
                assert all(first <= second + 1e-9 for first, second in pairwise(known))  # type: ignore[operator]
            for group, rates, mean, node in zip(cells, sound, means, nodes, strict=True):
                assert bool(node.all("b")) == bool(rates)
                if mean is not None:
                    assert close(node.all("b")[0].text, mean)
                left = node.all("span", "left-out")
                assert bool(left) == bool(rates and len(rates) < len(group))
                for span in left:
                    assert span.text == f"{len(group) - len(rates)} left out"
                    held("study page", f"{span.attrs['title']} {span.text}")
        if match := self.says(rf"the mean of all is over the {SHARED}"):
            self.shared(match)
        self.says("none is reliable", any(cell.mean is None for cell in self.cells) and any(cell.sd is not None for cell in self.cells))  # fmt: skip

    def cell_by_cell(self) -> None:
        """Every cell of every table of rates shows its own rate, interval and coverage, or mean and deviation."""
        cells = {(cell.model, cell.language): cell for cell in self.cells}
        for table in self.page.root.all("table", "heat"):
            estimator = table.all("caption")[0].text.removeprefix("Rates by ").partition(":")[0]
            models = [node.text for node in table.all("thead")[0].all("th")][1:]
            for row in table.all("tbody")[0].all("tr"):
                tag = row.all("th")[0].text.rpartition(" ")[2]
                for model, node in zip(models, row.all("td", "cell"), strict=False):
                    cell = cells.get((model, tag))
                    rate = next((rate for rate in cell.rates if rate.estimator == estimator), None) if cell else None
                    bold, ends = [n.text for n in node.all("b")], [n.text for n in node.all("span", "interval")]
                    if estimator.startswith("Mean and standard deviation"):
                        assert bool(bold) == (cell is not None and cell.mean is not None)
                        if bold and cell is not None:
                            assert close(bold[0], cell.mean or 0.0)
                            assert ends == ["one estimate"] if cell.sd is None else close(ends[0][2:] + "%", cell.sd)
                            sound = f"{sum(map(is_reliable, cell.replicates))} of {len(cell.replicates)}"
                            assert node.all("span", "left-out")[0].text == sound
                        continue
                    assert bool(bold) == is_reliable(rate)
                    if rate is None:
                        continue
                    if bold:
                        assert close(bold[0], rate.rate or 0.0)
                        shown, known = ends[0].split("–"), (rate.low, rate.high)
                        assert ends[0] == "no interval" or all(
                            abs(float(text) - 100 * (end or 0.0)) < 0.0501
                            for text, end in zip(shown, known, strict=True)
                        )
                    for bar in node.all("span", "coverage"):
                        share = bar.text.rpartition(" ")[2]
                        assert abs(number(share) - 100 * rate.coverage) <= (1 if share[0] in "<>" else 0.501)

    def shared(self, match: re.Match[str]) -> None:
        candidates = {model for model, _ in self.sound}
        count = sum(all((model, tag) in self.sound for model in candidates) for tag in self.tags if candidates)
        assert match[1].split()[0] == (str(count) if count else "no")
        every = re.fullmatch(r"each of the (\d+) models that have any", match[2])
        if every is not None:
            assert int(every[1]) == len(candidates) < len(self.models)
        else:
            assert len(candidates) == (len(self.models) if match[2] == "every model" else 1)

    def unreliable(self) -> None:
        bad = len(self.own) - len(self.sound)
        if match := self.says(r"All (\d+) rates passed the checks of reliability\.", not bad):
            assert int(match[1]) == len(self.own)
        if match := self.says(r"Unreliable: (\d+) of (\d+) rates", bad):
            assert (int(match[1]), int(match[2])) == (bad, len(self.own))
        self.says(
            r"Not to be read as rates, and in no mean\. A number in parentheses is what the estimator gave\.", bad
        )
        listed = []
        for node in self.page.root.all("div", "reason"):
            reason, places = (part.text for part in node.all("p"))
            for part in places.split("; "):
                model, _, where = part.partition(" in ")
                for name, shown in re.findall(r"(.+?)(?: \(([\d.<>]+%)\?\))?(?:, |$)", where):
                    cell = model, self.tag_of[name]
                    listed.append(cell)
                    rate = self.own[cell]
                    assert bool(shown) == (rate.rate is not None)
                    assert not shown or close(shown, rate.rate or 0.0)
                    assert worded(reason.removeprefix("unreliable ")) == worded(rate.reason or "")
        assert sorted(listed) == sorted(self.own.keys() - self.sound.keys())
        assert len(listed) == bad

    def ranks(self) -> None:
        over = [rank for rank in self.results.ranks if rank.language == "*"]
        settled = any(rank.low > 1 or rank.high < len(over) for rank in over)
        several = len(self.models) > 1
        self.says(r"Rank 1 hallucinates least\. A bar holds every rank .* two models is open\.", several and settled)
        match = self.says(rf"Rank over (?:all languages|the {SHARED} \(of (\d+)\)): the data settle none, so any of the models may have any rank\.", several and over and not settled)  # fmt: skip
        if match is not None and match[1]:
            self.shared(match)
        drawn = {rank.model: rank for rank in over}
        for table in self.page.root.all("table", "ranks"):
            held("study page", table.all("caption")[0].text)
            for row in table.all("tbody")[0].all("tr"):
                rank, reach = drawn[row.all("th")[0].text], [td.text for td in row.all("td", "figure")]
                ends = str(rank.low) if rank.low == rank.high else f"{rank.low}–{rank.high}"
                assert reach == [str(rank.rank), ends]
                step = 100 / max(len(drawn) - 1, 1)
                (bar,), (dot,) = row.all("line", "span"), row.all("circle", "dot")
                at = [float((text or "").strip("%")) for text in (bar.attrs["x1"], bar.attrs["x2"], dot.attrs["cx"])]
                assert at == pytest.approx([step * (k - 1) for k in (rank.low, rank.high, rank.rank)], abs=0.01)
        single = {(rank.model, rank.language): rank for rank in self.results.ranks if rank.language != "*"}
        for names, rows in self.grids("Rank in each language, with the ranks that the data do not exclude"):
            for row in rows:
                tag = row[0].rpartition(" ")[2]
                for name, text in zip(names[1:], row[1:], strict=True):
                    known = single.get((name, tag))
                    reach_of = known and dict.fromkeys((known.low, known.high))
                    assert text == (f"{known.rank} [{'–'.join(map(str, reach_of or ()))}]" if known else "–")

    def matrix(self) -> None:
        """Differences: which are marked, their size and sign."""
        rows = {(row.first, row.second): row for row in self.results.comparisons if row.language == "*"}
        within = len(self.results.comparisons) - len(rows)
        several = len(self.models) > 1
        self.says(r"Row minus column, in percentage points: below zero, the model of the row hallucinates less\. Marked are differences with an adjusted p below 0\.05 \([^\n]+\)\.", several and self.results.comparisons)  # fmt: skip
        match = self.says(r"Those within languages \(([\d,]+)\) can be saved as CSV above\.", several and within > 60)
        assert match is None or number(match[1]) == within
        for table in self.page.root.all("table", "matrix"):
            names = [node.text for node in table.all("thead")[0].all("th")][1:]
            for first, line in zip(names, table.all("tbody")[0].all("tr"), strict=True):
                for second, node in zip(names, line.all("td"), strict=True):
                    row = rows.get((first, second)) or rows.get((second, first))
                    if row is None:
                        assert node.text in {"", "–"}
                        continue
                    value = row.difference if row.first == first else -row.difference
                    assert abs(number(node.all("b")[0].text.removesuffix(" clear") if node.all("b") else node.text.split()[0]) - 100 * value) < 0.0501  # fmt: skip
                    assert ("clear" in node.classes) == (row.p_adjusted < 0.05)
                    p = node.all("span", "interval")[0].text
                    assert (
                        number(p[3:]) >= row.p_adjusted if "<" in p else abs(number(p[3:]) - row.p_adjusted) <= 0.0051
                    )
                    if "clear" in node.classes:
                        assert ("less" in node.classes) == (value < 0)

    def grids(self, title: str) -> Iterator[tuple[list[str], list[list[str]]]]:
        """Heads and rows of the plain tables with that title."""
        for table in self.page.root.all("table", "plain"):
            if table.all("caption")[0].text == title:
                rows = [
                    [node.text for node in row.all() if node.tag in {"th", "td"}]
                    for row in table.all("tbody")[0].all("tr")
                ]
                yield [node.text for node in table.all("thead")[0].all("th")], rows

    def means_and_estimates(self) -> None:
        """Rows of the charts of means, and of the table of every estimate."""
        for averages, what, of in (
            (self.results.by_model, "model", "languages"), (self.results.by_language, "language", "models"),
        ):  # fmt: skip
            known = {
                (average.name if what == "model" else language_name(average.name)): average for average in averages
            }
            for table in self.page.root.all("table", "strips"):
                if table.all("caption")[0].text != f"Mean rate of each {what} over {of}":
                    continue
                for row in table.all("tbody")[0].all("tr"):
                    name = row.all("th")[0].text
                    average = known[name if what == "model" else name.rpartition(" ")[0]]
                    mean, over = (node.text for node in row.all("td", "figure"))
                    count = f"{average.cells} of {average.cells + average.unreliable}"
                    assert over == (count if average.unreliable else str(average.cells))
                    assert mean.startswith("no mean") if average.mean is None else close(mean.split()[0], average.mean)
        by_cell = {(c.model, c.language): {str(r.estimator): r for r in c.rates} for c in self.cells}
        for heads, rows in self.grids("Every estimate"):
            for model, language, *texts in rows:
                for name, text in zip(heads[2:], texts, strict=True):
                    rate = by_cell[model, language.rpartition(" ")[2]].get(name)
                    assert (text == "not estimated") == (rate is None)
                    assert ("unreliable" not in text) == (rate is None or is_reliable(rate))
                    if rate is not None and rate.rate is not None:
                        shown, *ends = re.findall(r"<?[\d.]+", text)
                        assert close(shown, rate.rate)
                        assert [float(end) for end in ends] == pytest.approx(
                            [100 * (end or 0.0) for end in (rate.low, rate.high)][: len(ends)], abs=0.0501
                        )

    def differences(self) -> None:
        """Every listed difference has its own interval, p-values, effect and queries."""
        rows = {(row.first, row.second, language_name(row.language)): row for row in self.results.comparisons}
        rows |= {
            (row.first, row.second, "all languages"): row for row in self.results.comparisons if row.language == "*"
        }
        for _, lines in self.grids("First minus second, in percentage points"):
            for first, second, where, difference, ends, p, adjusted, effect, queries in lines:
                row = rows[first, second, where]
                shown = [number(each) for each in (difference, *ends.strip("[]").split(", "))]
                assert shown == pytest.approx([100 * each for each in (row.difference, row.low, row.high)], abs=0.0501)
                for text, value in ((p, row.p), (adjusted, row.p_adjusted)):
                    assert number(text) >= value if text.startswith("<") else abs(number(text) - value) <= 0.0051
                assert effect == "–" if row.effect is None else abs(number(effect) - row.effect) < 0.0051
                assert queries == f"{row.queries:,} {'paired' if row.paired else 'unpaired'}"

    def correction(self) -> None:
        """Estimators side by side, and each rate against its marked share."""
        section = self.section("correction")
        if section is None:
            return
        own = self.results.estimator
        by_cell = {(c.model, c.language): {str(r.estimator): r for r in c.rates} for c in self.cells}
        for table in section.all("table", "strips"):
            names = [node.text for node in table.all("thead")[0].all("th")][2:-1]
            held("study page", table.all("caption")[0].text)
            for line in table.all("tbody")[0].all("tr"):
                model, shown = line.all("th")[0].text, [td.text for td in line.all("td", "figure")]
                chosen = [
                    [rates[name].rate or 0.0 for name in names]
                    for (who, _), rates in by_cell.items()
                    if who == model
                    and is_reliable(rates.get(own))
                    and all(supported(rates.get(name)) for name in names)
                ]
                assert int(shown[-1]) == len(chosen) > 0
                for text, values in zip(shown, zip(*chosen, strict=True), strict=False):
                    assert close(text, sum(values) / len(values))
        pairs = [(rates["raw"].rate, rates[own].rate, is_reliable(rates[own])) for rates in by_cell.values()
                 if own != "raw" and {"raw", own} <= rates.keys()]  # fmt: skip
        pairs = [pair for pair in pairs if None not in pair[:2]]
        drawn = len(pairs) > 2 and len({round(pair[0] or 0.0, 6) for pair in pairs}) > 1
        match = self.says(r"(\d+) rates; on the line, correction changes nothing\.(?: Hollow: (\d+) unreliable\.)?(?: (\d+) of them lie beyond an axis and are drawn at its end\.)?", drawn)  # fmt: skip
        if match is not None:
            end = max(number(node.text) for node in section.all("svg", "left-ticks")[0].all("text")) / 100
            beyond = sum(max(x or 0.0, y or 0.0) > end + 1e-12 for x, y, _ in pairs)
            counts = (len(pairs), sum(not good for *_, good in pairs), beyond)
            assert tuple(int(each or 0) for each in match.groups()) == counts
            told = self.says(r"Scatter of (\d+) rates by \S+ against the marked share\.", when=True)
            assert told is not None
            assert int(told[1]) == len(pairs)

    def points(self) -> None:
        """Rates in panels and against other things."""
        raw = self.results.estimator != "raw" and any(r.estimator == "raw" for c in self.cells for r in c.rates)
        self.says(r"A diamond is the marked share, not corrected\.", raw and len(self.own) > 1)
        length = {(cell.model, cell.language): cell.length for cell in self.cells}
        shown = {cell: rate for cell, rate in self.own.items() if rate.rate is not None}
        varied = len({round(length[cell], 6) for cell in shown}) > 1
        drawn = len(shown) if varied and len(shown) > 2 else 0
        self.says(
            r"A chart needs three rates of responses that differ in length\.", not drawn and self.results.correlations
        )
        match = self.says(r"Scatter of the rates of (\d+) cells against mean response length\.", drawn)
        assert match is None or int(match[1]) == drawn
        self.says(r"unsupported \w+ in a response against mean response length\.", drawn)
        self.says("hollow: unreliable", drawn and any(not is_reliable(rate) for rate in shown.values()))
        means = {average.name for average in self.results.by_model if average.mean is not None}
        for words, name in (
            ("billions of parameters", "parameters"),
            ("languages that its makers declare", "languages"),
        ):
            known = [model for model in self.results.models if getattr(model, name) is not None and model.name in means]
            match = self.says(rf"Scatter of the mean rates of (\d+) models against {words}\.")
            assert match is None or int(match[1]) == len(known) > 2
        for node in self.page.root.all("title"):
            match = re.match(r"([^,]+), ([^:,]+): (?:raw )?(unreliable[ ,]+)?\(?([\d.<>]+%)", node.text)
            if (
                match is not None
                and (match[1], self.tag_of.get(match[2])) in self.own
                and not re.search("raw|by compare_profile", node.text)
            ):
                rate = self.own[match[1], self.tag_of[match[2]]]
                assert close(match[4], rate.rate or 0.0)
                assert bool(match[3]) != is_reliable(rate)
                held("study page", node.text)
            elif "raw" in node.text:
                held("study page", node.text)  # one of `pairs` of `correction`, by both its rates
                self.raw_title(node.text)

    def raw_title(self, text: str) -> None:
        match = re.fullmatch(r"([^,]+), ([^:]+): raw ([\d.<>]+%), \S+ (?:unreliable[ ,]+)?\(?([\d.<>]+%).*", text)
        if match is not None:
            cell = next(c for c in self.cells if (c.model, language_name(c.language)) == (match[1], match[2]))
            raw = next(rate for rate in cell.rates if rate.estimator == "raw")
            assert close(match[3], raw.rate or 0.0)
            assert close(match[4], self.own[cell.model, cell.language].rate or 0.0)

    def types(self) -> None:
        marked: dict[str, int] = {}
        for cell in self.results.cells:
            for name, times in cell.types.items():
                marked[name] = marked.get(name, 0) + times
        marked = {name: times for name, times in marked.items() if times}
        match = self.says(r"All ([\d,]+) marked [\w ]+ are of this one type\.", len(marked) == 1)
        assert match is None or number(match[1]) == sum(marked.values())

    def coverage(self) -> None:
        judged, planned = judged_of(self.results.cells)
        match = self.says(r"All ([\d,]+) planned responses were judged\.", judged == planned)
        assert match is None or number(match[1]) == planned
        self.says(
            r"A rate is of the judged responses only\. Here is what became of every planned response, by the first detector\.",
            judged < planned,
        )
        section = self.section("responses")
        assert section is not None
        for table in section.all("table", "strips"):
            for line in table.all("tbody")[0].all("tr"):
                name = line.all("th")[0].text
                own = [c for c in self.results.cells if name in {c.model, f"{language_name(c.language)} {c.language}"}]
                shown, text = [td.text for td in line.all("td", "figure")], judged_of(own)
                assert shown[1] == "{:,} of {:,}".format(*text)
                held("study page", table.all("caption")[0].text)

    def facts(self) -> None:
        """What is known of the cell at hand."""
        by_name = {(cell.model, language_name(cell.language)): cell for cell in self.cells}
        for facts in data_of(self.page).get("cells", {}).values():
            cell = by_name[facts["model"], facts["language"]]
            text = "; ".join(facts["lines"])
            scored = cell.coverage.statuses.get("scored", 0)
            assert text.startswith(f"{scored:,} of {cell.coverage.planned:,} response")
            counts = {name.replace(" ", "_"): int(n) for n, name in re.findall(r", (\d+) ([a-z ]+)(?=,|;)", text)}
            failed = counts.pop("failed_calls", 0) + counts.pop("failed_call", 0)
            assert failed == cell.coverage.failed
            assert counts == {name: n for name, n in cell.coverage.statuses.items() if name != "scored"}
            match = re.search(r"; ([\d.]+) [\w ]+ in a response on average", text)
            assert match is not None
            assert abs(float(match[1]) - cell.length) < 0.0501
            match = re.search(r"; ([\d.<>]+%) ± ([\d.]+) over (\d+) of (\d+) replicates", text)
            assert bool(match) == (cell.mean is not None and cell.sd is not None)
            if match is not None:
                assert close(match[1], cell.mean or 0.0)
                assert (int(match[3]), int(match[4])) == (sum(map(is_reliable, cell.replicates)), len(cell.replicates))
            held("study page", text)

    def examples(self) -> None:
        nodes = self.page.root.all("article", "example")
        for example, node in zip(self.results.examples, nodes, strict=True):
            spans, response = example.prediction.spans or (), node.all("div", "response")[0]
            shown = response.children
            left = [int(re.sub(r"\D", "", n.text)) for n in response.all("span", "left-out")]
            text = "".join(each if isinstance(each, str) else each.text for each in shown
                           if isinstance(each, str) or "left-out" not in each.classes)  # fmt: skip
            empty = not example.sample.response
            assert ("The response is empty." in text) == empty
            assert empty or len(text) + sum(left) == len(example.sample.response)
            assert ("Nothing is marked." in node.text) == (not spans)
            for line in node.text.splitlines():
                if "characters not shown" in line or "is empty." in line or "is marked." in line:
                    held("study page", line)

    def methods(self) -> None:
        self.says(r"None is stated\.", not self.results.assumptions)
        held_too = "results.json" in data_of(self.page).get("texts", {})
        self.says(r"which this page holds too", held_too)


def supported(rate: Rate | None) -> bool:
    """Reliable, or spoken against by nothing but another rate or labels."""
    return rate is not None and rate.rate is not None and all(
        reason.startswith("its interval excludes") for reason in (rate.reason or "").split("; ") if reason
    )  # fmt: skip


def judged_of(cells: Iterable[Cell]) -> tuple[int, int]:
    """Responses that were judged, and that were planned."""
    coverages = [cell.coverage for cell in cells]
    return sum(each.statuses.get("scored", 0) for each in coverages), sum(each.planned for each in coverages)


def texts_hold(results: StudyResults) -> None:
    """Captions and notes of the tables for papers and of the terminal."""
    own = [c.rates[0] for c in results.cells if c.coverage.planned and c.rates[0].estimator == results.estimator]
    bad, (judged, planned) = sum(not is_reliable(rate) for rate in own), judged_of(results.cells)
    markdown = study_table(results, "markdown").replace("\\", "")
    latex = " ".join(study_table(results, "latex").replace("\\", "").split())
    console = Console(file=io.StringIO(), width=4000, no_color=True)
    render_study(results, console)
    terminal = console.file.getvalue()  # type: ignore[attr-defined]
    for text in (markdown, latex):
        match = re.search(r"Unreliable, and in no mean: (\d+) rates? of (\d+)\.", text)
        assert bool(match) == bool(bad)
        if match is not None:
            assert (int(match[1]), int(match[2])) == (bad, len(own))
            held("study tables", match[0])
    match = re.search(
        r"Share of [\w ]+ that the evidence does not support, by \S+, with 95% intervals in [^\n]+", markdown
    )
    assert match is not None
    held("study tables", match[0])
    match = re.search(r"Share of [\w ]+ \(in %\) .*? n = ([\d,]+) judged of ([\d,]+) planned responses? \((.*?) in a cell(?:, (.*?) of it)?\); detected by .+? reliable rates\.(?: Unreliable: .+? gave\.)?", latex)  # fmt: skip
    assert match is not None
    assert (number(match[1]), number(match[2])) == (judged, planned)
    counts = sorted({rate.responses for rate in own} or {0})
    assert match[3] == (f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}")
    assert (match[4] is None) == all(r.coverage >= 1 for c in results.cells if c.coverage.planned for r in c.rates)
    assert ("Unreliable: the data do not support a rate; what the estimator gave" in latex) == bool(bad)
    held("study tables", match[0])
    match = re.search(
        r"Share of .+ interval; below it the coverage\. ([\d,]+) of ([\d,]+) responses? judged\.", terminal
    )
    assert match is not None
    assert (number(match[1]), number(match[2])) == (judged, planned)
    held("study tables", match[0])
    for each in json.loads(study_table(results, "json"))["tables"].get("rates", []):
        assert (each["rate"] is None) == (each["status"] != "ok")


def methods_hold(
    results: StudyResults, tags_of_profile: Iterable[str], asked: bool, pooled: bool, labelled_by: Sequence[Kind]
) -> None:
    """Methods, assumptions and reasons: what they count, and that they stand where it is so."""
    text, names = " ".join(results.methods), [model.name for model in results.models]
    used = {rate.estimator.value for cell in results.cells for rate in cell.rates}
    profile, known = bool(used & {"label-shift", "paper", "em"}), set(tags_of_profile)
    cells = [cell for cell in results.cells if cell.coverage.planned]
    own = [cell.rates[0] for cell in cells]
    bad = sum(not is_reliable(rate) for rate in own)
    strange = [language_name(tag) for tag in results.languages if tag not in known]
    most = max((len(cell.replicates) for cell in cells), default=0)

    def says(pattern: str, when: object) -> re.Match[str] | None:
        match = re.search(pattern, text)
        assert bool(match) == bool(when), pattern
        if match is not None:
            held("methods", match[0])
        return match

    match = says(r"(\d+) models? \((.+?)\) (?:was|were) studied in (\d+) languages? \((.+?)\)\.", when=True)
    assert match is not None
    assert (int(match[1]), int(match[3])) == (len(names), len(results.languages))
    assert re.split(r", | and ", match[2]) == names
    says(r"Each language's queries were split into disjoint subsets, one for each seed, and each was asked once", asked)
    answered = sum(cell.coverage.answered for cell in results.cells)
    judged, planned = judged_of(results.cells)
    match = says(r"Of ([\d,]+) planned responses?, ([\d,]+) exist and ([\d,]+) were judged\.", asked)
    assert match is None or [number(each) for each in match.groups()] == [planned, answered, judged]
    match = says(
        r"The responses were given, not made by this run: ([\d,]+), of which ([\d,]+) were judged\.", not asked
    )
    assert match is None or [number(each) for each in match.groups()] == [answered, judged]
    seeds = {rate.seed for cell in results.cells for rate in cell.replicates} - {None}
    match = re.search(r"asked once \(seeds? ([\d, and]+)\)", text)
    assert match is None or seeds <= set(map(int, re.findall(r"\d+", match[1])))
    says(r"The detector marker@1 compared each response with its evidence and marked the words that it classified as unsupported, from a confidence of 0\.5\.", when=True)  # fmt: skip
    match = says(r"Its error rates were measured on ([\d,]+) responses in (\d+) languages? with gold labels \(SHA-256 of the data 0{12}\)\.", profile)  # fmt: skip
    assert match is None or (number(match[1]), int(match[2])) == (80 * len(known), len(known))
    match = says(r"In (.+?), where these are too few, its error rates over all of these languages were used\.", profile and pooled and strange)  # fmt: skip
    assert match is None or re.split(r", | and ", match[1]) == strange
    says(rf"A rate is the share of words that the evidence does not support, by the estimator {results.estimator}\.", when=True)  # fmt: skip
    match = says(r"For comparison the report shows (.+?)\.", len(used) > 1)
    assert match is None or set(re.split(r", | and ", match[1])) == used - {results.estimator}
    match = says(r"Intervals are at the level 0\.95 and carry the uncertainty of the (.+?); responses to one query count as one\. They come from 200 draws with the seed 0\.", when=True)  # fmt: skip
    assert match is not None
    assert ("error rates" in match[1], "labels" in match[1]) == (profile, "ppi" in used)
    match = says(r"(\d+) of (\d+) rates? (?:is|are) unreliable, and in no mean or test\.", bad)
    assert match is None or (int(match[1]), int(match[2])) == (bad, len(own))
    says(r"Means are unweighted, over reliable rates before these are cut .+? not an error\.", len(cells) > 1)
    match = says(
        r"Up to (\d+) replicates of a rate \(detectors × seeds\) show how much .+? moves it \(.+?\)\.", most > 1
    )
    assert match is None or int(match[1]) == most
    compared = bool(results.comparisons)
    over = any(row.language == "*" for row in results.comparisons)
    match = says(r"Every two models were compared in each language in which both have a reliable rate(, and over these languages)?, by .+?\. p-values were corrected for ([\d,]+) comparisons? by Holm's method \(.+?\); a difference counts where the corrected p is below 0\.05\.", compared)  # fmt: skip
    if match is not None:
        assert (match[1] is not None) == over
        assert number(match[2]) == len(results.comparisons)
        tests = {name for name in ("paired t-test", "Welch t-test", "normal test of draws") if name in match[0]}
        assert tests == {name for name in ("paired t-test", "Welch t-test", "normal test of draws")
                         if any(name in row.method for row in results.comparisons)}  # fmt: skip
        for row in results.comparisons:
            corrected = re.search(r"Holm's correction for ([\d,]+) comparisons?", row.method)
            assert corrected is not None
            assert number(corrected[1]) == len(results.comparisons)
            held("methods", f"{row.method} ")
    says(r"The interval of a rank holds the ranks that simultaneous intervals of all differences do not exclude \(.+?\)\.", results.ranks)  # fmt: skip
    says(r"Relations are Pearson's correlations with Fisher's intervals \(.+?\), not corrected for their number\.", any(c.method == "pearson" for c in results.correlations))  # fmt: skip
    match = says(r"labels of some of them \(prediction-powered inference\) \([^()]+\)\. ([\d,]+) judged responses? carried labels(?:, by (people|a model|people and a model))?\.", "ppi" in used)  # fmt: skip
    if match is not None:
        makers = [name for name, kind in (("people", "human"), ("a model", "model")) if kind in labelled_by]
        assert (number(match[1]), match[2] or "") == (len(labelled_by), " and ".join(makers))
    for start, wanted in {
        "A unit that the evidence does not support counts": True,
        "The detector errs on these responses as often": profile,
        "marker@1 was measured on too little or nothing in": pooled and strange,
        "The labelled responses were drawn": "ppi" in used,
        "Labels of the study's responses were made by a model": "ppi" in used and "model" in labelled_by,
    }.items():
        texts = [each for each in results.assumptions if each.startswith(start)]
        assert bool(texts) == bool(wanted), start
        for each in texts:
            match = re.search(r"too little or nothing in (.+?): there", each)
            assert match is None or match[1].split(", ") == strange
            held("methods", each)


def reasons_hold(  # noqa: C901
    results: StudyResults,
    judged: dict[tuple[str, str], int],
    labelled: dict[tuple[str, str], int],
    tags_of_profile: Iterable[str],
) -> None:
    """Each reason of an unreliable rate is so; `judged` and `labelled` count queries of each cell."""
    known = set(tags_of_profile)
    for cell in results.cells:
        key = cell.model, cell.language
        raw = next((rate for rate in cell.rates if rate.estimator == "raw"), None)
        for rate in cell.rates:
            assert (rate.reason is None) == (rate.status is Reliability.OK)
            for reason in (rate.reason or "").split("; ") if rate.reason else ():
                if match := re.fullmatch(r"a reliable interval needs 8 independent texts or queries, and the study has (\d+)", reason):  # fmt: skip
                    assert int(match[1]) == judged.get(key, 0) < 8
                elif match := re.fullmatch(r"only (\d+)% of the responses were judged, and the others may hallucinate more or less", reason):  # fmt: skip
                    assert rate.coverage < 0.8
                    assert abs(int(match[1]) - 100 * rate.coverage) <= 0.5
                elif reason.startswith("fewer units were marked than the false alarms of the profile alone would give"):
                    assert raw is None or (raw.rate or 0.0) < 0.1  # its FPR is 5%
                elif reason.startswith("more units were marked than the detector would mark if all were unsupported"):
                    assert raw is None or (raw.rate or 0.0) > 0.7  # its TPR is 80%
                elif match := re.fullmatch(
                    r"a reliable interval needs 8 independent texts or queries with labels, and the study has (\d+)",
                    reason,
                ):
                    assert int(match[1]) == labelled.get(key, 0) < 8
                elif match := re.fullmatch(r"a reliable interval needs 8 labelled texts or queries with an? (?:un)?supported unit, and the study has (\d+) \(of (\d+)\)", reason):  # fmt: skip
                    assert int(match[1]) < 8 <= int(match[2]) == labelled[key]
                elif reason == "the error profile does not hold this language":
                    assert cell.language not in known
                elif reason == "no response is labelled":
                    assert not labelled.get(key)
                elif reason == "no unit was judged":
                    assert not judged.get(key)
                elif match := re.fullmatch(r"the confidences are distributed unlike the profile's: .+ by (\d+) points to either side", reason):  # fmt: skip
                    drift = re.search(r"drift:([\d.]+)", rate.signature)
                    assert drift is not None
                    assert float(drift[1]) > 0.295 or int(match[1]) >= 25
                elif reason.startswith("its interval excludes"):
                    _contradiction(reason, rate, cell)
                else:
                    assert reason == "no response was asked for or given in this language"
                    assert not cell.coverage.planned
                held("reasons", reason)


def _contradiction(reason: str, rate: Rate, cell: Cell) -> None:
    """The interval that a rate is said to exclude is disjoint from its own; what to quote is better founded."""
    match = re.match(r"its interval excludes (.+?), ([\d.]+)% \[([\d.]+), ([\d.]+)\]: (.+)", reason)
    assert match is not None
    low, high = (float(end) / 100 for end in match.group(3, 4))
    assert (rate.high or 0.0) < low + 5.1e-4 or (rate.low or 0.0) > high - 5.1e-4
    if match[1] != "the labels of these responses":
        other = next(each for each in cell.rates if each.estimator == match[1])
        assert close(f"{match[2]}%", other.rate or 0.0)
        assert [low, high] == pytest.approx([other.low, other.high], abs=0.00051)
    if quoted := re.search(r"so quote ([\w-]+)", match[5]):
        order = ("ppi", "label-shift", "em", "paper", "raw")
        assert order.index(quoted[1]) < order.index(str(rate.estimator))
        by_rate = match[1] != "the labels of these responses"
        assert ("precision or recall" in match[5]) == (by_rate and str(rate.estimator) == "paper")
    if needed := re.search(r"about ([\d,]+) labels in (.+?), drawn at random, give 5 points to either side", match[5]):
        assert needed[2] == language_name(cell.language)
        assert number(needed[1]) >= 10

# ruff: noqa: E501  # patterns are whole sentences
"""What a bench's page says outside of its findings, and its LaTeX and terminal: held to the records."""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from bench_made import bench_of
from msgspec import structs
from rich.console import Console
from sentences import held
from study_page import Page

from veriglot.bench.results import BenchConfusion
from veriglot.report.bench import bench_document, render_bench, write_bench
from veriglot.report.bench_findings import FEW_TEXTS, findings, reading
from veriglot.report.bench_tables import View

if TYPE_CHECKING:
    from study_page import Node

    from veriglot.bench.results import BenchComparison, BenchFigure, BenchResults, BenchWin

TAG_OF = {"German": "de", "Turkish": "tr"}
ENDS = re.compile(r"\[(−?[\d.]+), (−?[\d.]+)\](‡?)")


def page_holds(results: BenchResults) -> None:
    """Check a bench's page, its Markdown, LaTeX and terminal."""
    with tempfile.TemporaryDirectory() as folder:
        write_bench(results, Path(folder) / "page.html")
        page = Page((Path(folder) / "page.html").read_text("utf-8"))
    _subtitle(results, page)
    _how_to_read(results, page)
    tables = {node.all("caption")[0].text: node for node in page.root.all("table")}
    for title, table in tables.items():
        _intervals(table)
        check = next((check for pattern, check in _TABLES.items() if re.fullmatch(pattern, title)), None)
        if check is not None:
            check(results, table)
            held("bench page", title)
    undefined = [f for f in results.figures if f.language == "mean" and f.value is None and _ranks(results, f)]
    assert any(title.startswith("Judged, but without") for title in tables) == bool(undefined)
    unjudged = [cell for cell in results.cells if cell.status not in {"done", "unsuited"}]
    assert ("Not judged, and why" in tables) == bool(unjudged)
    apart = [standing for standing in results.standings if standing.best is None]
    assert any(t.startswith("Without a rank, as rows were left out") for t in tables) <= bool(apart)
    _latex(results)
    console = Console(file=io.StringIO(), width=4000, no_color=True)
    render_bench(results, console)
    terminal = console.file.getvalue()  # type: ignore[attr-defined]
    assert [text for text in findings(View(results)) if text in terminal] == findings(View(results))
    assert (FEW_TEXTS in terminal) == ("]‡" in terminal)


def _ranks(results: BenchResults, figure: BenchFigure) -> bool:
    return figure.measure == results.ranking.get(figure.level) and figure.at in {"tuned", None}


def _subtitle(results: BenchResults, page: Page) -> None:
    text = page.root.all("p", "subtitle")[0].text
    labelled = any(data.labelled for data in results.data)
    tuned = any(figure.at == "tuned" for figure in results.figures)
    assert (", thresholds tuned on dev" in text) == (labelled and tuned)
    assert ("no labels, so no ranking" in text) == (not labelled)
    assert (f"ranked by {results.rank_by}" in text) == labelled
    assert f"{len(results.systems)} system" in text
    assert f"95% intervals over {results.resamples:,} resamples of texts" in text
    held("bench page", text)


def _how_to_read(results: BenchResults, page: Page) -> None:
    view = View(results)
    told = [node.text for node in page.root.all("section")[0].all("li")]
    how = reading(view)
    marked = any("]‡" in cell.text for table in page.root.all("table") for cell in table.all("td"))
    assert told == [*findings(view), *[FEW_TEXTS] * marked, *how]
    held("bench page", FEW_TEXTS * marked)
    whether = {
        "Thresholds are tuned on": bool(view.levels), "Systems with a rank come first": bool(view.levels),
        "A win or tie is": bool(view.levels), "For data without labels, the page": bool(results.answers),
        "† marks figures on data": any(figure.seen for figure in results.figures),
        "Where a system scored only": any(cell.status == "partial" for cell in results.cells),
        f"Figures are means over a data set's languages, each measured alone, with 95% intervals over {results.resamples:,}"
        " resamples": True,
    }  # fmt: skip
    for start, wanted in whether.items():
        texts = [text for text in how if text.startswith(start)]
        assert len(texts) == wanted, start
        for text in texts:
            held("bench page", text)
    assert len(how) == sum(whether.values()) + len(results.notes)
    seen = {data.name for data in results.data if data.seen}
    for board in map(view.board, view.levels):
        order = [(row.standing is None, row.standing is None or row.standing.best is None) for row in board.rows
                 if row.mean is not None]  # fmt: skip
        assert order == sorted(order), "those with a rank stand first"
        for row in board.rows:
            values = [f.value for data, f in row.cells.items() if f is not None and data not in seen]
            known = [value for value in values if value is not None]
            assert row.mean is None if not known else abs((row.mean or 0.0) - sum(known) / len(known)) < 1e-12
            _win(results, row.win, seen)


def _win(results: BenchResults, win: object, seen: set[str]) -> None:
    """Wins, counted anew at two decimals over the data that nobody was trained on."""
    if win is None:
        return
    sign = -1 if win.measure == "fpr" else 1  # type: ignore[attr-defined]
    cells: dict[tuple[str, str], dict[str, float]] = {}
    for f in results.figures:
        if f.language != "mean" and f.data not in seen and (f.measure, f.at) == (win.measure, win.at):  # type: ignore[attr-defined]
            row = cells.setdefault((f.data, f.language), {})
            if f.value is not None:
                row[f.system] = sign * float(np.round(f.value, 2))
    played = [row for row in cells.values() if row]
    best = [{who for who, value in row.items() if value == max(row.values())} for row in played]
    system = win.system  # type: ignore[attr-defined]
    counts = (sum(system in who for who in best), sum(system in who and len(who) > 1 for who in best), len(played))
    assert (win.wins, win.ties, win.cells) == counts  # type: ignore[attr-defined]


def _intervals(table: Node) -> None:
    """Every interval over few texts has its mark, and none stands over fewer than five."""
    for cell in table.all("td"):
        match = re.match(r"([\d,]+) items of ([\d,]+) texts, ([\d,]+) positive", cell.attrs.get("title") or "")
        ends = ENDS.search(cell.text)
        if match is None:
            continue
        items, texts, positive = (int(each.replace(",", "")) for each in match.groups())
        assert positive <= items
        assert texts <= items
        assert bool(ends) <= (texts >= 5)
        assert ends is None or bool(ends[3]) == (texts < 30)
        held("bench page", cell.attrs["title"] or "")


def _number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


def _grid(table: Node) -> tuple[list[str], list[list[str]]]:
    heads = [node.text for node in table.all("thead")[0].all("th")]
    return heads, [
        [node.text for node in row.all() if node.tag in {"th", "td"}] for row in table.all("tbody")[0].all("tr")
    ]


def _figure(text: str, figure: BenchFigure | None) -> None:
    """A cell shows its own figure and interval, and whether the system was trained on the data."""
    if figure is None or figure.value is None:
        assert text == "–"
        return
    match = re.fullmatch(r"(−?[\d.]+)(†?)(?:no interval|\[(−?[\d.]+), (−?[\d.]+)\]‡?)", text)
    assert match is not None, text
    assert abs(_number(match[1]) - figure.value) < 0.000501
    assert bool(match[2]) == figure.seen
    ends = (figure.low, figure.high) if figure.low is not None and figure.clusters >= 5 else (None, None)
    assert [each and _number(each) for each in match.group(3, 4)] == [
        each and pytest.approx(each, abs=0.000501) for each in ends
    ]


def board_holds(results: BenchResults, table: Node) -> None:
    """Ranks, figures, means and wins of a leaderboard, from the records."""
    figures = {(f.system, f.data): f for f in results.figures if f.language == "mean" and _ranks(results, f)}
    standings = {each.system: each for each in results.standings}
    wins = {win.system: win for win in results.wins if win.scope == "all"}
    fair = [data.name for data in results.data if data.labelled and not data.seen]
    heads, rows = _grid(table)
    for name, rank, *cells in rows:
        at = standings.get(name)
        ends = () if at is None or at.best is None else dict.fromkeys((at.best, at.worst))
        assert rank == ("–" if at is None else "–".join(map(str, ends)) or "apart")
        for head, text in zip(heads[2:], cells, strict=True):
            if head == "wins or ties":
                _wins(text, wins.get(name))
            elif head == "mean":
                known = [f.value for data in fair if (f := figures.get((name, data))) and f.value is not None]
                assert (text == "–") == (not known)
                if known:
                    assert abs(_number(re.split(r"[\[(]", text)[0]) - sum(known) / len(known)) < 0.000501
                    assert text.endswith(f"(of {len(known)})")
                    ends_shown = ENDS.search(text)
                    if ends_shown is not None and at is not None:
                        assert [_number(each) for each in ends_shown.group(1, 2)] == pytest.approx(
                            [at.low, at.high], abs=0.00051
                        )
            else:
                _figure(text, figures.get((name, head)))


def _wins(text: str, win: BenchWin | None) -> None:
    if win is None or win.rate is None:
        assert text == "–"
        return
    match = re.fullmatch(r"(\d+)%(?:\[(\d+), (\d+)\]‡?)? ?\((\d+) of (\d+)(?:, (\d+) tied)?(?:, played (\d+))?\)", text)
    assert match is not None, text
    assert abs(int(match[1]) - 100 * win.rate) <= 0.501
    assert [int(each or 0) for each in match.group(4, 5, 6)] == [win.wins, win.cells, win.ties]
    assert int(match[7] or win.cells) == win.played
    if match[2]:
        assert [int(each) for each in match.group(2, 3)] == pytest.approx(
            [100 * (win.low or 0), 100 * (win.high or 0)], abs=0.501
        )


def _win_groups(results: BenchResults, table: Node) -> None:
    wins = {(win.system, win.scope): win for win in results.wins}
    heads, rows = _grid(table)
    for name, *cells in rows:
        for scope, text in zip(heads[1:], cells, strict=True):
            _wins(text, wins.get((name, scope)))


def _by_data(results: BenchResults, table: Node) -> None:
    """Every measure on a data set, or one measure in each of its languages."""
    title, (heads, rows) = table.all("caption")[0].text, _grid(table)
    single = {(f.system, f.data, f.measure, f.language): f for f in results.figures if f.at in {"tuned", None}}
    if match := re.fullmatch(r"(\w+) of \w+s by language: (.+)", title):
        _missing_languages(results, table)
        places = [(match[2], match[1], TAG_OF[head]) for head in heads[1:]]
    else:
        places = [(title.partition(",")[0], head, "mean") for head in heads[1:]]
    for name, *cells in rows:
        for place, text in zip(places, cells, strict=True) if name != "chance" else ():
            _figure(text, single.get((name, *place)))


def _test(row: BenchComparison, cells: list[str], sign: int = 1) -> None:
    """Difference, interval, p-values and counts of one test."""
    difference, ends, p, adjusted, behind, note = cells
    assert (difference == "–") == (row.difference is None)
    assert row.difference is None or abs(_number(difference) - sign * row.difference) < 0.000501
    if match := ENDS.fullmatch(ends):
        shown = [sign * each for each in (row.low or 0.0, row.high or 0.0)][::sign]
        assert [_number(each) for each in match.group(1, 2)] == pytest.approx(shown, abs=0.000501)
    for text, value in ((p, row.p), (adjusted, row.adjusted)):
        assert (text == "–") == (value is None)
        assert value is None or (value < 0.001 if text == "<0.001" else abs(float(text) - value) < 0.000501)
    assert behind == f"{row.items:,} / {row.clusters:,}"
    assert note == (row.reason or "")


def _answers(results: BenchResults, table: Node) -> None:
    data = table.all("caption")[0].text.partition(",")[0]
    known = {each.system: each for each in results.answers if each.data == data and each.language == "mean"}
    for name, language, behind, coverage, *numbers in _grid(table)[1]:
        answer = known[name]
        assert language == "mean"
        assert behind == f"{answer.items:,} / {answer.clusters:,}"
        assert abs(int(coverage.strip("%")) - 100 * answer.coverage) <= 0.501
        for text, value, low in zip(
            numbers, (answer.flagged, answer.mean), (answer.flagged_low, answer.mean_low), strict=True
        ):
            assert text == "–" if value is None else abs(_number(text.split()[0]) - value) < 0.000501
            assert bool(ENDS.search(text)) == (low is not None)


def _cost(results: BenchResults, table: Node) -> None:
    cells = {(cell.system, cell.data, cell.level): cell for cell in results.cells}
    heads, rows = _grid(table)
    for row in rows:
        shown = dict(zip(heads, row, strict=True))
        cell = cells[shown["system"], shown["data"], shown["level"]]
        assert shown["status"] == cell.status
        assert abs(int(shown["coverage"].strip("%")) - 100 * cell.coverage) <= 0.501
        assert "rows a second" not in shown or shown["rows a second"] == (
            "–" if cell.cost.speed is None else f"{cell.cost.speed:,.1f}"
        )


def _data(results: BenchResults, table: Node) -> None:
    known = {data.name: data for data in results.data}
    for name, _, test, texts, dev, items, *_ in _grid(table)[1]:
        data = known[name]
        samples = [sum(counts[at] for counts in data.languages.values()) for at in (0, 1)]
        assert [int(_number(each)) for each in (test, texts, dev)] == [*samples, data.dev]
        for level, count, share in re.findall(r"(\w+) ([\d,]+) \((?:(\d+)% unsupported|no labels)\)", items):
            assert _number(count) == data.items[level]
            assert (share == "") == (level not in data.nonfactual)
            assert not share or abs(int(share) - 100 * data.nonfactual[level] / max(data.items[level], 1)) <= 0.501


def _undefined(results: BenchResults, table: Node) -> None:
    known = {(f.system, f.data): f for f in results.figures if f.language == "mean" and _ranks(results, f)}
    untuned = {data.name for data in results.data if data.labelled and not data.dev}
    for row in table.all("tbody")[0].all("tr"):
        data, reason = (node.text for node in row.all("td"))
        for system in row.all("th")[0].text.split(", "):
            assert known[system, data].value is None
            assert reason == (known[system, data].reason or "")
            tuned = "no threshold could be tuned" in reason  # a measure that needs one
            assert ("no sample is set aside for tuning" in reason) == (tuned and data in untuned)
            held("bench reasons", reason)


def _unjudged(results: BenchResults, table: Node) -> None:
    cells = {(cell.system, f"{cell.data} ({cell.level})", cell.status) for cell in results.cells}
    cells |= {(system.name, "all", "unavailable") for system in results.systems if system.unavailable}
    rows = table.all("tbody")[0].all("tr")
    shown = {(name, row.all("td")[0].text, row.all("td")[1].text) for row in rows
             for name in row.all("th")[0].text.split(", ")}  # fmt: skip
    assert shown <= cells
    why = {(cell.system, f"{cell.data} ({cell.level})"): cell.reason for cell in results.cells}
    for row in rows:
        data, _, reason = (node.text for node in row.all("td"))
        for name in row.all("th")[0].text.split(", ") if data != "all" else ():
            assert reason == (why[name, data] or "")
    assert {name for name, *_ in shown} == {c.system for c in results.cells if c.status not in {"done", "unsuited"}}


def _apart(results: BenchResults, table: Node) -> None:
    """Differences of those without a rank, on the rows that both judged, with the sign that the row says."""
    left_out = {each.system: each.left_out for each in results.standings if each.best is None}
    pairs = {(p.system, p.baseline): (p, 1) for p in results.pairs}
    pairs |= {(p.baseline, p.system): (p, -1) for p in results.pairs}
    for row in table.all("tbody")[0].all("tr"):
        system, (why, other, *cells) = row.all("th")[0].text, [node.text for node in row.all("td")]
        assert why == left_out[system]
        held("bench reasons", why)
        for measure, data, tags in re.findall(r"no (\w+) on (\w+) in ([\w, ]+)", why):
            values = {(f.system, f.language): f.value for f in results.figures
                      if (f.data, f.measure, f.at) == (data, measure, results.standings[0].at)}  # fmt: skip
            without = [tag for tag in results.data[0].languages if values[system, tag] is None
                       and any(value is not None for (_, of), value in values.items() if of == tag)]  # fmt: skip
            assert [TAG_OF[name] for name in tags.split(", ")] == without
        row_of, sign = pairs[system, other]
        _test(row_of, cells, sign)


def _tests(results: BenchResults, table: Node) -> None:
    """Who is better is what the test says; the reason of a test that says nothing is so."""
    pairs = {f"{p.system} − {p.baseline}": p for p in results.pairs}
    for row in table.all("tbody")[0].all("tr"):
        pair, cells = pairs[row.all("th")[0].text], [node.text for node in row.all("td")]
        sure = pair.adjusted is not None and pair.adjusted < 0.05 and pair.clusters >= 30 and bool(pair.difference)
        less = pair.measure == "fpr"
        better = pair.system if ((pair.difference or 0.0) > 0) != less else pair.baseline
        assert cells[-1] == (better if sure else "–")
        _test(pair, cells[:-1])
        _test_reason(pair.reason, pair.clusters)


def _against(results: BenchResults, table: Node) -> None:
    rows, by_name = _grid(table)[1], {(row.system, row.data, row.level): row for row in results.comparisons}
    assert len(rows) == len(results.comparisons)
    for system, data, level, *cells in rows:
        _test(by_name[system, data, level], cells)
    for row in results.comparisons:
        _test_reason(row.reason, row.clusters)
        assert row.difference is None or row.p is not None or row.clusters < 5


def _test_reason(reason: str | None, clusters: int) -> None:
    if reason is None:
        return
    if match := re.fullmatch(r"undefined in (\d+) of (\d+) resamples", reason):
        assert 0 < int(match[1]) <= int(match[2])
    elif reason == "fewer than two texts in common":
        assert clusters < 2
    elif reason.startswith("too few texts for an interval and a test"):
        assert clusters < 5
    held("bench reasons", reason)


def _missing_languages(results: BenchResults, table: Node) -> None:
    """A mean over some languages names those that it lacks."""
    single = {(f.system, f.data, f.measure, f.at, f.language): f for f in results.figures if f.language != "mean"}
    for f in results.figures:
        for part in (f.reason or "").split("; "):
            if match := re.fullmatch(r"over (\d+) of (\d+) languages, without (.+)", part):
                lacking = match[3].split(", ")
                assert int(match[2]) - int(match[1]) == len(lacking)
                assert all(single[f.system, f.data, f.measure, f.at, TAG_OF[name]].value is None for name in lacking)
                held("bench reasons", part)


_TABLES = {
    r"Judged, but without \w+ of \w+s, and why": _undefined,
    r"Not judged, and why": _unjudged,
    r"Without a rank, as rows were left out; differences on the rows that both judged": _apart,
    r"Differences in \w+ of \w+s between all systems, paired bootstrap over texts, .+": _tests,
    r"Differences in \w+ from \w+, paired bootstrap over texts, .+": _against,
    r"\w+ of \w+s by language: .+|.+, \w+s: thresholds tuned on dev": _by_data,
    r"\w+ of \w+s: .+": board_holds,
    r"Win rates by \w+ of \w+s, with ties credited to all": _win_groups,
    r".+: what systems say, without labels": _answers,
    r"Cost and coverage": _cost,
    r"Data": _data,
}


def _latex(results: BenchResults) -> None:
    text = " ".join(bench_document(results, "latex").replace(r"\%", "%").split())
    view = View(results)
    if not view.levels:
        assert "no data set has labels: there is nothing to rank" in text
        held("bench page", text)
        return
    board = view.board("response")
    figures = [f for row in board.rows for f in row.cells.values() if f is not None]
    for sentence, wanted in {
        "Under each value is its 95% interval over texts.": bool(board.rows) or True,
        "cannot exclude; bold: first.": bool(board.ranked),
        "Systems that left rows out have no rank.": bool(board.incomplete),
        FEW_TEXTS.replace("‡", r"$^\ddagger$"): any(f.low is not None and 5 <= f.clusters < 30 for f in figures),
        ": the system was trained on the data, which is in no mean and win.": any(f.seen for f in figures),
    }.items():
        assert (sentence in text) == wanted, sentence
    held("bench page", text.replace(r"$^\dagger$", "†"))
    for name in re.findall(r"\n(\S+) & \d", bench_document(results, "latex").partition("bottomrule")[0]):
        assert name in {row.system.name for row in board.ranked}


def types_hold(seed: int) -> None:
    """Random matrices of types: how many have the right type."""
    generator = np.random.default_rng(seed)
    counts = generator.integers(0, 9, (2, 4))
    left_out = int(generator.integers(0, 3))
    names = ("entity", "relation")
    matrix = BenchConfusion(
        system="a", data="sums", language="all", of="mark", taxonomy="halluverse", classes=names,
        answers=(*names, "none", "other type"), counts=tuple(map(tuple, counts.tolist())), left_out=left_out,
    )  # fmt: skip
    results = structs.replace(bench_of({"a": (0.6, 1), "b": (0.5, 2)}), confusions=(matrix,))
    text = bench_document(results, "markdown").replace("\\", "")
    match = re.search(r"([\d,]+) of ([\d,]+) have the right type(?: \(([\d.]+)%\))?(?:, (\d+) left out, not being of exactly one type)?\.", text)  # fmt: skip
    assert match is not None
    right, whole = int(counts[0, 0] + counts[1, 1]), int(counts.sum())
    assert (int(match[1]), int(match[2]), int(match[4] or 0)) == (right, whole, left_out)
    assert match[3] is None if not whole else abs(float(match[3]) - 100 * right / whole) < 0.0501
    held("bench page", match[0])

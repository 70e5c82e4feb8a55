# ruff: noqa: E501  # patterns are whole sentences
"""What a bench's page says outside of its findings, and its LaTeX and terminal: held to the records."""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
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

    from veriglot.bench.results import BenchFigure, BenchResults

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
    assert any(t.startswith("Without a rank for what they left out") for t in tables) <= bool(apart)
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
    assert ("no labels: nobody is ranked" in text) == (not labelled)
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
        "Thresholds are tuned on": bool(view.levels), "Systems with a rank stand first": bool(view.levels),
        "A win or tie is": bool(view.levels), "Of data without labels it is shown": bool(results.answers),
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
    assert {name for name, *_ in shown} == {c.system for c in results.cells if c.status not in {"done", "unsuited"}}


def _apart(results: BenchResults, table: Node) -> None:
    """Differences of those without a rank, on the rows that both judged, with the sign that the row says."""
    left_out = {each.system: each.left_out for each in results.standings if each.best is None}
    pairs = {(p.system, p.baseline): p.difference for p in results.pairs}
    pairs |= {(second, first): None if d is None else -d for (first, second), d in pairs.items()}
    for row in table.all("tbody")[0].all("tr"):
        system, (why, other, shown, *_) = row.all("th")[0].text, [node.text for node in row.all("td")]
        assert why == left_out[system]
        held("bench reasons", why)
        for measure, data, tags in re.findall(r"no (\w+) on (\w+) in ([\w, ]+)", why):
            values = {(f.system, f.language): f.value for f in results.figures
                      if (f.data, f.measure, f.at) == (data, measure, results.standings[0].at)}  # fmt: skip
            without = [tag for tag in results.data[0].languages if values[system, tag] is None
                       and any(value is not None for (_, of), value in values.items() if of == tag)]  # fmt: skip
            assert [TAG_OF[name] for name in tags.split(", ")] == without
        difference = pairs[system, other]
        assert (shown == "–") == (difference is None)
        assert difference is None or abs(float(shown.replace("−", "-")) - difference) < 0.000501


def _tests(results: BenchResults, table: Node) -> None:
    """Who is better is what the test says; the reason of a test that says nothing is so."""
    pairs = {f"{p.system} − {p.baseline}": p for p in results.pairs}
    for row in table.all("tbody")[0].all("tr"):
        pair, cells = pairs[row.all("th")[0].text], [node.text for node in row.all("td")]
        sure = pair.adjusted is not None and pair.adjusted < 0.05 and pair.clusters >= 30 and bool(pair.difference)
        less = pair.measure == "fpr"
        better = pair.system if ((pair.difference or 0.0) > 0) != less else pair.baseline
        assert cells[-1] == (better if sure else "–")
        _test_reason(pair.reason, pair.clusters)


def _against(results: BenchResults, table: Node) -> None:
    assert len(table.all("tbody")[0].all("tr")) == len(results.comparisons)
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
    r"Without a rank for what they left out; differences on the rows that both judged": _apart,
    r"Differences in \w+ of \w+s between all systems, paired bootstrap over texts, .+": _tests,
    r"Differences in \w+ from \w+, paired bootstrap over texts, .+": _against,
    r"\w+ of \w+s by language: .+": _missing_languages,
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
        "Under each value stands its 95% interval over texts.": bool(board.rows) or True,
        "cannot exclude; bold: first.": bool(board.ranked),
        "Systems without a rank left rows out.": bool(board.apart),
        FEW_TEXTS.replace("‡", r"$^\ddagger$"): any(f.low is not None and 5 <= f.clusters < 30 for f in figures),
        ": the system was trained on the data, which is in no mean and win.": any(f.seen for f in figures),
    }.items():
        assert (sentence in text) == wanted, sentence
    held("bench page", text.replace(r"$^\dagger$", "†"))
    for name in re.findall(r"\n(\S+) & \d", bench_document(results, "latex").partition("bottomrule")[0]):
        assert name in {row.system.name for row in board.ranked}


def types_hold(seed: int) -> None:
    """Random matrices of types: how many are called what they are."""
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
    match = re.search(r"([\d,]+) of ([\d,]+) are called what they are(?: \(([\d.]+)%\))?(?:, (\d+) left out for want of one type)?\.", text)  # fmt: skip
    assert match is not None
    right, whole = int(counts[0, 0] + counts[1, 1]), int(counts.sum())
    assert (int(match[1]), int(match[2]), int(match[4] or 0)) == (right, whole, left_out)
    assert match[3] is None if not whole else abs(float(match[3]) - 100 * right / whole) < 0.0501
    held("bench page", match[0])

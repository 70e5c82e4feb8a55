"""A site of leaderboards: whole in its folder, honest in its sentences, every row with an address."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec
import pytest
from bench_random import Plan, random_bench
from browser import visit
from study_figures import study_figures

from veriglot.errors import UsageError
from veriglot.report.bench_findings import findings
from veriglot.report.bench_tables import View as BenchView
from veriglot.report.site import write_site
from veriglot.report.study import View
from veriglot.study.results import Model, StudyResults

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "</script><img src=x onerror=alert(1)> & نموذج 模型"
BENCH = random_bench(Plan(2, "mcc", (3.0, 0.5, 3.0), (0, 0, 0.4), (40, 40), (-1, -1, -1)))[0]


class Links(HTMLParser):
    """Ids, and where links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if values.get("id"):
            self.ids.append(values["id"] or "")
        for name in ("href", "src", "action"):
            if name in values and tag != "use":
                self.links.append(values[name] or "")


@pytest.fixture(scope="module")
def study() -> StudyResults:
    return study_figures()


@pytest.fixture(scope="module")
def site(study: StudyResults, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    hostile = msgspec.structs.replace(study_figures((Model(HOSTILE), Model("b"))), title=HOSTILE)
    write_site([study, hostile, BENCH, study], folder)
    return folder


def test_every_link_leads_to_a_file_or_a_place_of_the_site(site: Path) -> None:
    for page in site.rglob("*.html"):
        parsed = Links(page.read_text("utf-8"))
        assert len(parsed.ids) == len(set(parsed.ids)), page
        for link in parsed.links:
            if link.startswith("#"):
                assert link[1:] in parsed.ids, link
            else:
                assert link == "data:," or (page.parent / unquote(link)).is_file(), link


def test_nothing_of_the_runs_is_run_or_asked_for_elsewhere(site: Path) -> None:
    text = (site / "index.html").read_text("utf-8")
    assert "<img" not in text
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text)
    assert "default-src 'none'" in text
    assert "noindex" not in text
    assert text.count("</script>") == 2


def test_runs_of_one_title_have_folders_of_their_own(site: Path, study: StudyResults) -> None:
    folders = {path.name for path in site.iterdir() if path.is_dir()}
    assert {"six-small-models-on-questions-about-articles", "six-small-models-on-questions-about-articles-2"} <= folders
    assert len(folders) == 4
    first = site / "six-small-models-on-questions-about-articles"
    assert msgspec.json.decode((first / "results.json").read_bytes(), type=StudyResults) == study
    assert {path.stem for path in (first / "tables").iterdir()} >= {"rates", "ranks", "comparisons"}


def test_each_model_in_each_language_stands_with_its_interval_and_unreliable_rates_are_no_numbers(
    site: Path, study: StudyResults
) -> None:
    text = (site / "index.html").read_text("utf-8")
    section = text[text.index('id="board-six-small-models-on-questions-about-articles"') :]
    section = section[: section.index("</section>")]
    view = View(study)
    board, *parts = section.split("<tbody>")[1:]
    rows = board.split("</tbody>")[0].split("</tr>")[:-1]
    assert sum(part.split("</tbody>")[0].count("<td") for part in parts) >= len(rows) * len(view.languages)  # on paper
    for row in rows:
        model = re.search(r"<bdi>([^<]+)</bdi>", row)
        assert model is not None
        cells = row.split("<td")[3:]
        for tag, cell in zip(view.languages, cells, strict=True):
            rate = view.rate(model[1], tag)
            assert rate is not None
            assert ("unreliable" in cell) == (not view.is_reliable(rate))
            assert (f'data-value="{rate.rate!r}"' in cell) == view.is_reliable(rate)
    assert len(rows) == len(study.models)


def test_figures_can_be_read_by_programs(site: Path, study: StudyResults) -> None:
    rows = list(csv.DictReader((site / "leaderboards.csv").read_text("utf-8").splitlines()))
    view = View(study)
    own = [row for row in rows if row["board"] == "six-small-models-on-questions-about-articles" and row["on"] != "*"]
    assert len(own) == len(study.cells)
    for row in own:
        rate = view.rate(row["name"], row["on"])
        assert rate is not None
        shown = [float(row[name]) if row[name] else None for name in ("value", "low", "high")]
        assert shown == ([rate.rate, rate.low, rate.high] if view.is_reliable(rate) else [None] * 3)
    means = {row["name"]: row for row in rows if row["kind"] == "bench" and row["on"] == "mean"}
    for standing in BENCH.standings:
        assert float(means[standing.system]["value"]) == standing.value
        ends = [float(end) if (end := means[standing.system][name]) else None for name in ("low", "high")]
        assert ends == [standing.low, standing.high]
        assert means[standing.system]["best_rank"] == ("" if standing.best is None else str(standing.best))
    assert len(json.loads((site / "leaderboards.json").read_text("utf-8"))) == len(rows)


def test_a_bench_says_on_the_site_what_its_own_page_says(site: Path) -> None:
    text = (site / "index.html").read_text("utf-8")
    for sentence in findings(BenchView(BENCH)):
        assert f"<bdi>{sentence}</bdi>" in text


def test_the_same_runs_give_the_same_bytes_and_pages_of_others_stay(study: StudyResults, tmp_path: Path) -> None:
    first = [path.read_bytes() for path in write_site([study, BENCH], tmp_path)]
    assert [path.read_bytes() for path in write_site([study, BENCH], tmp_path)] == first
    write_site([BENCH], tmp_path)
    assert (tmp_path / "six-small-models-on-questions-about-articles" / "index.html").is_file()


def test_a_study_whose_tests_show_nothing_says_so_with_a_dash(study: StudyResults, tmp_path: Path) -> None:
    write_site([msgspec.structs.replace(study, ranks=(), comparisons=())], tmp_path)
    row = (tmp_path / "index.html").read_text("utf-8").split("<tbody>")[1].split("</tr>")[0]
    assert re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)[0].strip() == "–"


def test_no_runs_make_no_site(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs the results"):
        write_site([], tmp_path)


USE = """
const field = document.getElementById("filter");
field.value = "heron-7b";
field.dispatchEvent(new Event("input"));
const shown = Array.from(document.querySelectorAll("table.sortable tbody tr")).filter((row) => !row.hidden);
const names = shown.map((row) => row.cells[0].textContent);
field.value = "";
field.dispatchEvent(new Event("input"));
const board = document.querySelectorAll("table.spread")[0];
board.tHead.rows[0].cells[3].querySelector("button").click();
const sorted = Array.from(board.tBodies[0].rows).map((row) => row.cells[3].dataset.value);
document.body.replaceChildren();
const pre = document.body.appendChild(document.createElement("pre"));
pre.textContent = JSON.stringify({ names, sorted });
"""


@pytest.mark.slow
def test_a_reader_filters_and_sorts(chromium: str, site: Path, tmp_path: Path) -> None:
    _, console = visit(chromium, site / "index.html", width=390)
    assert not console  # its own script runs under its policy without a word
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", (site / "index.html").read_text("utf-8"))
    (tmp_path / "page.html").write_text(text.replace("</body>", f"<script>{USE}</script></body>"), "utf-8")
    dom, console = visit(chromium, tmp_path / "page.html")
    assert not console
    used = json.loads(re.findall(r"<pre>(.*?)</pre>", dom, re.DOTALL)[-1])
    assert used["names"] == ["heron-7b-instruct"] * 2
    numbers = [float(value) if value else None for value in used["sorted"]]
    known = [value for value in numbers if value is not None]
    assert known == sorted(known, reverse=True)
    assert numbers[len(known) :] == [None] * (len(numbers) - len(known))  # what is unreliable stays last

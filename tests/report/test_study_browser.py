"""What a real browser makes of the report of a study. Without Chromium these tests say so and step aside."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from browser import opened, visit
from study_figures import LANGUAGES, MODELS, study_figures

from veriglot.records import Evidence, Prediction, Sample, Span, Status
from veriglot.report.study import study_tables
from veriglot.report.study_page import write_study
from veriglot.study.results import Example

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

# Uses the page as a reader does and notes what happens.
USE = """
const seen = { widths: [document.documentElement.scrollWidth, innerWidth] };
const one = (selector) => document.querySelector(selector);
const all = (selector) => Array.from(document.querySelectorAll(selector));
const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const visible = (element) => element.checkVisibility();
seen.buttons = all("[data-csv]").filter(visible).length;
seen.views = all(".view").map(visible);
all("#views input")[1].click();
seen.switched = all(".view").map(visible);
all("#views input")[0].click();
seen.stops = all(".view td[tabindex='0']").filter(visible).length;
one('.view td[data-cell="0-0"]').focus();
press("ArrowRight");
press("ArrowDown");
seen.reached = document.activeElement.dataset.cell;
press("End");
seen.end = document.activeElement.dataset.cell;
const doubtful = one(".view td.hatched");
doubtful.focus();
seen.details = document.getElementById("inspector").textContent;
seen.active = one("#inspector strong") !== null;
press("Escape");
seen.rested = one("#inspector strong") === null;
const cards = all("article.example");
one("#example-language").value = "ar";
one("#example-language").dispatchEvent(new Event("change", { bubbles: true }));
seen.shown = cards.filter(visible).map((card) => card.dataset.language);
seen.count = one("#example-count").textContent;
one("#theme").click();
seen.theme = document.documentElement.dataset.theme;
seen.paper = getComputedStyle(document.body).backgroundColor;
seen.marks = Object.fromEntries(all("article.example").map((card) =>
  [card.dataset.language, Array.from(card.querySelectorAll("mark"), (mark) => mark.textContent)]));
const made = [];
const create = URL.createObjectURL.bind(URL);
URL.createObjectURL = (blob) => { made.push(blob); return create(blob); };
HTMLAnchorElement.prototype.click = function () { seen.file = this.download; };
seen.copied = all("[data-copy]").filter(visible).map((button) => button.dataset.copy);
one('[data-csv="methods.md"]').click();
seen.methods = seen.file;
made.pop();
one('[data-csv="ranks"]').click();
made[0].text().then((text) => {
  seen.csv = text;
  const pre = document.createElement("pre");
  pre.id = "seen";
  pre.textContent = JSON.stringify(seen);
  document.body.replaceChildren(pre);
});
"""


def use(chromium: str, folder: Path, width: int = 1280) -> dict[str, Any]:
    """What a reader meets. The policy is taken off this copy: it rightly refuses the script that plays the reader."""
    page = folder / "study.html"
    write_study(study_figures(), page)
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text("utf-8"))
    page.write_text(text.replace("</body>", f"<script>{USE}</script></body>"), "utf-8")
    dom, console = visit(chromium, page, width=width)
    assert console == []
    found = re.search(r'<pre id="seen">(.*)</pre>', dom, re.DOTALL)
    assert found, dom[-2000:]
    return json.loads(html.unescape(found.group(1)))


@pytest.fixture(scope="module")
def used(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return use(chromium, tmp_path_factory.mktemp("study"))


def test_its_own_script_runs_under_its_policy_without_a_word(chromium: str, tmp_path: Path) -> None:
    write_study(study_figures(), tmp_path / "study.html")
    dom, console = visit(chromium, tmp_path / "study.html")
    assert console == []
    assert 'data-ready="yes"' in dom


def test_the_heat_map_is_walked_with_the_keys(used: dict[str, Any]) -> None:
    assert used["stops"] == 1, "one tab stop for the whole table"
    assert used["reached"] == "1-1"
    assert used["end"] == f"{len(MODELS) - 1}-1"
    assert used["active"]
    assert "unreliable (" in used["details"]
    assert "responses judged" in used["details"]
    assert used["rested"]


def test_other_estimates_are_shown_one_at_a_time(used: dict[str, Any]) -> None:
    assert used["views"] == [True, False, False, False, False]
    assert used["switched"] == [False, True, False, False, False]


def test_a_table_is_saved_as_it_is(used: dict[str, Any]) -> None:
    table = study_tables(study_figures())["ranks"]
    lines = used["csv"].removeprefix("\ufeff").splitlines()
    assert used["file"] == "ranks.csv"
    assert lines[0] == ",".join(table.columns)
    assert len(lines) == 1 + len(table.rows)
    assert used["methods"] == "methods.md"
    assert used["copied"] == ["methods-text", "signature"], "without references there is no BibTeX"
    assert used["buttons"] >= len(study_tables(study_figures()))


def test_examples_are_filtered_and_marked(used: dict[str, Any]) -> None:
    assert used["shown"] == ["ar"]
    assert used["count"].startswith("1 of ")
    assert used["marks"]["ar"][0] == "1952"
    assert used["marks"]["zh-Hans"][0] == "1938年"


def test_the_theme_changes(used: dict[str, Any]) -> None:
    assert used["theme"] == "dark"
    assert sum(int(part) for part in re.findall(r"\d+", used["paper"])[:3]) < 150


@pytest.mark.parametrize("width", [500, 800, 1280, 1900])
def test_no_screen_has_to_scroll_sideways(chromium: str, tmp_path: Path, width: int) -> None:
    page_width, window = use(chromium, tmp_path, width)["widths"]
    assert page_width <= window


BEYOND = """() => Array.from(document.querySelectorAll("main *")).filter((part) =>
  !part.closest(".scroller, svg, .unseen") && part.getBoundingClientRect().right > innerWidth + 1
).map((part) => part.outerHTML.slice(0, 80))"""


def test_a_phone_shows_all_within_its_width_and_paper_is_light_without_controls(
    browser: Browser, tmp_path: Path
) -> None:
    names = ("نموذج-النسر-7b", "通义模型-14b", "company/a-very-long-name-of-a-model-2026-instruct-fp8", *"abcdefghi")
    models = tuple(msgspec.structs.replace(MODELS[0], name=name) for name in names)
    write_study(study_figures(models), tmp_path / "study.html")
    page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme="dark")
    page.goto((tmp_path / "study.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(BEYOND) == []
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    shown = "(name) => Array.from(document.querySelectorAll(name)).filter((part) => part.checkVisibility()).length"
    assert page.evaluate(shown, ".tool, .choice, .contents, .inspector") == 0
    cut = "Array.from(document.querySelectorAll('.scroller'), (part) => getComputedStyle(part).overflowX)"
    assert set(page.evaluate(cut)) == {"visible"}
    page.close()


def test_it_prints_with_every_figure_of_the_heat_map(chromium: str, tmp_path: Path) -> None:
    write_study(study_figures(), tmp_path / "study.html")
    opened(chromium, tmp_path / "study.html", "--no-pdf-header-footer", f"--print-to-pdf={tmp_path / 'study.pdf'}")
    data = (tmp_path / "study.pdf").read_bytes()
    pages = max(int(number) for number in re.findall(rb"/Count (\d+)", data))
    assert 5 <= pages <= 40
    assert data.startswith(b"%PDF")


def test_hostile_text_runs_nothing_and_asks_for_nothing(
    chromium: str, tmp_path: Path, listener: tuple[int, list[str]]
) -> None:
    port, asked = listener
    at = f"http://127.0.0.1:{port}"
    evil = (
        f"</script><script>document.title='owned';fetch('{at}/fetch')</script>"
        f"<img src={at}/img onerror=\"document.title='owned'\"><style>@import '{at}/css';</style>"
        f"<link rel=stylesheet href={at}/link><iframe src={at}/frame></iframe><!-- \u202e"
    )
    model = msgspec.structs.replace(MODELS[0], name=evil, family=evil, settings={"note": evil})
    sample = Sample(
        evil, evil, language=evil, question=evil, evidence=(Evidence(evil, id=evil, title=evil, url=f"{at}/url"),)
    )
    prediction = Prediction(evil, Status.SCORED, evil, 0.5, (Span(0, 9, evil, 0.5, evil),))
    results = msgspec.structs.replace(
        study_figures((model, *MODELS[1:]), LANGUAGES[:4]), title=evil, methods=(evil,), assumptions=(evil,),
        warnings=(evil,), signature=evil, detectors=(evil,), examples=(Example(sample, prediction),),
    )  # fmt: skip
    write_study(results, tmp_path / "study.html")
    dom, console = visit(chromium, tmp_path / "study.html")
    assert 'data-ready="yes"' in dom
    assert console == []
    assert asked == []
    live = re.sub(r"<script.*?</script>", "", dom[dom.index("<body") :], flags=re.DOTALL)
    assert not re.search(r"<(img|iframe|link|style|object)\b", live)
    assert "&lt;img src=" in live, "the text itself is shown"
    assert "\u202e" not in live

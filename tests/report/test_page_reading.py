"""Reading pages as people do: with a pointer, with keys, on a telephone, in the dark."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from bench_made import bench_of
from judged_samples import arabic, every_kind, judged
from study_figures import study_figures

from veriglot.cli import main
from veriglot.formats.writer import write
from veriglot.records import Evidence, Prediction, Sample, Status
from veriglot.report.bench import write_bench
from veriglot.report.pages import write_html
from veriglot.report.study_page import write_study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser
    from playwright.sync_api import Page as Tab

pytestmark = pytest.mark.slow

PHONE, SCREEN = 390, 1280
SLIDE = """(element, [value, types]) => {
  element.value = value;
  for (const type of types) element.dispatchEvent(new Event(type, { bubbles: true }));
}"""


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Tab]]:
    """Opens a page; whatever its scripts write to the console is a failure."""
    console: list[str] = []
    contexts = []

    def opened(path: Path, width: int = SCREEN, fragment: str = "", **settings: Any) -> Tab:
        context = browser.new_context(viewport={"width": width, "height": 844}, offline=True, **settings)
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda message: console.append(message.text))
        tab.on("pageerror", lambda error: console.append(str(error)))
        tab.goto(path.as_uri() + fragment)
        return tab

    yield opened
    for context in contexts:
        context.close()
    assert console == []


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reading") / "page.html"
    write_html(every_kind(), path, title="/a/rather/long/path/to/the/samples-of-a-reader.jsonl: rule")
    return path


def slide(tab: Tab, value: int, *types: str) -> None:
    tab.locator("#threshold").evaluate(SLIDE, [value, types or ("input", "change")])


def test_counts_follow_the_threshold(samples: Path, visit: Callable[..., Tab]) -> None:
    tab = visit(samples)
    assert tab.inner_text("#verdict strong") == "4 unsupported spans"
    assert "7 with marks" in tab.inner_text("#summary")
    row = tab.locator("#row-0 .row-marks")
    assert re.findall(r"\d+ \w+", row.inner_text()) == ["1 entity", "1 subjective", "1 contradictory", "1 invented"]
    slide(tab, 80, "input")
    assert tab.inner_text("#verdict strong") == "2 of 4 spans at 80% or more"
    assert re.findall(r"\d+ \w+", row.inner_text()) == ["1 entity", "1 subjective"]
    assert "with marks at 80% or more" in tab.inner_text("#summary")
    assert tab.get_attribute("#threshold", "aria-valuetext") == "2 of 4 spans at 80% or more"
    slide(tab, 99)
    assert tab.inner_text("#verdict strong") == "0 of 4 spans at 99% or more"
    assert "0 with marks" in tab.inner_text("#summary")
    assert row.inner_text() == "nothing at 99%"
    slide(tab, 75)
    words = int(re.search(r"and (\d+) more word", tab.inner_text("#verdict strong")).group(1))  # type: ignore[union-attr]
    assert words == tab.locator("#response .over").count()
    assert f"+ {words} words" in row.inner_text()
    tab.get_by_role("button", name="Reset").click()
    assert tab.inner_text("#verdict strong") == "4 unsupported spans"
    assert "7 with marks" in tab.inner_text("#summary")


def test_what_is_filtered_out_is_not_shown(samples: Path, visit: Callable[..., Tab]) -> None:
    tab = visit(samples)
    assert tab.inner_text(".sample-id") == "en-lighthouse"
    tab.select_option("#by-language", "=Hindi")
    assert tab.inner_text(".sample-id") == "hi-garden"
    assert tab.locator(".row[aria-selected=true]").get_attribute("id") == "row-4"
    tab.fill("#search", "nothing has this")
    tab.wait_for_selector(".no-sample", state="visible")
    assert not tab.locator("#response").is_visible()
    assert tab.inner_text("#count") == "No sample matches"
    tab.keyboard.press("Escape")
    tab.fill("#search", "")
    tab.wait_for_selector("#response", state="visible")
    assert tab.inner_text(".sample-id") == "hi-garden"
    tab.select_option("#by-language", "")
    tab.select_option("#by-type", "=subjective")
    assert tab.inner_text(".sample-id") == "en-lighthouse"
    tab.evaluate("location.hash = '#zh-library'")
    tab.wait_for_function("document.querySelector('.sample-id').textContent === 'zh-library'")
    assert tab.input_value("#by-type") == "", "an address goes before the filters"


def test_a_threshold_that_filters_a_sample_out_shows_another(samples: Path, visit: Callable[..., Tab]) -> None:
    tab = visit(samples, fragment="#hi-garden")
    tab.select_option("#by-type", "=entity")
    tab.locator("#threshold").focus()
    slide(tab, 96)
    assert tab.inner_text(".sample-id") == "ar-market"
    assert tab.inner_text("#count").startswith("1 of 11 samples")
    assert tab.evaluate("document.activeElement.id") == "threshold", "the focus stays at the slider"


@pytest.mark.parametrize("width", [PHONE, SCREEN])
def test_nothing_covers_the_controls(samples: Path, visit: Callable[..., Tab], width: int) -> None:
    tab = visit(samples, width)
    tab.locator("#response mark.part").first.hover()
    for selector in ("#threshold", "#controls select", "#previous", "#next"):
        box = tab.locator(selector).bounding_box()
        assert box is not None
        at = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
        hit = tab.evaluate("([x, y]) => document.elementsFromPoint(x, y).map((e) => e.id || e.tagName)", at)
        assert hit[0] == tab.locator(selector).evaluate("(e) => e.id || e.tagName"), hit


def test_the_place_at_hand_is_quoted_with_its_number(visit: Callable[..., Tab], tmp_path: Path) -> None:
    filler = "the engineer planned it for many years with her brother and the council of the town, "
    evidence = f"{filler * 2}and it was finished in 1871 after long quarrels; {filler * 4}so that 34 people came."
    pair = judged("long", "en", [evidence], "It was finished in 1887.", [("1887", "entity", 0.9, evidence)])
    short = judged("short", "en", [evidence[60:240]], "In 1887.", [("1887", "entity", 0.9, evidence[60:240])])
    write_html([pair, short], tmp_path / "page.html", title="long")
    tab = visit(tmp_path / "page.html")
    for _ in range(2):
        tab.keyboard.press("n")
        assert "was finished in 1871 after" in tab.inner_text("#inspector .snippet b")
        tab.keyboard.press("j")
    assert "…" not in tab.inner_text("#inspector .snippet b"), "a short place is quoted whole"


def test_no_codes_stand_in_for_words(samples: Path, visit: Callable[..., Tab]) -> None:
    tab = visit(samples)
    for sample, _ in every_kind():
        tab.evaluate("(id) => { location.hash = '#' + encodeURIComponent(id); }", sample.id)
        tab.wait_for_function("(id) => document.querySelector('.sample-id').textContent === id", arg=sample.id)
        rows = " ".join(tab.locator(".row-marks, .tag").all_inner_texts())
        text = f"{tab.inner_text('#reader')} {rows}".replace(sample.id, "")
        assert not re.search(r"no_evidence|unsupported_language|calibration:|\bqa\b|\bzh-Hans\b", text), sample.id
    assert tab.locator("#list .tag").all_inner_texts()[:3] == ["English", "Arabic", "Hebrew"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_is_wider_than_a_telephone(visit: Callable[..., Tab], tmp_path: Path, scheme: str) -> None:
    titled = Sample("t", "Ada.", evidence=(Evidence("Ada.", id="p0", title="x" * 200),))
    pairs = [
        *every_kind(),
        (titled, Prediction("t", Status.SCORED, "d", 0.0, ())),
        judged("x" * 90, "ar", arabic()[0].evidence[0].text.split("،"), "س" * 300, [], words=False),
    ]
    write_html(pairs, tmp_path / "page.html", title="t" * 120)
    tab = visit(tmp_path / "page.html", PHONE, color_scheme=scheme)
    tab.click("#samples-toggle")
    for sample, _ in pairs:
        tab.evaluate("(id) => { location.hash = '#' + id; }", sample.id)
        assert tab.evaluate("document.documentElement.scrollWidth") == PHONE, sample.id


# Reports: of a study, a bench, a check.


def study(folder: Path, results: Any = None) -> Path:
    write_study(results or study_figures(), folder / "study.html")
    return folder / "study.html"


def bench(folder: Path) -> Path:
    write_bench(bench_of({"a-detector-with-a-very-long-name" * 2: (0.61, 3), "b": (0.5, 2)}), folder / "bench.html")
    return folder / "bench.html"


def checked(folder: Path) -> Path:
    rows = [sample for sample, _ in every_kind()]
    write(rows, folder / ("rows-" + "x" * 80 + ".jsonl"))
    assert main(["dataset", "check", str(next(folder.glob("rows-*"))), "--report", str(folder / "check.html")]) in {
        0,
        1,
    }
    return folder / "check.html"


@pytest.mark.parametrize("made", [study, bench, checked])
def test_no_report_is_wider_than_a_telephone(
    visit: Callable[..., Tab], tmp_path: Path, made: Callable[[Path], Path]
) -> None:
    tab = visit(made(tmp_path), PHONE)
    tab.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert tab.evaluate("document.documentElement.scrollWidth") == PHONE
    outside = "[...document.querySelectorAll('main ul')].filter((list) => !list.className).map((list) => "
    outside += (
        "getComputedStyle(list)).filter((style) => style.listStyleType === 'disc' && style.paddingLeft === '0px')"
    )
    assert tab.evaluate(f"{outside}.length") == 0, "the dots of a list lie in the page"
    heads = "[...document.querySelectorAll('.plain:not(.board) tbody th')].filter((e) => e.textContent.length > 24)"
    assert all(width >= 120 for width in tab.evaluate(f"{heads}.map((e) => e.getBoundingClientRect().width)"))


@pytest.mark.parametrize("width", [PHONE, SCREEN])
def test_the_ticks_of_a_chart_stand_under_its_lines(visit: Callable[..., Tab], tmp_path: Path, width: int) -> None:
    tab = visit(study(tmp_path), width)
    places = tab.evaluate("""() => Array.from(document.querySelectorAll('#languages table.strips'), (table) => {
      const middle = (e) => { const box = e.getBoundingClientRect(); return box.left + box.width / 2; };
      const lines = table.querySelector('tbody tr').querySelectorAll('.grid');
      return [lines, table.querySelectorAll('.tick')].map((all) => Array.from(all, middle));
    })""")
    assert places
    for lines, ticks in places:
        assert ticks == pytest.approx(lines, abs=1.5)


def test_what_is_known_of_a_rate_covers_nothing(visit: Callable[..., Tab], tmp_path: Path) -> None:
    tab = visit(study(tmp_path))
    for cell in (tab.locator("td.cell").nth(3), tab.locator(".view").first.locator("td.cell").last):
        cell.scroll_into_view_if_needed()
        cell.hover()
        assert tab.locator("#inspector strong").count() == 1
        inspector, table = (tab.locator(name).first.bounding_box() for name in ("#inspector", ".view .scroller"))
        assert inspector is not None
        assert table is not None
        assert inspector["y"] >= table["y"] + table["height"]
    head = tab.locator(".view thead th").nth(1).bounding_box()
    scroller = tab.locator(".view .scroller").first.bounding_box()
    assert head is not None
    assert scroller is not None
    assert head["y"] >= scroller["y"], "the names of the models stay in sight"


def test_charts_that_would_say_nothing_are_sentences(visit: Callable[..., Tab], tmp_path: Path) -> None:
    results = study_figures()
    assert visit(study(tmp_path)).locator("#responses svg, #types svg").count() > 0
    cells = tuple(
        msgspec.structs.replace(
            cell, types={"entity": 7}, rates=tuple(msgspec.structs.replace(rate, coverage=1.0) for rate in cell.rates),
            coverage=msgspec.structs.replace(
                cell.coverage, answered=cell.coverage.planned, failed=0, statuses={"scored": cell.coverage.planned}
            ),
        )
        for cell in results.cells
    )  # fmt: skip
    bare = msgspec.structs.replace(results, cells=cells)
    tab = visit(study(tmp_path, bare))
    planned = sum(cell.coverage.planned for cell in cells)
    assert tab.locator("#responses svg, #types svg, #rates .coverage").count() == 0
    assert f"All {planned:,} planned responses were judged." in tab.inner_text("#responses")
    assert f"All {7 * len(cells):,} marked words are of this one type." in tab.inner_text("#types")


CONTRAST = """() => {
  const paint = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const solid = (colour) => {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = colour;
    paint.fillRect(0, 0, 1, 1);
    return [...paint.getImageData(0, 0, 1, 1).data];
  };
  const over = ([r, g, b, a], under) => [r, g, b].map((v, i) => (v * a) / 255 + under[i] * (1 - a / 255));
  const ground = (e) => {
    if (!e) return [255, 255, 255];
    return over(solid(getComputedStyle(e).backgroundColor), ground(e.parentElement));
  };
  const linear = (v) => (v / 255 <= .03928 ? v / 255 / 12.92 : ((v / 255 + .055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => .2126 * linear(r) + .7152 * linear(g) + .0722 * linear(b);
  const poor = [];
  for (const e of document.querySelectorAll('body *')) {
    if (!e.checkVisibility({ checkVisibilityCSS: true }) || e.closest('.unseen, svg, script, dialog')) continue;
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    const behind = ground(e);
    let ink = solid(getComputedStyle(e).color);
    let shown = 1;
    for (let up = e; up; up = up.parentElement) shown *= Number(getComputedStyle(up).opacity);
    ink[3] *= shown;
    const [a, b] = [light(over(ink, behind)), light(behind)];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) poor.push(`${e.tagName}.${e.className} ${ratio.toFixed(2)} ${e.textContent.trim().slice(0, 30)}`);
  }
  return [...new Set(poor)];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("made", [study, bench, checked, None])
def test_every_text_can_be_read_against_its_ground(
    visit: Callable[..., Tab], tmp_path: Path, samples: Path, made: Callable[[Path], Path] | None, scheme: str
) -> None:
    tab = visit(made(tmp_path) if made else samples, color_scheme=scheme)
    tab.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert tab.evaluate(CONTRAST) == []


@pytest.mark.parametrize("made", [study, bench, checked, None])
def test_whatever_acts_has_a_name_and_a_place_in_the_order(
    visit: Callable[..., Tab], tmp_path: Path, samples: Path, made: Callable[[Path], Path] | None
) -> None:
    tab = visit(made(tmp_path) if made else samples)
    acting = 'button, a[href], select, input, summary, [tabindex="0"]'
    nameless = tab.evaluate(
        """(acting) => Array.from(document.querySelectorAll(acting))
      .filter((e) => e.checkVisibility() && !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length))
      .map((e) => e.outerHTML.slice(0, 90))""",
        acting,
    )
    assert nameless == []
    seen, at = set(), ""
    for _ in range(12):
        tab.keyboard.press("Tab")
        at = tab.evaluate("document.activeElement.outerHTML.slice(0, 200)")
        assert tab.evaluate("document.activeElement.matches(':focus-visible')"), at
        seen.add(at)
    assert len(seen) > 6, "the focus moves on"

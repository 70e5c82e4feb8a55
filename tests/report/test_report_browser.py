"""What a real browser makes of the page. These tests need Chromium; without it they say so and step aside."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from browser import visit
from judged_samples import Pair, clean, every_kind, judged, long_evidence

from veriglot.records import Evidence, Prediction, Sample, Span, Status
from veriglot.report.pages import write_html

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

# Walks through the samples with the keys that a reader has, and notes what is on the page at each.
WALK = """
const press = (key) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const all = (selector) => Array.from(document.querySelectorAll(selector));
const texts = (selector) => all(selector).map((e) => e.textContent);
const walked = [];
const count = all("script.listed").length;
for (let i = 0; i < count; i += 1) {
  const seen = { id: document.querySelector(".sample-id").textContent, marks: {}, places: {}, hovered: {}, words: {} };
  const response = document.getElementById("response");
  Object.assign(seen, { dir: response.dir, lang: response.lang, text: response.textContent });
  const parts = all("#response .part");
  for (const part of parts) {
    const numbers = (part.dataset.spans || "").split(" ").filter(Boolean);
    for (const n of numbers) seen.marks[n] = (seen.marks[n] || "") + part.textContent;
  }
  for (const part of parts) if (part.dataset.word !== undefined && part.dataset.spans === undefined) {
    part.dispatchEvent(new PointerEvent("pointerover", { bubbles: true, pointerType: "mouse" }));
    seen.words[part.textContent] = texts("#evidence .now");
    part.dispatchEvent(new PointerEvent("pointerout", { bubbles: true, pointerType: "mouse" }));
  }
  seen.left = texts("#evidence .now");
  for (const n of Object.keys(seen.marks)) {
    press("n");
    seen.places[n] = texts("#evidence .now").join("");
    seen.inspector = document.getElementById("inspector").textContent;
  }
  press("Escape");
  seen.verdict = document.getElementById("verdict").textContent;
  seen.unchecked = all("#verdict.not-checked").length;
  seen.evidence = document.getElementById("evidence").textContent.length;
  seen.folds = all(".fold").length;
  walked.push(seen);
  press("j");
}
const pre = document.createElement("pre");
pre.id = "walked";
pre.textContent = JSON.stringify(walked);
document.body.replaceChildren(pre);
"""


def walk(chromium: str, pairs: list[Pair], folder: Path) -> dict[str, dict[str, Any]]:
    """What a reader sees of each sample. The policy is taken off this copy: it rightly refuses the walking script."""
    page = folder / "page.html"
    write_html(pairs, page, title="walk")
    text = page.read_text("utf-8")
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    page.write_text(text.replace("</body>", f"<script>{WALK}</script></body>"), "utf-8")
    dom, console = visit(chromium, page)
    assert console == []
    found = re.search(r'<pre id="walked">(.*)</pre>', dom, re.DOTALL)
    assert found, dom[-2000:]
    return {seen["id"]: seen for seen in json.loads(html.unescape(found.group(1)))}


@pytest.fixture(scope="module")
def walked(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return walk(chromium, every_kind(), tmp_path_factory.mktemp("walk"))


def without_spaces(text: str) -> str:
    return "".join(text.split())


def test_every_span_is_drawn_over_its_own_text(walked: dict[str, dict[str, Any]]) -> None:
    for sample, prediction in every_kind():
        seen = walked[sample.id]
        expected = {str(i): sample.response[s.start : s.end] for i, s in enumerate(prediction.spans or ())}
        assert seen["marks"] == expected
        if sample.response:
            assert seen["text"] == sample.response


def test_the_next_span_key_shows_the_place_of_each_span(walked: dict[str, dict[str, Any]]) -> None:
    for sample, prediction in every_kind():
        passages = {passage.id: passage.text for passage in sample.evidence}
        for index, span in enumerate(prediction.spans or ()):
            expected = "".join(passages[p.id][p.start : p.end] for p in span.evidence)
            assert walked[sample.id]["places"][str(index)] == expected


def test_hovering_a_supported_word_shows_its_place(walked: dict[str, dict[str, Any]]) -> None:
    assert walked["ar-market"]["words"]["سوق"] == ["سوق"]
    assert walked["hi-garden"]["words"]["कमल"] == ["कमल"]
    english = walked["en-lighthouse"]["words"]
    assert english["Fenwick"] == ["Fenwick"]
    assert all(seen["left"] == [] for seen in walked.values()), "leaving a word takes its highlight away"


def test_direction_and_language_of_the_response(walked: dict[str, dict[str, Any]]) -> None:
    found = {name: (seen["dir"], seen["lang"]) for name, seen in walked.items()}
    assert found["ar-market"] == ("rtl", "ar")
    assert found["he-bridge"] == ("rtl", "he")
    assert found["zh-library"] == ("ltr", "zh-Hans")
    assert found["crossing"][1] == ""


def test_not_checked_looks_not_checked(walked: dict[str, dict[str, Any]]) -> None:
    assert walked["x-no_evidence"]["unchecked"] == 1
    assert walked["x-no_evidence"]["verdict"] == "Not checked: no evidence was giventhe sample has no evidence"
    assert walked["en-clean"]["unchecked"] == 0
    assert walked["en-clean"]["verdict"].startswith("No unsupported span found")
    assert walked["empty"]["text"] == "The response is empty."


def test_long_evidence_is_folded_and_opens_at_the_place(chromium: str, tmp_path: Path) -> None:
    pair = long_evidence()
    seen = walk(chromium, [pair], tmp_path)["en-ledger"]
    assert len(pair[0].evidence[0].text) > 1_000_000
    assert seen["evidence"] < 20_000
    assert seen["folds"] >= 2
    assert seen["places"]["0"] == "Ledger line 15000 names a debtor"


def test_edges_inside_a_visible_character_are_drawn_at_its_edge(chromium: str, tmp_path: Path) -> None:
    family = "👩\u200d👩\u200d👧"
    response = f"a {family} b का c"
    cut = response.index("क")
    spans = (Span(2, 3, "entity", 0.5), Span(cut, cut + 1, "entity", 0.5))
    pair = (Sample("cut", response, evidence=(Evidence("x"),)), Prediction("cut", Status.SCORED, "d", 0.5, spans))
    assert walk(chromium, [pair], tmp_path)["cut"]["marks"] == {"0": family, "1": "का"}


def hostile(port: int) -> Pair:
    at = f"http://127.0.0.1:{port}"
    evil = (
        f"</script><script>document.title='owned';fetch('{at}/fetch')</script>"
        f"<img src={at}/img onerror=\"document.title='owned'\"><style>@import '{at}/css';</style>"
        f"<link rel=stylesheet href={at}/link><iframe src={at}/frame></iframe><!-- \u202e"
    )
    sample = Sample(
        evil, evil, language=evil, question=evil,
        evidence=(Evidence(evil, id=evil, title=evil, url=f"{at}/url"), Evidence("x", url="javascript:void(0)")),
    )  # fmt: skip
    spans = (Span(0, 9, evil, 0.5, evil),)
    return sample, Prediction(evil, Status.SCORED, evil, 0.5, spans, notes=(evil,), signature=evil)


def test_hostile_text_runs_nothing_and_asks_for_nothing(
    chromium: str, tmp_path: Path, listener: tuple[int, list[str]]
) -> None:
    port, asked = listener
    write_html([hostile(port), clean()], tmp_path / "page.html", title="Hostile </title><script>1</script>")
    dom, console = visit(chromium, tmp_path / "page.html")
    assert 'data-ready="yes"' in dom, "the page's own script ran under its policy"
    assert "<title>Hostile &lt;/title&gt;" in dom
    assert console == []
    assert asked == []
    body = dom[dom.index("<body") :]
    live = re.sub(r"<script.*?</script>", "", body, flags=re.DOTALL)
    assert not re.search(r"<(img|iframe|link|style|object)\b", live)
    assert "&lt;img src=" in live, "the text itself is shown"
    assert "\u202e" not in re.sub(r"<[^>]*>", "", live)
    assert not re.search(r'href="javascript', live)


def test_the_listener_would_have_noticed(chromium: str, tmp_path: Path, listener: tuple[int, list[str]]) -> None:
    port, asked = listener
    (tmp_path / "bad.html").write_text(f"<img src='http://127.0.0.1:{port}/img'><script>console.log('heard')</script>")
    _, console = visit(chromium, tmp_path / "bad.html")
    assert asked == ["/img"]
    assert len(console) == 1


def test_an_address_opens_its_sample_and_thousands_are_listed_by_the_dozen(chromium: str, tmp_path: Path) -> None:
    pair = judged("x", "en", ["It is red."], "It is blue.", [("blue", "entity", 0.9, "red")])
    pairs = [
        (msgspec.structs.replace(pair[0], id=f"n {i}"), msgspec.structs.replace(pair[1], id=f"n {i}"))
        for i in range(3000)
    ]
    write_html(pairs, tmp_path / "page.html", title="many")
    dom, console = visit(chromium, tmp_path / "page.html", "#n%202500")
    assert console == []
    assert '<bdi class="sample-id">n 2500</bdi>' in dom
    assert dom.count('class="row"') < 60
    assert "3,000 samples" in dom

"""The HTML file: its structure, its policy, its data; what a browser makes of it is in test_report_browser."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import tracemalloc
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judged_samples import Pair, chinese, clean, empty, english, every_kind, long_evidence, unchecked

from veriglot.errors import InputError
from veriglot.records import Annotation, Evidence, Generator, Kind, Pointer, Prediction, Sample, Span, Status, Word
from veriglot.report.pages import sample_blocks, write_html

if TYPE_CHECKING:
    from collections.abc import Iterator

EVIL = (
    "</script><script>document.title='owned'</script><img src=http://127.0.0.1:9/x onerror=alert(1)>"
    "<!--&lt;\u2028\"'`${1}"
)
LOADING = {"src", "srcset", "data", "poster", "action", "formaction", "background", "ping", "manifest"}


class Page(HTMLParser):
    """The elements of a page, and the text of its script and style elements."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.blocks: list[tuple[str, dict[str, str | None], str]] = []
        self._open: tuple[str, dict[str, str | None]] | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in {"script", "style", "title"}:
            self._open = (tag, dict(attrs))
            self.blocks.append((tag, dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        if self._open:
            tag, attrs, before = self.blocks[-1]
            self.blocks[-1] = (tag, attrs, before + data)

    def handle_endtag(self, tag: str) -> None:
        if self._open and tag == self._open[0]:
            self._open = None

    def text_of(self, tag: str, class_: str | None = None) -> list[str]:
        return [text for name, attrs, text in self.blocks if name == tag and attrs.get("class") == class_]

    def data(self, class_: str) -> list[dict[str, Any]]:
        return [json.loads(text) for text in self.text_of("script", class_)]


def page_of(pairs: list[Pair], folder: Path, title: str = "A title") -> Page:
    write_html(pairs, folder / "page.html", title=title)
    return Page((folder / "page.html").read_text("utf-8"))


def evil_pair() -> Pair:
    sample = Sample(
        EVIL, EVIL, language=EVIL, question=EVIL, generator=Generator(EVIL),
        evidence=(Evidence(EVIL, id=EVIL, title=EVIL, language=EVIL, url=f"javascript:{EVIL}"),),
        annotations=(Annotation(EVIL, Kind.HUMAN, EVIL, spans=(Span(0, 3, EVIL, 0.5, EVIL),)),), meta={EVIL: EVIL},
    )  # fmt: skip
    spans = (Span(1, 5, EVIL, 0.5, EVIL, (Pointer(EVIL, 0, 4),)),)
    return sample, Prediction(
        EVIL, Status.SCORED, EVIL, 0.5, spans, (Word(1, 5, 0.5, (Pointer(EVIL, 0, 4),)),), EVIL, (EVIL,),
        signature=EVIL,
    )  # fmt: skip


def test_two_blocks_a_sample_in_order(tmp_path: Path) -> None:
    pairs = every_kind()
    assert write_html(pairs, tmp_path / "page.html", title="x") == len(pairs)
    page = Page((tmp_path / "page.html").read_text("utf-8"))
    assert [row["id"] for row in page.data("listed")] == [sample.id for sample, _ in pairs]
    assert len(page.data("shown")) == len(pairs)


def test_offsets_stay_code_points_in_the_file(tmp_path: Path) -> None:
    pair = chinese()
    page = page_of([pair], tmp_path)
    row, body = page.data("listed")[0], page.data("shown")[0]
    for start, end, type_, _, confidence, places in body["layers"][0]["spans"]:
        span = next(s for s in pair[1].spans or () if s.start == start)
        assert row["response"][start:end] == span.text
        assert (type_, confidence) == (span.type, span.confidence)
        assert [body["evidence"][i]["text"][a:b] for i, a, b in places] == [
            pair[0].evidence[0].text[p.start : p.end] for p in span.evidence
        ]
    assert any(ord(c) > 0xFFFF for c in row["response"])
    assert all(body["evidence"][i]["text"][a:b] for word in body["words"] for i, a, b in word[3])


def test_hostile_text_stays_data(tmp_path: Path) -> None:
    failed = (Sample("b", EVIL), Prediction("b", Status.FAILED, EVIL, reason=EVIL))
    page = page_of([evil_pair(), failed], tmp_path, title=EVIL)
    clean_page = page_of([clean(), clean()], tmp_path)
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in clean_page.elements]
    assert page.data("listed")[0]["response"] == EVIL
    assert page.data("shown")[0]["evidence"][0]["text"] == EVIL
    assert page.data("shown")[1]["reason"] == EVIL
    assert page.text_of("title") == [EVIL.replace("\u2028", "\n")]


@pytest.mark.fuzz
@given(st.lists(st.sampled_from([*"<>&!-/\"'\\\r\n\0 s\u2028\ufeff𠮷", "</script", "<!--", "]]>"])).map("".join))
def test_any_text_survives_the_script_element(text: str) -> None:
    listed, shown = sample_blocks(
        Sample("a", text, evidence=(Evidence(text),)), Prediction("a", Status.FAILED, "d", reason="r")
    )
    page = Page(f'<script class="listed">{listed}</script><script class="shown">{shown}</script>')
    assert page.data("listed")[0]["response"] == text
    assert page.data("shown")[0]["evidence"][0]["text"] == text
    assert not set("<>&\r") & set(listed + shown)


def test_lone_surrogates_become_replacement_characters_of_the_same_length() -> None:
    listed, _ = sample_blocks(Sample("a", "x\ud83d\ude00y"), Prediction("a", Status.FAILED, "d", reason="r"))
    assert json.loads(listed)["response"] == "x\ufffd\ufffdy"


def test_the_policy_allows_this_script_and_style_only(tmp_path: Path) -> None:
    page = page_of(every_kind(), tmp_path)
    policy = next(a["content"] for t, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data:"  # for the empty icon, so that no browser asks for one

    def hashed(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    assert [hashed(text) for text in page.text_of("style")] == [rules["style-src"]]
    scripts = [t for name, a, t in page.blocks if name == "script" and a.get("type") != "application/json"]
    assert [hashed(text) for text in scripts] == [rules["script-src"]]
    assert all("style" not in a and not any(k.startswith("on") for k in a) for _, a in page.elements)


def test_nothing_is_loaded_from_outside(tmp_path: Path) -> None:
    page = page_of(every_kind(), tmp_path)
    for tag, attributes in page.elements:
        assert not LOADING & attributes.keys(), tag
        assert tag not in {"iframe", "object", "embed", "img", "base", "video", "audio"}
        if tag == "link":
            assert attributes["href"] == "data:,"
    style = page.text_of("style")[0]
    assert "url(" not in style
    assert "@import" not in style
    script = next(t for name, a, t in page.blocks if name == "script" and not a)
    assert not re.search(
        r"\b(fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|importScripts|eval)\b|innerHTML", script
    )


def test_not_checked_is_stated_in_the_data(tmp_path: Path) -> None:
    statuses = [s for s in Status if s is not Status.SCORED]
    page = page_of([unchecked(s, f"why {s}") for s in statuses], tmp_path)
    assert [row["status"] for row in page.data("listed")] == [s.value for s in statuses]
    assert all(row["score"] is None for row in page.data("listed"))
    assert [body["reason"] for body in page.data("shown")] == [f"why {s}" for s in statuses]


def test_directions_and_languages(tmp_path: Path) -> None:
    page = page_of(every_kind(), tmp_path)
    found = {row["id"]: (row["dir"], row["language"]) for row in page.data("listed")}
    assert found["ar-market"] == ("rtl", "Arabic")
    assert found["he-bridge"] == ("rtl", "Hebrew")
    assert found["hi-garden"] == ("ltr", "Hindi")
    assert {body["evidence"][0]["dir"] for body in page.data("shown") if body["evidence"]} == {"ltr", "rtl"}


def test_marks_of_annotators_are_there_to_compare(tmp_path: Path) -> None:
    page = page_of([english(), clean()], tmp_path)
    layers = page.data("shown")[0]["layers"]
    assert [(layer["name"], layer["kind"]) for layer in layers] == [("rule@1", "detector"), ("gold", "person")]
    assert [span[2] for span in layers[1]["spans"]] == ["entity", "subjective"]
    assert len(page.data("shown")[1]["layers"]) == 1


def test_pointers_that_lead_nowhere_are_named(tmp_path: Path) -> None:
    spans = (Span(0, 2, "entity", 0.5, None, (Pointer("p0", 0, 99), Pointer("nowhere", 0, 1), Pointer("p0", 0, 2))),)
    sample = Sample("a", "text", evidence=(Evidence("abc"),))
    body = page_of([(sample, Prediction("a", Status.SCORED, "d", 0.5, spans))], tmp_path).data("shown")[0]
    assert body["layers"][0]["spans"][0][5] == [[0, 0, 2]]
    assert len(body["problems"]) == 2


def test_a_pair_of_different_ids_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    target.write_text("an older report")
    with pytest.raises(InputError, match=r"en-clean.*en-lighthouse"):
        write_html([english(), (english()[0], clean()[1])], target, title="x")
    assert target.read_text() == "an older report"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_no_samples_and_an_empty_response_are_pages_too(tmp_path: Path) -> None:
    assert write_html([], tmp_path / "none.html", title="none") == 0
    assert (tmp_path / "none.html").read_text("utf-8").rstrip().endswith("</html>")
    assert page_of([empty()], tmp_path).data("listed")[0]["response"] == ""


def test_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert write_html([clean()], "-", title="x") == 1
    assert Page(capsys.readouterr().out).data("listed")[0]["id"] == "en-clean"


def test_standard_output_is_utf8_in_any_locale() -> None:
    code = (
        "from judged_samples import chinese; from veriglot.report.pages import write_html;"
        " write_html([chinese()], '-', title='x')"
    )
    environment = {"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path(__file__).parent), "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=environment)
    assert Page(done.stdout.decode("utf-8")).data("listed")[0]["response"] == chinese()[0].response


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_html(every_kind(), tmp_path / name, title="x")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_memory_does_not_grow_with_the_number_of_samples(tmp_path: Path) -> None:
    sample, prediction = long_evidence(2000)

    def stream(count: int) -> Iterator[Pair]:
        for i in range(count):
            yield msgspec.structs.replace(sample, id=str(i)), msgspec.structs.replace(prediction, id=str(i))

    write_html(stream(1), tmp_path / "warm.html", title="x")
    tracemalloc.start()
    peaks = []
    for count in (2, 60):
        tracemalloc.reset_peak()
        write_html(stream(count), tmp_path / "page.html", title="x")
        peaks.append(tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
    assert peaks[1] < peaks[0] * 1.2
    assert (tmp_path / "page.html").stat().st_size > 6_000_000

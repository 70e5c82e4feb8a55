"""The terminal view, with colours and without."""

from __future__ import annotations

import html
import io
import re

import pytest
from judged_samples import (
    Pair,
    arabic,
    chinese,
    clean,
    crossing,
    empty,
    english,
    every_kind,
    judged,
    long_evidence,
    unchecked,
)
from rich.cells import cell_len
from rich.console import Console

from veriglot.errors import InputError
from veriglot.records import Evidence, Generator, Prediction, Sample, Span, Status, Task
from veriglot.report.pages import fragment
from veriglot.report.terminal import render_terminal
from veriglot.report.text_layout import status_words

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
INVISIBLE = "[\u200f\u2066\u2069]"


def plain(pair: Pair) -> str:
    out = io.StringIO()
    render_terminal(*pair, Console(file=out, width=80))
    return out.getvalue()


def coloured(pair: Pair, *, width: int = 80, system: str = "truecolor") -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=system, no_color=False)  # type: ignore[arg-type]
    render_terminal(*pair, console)
    return out.getvalue()


def test_brackets_carry_type_and_confidence_where_there_is_no_colour() -> None:
    text = plain(english())
    assert "finished in [1887]{entity .94} by Ada Fenwick, [the greatest engineer of her age]{subjective .81}." in text
    assert "[its lamp went out in [the storm of Glass Night]{invented .58}]{contradictory .72}." in text
    assert "4 unsupported spans · 94% likely that any part is unsupported" in text
    assert "types: entity 1, subjective 1, contradictory 1, invented 1" in text
    assert "Note: The confidences are a rough guide: they were not calibrated on this language or script." in text
    assert "calibration:default" not in text, "no code stands in for words"
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("confidence", "shown", "digits"), [(0.496, "49%", ".49"), (0.997, "99%", ".99"), (0.004, "<1%", ".00")]
)
def test_confidences_have_the_same_digits_in_every_view(confidence: float, shown: str, digits: str) -> None:
    sample = Sample("a", "It rains.", Task.OPEN, "en", evidence=(Evidence("It snows."),))
    prediction = Prediction("a", Status.SCORED, "d@1", confidence, (Span(3, 8, "entity", confidence),), language="en")
    text = plain((sample, prediction))
    assert text.startswith("a · English · d@1\n"), "nobody said what it was asked for"
    assert f"· {shown} likely" in text
    assert f"{{entity {digits}}}" in text
    notebook = html.unescape(fragment(prediction, sample))
    assert f"{shown} likely that any part is unsupported · d@1" in notebook
    assert f"entity {shown}" in notebook


def test_no_color_on_a_terminal_brackets_too() -> None:
    out = io.StringIO()
    render_terminal(*english(), Console(file=out, width=80, force_terminal=True, no_color=True))
    assert "[1887]{entity .94}" in " ".join(ESCAPE.sub("", out.getvalue()).split())
    assert "38;2" not in out.getvalue()


def test_colours_carry_the_type() -> None:
    text = coloured(english(), width=200)
    backgrounds = dict(re.findall(r"48;2;(\d+;\d+;\d+)m ?(1887|the greatest|its lamp)", text))
    assert len(backgrounds) == 3
    assert "[1887]" not in ESCAPE.sub("", text)
    assert "1887{.94}" in ESCAPE.sub("", text)
    assert re.search(r"\x1b\[4;38[^m]*mthe storm of", text), "the inner of two spans is underlined"


def test_sixteen_colours_are_told_apart() -> None:
    text = coloured(english(), system="standard")
    assert "48;2" not in text
    assert len(set(re.findall(r"\x1b\[(?:4;)?30;(4\d)m", text))) == 4


def test_crossing_spans_are_numbered_so_that_brackets_stay_true() -> None:
    text = plain(crossing())
    assert "[1:abcd[2:ef]{2 entity .90}g[3:hi]{1 contradictory .80}jkl]{3 relation .70}mno" in text


def test_evidence_is_quoted_beneath() -> None:
    assert "p0: …of Orrin Point was finished in [1871] by Ada Fenwick" in plain(english())
    assert "[1887]{entity .94}" in plain(english())


@pytest.mark.parametrize("status", [s for s in Status if s is not Status.SCORED])
def test_what_was_not_checked_never_looks_clean(status: Status) -> None:
    pair = unchecked(status, "the reason why")
    for text in (plain(pair), ESCAPE.sub("", coloured(pair))):
        assert f"NOT CHECKED  {status_words(status)} · the reason why" in text
        assert "_" not in text.replace(pair[0].id, ""), "no code stands in for words"
        assert "likely" not in text
        assert "no unsupported span" not in text


def test_clean_and_empty_say_so() -> None:
    assert "no unsupported span found · 5% likely that any part is unsupported" in plain(clean())
    assert "(the response is empty)" in plain(empty())


def test_right_to_left_lines_keep_their_order_and_say_their_direction() -> None:
    pair = arabic()
    for text in (plain(pair), ESCAPE.sub("", coloured(pair, width=40))):
        lines = [line for line in text.split("\n") if "سوق" in line]
        assert lines
        assert all(line.startswith("\u200f") for line in lines)
        assert text.count("\u2066") == text.count("\u2069") > 0
    bare = re.sub(INVISIBLE, "", plain(pair))
    assert "عام [1952]{entity .97} في المدينة" in bare
    without_marks = re.sub(r"\[([^\]]*)\]\{[^}]*\}", r"\1", bare)
    assert pair[0].response in without_marks, "logical order, untouched"


def test_left_to_right_text_gets_no_invisible_marks() -> None:
    assert not re.search(INVISIBLE, plain(english()) + coloured(english()))


@pytest.mark.parametrize("width", [20, 33, 80])
def test_wide_characters_stay_inside_the_width(width: int) -> None:
    for pair in (chinese(), arabic(), english()):
        for line in ESCAPE.sub("", coloured(pair, width=width)).split("\n"):
            assert cell_len(line) <= width, line


def test_a_pipe_gets_whole_lines() -> None:
    assert any(len(line) > 80 for line in plain(english()).split("\n"))


def test_hostile_text_cannot_steer_the_terminal_or_forge_marks() -> None:
    evil = "a\x1b]0;owned\x07 \x1b[2J [red]b[/red] [ok]{entity .99} \u202egnp.exe\u202c"
    sample = Sample(f"id{evil}", evil, question=evil, evidence=(Evidence(evil),), generator=Generator(evil))
    prediction = Prediction(sample.id, Status.SCORED, evil, 0.5, (Span(0, 1, evil, 0.5),), notes=(evil,))
    for pair in ((sample, prediction), (sample, Prediction(sample.id, Status.FAILED, evil, reason=evil))):
        text = ESCAPE.sub("", coloured(pair)) + plain(pair)
        assert "\x1b" not in text
        assert "\x07" not in text
        assert "\u202e" not in text
        assert "[red]" in text, "rich markup is text here"
        response = plain(pair).split("\n\n")[1]
        assert "[ok]{" not in response
        assert "[ok]\\{entity .99}" in response


def test_a_prediction_for_another_sample_is_refused() -> None:
    with pytest.raises(InputError, match=r"en-clean.*en-lighthouse"):
        render_terminal(english()[0], clean()[1], Console(file=io.StringIO()))


def test_spans_beyond_the_response_are_named_not_hidden() -> None:
    sample = Sample("a", "short")
    text = plain((sample, Prediction("a", Status.SCORED, "d@1", 0.5, (Span(2, 9, "entity", 0.5), Span(7, 9)))))
    assert "! span [2, 9) ends beyond the response of 5 code points" in text
    assert "sh[ort]{entity .50}" in text


def test_other_taxonomies_and_untyped_spans_are_drawn() -> None:
    pair = judged("x", "en", ["b"], "a b c", [("a", "mistranslation", None, None), ("c", None, 0.5, None)])
    assert "[a]{mistranslation} b [c]{unsupported .50}" in plain(pair)
    assert len(set(re.findall(r"48;2;(\d+;\d+;\d+)m[ac]\x1b", coloured(pair)))) == 2


def test_many_places_are_counted_and_long_evidence_is_cut_around_the_place() -> None:
    text = plain(long_evidence(2000))
    assert "[Ledger line 1500 names a debtor]" in text
    assert len(text) < 2000


def test_every_kind_of_sample_prints() -> None:
    for pair in every_kind():
        assert pair[0].id in plain(pair)
        assert pair[0].id in ESCAPE.sub("", coloured(pair, width=24)).replace("\n", "")

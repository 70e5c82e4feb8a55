"""Responses to read, with what was marked in them and the places in the evidence that each mark was held against.

Drawn without scripts, so that they stand in print and for every reader; marks, colours and the care for direction are
those of the page of samples.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import msgspec

from veriglot.report.direction import direction
from veriglot.report.excerpt import excerpt, fits, misfits
from veriglot.report.palette import UNTYPED, slot_of
from veriglot.report.segments import segments
from veriglot.report.study.figures import flag, language_label, model_label
from veriglot.report.study.markup import Markup, bdi, hidden, joined, tag
from veriglot.report.study.numbers import count
from veriglot.report.study.sections import Section, note

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.records import Evidence, Pointer, Sample, Span
    from veriglot.report.study.view import View
    from veriglot.study.results import Example

__all__ = ["example_section"]

_LONG = 1600
"""Code points beyond which a response is shown around its marks only, with what was left out counted."""
_AROUND = 240
_PLACES = 2
_PHRASE = 40
"""Code points beyond which a place in the evidence is a window rather than a phrase, and not set in bold."""
_JOINERS = "\u200c\u200d"


def example_section(view: View) -> Section | None:
    """The most confident marks to read; None without examples."""
    examples = view.results.examples
    if not examples:
        return None
    cards = [_card(view, example, number) for number, example in enumerate(examples, start=1)]
    intro = note(
        "The most confident marks of the detector in each language, chosen for being confident and not for being"
        " typical. Under each response are its marks with their confidence, and the passage each was held against."
    )
    return Section("examples", "Examples to read", "Examples", (intro, _filters(view), *cards), ("examples",))


def _model_of(sample: Sample) -> str:
    return sample.generator.name if sample.generator else "unnamed model"


def _tag_of(example: Example) -> str:
    return example.sample.language or example.prediction.language or ""


def _filters(view: View) -> Markup:
    languages = list(dict.fromkeys(_tag_of(example) for example in view.results.examples))
    models = list(dict.fromkeys(_model_of(example.sample) for example in view.results.examples))
    options = [tag("option", "all languages", value="")]
    options += [tag("option", view.language(tag_), value=tag_) for tag_ in languages]
    names = [tag("option", "all models", value=""), *(tag("option", name, value=name) for name in models)]
    return tag(
        "div",
        tag("label", "Language ", tag("select", *options, id="example-language")),
        tag("label", "Model ", tag("select", *names, id="example-model")),
        tag("span", count(len(view.results.examples), "example"), id="example-count", role="status"),
        class_="filters", id="example-filters", hidden=True,
    )  # fmt: skip


def _card(view: View, example: Example, number: int) -> Markup:
    sample, prediction = example.sample, example.prediction
    tag_ = _tag_of(example)
    way = direction(sample.response, tag_)
    seed = sample.generator.seed if sample.generator else None
    facts = [language_label(view.language(tag_), tag_), bdi(sample.id), f"seed {seed}" if seed is not None else None]
    head = tag(
        "header",
        tag("h3", model_label(_model_of(sample))),
        tag("p", joined([fact for fact in facts if fact], " · "), class_="facts"),
    )
    asked = None
    if sample.question:
        lead = tag("span", "Question", class_="label", lang="en")
        asked_way = direction(sample.question, tag_)
        asked = tag("div", lead, tag("p", sample.question, **_text(asked_way, tag_)), class_="question", dir=asked_way)
    spans = [_visible(span, sample.response) for span in prediction.spans or ()]
    return tag(
        "article", head, asked,
        tag("div", *_response(sample.response, spans), **_text(way, tag_), class_="text response"),
        _marks(sample, prediction.spans or (), way, tag_),
        *(tag("p", flag("check"), " ", problem, class_="problem") for problem in misfits(sample, prediction)),
        tag("p", bdi(prediction.detector), class_="by"),
        class_="example", data_language=tag_, data_model=_model_of(sample), aria_label=f"Example {number}",
    )  # fmt: skip


def _text(way: str, tag_: str) -> dict[str, str | None]:
    return {"dir": way, "lang": tag_ or None}


def _visible(span: Span, text: str) -> Span:
    """The span with edges that do not cut a visible character: a letter from its signs, a joined emoji."""
    start, end = min(span.start, len(text)), min(span.end, len(text))
    while 0 < start < len(text) and _goes_on(text, start):
        start -= 1
    while 0 < end < len(text) and _goes_on(text, end):
        end += 1
    return msgspec.structs.replace(span, start=start, end=max(end, start + 1))


def _goes_on(text: str, at: int) -> bool:
    """Whether the code point at `at` belongs to the visible character before it."""
    return unicodedata.category(text[at]) in {"Mn", "Mc", "Me"} or text[at] in _JOINERS or text[at - 1] == "\u200d"


def _response(text: str, spans: Sequence[Span]) -> Iterator[Markup]:
    if not text:
        yield tag("p", "The response is empty.", class_="nothing", dir="ltr", lang="en")
        return
    kept = _kept(text, spans)
    for piece in segments(len(text), spans):
        yield from _piece(text, piece.start, piece.end, [spans[index] for index in piece.covering], kept)
    if kept and kept[-1][1] < len(text):
        yield _left_out(len(text) - kept[-1][1])


def _kept(text: str, spans: Sequence[Span]) -> list[tuple[int, int]]:
    """The parts of a long response that are shown; empty where all of it is."""
    if len(text) <= _LONG:
        return []
    parts = [(0, _AROUND), *((max(0, s.start - _AROUND), min(len(text), s.end + _AROUND)) for s in spans)]
    found: list[tuple[int, int]] = []
    for start, end in sorted(parts):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def _piece(
    text: str, start: int, end: int, covering: Sequence[Span], kept: Sequence[tuple[int, int]]
) -> Iterator[Markup]:  # fmt: skip
    """One piece between edges of spans; where parts are left out, only what is kept of it."""
    if not kept:
        yield _drawn(text[start:end], covering)
        return
    for place, (first, last) in enumerate(kept):
        low, high = max(start, first), min(end, last)
        if low < high:
            if low == first and place:
                yield _left_out(first - kept[place - 1][1])
            yield _drawn(text[low:high], covering)


def _left_out(number: int) -> Markup:
    return tag("span", f"[{number:,} characters not shown]", class_="left-out", dir="ltr", lang="en")


def _drawn(text: str, covering: Sequence[Span]) -> Markup:
    if not covering:
        return joined([text])
    inner = covering[-1]
    strength = 5 if inner.confidence is None else min(int(inner.confidence * 5), 4) + 1
    told = ", ".join(_said(span) for span in reversed(covering))
    kind = f"part slot-{slot_of(inner.type)} strength-{strength}{' nested' if len(covering) > 1 else ''}"
    return tag("mark", text, class_=kind, title=told)


def _said(span: Span) -> str:
    confidence = "" if span.confidence is None else f" {span.confidence:.2f}"
    return f"{span.type or UNTYPED}{confidence}"


def _marks(sample: Sample, spans: Sequence[Span], way: str, tag_: str) -> Markup:
    if not spans:
        return tag("p", "Nothing is marked.", class_="nothing")
    passages = {passage.id or "": passage for passage in sample.evidence}
    items: list[Markup] = []
    quoted_before: dict[Pointer, int] = {}
    for number, span in enumerate(spans, start=1):
        quoted = excerpt(sample.response, span.start, min(span.end, len(sample.response)), around=0).place
        figure = "" if span.confidence is None else f"{span.confidence:.2f}"
        items.append(
            tag(
                "li",
                tag("span", str(number), class_="number"),
                tag("span", bdi(span.type or UNTYPED), class_=f"chip slot-{slot_of(span.type)}"),
                tag("span", hidden("confidence "), figure, class_="figure") if figure else None,
                tag("bdi", quoted, **_text(way, tag_), class_="quoted"),
                *_held_against(span.evidence, passages, quoted_before, number),
            )
        )  # fmt: skip
    return tag("ol", *items, class_="marks", dir="rtl" if way == "rtl" else None)


def _held_against(
    pointers: Sequence[Pointer], passages: dict[str, Evidence], quoted_before: dict[Pointer, int], number: int
) -> Iterator[Markup]:  # fmt: skip
    """The places that a mark was held against; one that stands under an earlier mark is not quoted again."""
    for pointer in pointers[:_PLACES]:
        passage = passages.get(pointer.id)
        if passage is None or not fits(pointer, len(passage.text)):
            continue
        before_here = quoted_before.get(pointer)
        told = f", as for {before_here}" if before_here else None
        lead = tag("span", "evidence ", bdi(pointer.id), told, class_="label", dir="ltr", lang="en")
        if before_here:
            yield tag("div", lead, class_="held")
            continue
        quoted_before[pointer] = number
        before, place, after = excerpt(passage.text, pointer.start, pointer.end, around=60)
        way = direction(passage.text, passage.language)
        quote = tag(
            "bdi",
            before,
            tag("b", place, class_="long" if len(place) > _PHRASE else None),
            after,
            **_text(way, passage.language or ""),
            class_="snippet",
        )
        yield tag("div", lead, " ", quote, class_="held")
    if len(pointers) > _PLACES:
        yield tag(
            "div", tag("span", f"and {count(len(pointers) - _PLACES, 'more place', 'more places')}", class_="label")
        )

"""The sections on responses: coverage, quality, examples, and types of errors by model."""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from veriglot.report.charts import Axis, Strip, strip_table
from veriglot.report.html import bdi, folded, hidden, joined, note, tag
from veriglot.report.pages import Section, meanings
from veriglot.report.palette import UNTYPED, slot_of
from veriglot.report.study.view import flag, language_label, model_label
from veriglot.report.tables import Cell as TableCell
from veriglot.report.tables import Table
from veriglot.report.text_layout import count, direction, excerpt, fits, misfits, percent, segments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from markupsafe import Markup

    from veriglot.records import Evidence, Pointer, Sample, Span
    from veriglot.report.study.view import View
    from veriglot.study.results import Cell, Example, Quality

__all__ = ["example_section", "profile_section", "response_section"]


_AXIS = Axis(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0))
_SCORED = "scored"
_SLOTS = {
    _SCORED: "moss",
    "no_evidence": "ochre",
    "unsupported_language": "violet",
    "too_long": "teal",
    "failed": "red",
}
_NO_CALL = "call failed"
_NO_ANSWER = "not answered"
_SHARES = ("detectable", "right_language", "refused", "repetitive", "truncated", "empty")
_NAMES = ("Words", "Sentences", "Detectable", "Right language", "Refused", "Repetitive", "Truncated", "Empty")
_BAD = {"refused": 0.1, "repetitive": 0.1, "truncated": 0.2, "empty": 0.02}
_LEAST = {"detectable": 0.9, "right_language": 0.9}


def response_section(view: View) -> Section:
    """Coverage by model and by language, quality by model and by cell."""
    models = [(model_label(name), [c for c in view.results.cells if c.model == name]) for name in view.models]
    languages = [
        (language_label(view.language(tag_), tag_), [c for c in view.results.cells if c.language == tag_])
        for tag_ in view.languages
    ]
    body = (
        note(
            "A rate speaks only for the responses that were judged. Here is every response that the study planned, as"
            " the first detector left it."
        ),
        _key(view),
        _coverage(models, "Model"),
        folded("Coverage by language", _coverage(languages, "Language"), opened=True),
        tag("h3", "Quality of the responses"),
        note(
            "Means over the answered responses. Detectable: its language could be identified; right: of those, in the"
            " language that was asked for. Marked figures deserve a look before a rate is trusted."
        ),
        _quality([(label, _joined(cells)) for label, cells in models], ("Model",)),
        folded("Quality by model and language", _by_cell(view)),
    )
    return Section("responses", "Coverage and quality", "Coverage", body, ("coverage", "quality"))


def _outcomes(cells: Sequence[Cell]) -> dict[str, int]:
    """How many planned responses ended in each way; they add up to those planned."""
    outcomes = {_SCORED: 0}
    planned = sum(cell.coverage.planned for cell in cells)
    for cell in cells:
        for status, many in cell.coverage.statuses.items():
            outcomes[status] = outcomes.get(status, 0) + many
    outcomes[_NO_CALL] = sum(cell.coverage.failed for cell in cells)
    outcomes[_NO_ANSWER] = max(planned - sum(outcomes.values()), 0)
    return {status: many for status, many in outcomes.items() if many or status == _SCORED}


def _slot(status: str) -> str:
    return {_NO_CALL: "rust", _NO_ANSWER: "slate"}.get(status) or _SLOTS.get(status, "rose")


def _words(status: str) -> str:
    return "judged" if status == _SCORED else status.replace("_", " ")


def _key(view: View) -> Markup:
    items = (
        tag("li", bdi(_words(status), class_=f"chip slot-{_slot(status)}")) for status in _outcomes(view.results.cells)
    )
    return tag("ul", *items, class_="key")


def _coverage(rows: Sequence[tuple[Markup, Sequence[Cell]]], head: str) -> Markup:
    strips = []
    for label, cells in rows:
        outcomes = _outcomes(cells)
        planned = sum(outcomes.values())
        judged = outcomes[_SCORED]
        share = percent(judged / planned if planned else None)
        strips.append(Strip(label, joined(_bars(outcomes)), (tag("b", share), f"{judged:,} of {planned:,}")))
    heads = (head, "Responses", "Coverage", "Judged of planned")
    return strip_table(
        strips, _AXIS, caption="What became of the responses", heads=heads, tick=_AXIS.percent, class_="stacked"
    )


def _bars(outcomes: dict[str, int]) -> Iterator[Markup]:
    total, at = sum(outcomes.values()), 0.0
    for status, many in outcomes.items():
        if many:
            share = many / total
            told = tag("title", f"{_words(status)}: {many:,} ({percent(share)})")
            ends = {"x": f"{100 * at:.3f}%", "width": f"{100 * share:.3f}%", "y": "18%", "height": "64%"}
            yield tag("g", told, tag("rect", **ends, class_=f"bar-part slot-{_slot(status)}"))
            at += share


def _joined(cells: Sequence[Cell]) -> list[tuple[Quality, int]]:
    return [(cell.quality, cell.coverage.answered) for cell in cells]


def _quality(rows: Sequence[tuple[Markup, Sequence[tuple[Quality, int]]]], heads: Sequence[str]) -> Markup:
    lines = [(label, *_figures(parts)) for label, parts in rows]
    return Table("", "Mean over the answered responses", (*heads, *_NAMES), lines).to_html()


def _figures(parts: Sequence[tuple[Quality, int]]) -> Iterator[TableCell]:
    for name in ("words", "sentences"):
        value = _mean([(getattr(quality, name), weight) for quality, weight in parts])
        yield TableCell("–" if value is None else f"{value:.1f}")
    for name in _SHARES:
        weighted = [(getattr(q, name), w * (q.detectable if name == "right_language" else 1)) for q, w in parts]
        yield _share(name, _mean(weighted))


def _mean(parts: Sequence[tuple[float | None, float]]) -> float | None:
    """Mean by the number of responses, over the cells that have the figure."""
    known = [(value, weight) for value, weight in parts if value is not None]
    total = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / total if total else None


def _share(name: str, value: float | None) -> TableCell:
    bad = value is not None and (value > _BAD.get(name, 2.0) or value < _LEAST.get(name, -1.0))
    return TableCell(percent(value), kind="watch" if bad else "")


def _by_cell(view: View) -> Markup:
    rows = []
    for name in view.models:
        for tag_ in view.languages:
            cell = view.cell(name, tag_)
            if cell is not None:
                most = cell.quality.most_frequent_language
                language_found = TableCell(most or "–", kind="" if most in {None, tag_} else "watch")
                language = language_label(view.language(tag_), tag_)
                figures = _figures([(cell.quality, max(cell.coverage.answered, 1))])
                rows.append((model_label(name), language, language_found, *figures))
    heads = ("Model", "Language", "Most frequent", *_NAMES)
    return Table("", "Quality in each language", heads, rows).to_html(tall=True)


# Responses to read, with what was marked in them and the places in the evidence that each mark was held against.
#
# Drawn without scripts, so that they stand in print and for every reader; marks, colours and the care for direction are
# those of the page of samples.


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
    excerpts = _kept(text, spans)
    for piece in segments(len(text), spans):
        yield from _piece(text, piece.start, piece.end, [spans[index] for index in piece.covering], excerpts)
    if excerpts and excerpts[-1][1] < len(text):
        yield _left_out(len(text) - excerpts[-1][1])


def _kept(text: str, spans: Sequence[Span]) -> list[tuple[int, int]]:
    """The parts of a long response that are shown; empty where all of it is."""
    if len(text) <= _LONG:
        return []
    parts = [(0, _AROUND), *((max(0, s.start - _AROUND), min(len(text), s.end + _AROUND)) for s in spans)]
    merged: list[tuple[int, int]] = []
    for start, end in sorted(parts):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _piece(
    text: str, start: int, end: int, covering: Sequence[Span], excerpts: Sequence[tuple[int, int]]
) -> Iterator[Markup]:  # fmt: skip
    """One piece between edges of spans; where parts are left out, only what is kept of it."""
    if not excerpts:
        yield _drawn(text[start:end], covering)
        return
    for index, (first, last) in enumerate(excerpts):
        low, high = max(start, first), min(end, last)
        if low < high:
            if low == first and index:
                yield _left_out(first - excerpts[index - 1][1])
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
    for position, span in enumerate(spans, start=1):
        quoted = excerpt(sample.response, span.start, min(span.end, len(sample.response)), around=0).quoted
        figure = "" if span.confidence is None else f"{span.confidence:.2f}"
        items.append(
            tag(
                "li",
                tag("span", str(position), class_="number"),
                tag("span", bdi(span.type or UNTYPED), class_=f"chip slot-{slot_of(span.type)}"),
                tag("span", hidden("confidence "), figure, class_="figure") if figure else None,
                tag("bdi", quoted, **_text(way, tag_), class_="quoted"),
                *_held_against(span.evidence, passages, quoted_before, position),
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
        before, quoted, after = excerpt(passage.text, pointer.start, pointer.end, around=60)
        way = direction(passage.text, passage.language)
        quote = tag(
            "bdi",
            before,
            tag("b", quoted, class_="long" if len(quoted) > _PHRASE else None),
            after,
            **_text(way, passage.language or ""),
            class_="snippet",
        )
        yield tag("div", lead, " ", quote, class_="held")
    if len(pointers) > _PLACES:
        yield tag(
            "div", tag("span", f"and {count(len(pointers) - _PLACES, 'more place', 'more places')}", class_="label")
        )


def profile_section(view: View) -> Section | None:
    """Shares of the types among what was marked; None where nothing has a type."""
    total = _sum(cell.types for cell in view.results.cells)
    types = [name for name, number in total.most_common() if number]
    if not types:
        return None
    by_model = {name: _sum(c.types for c in view.results.cells if c.model == name) for name in view.models}
    by_language = {tag_: _sum(c.types for c in view.results.cells if c.language == tag_) for tag_ in view.languages}
    models = [(model_label(name), counts) for name, counts in by_model.items()]
    languages = [(language_label(view.language(tag_), tag_), counts) for tag_, counts in by_language.items()]
    body = (
        note(
            f"How the marked {view.units} divide into types. These are counts of what the first detector"
            f" ({view.results.detectors[0] if view.results.detectors else 'unnamed'}) marked, not corrected for its"
            " errors: read them as a profile, not as rates."
        ),
        _type_key(types),
        _chart(models, types, "Model", view),
        folded("By language", _chart(languages, types, "Language", view), opened=True),
    )
    return Section("types", "Type profile", "Types", body, ("types",))


def _sum(counts: Iterable[dict[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return total


def _type_key(types: Sequence[str]) -> Markup:
    known = meanings()
    items = [
        tag(
            "li",
            bdi(name, class_=f"chip slot-{slot_of(name)}"),
            " ",
            tag("span", known.get(name, ""), class_="meaning"),
        )
        for name in types
    ]
    return tag("ul", *items, class_="key wide")


def _chart(rows: Sequence[tuple[Markup, Counter[str]]], types: Sequence[str], head: str, view: View) -> Markup:
    strips = [
        Strip(label, joined(_type_bars(counts, types)), (f"{counts.total():,}", _largest(counts)))
        for label, counts in rows
    ]
    heads = (head, "Types", f"Marked {view.units}", "Most frequent")
    caption = f"Share of each type among the marked {view.units}"
    return strip_table(strips, _AXIS, caption=caption, heads=heads, tick=_AXIS.percent, class_="stacked")


def _type_bars(counts: Counter[str], types: Sequence[str]) -> Iterator[Markup]:
    total, at = counts.total(), 0.0
    for name in types:
        if counts[name]:
            share = counts[name] / total
            told = tag("title", f"{name}: {percent(share)} ({counts[name]:,})")
            bar = tag(
                "rect", x=f"{100 * at:.3f}%", width=f"{100 * share:.3f}%", y="18%", height="64%",
                class_=f"bar-part slot-{slot_of(name)}",
            )  # fmt: skip
            yield tag("g", told, bar)
            at += share


def _largest(counts: Counter[str]) -> Markup:
    if not counts.total():
        return tag("span", "nothing marked", class_="absent")
    name, number = min(counts.items(), key=lambda item: (-item[1], item[0]))
    return joined([bdi(name), f" {percent(number / counts.total(), 0)}"])

"""Pages from templates: reports in sections, as HTML or Markdown, and samples with predictions next to their evidence.

A page is self-contained and makes no network requests. Without its script, nothing is hidden; the script adds sorting,
saving and filters.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from veriglot.metrics.reference import check_pair
from veriglot.records import Pointer, Prediction, Sample, Span, Status, Word
from veriglot.records.languages import language_name
from veriglot.records.taxonomy import taxonomies
from veriglot.report.palette import UNTYPED, palette, slot_of
from veriglot.report.tables import Table, escape_markdown
from veriglot.report.text_layout import (
    count,
    direction,
    excerpt,
    hundredths,
    interval,
    is_in_passage,
    language_with_tag,
    likelihood,
    misplaced_parts,
    note_words,
    percent,
    points,
    printable,
    segments,
    status_words,
    task_words,
    unit_rows,
)
from veriglot.storage.files import open_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


__all__ = [
    "Fold",
    "Section",
    "fragment",
    "macro",
    "markdown_report",
    "open_page",
    "sample_blocks",
    "sample_page",
    "write_html",
    "write_report",
]


@contextmanager
def open_page(path: str | Path) -> Iterator[TextIO]:
    """A text file for a page; it gets its name only when complete. `-` is standard output.

    Raises:
        OSError: the file cannot be written.
    """
    if str(path) == "-":
        yield from _standard_output()
        return
    path = Path(path)
    with open_whole(path) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="\n")
        yield text
        text.detach()


def _standard_output() -> Iterator[TextIO]:
    """Standard output as UTF-8 in any locale, since the page declares UTF-8."""
    if not hasattr(sys.stdout, "buffer"):  # redirected to a text stream in memory
        yield sys.stdout
        return
    sys.stdout.flush()
    file = TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="\n", write_through=True)
    try:
        yield file
    finally:
        file.detach()


@cache
def _templates() -> Environment:
    """Templates in which everything except `Markup` is made printable and escaped, and None is empty."""
    environment = Environment(
        loader=PackageLoader("veriglot.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "plain": _finalize, "percent": percent, "likelihood": likelihood, "points": points, "grouped": "{:,}".format,
        "ends": lambda estimate: interval(estimate.low, estimate.high),
    }  # fmt: skip
    environment.globals |= {"count": count, "slot_of": slot_of, "language_with_tag": language_with_tag}
    environment.globals |= {"meanings": _meanings, "direction": direction, "named": _named}
    return environment


def _finalize(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, Markup) else printable(str(value))


_LONG_NAME = 24  # code points; longer names may be broken


def _named(text: str, names: Sequence[str]) -> Markup:
    """A text in which each of these names keeps its own direction, and is broken only if it is too long."""
    pattern = "|".join(map(re.escape, sorted(filter(None, names), key=len, reverse=True)))
    parts = re.split(rf"(?<!\w)({pattern})(?!\w)", text) if pattern else [text]
    marked = (
        Markup('<bdi class="model{}">{}</bdi>').format(" long" * (len(part) > _LONG_NAME), printable(part))
        if index % 2
        else printable(part)
        for index, part in enumerate(parts)
    )
    return Markup("").join(marked)


def macro(name: str, template: str = "macros.html") -> Callable[..., Markup]:
    """A macro of a template, to be called with its arguments."""
    return getattr(_templates().get_template(template).module, name)  # type: ignore[no-any-return]


def _render(
    template: str, title: str, *, folder: str, scripts: Sequence[str], styles: Sequence[str], **values: Any
) -> str:
    """A whole page. Its content security policy allows only its one script and one style, by hash, and no requests.

    The scripts are in one function scope, so that the page has no global variables.
    """
    script = f'(function () {{\n"use strict";\n{_assets(folder, scripts)}\n}})();'
    style = _palette_css() + _assets(folder, styles)
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = {"title": title, "script": Markup(script), "style": Markup(style), "policy": Markup(policy)}  # noqa: S704
    return _templates().get_template(template).render(head, **values)


def _assets(folder: str, names: Iterable[str]) -> str:
    return "\n".join(files("veriglot.report").joinpath(folder, name).read_text("utf-8") for name in names)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _palette_css() -> str:
    """The palette as CSS custom properties, for light and dark pages; print is light.

    A class `slot-NAME` sets `--ink` and `--tint` to the shades of a slot, `heat-N` to those of a step of the heat
    scale.
    """
    light, dark = (_properties(kind) for kind in ("light", "dark"))
    steps = range(len(palette().heat["light"]))
    classes = {f"slot-{name}": name for name in palette().slots} | {f"heat-{step}": f"heat-{step}" for step in steps}
    rules = "\n".join(
        f".{class_} {{ --ink: var(--{name}-ink); --tint: var(--{name}-tint); }}" for class_, name in classes.items()
    )
    return (
        f":root {{ {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme='light']) {{ {dark} }} }}\n"
        f"@media screen {{ :root[data-theme='dark'] {{ {dark} }} }}\n{rules}\n"
    )


def _properties(kind: str) -> str:
    table = palette()
    shades = {name: slot.light if kind == "light" else slot.dark for name, slot in table.slots.items()}
    shades |= {f"heat-{step}": step_shades for step, step_shades in enumerate(table.heat[kind])}
    values = {f"page-{use}": colour for use, colour in table.pages[kind].items()}
    for name, pair in shades.items():
        values |= {f"{name}-ink": pair.ink, f"{name}-tint": pair.tint}
    return " ".join(f"--{key}: {value};" for key, value in values.items()) + f" color-scheme: {kind};"


_SURROGATE = re.compile("[\ud800-\udfff]")


_encoder = msgspec.json.Encoder()


def _script_safe(value: Any) -> Markup:
    """JSON without `<`, `>` and `&`, so that no text in it can end the element or open a comment.

    A lone surrogate, which cannot be encoded, becomes U+FFFD; offsets stay valid.
    """
    try:
        data = _encoder.encode(value)
    except UnicodeEncodeError:
        data = _encoder.encode(_encodable(value))
    data = data.replace(b"<", b"\\u003c").replace(b">", b"\\u003e").replace(b"&", b"\\u0026")
    return Markup(data.decode("utf-8"))  # noqa: S704


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return value


class Fold(NamedTuple):
    """Parts of a section in a collapsible block."""

    title: str
    parts: Sequence[Part]
    opened: bool = False


Part = str | list[str] | list[tuple[str, ...]] | Table | Fold | Markup
"""A paragraph, a list of texts or of texts in parts, a table, a fold, or the output of a template."""


class Section(NamedTuple):
    """A part of a report: its id in the page's address, heading, name in the navigation, and tables to download."""

    name: str
    title: str
    short: str
    parts: Sequence[Part]
    tables: Sequence[str] = ()


def markdown_report(title: str, sections: Iterable[Section], signature: str, lead: str = "") -> str:
    """A report as a page of Markdown; leaves out its sections' markup, which is for HTML only."""
    lines = [f"# {escape_markdown(title)}", "", *([escape_markdown(lead), ""] if lead else [])]
    for section in sections:
        lines += [f"## {escape_markdown(section.title)}", "", *_markdown(section.parts, section.title)]
    return "\n".join([*lines, f"Signature: {_code(signature)}", ""])


def _markdown(parts: Iterable[Part], title: str) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Table):
            yield from (f"{escape_markdown(part.title)}:", "") if part.title != title else ()
            yield part.to_markdown()
        elif isinstance(part, Fold):
            yield from (f"### {escape_markdown(part.title)}", "")
            yield from _markdown(part.parts, part.title)
        elif isinstance(part, list):
            texts = (item if isinstance(item, str) else ": ".join(item) for item in part)
            yield from (*(f"- {escape_markdown(text)}" for text in texts), "")
        elif not isinstance(part, Markup):
            yield from (escape_markdown(part), "")


def _code(text: str) -> str:
    return f"`{' '.join(text.replace('`', '').split())}`"


_REPORT_SCRIPTS = ("tables.js", "sort.js", "cells.js", "examples.js", "page.js")


_REPORT_STYLES = (
    "page.css", "tables.css", "charts.css", "bench.css", "halluverse.css", "examples.css", "narrow.css", "print.css",
)  # fmt: skip


def write_report(
    path: str | Path,
    *,
    title: str,
    subtitle: Sequence[str],
    sections: Sequence[Section],
    tables: Mapping[str, Table],
    texts: Mapping[str, str] | None = None,
    lead: Markup | None = None,
    cells: Mapping[str, Any] | None = None,
    wide: bool = False,
    public: bool = False,
) -> None:
    """Write a report as one self-contained page; the same arguments give the same bytes.

    The file gets its name only when complete.

    Args:
        path: where to write; `-` is standard output.
        title: the heading.
        subtitle: texts under the heading.
        sections: the parts.
        tables: those that can be downloaded from the page as CSV, by name.
        texts: further files to download, by name.
        lead: a first section with the id `findings`, without a heading; it includes the shapes of scatter charts.
        cells: details of the selected cell of a heat map, by its position (column-row).
        wide: whether the page is wider than usual.
        public: whether it is the first page of a site (`report.site`), which search engines may list.

    Raises:
        OSError: the file cannot be written.
    """
    data = {name: {"csv": table.to_csv(), "file": f"{name}.csv"} for name, table in tables.items()}
    more = {"texts": texts, "cells": cells}
    text = _render(
        "report.html", title, folder="assets", scripts=(*_REPORT_SCRIPTS, *["site.js"] * public),
        styles=(*_REPORT_STYLES, *["site.css"] * public), subtitle=subtitle,
        sections=sections, tables=tables, lead=lead, wide=wide, shapes=lead is not None, public=public,
        data=_script_safe({"tables": data} | {name: each for name, each in more.items() if each is not None}),
    )  # fmt: skip
    with open_page(path) as file:
        file.write(text)


# Samples with predictions. Each becomes two blocks of JSON, which a browser does not run: the data of the list of
# samples, read when the page opens, and the rest, read when the sample is shown. Offsets are in code points; the page
# converts them to UTF-16 units.


def sample_blocks(sample: Sample, prediction: Prediction) -> tuple[Markup, Markup]:
    """The two blocks of one sample: what the list shows and searches, and the rest."""
    check_pair(sample, prediction)
    return _script_safe(_listed(sample, prediction)), _script_safe(_shown(sample, prediction))


def _meanings() -> dict[str, str]:
    """The meaning of each known span type, in words; if two taxonomies share a name, the first one's."""
    meaning_of: dict[str, str] = {}
    for table in taxonomies().values():
        for type_, meaning in table.types.items():
            meaning_of.setdefault(type_, meaning)
    return meaning_of | {UNTYPED: "not supported by the evidence; of no particular type"}


def _listed(sample: Sample, prediction: Prediction) -> dict[str, Any]:
    tag = prediction.language or sample.language
    types: dict[str | None, list[int | None]] = {}
    for span in prediction.spans or ():
        types.setdefault(span.type, []).append(_hundredths(span))
    return {
        "id": sample.id,
        "tag": tag,
        "language": language_name(tag),
        "dir": direction(sample.response, tag),
        "task": task_words(sample.task),
        "status": prediction.status.value,
        "outcome": status_words(prediction.status),
        "score": prediction.score,
        "types": [[type_ or UNTYPED, slot_of(type_), confidences] for type_, confidences in types.items()],
        "words": list(_loose_words(prediction)),
        "question": sample.question,
        "response": sample.response,
        "generator": sample.generator.name if sample.generator else None,
    }


def _hundredths(judged: Span | Word) -> int | None:
    """A confidence in whole hundredths, rounded down; thresholds on the page use it."""
    return None if judged.confidence is None else hundredths(judged.confidence)


def _loose_words(prediction: Prediction) -> Iterator[int | tuple[int, int]]:
    """The confidence of each word in no span, and with its offsets of each word above the spans around it."""
    for word in prediction.words or ():
        around = [_hundredths(s) for s in prediction.spans or () if s.start < word.end and s.end > word.start]
        confidence = _hundredths(word) or 0
        surest = max((100 if other is None else other for other in around), default=-1)
        if confidence > surest:
            yield confidence if not around else (confidence, surest)


def _shown(sample: Sample, prediction: Prediction) -> dict[str, Any]:
    passages = {passage.id or "": (index, passage.text) for index, passage in enumerate(sample.evidence)}
    return {
        "detector": prediction.detector,
        "signature": prediction.signature,
        "reason": prediction.reason,
        "notes": list(map(note_words, prediction.notes)),
        "problems": misplaced_parts(sample, prediction),
        "questionDir": direction(sample.question or "", sample.language),
        "evidence": [
            {
                "id": passage.id,
                "title": passage.title,
                "url": passage.url,
                "tag": passage.language,
                "language": language_name(passage.language) if passage.language else None,
                "dir": direction(passage.text, passage.language),
                "text": passage.text,
            }
            for passage in sample.evidence
        ],
        "layers": _layers(sample, prediction, passages),
        "words": [
            [
                word.start,
                word.end,
                word.confidence,
                _places(word.evidence, passages, sample.response[word.start : word.end]),
            ]
            for word in prediction.words or ()
        ],
        "units": [[row.kind, row.score, row.text] for row in unit_rows(sample, prediction)],
    }


def _layers(sample: Sample, prediction: Prediction, passages: dict[str, tuple[int, str]]) -> list[dict[str, Any]]:
    """Layers of marks to show: the detector's first, then those of each annotator who marked spans."""
    text, kinds = sample.response, {"human": "person", "model": "model"}
    layers = [
        {"name": prediction.detector, "kind": "detector", "spans": _marks(prediction.spans or (), passages, text)}
    ]
    layers += [
        {"name": note.annotator, "kind": kinds.get(note.kind, note.kind), "spans": _marks(note.spans, passages, text)}
        for note in sample.annotations
        if note.spans is not None
    ]
    return layers


def _marks(spans: Sequence[Span], passages: dict[str, tuple[int, str]], response: str) -> list[list[Any]]:
    rows = ((s, _places(s.evidence, passages, response[s.start : s.end])) for s in spans)
    return [[s.start, s.end, s.type or UNTYPED, slot_of(s.type), s.confidence, places] for s, places in rows]


_WHOLE = 400
"""Up to so many code points, a pointed passage is quoted whole next to its mark."""


def _places(pointers: Iterable[Pointer], passages: dict[str, tuple[int, str]], mark: str) -> list[list[Any]]:
    """Pointers as passage index, start, end, and for a long passage the part to quote.

    Invalid ones are left to `misplaced_parts`.
    """
    located = []
    for pointer in pointers:
        index, text = passages.get(pointer.id, (0, None))
        if text is not None and is_in_passage(pointer, len(text)):
            offsets = [index, pointer.start, pointer.end]
            long = pointer.end - pointer.start > _WHOLE
            located.append([*offsets, excerpt(text, pointer.start, pointer.end, mark=mark).quoted] if long else offsets)
    return located


_SAMPLE_SCRIPTS = (
    "offsets.js", "blocks.js", "data.js", "marks.js", "response.js", "evidence.js", "inspector.js", "list.js", "app.js",
)  # fmt: skip


_SAMPLE_STYLES = ("layout.css", "text.css", "print.css")


def write_html(pairs: Iterable[tuple[Sample, Prediction]], path: str | Path, *, title: str) -> int:
    """Write one self-contained page with every sample next to its evidence.

    Memory holds one sample at a time. The file gets its name only when complete.

    Args:
        pairs: each sample with its prediction, in the order to list them.
        path: where to write; `-` is standard output.
        title: the heading of the page.

    Returns:
        Number of samples written.

    Raises:
        InputError: a prediction is paired with a sample of another id.
        OSError: the file cannot be written.
    """
    page = _render(
        "samples.html", title, folder="assets/samples", scripts=_SAMPLE_SCRIPTS, styles=_SAMPLE_STYLES,
        meta=_script_safe({"meanings": _meanings()}), form="", data=Markup("<!-- data -->\n"),
    )  # fmt: skip
    head, tail = page.split("<!-- data -->\n")
    written = 0
    with open_page(path) as file:
        file.write(head)
        for sample, prediction in pairs:
            listed, shown = sample_blocks(sample, prediction)
            file.write(f'<script type="application/json" class="listed">{listed}</script>\n')
            file.write(f'<script type="application/json" class="shown">{shown}</script>\n')
            written += 1
        file.write(tail)
    return written


def fragment(prediction: Prediction, sample: Sample) -> str:
    """One prediction as HTML for a notebook: the response with its marks, and the evidence next to it.

    Args:
        prediction: of a detector.
        sample: the sample of the prediction.
    """
    spans, tag = prediction.spans or (), prediction.language
    head = prediction.verdict.replace("_", " ")
    why = prediction.reason or f"{likelihood(prediction.score)} likely that any part is unsupported"
    note = " · ".join([why, prediction.detector, *map(note_words, prediction.notes)])
    labels = [f"{span.type or UNTYPED} {likelihood(span.confidence)}" for span in spans]
    check_pair(sample, prediction)
    response = _run(sample.response, spans, labels, tag or sample.language)
    passages = []
    for passage in sample.evidence:
        pointers = [pointer for span in spans for pointer in span.evidence if pointer.id == passage.id]
        passages.append(_run(passage.text, pointers, [""] * len(pointers), passage.language) | {"title": passage.title})
    return str(macro("fragment", "fragment.html")(head, note, response, passages))


def _run(text: str, marks: Sequence[Span | Pointer], labels: Sequence[str], tag: str | None) -> dict[str, Any]:
    """A text in pieces, each with the labels of the marks that end with it, and whether it is marked."""
    parts = []
    for start, end, covering in segments(len(text), marks):
        ending = [labels[index] for index in covering if min(marks[index].end, len(text)) == end]
        parts.append((text[start:end], ", ".join(ending), bool(covering)))
    return {"dir": direction(text, tag), "tag": tag, "parts": parts}


class Page(NamedTuple):
    """A page in parts: its HTML, which links `/page/page.css` and `/page/page.js`, and the content of these."""

    html: str
    style: str
    script: str


def sample_page(title: str, form: Markup, data: Mapping[str, Any]) -> Page:
    """The page of a server: a form, and space for one sample with its prediction, drawn when it arrives.

    Args:
        title: the heading of the page.
        form: the form under the heading.
        data: data for the scripts, as JSON by element id.
    """
    nothing = Prediction("response", Status.FAILED, "none", reason="nothing was asked")
    listed, shown = sample_blocks(Sample("response", ""), nothing)
    texts = [("id", name, _script_safe(value)) for name, value in data.items()]
    texts += [("class", "listed", listed), ("class", "shown", shown)]
    blocks = [f'<script type="application/json" {key}="{name}">{text}</script>\n' for key, name, text in texts]
    html = _templates().get_template("samples.html").render(
        title=title, policy="", style="", script="", meta=_script_safe({"meanings": _meanings()}), form=form,
        data=Markup("".join(blocks)),  # noqa: S704
    )  # fmt: skip
    styles = _palette_css() + _assets("assets/samples", _SAMPLE_STYLES)
    return Page(html, styles, _assets("assets/samples", _SAMPLE_SCRIPTS))

"""Reports in sections, as HTML or Markdown, and judged samples beside their evidence.

A page needs nothing beside it and asks the network for nothing. What its script adds (sorting, saving, filters) hides
nothing from a reader who has none.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from veriglot.errors import UsageError
from veriglot.records.taxonomy import taxonomies
from veriglot.report.html import opened, render, script_safe
from veriglot.report.palette import UNTYPED, slot_of
from veriglot.report.tables import Table, escape_markdown
from veriglot.report.text_layout import direction, fits, language_name, misfits, unit_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from veriglot.records import Pointer, Prediction, Sample, Span

__all__ = ["Fold", "Section", "markdown_report", "meanings", "write_html", "write_report"]


class Fold(NamedTuple):
    """Parts of a section that a page shows when they are asked for."""

    title: str
    parts: Sequence[Part]
    opened: bool = False


Part = str | list[str] | Table | Fold | Markup
"""A paragraph, a list, a table, a fold, or what a template made."""


class Section(NamedTuple):
    """A part of a report: its id in the page's address, heading, name in the navigation, and tables that it saves."""

    name: str
    title: str
    short: str
    parts: Sequence[Part]
    tables: Sequence[str] = ()


def markdown_report(title: str, sections: Iterable[Section], signature: str, lead: str = "") -> str:
    """A report as a page of Markdown; markup of its sections is for pages of HTML alone."""
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
            yield from (*(f"- {escape_markdown(text)}" for text in part), "")
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
    lead: Markup | None = None,
    cells: Mapping[str, Any] | None = None,
    wide: bool = False,
) -> None:
    """Write a report as one self-contained page; the same arguments give the same bytes.

    The file appears under its name once it is whole.

    Args:
        path: where to write; `-` is standard output.
        title: the heading.
        subtitle: what stands under it, each on its own.
        sections: the parts.
        tables: those that can be saved from the page as CSV, by name.
        lead: a first section with the id `findings`, without a heading; it comes with the shapes of scatter charts.
        cells: what the page shows of the cell of a heat map at hand, by its place (column-row).
        wide: whether the page takes more than the usual width.

    Raises:
        OSError: the file cannot be written.
    """
    data = {name: {"csv": table.to_csv(), "file": f"{name}.csv"} for name, table in tables.items()}
    text = render(
        "report.html", title, folder="assets", scripts=_REPORT_SCRIPTS, styles=_REPORT_STYLES, subtitle=subtitle,
        sections=sections, tables=tables, lead=lead, wide=wide, shapes=lead is not None,
        data=script_safe({"tables": data} | ({} if cells is None else {"cells": cells})),
    )  # fmt: skip
    with opened(path) as file:
        file.write(text)


# Judged samples. Each becomes two blocks of JSON, which a browser does not run: what the list of samples needs, read
# when the page opens, and the rest, read when the sample is shown. Offsets stay code points here; the page converts
# them to its own UTF-16 units.


def _sample_blocks(sample: Sample, prediction: Prediction) -> tuple[str, str]:
    """The two blocks of one sample: what the list shows and searches, and the rest."""
    if sample.id != prediction.id:
        raise UsageError(
            f"The prediction for {prediction.id!r} was paired with the sample {sample.id!r}.",
            remedy="Give samples and predictions in the same order.",
        )
    return script_safe(_listed(sample, prediction)), script_safe(_shown(sample, prediction))


def meanings() -> dict[str, str]:
    """What each known span type means, in words; where two taxonomies share a name, the first one's."""
    meaning_of: dict[str, str] = {}
    for table in taxonomies().values():
        for type_, meaning in table.types.items():
            meaning_of.setdefault(type_, meaning)
    return meaning_of


def _listed(sample: Sample, prediction: Prediction) -> dict[str, Any]:
    tag = prediction.language or sample.language
    types = Counter(span.type for span in prediction.spans or ())
    return {
        "id": sample.id,
        "tag": tag,
        "language": language_name(tag),
        "dir": direction(sample.response, tag),
        "task": sample.task.value,
        "status": prediction.status.value,
        "score": prediction.score,
        "types": [[type_ or UNTYPED, slot_of(type_), count] for type_, count in types.items()],
        "question": sample.question,
        "response": sample.response,
        "generator": sample.generator.name if sample.generator else None,
    }


def _shown(sample: Sample, prediction: Prediction) -> dict[str, Any]:
    passages = {passage.id or "": (index, len(passage.text)) for index, passage in enumerate(sample.evidence)}
    return {
        "detector": prediction.detector,
        "signature": prediction.signature,
        "reason": prediction.reason,
        "notes": list(prediction.notes),
        "problems": misfits(sample, prediction),
        "questionDir": direction(sample.question or "", sample.language),
        "evidence": [
            {
                "id": passage.id,
                "title": passage.title,
                "url": passage.url,
                "tag": passage.language,
                "dir": direction(passage.text, passage.language),
                "text": passage.text,
            }
            for passage in sample.evidence
        ],
        "layers": _layers(sample, prediction, passages),
        "words": [
            [word.start, word.end, word.confidence, _places(word.evidence, passages)] for word in prediction.words or ()
        ],
        "units": [[row.kind, row.score, row.text] for row in unit_rows(sample, prediction)],
    }


def _layers(sample: Sample, prediction: Prediction, passages: dict[str, tuple[int, int]]) -> list[dict[str, Any]]:
    """Whose marks can be shown: the detector's first, then those of each annotator who marked spans."""
    layers = [{"name": prediction.detector, "kind": "detector", "spans": _marks(prediction.spans or (), passages)}]
    layers += [
        {"name": note.annotator, "kind": note.kind.value, "spans": _marks(note.spans, passages)}
        for note in sample.annotations
        if note.spans is not None
    ]
    return layers


def _marks(spans: Sequence[Span], passages: dict[str, tuple[int, int]]) -> list[list[Any]]:
    return [
        [s.start, s.end, s.type or UNTYPED, slot_of(s.type), s.confidence, _places(s.evidence, passages)] for s in spans
    ]


def _places(pointers: Iterable[Pointer], passages: dict[str, tuple[int, int]]) -> list[list[int]]:
    """Pointers as passage index, start, end; those that lead nowhere are left to `misfits` to name."""
    located = []
    for pointer in pointers:
        index, length = passages.get(pointer.id, (0, None))
        if fits(pointer, length):
            located.append([index, pointer.start, pointer.end])
    return located


_SAMPLE_SCRIPTS = (
    "offsets.js", "blocks.js", "data.js", "marks.js", "response.js", "evidence.js", "inspector.js", "list.js", "app.js",
)  # fmt: skip
_SAMPLE_STYLES = ("layout.css", "text.css", "print.css")


def write_html(pairs: Iterable[tuple[Sample, Prediction]], path: str | Path, *, title: str) -> int:
    """Write one self-contained page with every sample beside its evidence.

    Memory holds one sample at a time. The file appears under its name once it is whole.

    Args:
        pairs: each sample with its prediction, in the order to list them.
        path: where to write; `-` is standard output.
        title: the heading of the page.

    Returns:
        How many samples were written.

    Raises:
        UsageError: a prediction is paired with a sample of another id.
        OSError: the file cannot be written.
    """
    page = render(
        "samples.html", title, folder="assets/samples", scripts=_SAMPLE_SCRIPTS, styles=_SAMPLE_STYLES,
        meta=script_safe({"meanings": meanings()}),
    )  # fmt: skip
    head, tail = page.split("<!-- data -->\n")
    written = 0
    with opened(path) as file:
        file.write(head)
        for sample, prediction in pairs:
            listed, shown = _sample_blocks(sample, prediction)
            file.write(f'<script type="application/json" class="listed">{listed}</script>\n')
            file.write(f'<script type="application/json" class="shown">{shown}</script>\n')
            written += 1
        file.write(tail)
    return written

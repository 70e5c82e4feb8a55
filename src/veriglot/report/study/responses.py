"""What became of the responses, and how good they are: coverage and quality stand beside every rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.report.study.axes import Axis
from veriglot.report.study.figures import language_label, model_label
from veriglot.report.study.grids import grid, number
from veriglot.report.study.markup import Markup, bdi, joined, tag
from veriglot.report.study.numbers import percent
from veriglot.report.study.sections import Section, folded, note
from veriglot.report.study.strips import Strip, strip_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.report.study.view import View
    from veriglot.study.results import Cell, Quality

__all__ = ["response_section"]

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
    found = {_SCORED: 0}
    planned = sum(cell.coverage.planned for cell in cells)
    for cell in cells:
        for status, many in cell.coverage.statuses.items():
            found[status] = found.get(status, 0) + many
    found[_NO_CALL] = sum(cell.coverage.failed for cell in cells)
    found[_NO_ANSWER] = max(planned - sum(found.values()), 0)
    return {status: many for status, many in found.items() if many or status == _SCORED}


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
    return grid("Mean over the answered responses", (*heads, *_NAMES), lines, numbers_from=1)


def _figures(parts: Sequence[tuple[Quality, int]]) -> Iterator[Markup]:
    for name in ("words", "sentences"):
        value = _mean([(getattr(quality, name), weight) for quality, weight in parts])
        yield number("–" if value is None else f"{value:.1f}")
    for name in _SHARES:
        weighted = [(getattr(q, name), w * (q.detectable if name == "right_language" else 1)) for q, w in parts]
        yield _share(name, _mean(weighted))


def _mean(parts: Sequence[tuple[float | None, float]]) -> float | None:
    """Mean by the number of responses, over the cells that have the figure."""
    kept = [(value, weight) for value, weight in parts if value is not None]
    total = sum(weight for _, weight in kept)
    return sum(value * weight for value, weight in kept) / total if total else None


def _share(name: str, value: float | None) -> Markup:
    bad = value is not None and (value > _BAD.get(name, 2.0) or value < _LEAST.get(name, -1.0))
    return number(percent(value), watch=bad)


def _by_cell(view: View) -> Markup:
    rows = []
    for name in view.models:
        for tag_ in view.languages:
            cell = view.cell(name, tag_)
            if cell is not None:
                most = cell.quality.most_frequent_language
                found = tag("td", most or "–", class_=None if most in {None, tag_} else "watch")
                language = language_label(view.language(tag_), tag_)
                figures = _figures([(cell.quality, max(cell.coverage.answered, 1))])
                rows.append((model_label(name), language, found, *figures))
    heads = ("Model", "Language", "Most frequent", *_NAMES)
    return grid("Quality in each language", heads, rows, numbers_from=3, tall=True)

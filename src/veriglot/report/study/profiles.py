"""Which types of unsupported spans each model and each language has."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from veriglot.report.page_data import meanings
from veriglot.report.palette import slot_of
from veriglot.report.study.axes import Axis
from veriglot.report.study.figures import language_label, model_label
from veriglot.report.study.markup import Markup, bdi, joined, tag
from veriglot.report.study.numbers import percent
from veriglot.report.study.sections import Section, folded, note
from veriglot.report.study.strips import Strip, strip_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from veriglot.report.study.view import View

__all__ = ["profile_section"]

_AXIS = Axis(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0))


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
        _key(types),
        _chart(models, types, "Model", view),
        folded("By language", _chart(languages, types, "Language", view), opened=True),
    )
    return Section("types", "Type profile", "Types", body, ("types",))


def _sum(counts: Iterable[dict[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return total


def _key(types: Sequence[str]) -> Markup:
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
        Strip(label, joined(_bars(counts, types)), (f"{counts.total():,}", _largest(counts))) for label, counts in rows
    ]
    heads = (head, "Types", f"Marked {view.units}", "Most frequent")
    caption = f"Share of each type among the marked {view.units}"
    return strip_table(strips, _AXIS, caption=caption, heads=heads, tick=_AXIS.percent, class_="stacked")


def _bars(counts: Counter[str], types: Sequence[str]) -> Iterator[Markup]:
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

"""Rules that make one layer of several: what more than half say, and whoever agrees most with the silver layer."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import msgspec

from veriglot.annotate.gathering import SILVER, layered
from veriglot.annotate.layers import Layer, LayerSpan, LayerUnit
from veriglot.metrics.agreement import ALL, agreement_figures

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from veriglot.annotate.forms import Form
    from veriglot.annotate.project import Project
    from veriglot.annotate.store import Reading
    from veriglot.records import Sample

    H = TypeVar("H", bound=Hashable)

__all__ = ["agreed", "best_with_silver", "majority", "plain"]


def plain(layer: Layer) -> Layer:
    """A layer without what is one person's own: comments, notes, rejected suggestions. Ratings are judgements: kept."""
    spans = tuple(msgspec.structs.replace(span, note="") for span in layer.spans)
    return msgspec.structs.replace(layer, spans=spans, comment="", rejected=())


def agreed(layers: Sequence[Layer]) -> Layer:
    """What layers that mark the same say together: the marks, the flags that all raise, the ratings that none disputes.

    Args:
        layers: of one item, one at least, alike in their marks.
    """
    first = plain(layers[0])
    flags = tuple(flag for flag in first.flags if all(flag in one.flags for one in layers))
    source_flags = tuple(flag for flag in first.source_flags if all(flag in one.source_flags for one in layers))
    return _rated(msgspec.structs.replace(first, flags=flags, source_flags=source_flags), layers)


def majority(layers: Sequence[Layer], form: Form, sample: Sample) -> Layer | None:
    """What more than half of the layers say; None where they do not decide all of it.

    Each place (between two borders of anybody's spans) is marked where more than half mark it, and not marked where
    more than half do not; its type is the one that more than half of those give who mark it. Of several spans of one
    person over a place the shortest speaks. A unit and a pair need a label that more than half give, flags are those
    that more than half raise. Layers that skip the item say neither yes nor no, and count among those of whom more
    than half is asked. White space decides nothing.
    """
    said, of = [layer for layer in layers if layer.skip is None], len(layers)
    if 2 * len(said) <= of:
        return None
    found = _voted(said, of, form, sample.response)
    if found is None:
        return None
    flags = _common((layer.flags for layer in said), of)
    source_flags = _common((layer.source_flags for layer in said), of)
    return _rated(msgspec.structs.replace(found, flags=flags, source_flags=source_flags), said)


def _voted(said: Sequence[Layer], of: int, form: Form, text: str) -> Layer | None:
    """The marks or labels that more than half give, and nothing else."""
    if form.has_spans:
        spans = _spans(said, of, text)
        return None if spans is None else Layer(spans=spans)
    if form.labels:
        label = _winner([layer.label for layer in said if layer.label is not None], of)
        return None if label is None else Layer(label=label)
    units = _units(said, of)
    return None if units is None else Layer(units=units)


def _winner(said: Iterable[H], of: int) -> H | None:
    return next((what for what, count in Counter(said).items() if 2 * count > of), None)


def _common(said: Iterable[tuple[str, ...]], of: int) -> tuple[str, ...]:
    counts = Counter(flag for flags in said for flag in flags)
    return tuple(flag for flag, count in counts.items() if 2 * count > of)


def _rated(layer: Layer, said: Sequence[Layer]) -> Layer:
    """A layer with the ratings on which all agree who give one: of the item, and of spans of one type at one place."""
    spans = []
    for span in layer.spans:
        same = [o for one in said for o in one.spans if o.type == span.type and o.start < span.end > span.start < o.end]
        spans.append(msgspec.structs.replace(span, rating=_only(o.rating for o in same if o.rating is not None)))
    names = dict.fromkeys(name for one in said for name in one.ratings)
    steps = {name: _only(one.ratings[name] for one in said if name in one.ratings) for name in names}
    ratings = {name: step for name, step in steps.items() if step is not None}
    return msgspec.structs.replace(layer, spans=tuple(spans), ratings=ratings)


def _only(steps: Iterable[int]) -> int | None:
    found = set(steps)
    return found.pop() if len(found) == 1 else None


def _spans(said: Sequence[Layer], of: int, text: str) -> tuple[LayerSpan, ...] | None:
    """What more than half mark, each place as the type that more than half of these give; None where one is open."""
    marks = [{(span.start, span.end, span.type) for span in one.spans} for one in said]
    if len(said) == of and all(one == marks[0] for one in marks):
        return tuple(LayerSpan(f"s{number}", *span) for number, span in enumerate(sorted(marks[0]), 1))
    borders = sorted({0, len(text), *(place for one in marks for start, end, _ in one for place in (start, end))})
    found: list[tuple[int, int, str]] = []
    for start, end in pairwise(borders):
        types = [type_ for one in marks if (type_ := _type_at(one, start, end)) is not None]
        marked, type_ = 2 * len(types) > of, _winner(types, len(types))
        if marked and type_ is not None:
            if found and found[-1][1:] == (start, type_):
                found[-1] = (found[-1][0], end, type_)
            else:
                found.append((start, end, type_))
        elif (marked or 2 * (len(said) - len(types)) <= of) and not text[start:end].isspace():
            return None
    return tuple(LayerSpan(f"s{number}", *span) for number, span in enumerate(found, 1))


def _type_at(marks: Iterable[tuple[int, int, str]], start: int, end: int) -> str | None:
    """The type of the shortest span over a place, as where layers are compared; None where there is none."""
    over = [(stop - begin, begin, type_) for begin, stop, type_ in marks if begin <= start and end <= stop]
    return min(over)[2] if over else None


def _units(said: Sequence[Layer], of: int) -> tuple[LayerUnit, ...] | None:
    """The units that anybody labelled, each with the label that more than half give; None where one has none."""
    places = sorted({(unit.start, unit.end) for one in said for unit in one.units})
    found = []
    for place in places:
        here = [unit for one in said for unit in one.units if (unit.start, unit.end) == place]
        decided = _winner([(unit.label,) for unit in here], of)
        counts = _winner([tuple(sorted(unit.counts.items())) for unit in here if unit.counts], of)
        if decided is None or (decided == (None,) and counts is None):
            return None
        label = decided[0]
        agreeing = [unit for unit in here if unit.label == label]
        evidence = tuple(dict.fromkeys(pointer for unit in agreeing for pointer in unit.evidence))
        flags = _common((unit.flags for unit in here), of)
        found.append(LayerUnit(*place, label, evidence, flags, dict(counts or ())))
    return tuple(found)


def best_with_silver(tx: Reading, project: Project, project_id: int, *, language: str | None = None) -> dict[str, int]:
    """Language to the id of whoever agrees most with the silver layer (mfava, section 3).

    By Cohen's kappa of words (of labels, where units or pairs are labelled), with types where the form has several.
    Only shared items count, so that all are asked about the same texts. Ties go to whoever was invited first.

    Args:
        tx: the transaction.
        project: the project.
        project_id: of its row.
        language: the only one that is asked about; None for all.
    """
    shared = layered(tx, project, project_id, silver=True, shared=True, language=language)
    texts = [text for text in shared if SILVER in text.layers]
    types = sorted({type_ or "" for text in texts for marks in text.layers.values() for type_ in marks.types})
    figures = agreement_figures(
        texts, types if len(types) > 1 else None, resamples=0, gamma=0, wanted=_with_silver(SILVER)
    )
    ids = {person.public_id: person.id for person in tx.people(project_id)}
    best: dict[str, tuple[float, int]] = {}
    for one in figures:
        if one.measure != "kappa" or one.between == (ALL, ALL) or one.language == ALL or one.estimate.value is None:
            continue
        who = next(name for name in one.between if name != SILVER)
        rank = (one.estimate.value, -ids[who])
        best[one.language] = max(best.get(one.language, rank), rank)
    return {language: -negative for language, (_, negative) in best.items()}


def _with_silver(name: str) -> Callable[[tuple[str, str]], bool]:
    return lambda pair: name in pair

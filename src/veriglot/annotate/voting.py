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

__all__ = ["best_with_silver", "majority", "plain"]


def plain(layer: Layer) -> Layer:
    """A layer without what is one person's own: comments, notes, answers to ratings, rejected suggestions."""
    spans = tuple(msgspec.structs.replace(span, note="", rating=None) for span in layer.spans)
    return msgspec.structs.replace(layer, spans=spans, comment="", ratings={}, rejected=())


def majority(layers: Sequence[Layer], form: Form, sample: Sample) -> Layer | None:
    """What more than half of the layers say; None where they do not decide.

    A code point is marked where more than half mark it, as the type that most of these give it (of several, the first
    in the form's order); a unit and a pair need a label that more than half give. Layers that skip the item have no
    say; where half of them or more do, nothing is decided.
    """
    said = [layer for layer in layers if layer.skip is None]
    if 2 * len(said) <= len(layers):
        return None
    flags = _common((layer.flags for layer in said), len(said))
    source_flags = _common((layer.source_flags for layer in said), len(said))
    if form.has_spans:
        return Layer(spans=_spans(said, form, len(sample.response)), flags=flags, source_flags=source_flags)
    if form.labels:
        label = _winner([layer.label for layer in said if layer.label is not None], len(said))
        return None if label is None else Layer(label=label, flags=flags, source_flags=source_flags)
    units = _units(said)
    return None if units is None else Layer(units=units, flags=flags, source_flags=source_flags)


def _winner(said: Iterable[H], of: int) -> H | None:
    return next((what for what, count in Counter(said).items() if 2 * count > of), None)


def _common(said: Iterable[tuple[str, ...]], of: int) -> tuple[str, ...]:
    counts = Counter(flag for flags in said for flag in flags)
    return tuple(flag for flag, count in counts.items() if 2 * count > of)


def _spans(said: Sequence[Layer], form: Form, length: int) -> tuple[LayerSpan, ...]:
    order = [choice.name for choice in form.types]
    borders = sorted({0, length, *(place for one in said for span in one.spans for place in (span.start, span.end))})
    found: list[tuple[int, int, str]] = []
    for start, end in pairwise(borders):
        over = [{span.type for span in one.spans if span.start <= start and end <= span.end} for one in said]
        if 2 * sum(map(bool, over)) <= len(said):
            continue
        votes = Counter(type_ for types in over for type_ in types)
        type_ = min(votes, key=lambda name: (-votes[name], order.index(name)))
        if found and found[-1][1:] == (start, type_):
            found[-1] = (found[-1][0], end, type_)
        else:
            found.append((start, end, type_))
    return tuple(LayerSpan(f"s{number}", *span) for number, span in enumerate(found, 1))


def _units(said: Sequence[Layer]) -> tuple[LayerUnit, ...] | None:
    """The units that anybody labelled, each with the label that more than half give; None where one has none."""
    places = sorted({(unit.start, unit.end) for one in said for unit in one.units})
    found = []
    for place in places:
        here = [unit for one in said for unit in one.units if (unit.start, unit.end) == place]
        label = _winner([unit.label for unit in here if unit.label is not None], len(said))
        counts = _winner([tuple(sorted(unit.counts.items())) for unit in here if unit.counts], len(said))
        if label is None and counts is None:
            return None
        agreeing = [unit for unit in here if unit.label == label]
        evidence = tuple(dict.fromkeys(pointer for unit in agreeing for pointer in unit.evidence))
        flags = _common((unit.flags for unit in here), len(said))
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

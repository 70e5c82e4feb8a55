"""What the labels say of a response and of its sentences: is it factual, and which share of its facts is supported.

kang's rules (section 5.1): an item is factual where all its facts are supported; its support rate is N_vs / N_t and its
unverified rate N_nv / N_t, over facts that the evidence supports, contradicts, or says nothing of. Facts are those of
`text.facts`. A fact is unsupported where a mark overlaps it; it is contradicted where a mark that does is of a type
that counts as `contradicted` in the taxonomy `support`, and unverified where all that do count as `unverified`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from veriglot.bench.belonging import cluster_of, tag_of
from veriglot.errors import UnknownNameError, UsageError
from veriglot.metrics.marks import marked
from veriglot.metrics.reference import reference
from veriglot.metrics.unit_scores import fact_marks
from veriglot.records import taxonomies, taxonomy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.metrics.reference import Reference
    from veriglot.records import Sample
    from veriglot.text import Fact

__all__ = ["LEVELS", "ItemLabels", "item_labels"]

LEVELS = ("response", "sentence", "fact")
_KINDS = {"contradicted", "unverified"}


@dataclass(frozen=True)
class ItemLabels:
    """What the labels say of one item.

    Attributes:
        sample: id of its sample.
        start, end: its place in the response, half-open, in code points.
        language: the tag that it is counted under; `und` where the sample does not say.
        cluster: what it is resampled with.
        nonfactual: whether anything in it is marked.
        facts: how many facts it holds (a sentence: how many begin in it).
        support: share of them that are supported; None where it holds none.
        contradicted, unverified: share of them that the evidence contradicts, and that it does not speak of; None where
            it holds none, and for every item, clean ones too, whose labels do not tell the two apart: of a taxonomy
            with one type, such as `hat`, the clean items alone would be known.
    """

    sample: str
    start: int
    end: int
    language: str
    cluster: str
    nonfactual: bool
    facts: int
    support: float | None
    contradicted: float | None
    unverified: float | None


def item_labels(sample: Sample, level: str = "response", annotator: str | None = None) -> list[ItemLabels] | None:
    """The items of one sample, in order, with what its labels say of them.

    Args:
        sample: with annotations.
        level: `response`, `sentence` or `fact`.
        annotator: whose labels; see `metrics.reference`.

    Returns:
        None where the sample has no labels (of that annotator). A response without words is one item; it has no
        sentences and no facts.

    Raises:
        UnknownNameError: no such level.
        UsageError: the labels cannot be chosen without a name.
    """
    from veriglot.text import facts, sentences

    if level not in LEVELS:
        raise UnknownNameError("level", level, LEVELS)
    found = reference(sample, annotator)
    if found is None:
        return None
    tag = tag_of(sample.language)
    every = facts(sample.response, tag)
    verdicts = _verdicts(found, every, len(sample.response))
    about = _About(sample.id, tag, cluster_of(sample), bool(_meanings(found.taxonomy)))
    if level == "fact":
        return [about.item((f.start, f.end), v != "", [v]) for f, v in zip(every, verdicts, strict=True)]
    if level == "response":
        return [about.item((0, len(sample.response)), bool(len(found.marks.spans)), verdicts)]
    places = np.array(sentences(sample.response, tag), dtype=np.int32).reshape(-1, 2)
    bad = marked(places, found.marks.spans).tolist()
    starts = np.array([fact.start for fact in every], dtype=np.int64)
    inside = [np.flatnonzero((starts >= start) & (starts < end)) for start, end in places.tolist()]
    return [
        about.item((start, end), wrong, [verdicts[place] for place in held])
        for (start, end), wrong, held in zip(places.tolist(), bad, inside, strict=True)
    ]


class _About(NamedTuple):
    """What the items of one sample share; `telling` is whether its taxonomy tells contradicted from unverified."""

    sample: str
    language: str
    cluster: str
    telling: bool

    def item(self, place: tuple[int, int], nonfactual: bool, verdicts: Sequence[str | None]) -> ItemLabels:
        """One item with the verdicts on its facts."""
        total = len(verdicts)
        told = self.telling and None not in verdicts

        def share(verdict: str) -> float:
            return verdicts.count(verdict) / total

        return ItemLabels(
            self.sample,
            *place,
            self.language,
            self.cluster,
            nonfactual,
            total,
            support=share("") if total else None,
            contradicted=share("contradicted") if total and told else None,
            unverified=share("unverified") if total and told else None,
        )


def _verdicts(found: Reference, every: Sequence[Fact], length: int) -> list[str | None]:
    """Of each fact: empty where it is supported, `contradicted`, `unverified`, or None where the labels do not tell."""
    wrong = fact_marks(every, length, found.marks.spans)
    meaning = _meanings(found.taxonomy)
    kinds = np.array([meaning.get(name or "", "") for name in found.marks.types], dtype=object)
    by_kind: dict[str, NDArray[np.bool_]] = {
        kind: fact_marks(every, length, found.marks.spans[kinds == kind]) for kind in (*_KINDS, "")
    }
    verdicts: list[str | None] = []
    for place in range(len(every)):
        if not wrong[place]:
            verdicts.append("")
        elif by_kind["contradicted"][place]:
            verdicts.append("contradicted")
        else:
            verdicts.append(None if by_kind[""][place] else "unverified")
    return verdicts


def _meanings(name: str | None) -> dict[str, str]:
    """Type to `contradicted` or `unverified`; empty where the taxonomy does not tell the two apart (`hat`)."""
    if name not in taxonomies() or name is None:
        return {}
    try:
        mapping = {own: other for own, other in taxonomy(name).to("support").items() if other in _KINDS}
    except UsageError:
        return {}
    return mapping if set(mapping.values()) == _KINDS else {}

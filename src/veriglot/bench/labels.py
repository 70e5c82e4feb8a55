"""Items of a data set and what the labels say of them: is it factual, and which share of its facts is supported.

Kang et al.'s rules (section 5.1): an item is factual where all its facts are supported; its support rate is N_vs / N_t
and its unverified rate N_nv / N_t, over facts that the evidence supports, contradicts, or says nothing of. Facts are
those of `text.facts`. A fact is unsupported where a mark overlaps it; it is contradicted where a mark that does is of a
type that counts as `contradicted` in the taxonomy `support`, and unverified where all that do count as `unverified`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.metrics.measures import Items
from veriglot.metrics.reference import COMBINED, labelled, reference
from veriglot.metrics.spans import fact_marks, marked, segmenter
from veriglot.records import Kind, languages
from veriglot.records.taxonomy import taxonomies, taxonomy
from veriglot.signatures import digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from veriglot.metrics.reference import Reference
    from veriglot.records import Annotation, Prediction, Sample
    from veriglot.text.facts import Fact

__all__ = [
    "OF_OTHERS",
    "OWN_MARKS",
    "ItemTable",
    "bench_reference",
    "check_marks",
    "cluster_of",
    "item_labels",
    "item_table",
    "made_by",
    "model_annotators",
    "quoted",
    "same_maker",
    "sentence_samples",
    "tag_of",
]


# Which language and text a sample belongs to, and whether a prediction is of its response.


OF_OTHERS = "Are these predictions of other data? They are joined by id alone."
_SHOWN = 40  # code points of a text that an error quotes


def tag_of(name: str | None) -> str:
    """The tag that a language is counted under, `und` where it is not stated."""
    return languages.tag_of(name) or languages.UNDETERMINED


def cluster_of(sample: Sample) -> str:
    """What is resampled as one: the group that the source names, or else the text."""
    group = sample.meta.get("group")
    return f"group:{group}" if isinstance(group, str | int) else digest([sample.response])[:16]


def check_marks(prediction: Prediction, sample: Sample, *, path: str | None = None) -> None:
    """Refuse a prediction whose marks show that it was made of another text than the sample of its id.

    Args:
        found: the prediction.
        sample: of the same id.
        path: where the prediction was read, for the error.

    Raises:
        InputError: a mark ends beyond the response, or the `text` of a span is not what stands there.
    """
    spans = prediction.spans or ()
    end = max([0, *(mark.end for marks in (spans, prediction.words or (), prediction.units or ()) for mark in marks)])
    if end > len(sample.response):
        raise InputError(
            f"the prediction of {sample.id!r} marks up to {end}, but its response has {len(sample.response)}"
            " characters",
            path=path,
            field="spans",
            remedy="Are these predictions of other data, or offsets in bytes or UTF-16? They are in code points.",
        )
    for span in spans:
        there = sample.response[span.start : span.end]
        if span.text is not None and span.text != there:
            raise InputError(
                f"the prediction of {sample.id!r} marks {quoted(span.text)}, but its response has {quoted(there)} at"
                f" [{span.start}, {span.end})",
                path=path,
                field="spans",
                remedy=OF_OTHERS,
            )


def quoted(text: str) -> str:
    """The beginning of a text, in quotation marks."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


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
    from veriglot.text.facts import facts
    from veriglot.text.segmentation import sentences

    if level not in LEVELS:
        raise UnknownNameError("level", level, LEVELS)
    labels = reference(sample, annotator)
    if labels is None:
        return None
    tag = tag_of(sample.language)
    every = facts(sample.response, tag)
    verdicts = _verdicts(labels, every, len(sample.response))
    about = _About(sample.id, tag, cluster_of(sample), bool(_meanings(labels.taxonomy)))
    if level == "fact":
        return [about.item((f.start, f.end), v != "", [v]) for f, v in zip(every, verdicts, strict=True)]
    if level == "response":
        return [about.item((0, len(sample.response)), bool(len(labels.marks.spans)), verdicts)]
    places = np.array(sentences(sample.response, tag), dtype=np.int32).reshape(-1, 2)
    bad = marked(places, labels.marks.spans).tolist()
    starts = np.array([fact.start for fact in every], dtype=np.int64)
    inside = [np.flatnonzero((starts >= start) & (starts < end)) for start, end in places.tolist()]
    return [
        about.item((start, end), wrong, [verdicts[index] for index in held])
        for (start, end), wrong, held in zip(places.tolist(), bad, inside, strict=True)
    ]


class _About(NamedTuple):
    """What the items of one sample share; `telling` is whether its taxonomy tells contradicted from unverified."""

    sample: str
    language: str
    cluster: str
    telling: bool

    def item(self, bounds: tuple[int, int], nonfactual: bool, verdicts: Sequence[str | None]) -> ItemLabels:
        """One item with the verdicts on its facts."""
        total = len(verdicts)
        told = self.telling and None not in verdicts

        def share(verdict: str) -> float:
            return verdicts.count(verdict) / total

        return ItemLabels(
            self.sample,
            *bounds,
            self.language,
            self.cluster,
            nonfactual,
            total,
            support=share("") if total else None,
            contradicted=share("contradicted") if total and told else None,
            unverified=share("unverified") if total and told else None,
        )


def _verdicts(labels: Reference, every: Sequence[Fact], length: int) -> list[str | None]:
    """Of each fact: empty where it is supported, `contradicted`, `unverified`, or None where the labels do not tell."""
    wrong = fact_marks(every, length, labels.marks.spans)
    meaning = _meanings(labels.taxonomy)
    kinds = np.array([meaning.get(name or "", "") for name in labels.marks.types], dtype=object)
    by_kind: dict[str, NDArray[np.bool_]] = {
        kind: fact_marks(every, length, labels.marks.spans[kinds == kind]) for kind in (*_KINDS, "")
    }
    verdicts: list[str | None] = []
    for index in range(len(every)):
        if not wrong[index]:
            verdicts.append("")
        elif by_kind["contradicted"][index]:
            verdicts.append("contradicted")
        else:
            verdicts.append(None if by_kind[""][index] else "unverified")
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


# The items of a data set at one level, in an order that all systems share: words, sentences or responses.


if TYPE_CHECKING:
    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class ItemTable:
    """The items of one part of a data set at one level.

    Attributes:
        level: `word`, `sentence` or `response`.
        samples: the samples, in order.
        owner: index of the sample that each item is of, ascending, shape `(n,)`.
        places: its place in the response, half-open, in code points, shape `(n, 2)`.
        languages: tag of each item, shape `(n,)`.
        texts: what each item is resampled with, shape `(n,)`.
        nonfactual: whether the labels mark anything in it, shape `(n,)`.
        support: share of its facts that are supported, NaN where it has none; None at level `word`.
        unverified: share of its facts that the evidence does not speak of, NaN where the labels do not tell; None at
            level `word`.
        labelled: whether there are labels; where not, `nonfactual` says nothing.
    """

    level: str
    samples: tuple[Sample, ...]
    owner: NDArray[np.int64]
    places: NDArray[np.int32]
    languages: NDArray[np.str_]
    texts: tuple[str, ...]
    nonfactual: Mask
    support: Array | None
    unverified: Array | None
    labelled: bool = True

    def __len__(self) -> int:
        return len(self.owner)

    def tags(self) -> list[str]:
        """The languages that items are of, sorted."""
        return sorted(set(self.languages.tolist()))

    def items(self, badness: Array) -> Items:
        """The items with what a system said of them, shape `(n,)`."""
        return Items(badness, self.nonfactual, self.support, self.unverified)

    def of_sample(self, index: int) -> slice:
        """Where the items of one sample stand."""
        return slice(*np.searchsorted(self.owner, [index, index + 1]).tolist())


def item_table(
    samples: Sequence[Sample],
    texts: Mapping[str, str],
    level: str,
    *,
    annotator: str | None = None,
    unit: str = "word",
    labelled: bool = True,
) -> ItemTable:
    """Lay out the items of samples.

    Args:
        samples: with labels of the annotator, unless `labelled` is false.
        texts: id of a sample to the text that it belongs to.
        level: `word`, `sentence` or `response`.
        annotator: whose labels; see `metrics.reference`.
        unit: what level `word` counts.
        labelled: whether they have labels.
    """
    if not labelled:
        rows = _bare(samples, level, unit)
    else:
        rows = _words(samples, annotator, unit) if level == "word" else _labelled(samples, level, annotator)
    owner = np.array([row[0] for row in rows], dtype=np.int64)
    rates = [np.array([row[index] for row in rows], dtype=np.float64) for index in (4, 5)]
    return ItemTable(
        level,
        tuple(samples),
        owner,
        np.array([row[1:3] for row in rows], dtype=np.int32).reshape(-1, 2),
        np.array([tag_of(samples[index].language) for index in owner.tolist()], dtype=np.str_),
        tuple(texts[samples[index].id] for index in owner.tolist()),
        np.array([row[3] for row in rows], dtype=bool),
        None if level == "word" else rates[0],
        None if level == "word" else rates[1],
        labelled,
    )


_Row = tuple[int, int, int, bool, float, float]  # owner, start, end, nonfactual, support, unverified


def _labelled(samples: Sequence[Sample], level: str, annotator: str | None) -> list[_Row]:
    return [
        (index, item.start, item.end, item.nonfactual, _number(item.support), _number(item.unverified))
        for index, sample in enumerate(samples)
        for item in item_labels(sample, level, annotator) or ()
    ]


def _bare(samples: Sequence[Sample], level: str, unit: str) -> list[_Row]:
    """The items of samples without labels."""
    from veriglot.text.segmentation import sentences

    segment = segmenter(unit)
    rows: list[_Row] = []
    for index, sample in enumerate(samples):
        tag = tag_of(sample.language)
        if level == "response":
            places = [(0, len(sample.response))]
        else:
            places = segment(sample.response, tag).tolist() if level == "word" else sentences(sample.response, tag)
        rows += [(index, start, end, False, np.nan, np.nan) for start, end in places]
    return rows


def _words(samples: Sequence[Sample], annotator: str | None, unit: str) -> list[_Row]:
    segment = segmenter(unit)
    rows: list[_Row] = []
    for index, sample in enumerate(samples):
        labels = reference(sample, annotator)
        if labels is None:
            continue
        bounds = segment(sample.response, tag_of(sample.language))
        bad = marked(bounds, labels.marks.spans).tolist()
        rows += [(index, s, e, b, np.nan, np.nan) for (s, e), b in zip(bounds.tolist(), bad, strict=True)]
    return rows


def _number(value: float | None) -> float:
    return np.nan if value is None else value


# Labels that a model made: in a bench they count only where its file names their annotator, and never for their maker.
#
# Published silver is fair ground where everybody knows that it is silver. What a detector marked and somebody put into
# the data is not a reference by itself: held against its own marks, every detector is perfect.


OWN_MARKS = "the labels are its own marks, or those of another revision or a member of it"
"""Why a system is not judged on a data set."""

_VERSION = re.compile(r"@[0-9.]+$")


def bench_reference(sample: Sample, annotator: str | None) -> Reference | None:
    """As `metrics.reference`, but a model's labels count by its own name alone, not by default or in a majority."""
    named = annotator is not None and annotator not in COMBINED
    if not named and all(annotation.kind is Kind.MODEL for annotation in labelled(sample)):
        return None
    return reference(sample, annotator)


def model_annotators(samples: Iterable[Sample]) -> tuple[str, ...]:
    """The names of the models that labelled any of the samples, sorted."""
    return tuple(sorted({annotation.annotator for sample in samples for annotation in _by_models(sample)}))


def made_by(samples: Iterable[Sample], annotator: str | None) -> frozenset[str]:
    """The names of the models that made labels: annotators, and the detectors that the annotations state.

    Args:
        samples: with annotations.
        annotator: of which labels; None for every model's.

    Returns:
        Nothing where people made them.
    """
    annotations = [
        annotation
        for sample in samples
        for annotation in _by_models(sample)
        if annotator in {None, annotation.annotator}
    ]
    stated = {annotation.ratings.get("detector") for annotation in annotations}
    return frozenset(
        {annotation.annotator for annotation in annotations} | {name for name in stated if isinstance(name, str)}
    )


def same_maker(makers: Iterable[str], names: Iterable[str | None]) -> bool:
    """Whether any of the names is one of the makers'.

    Revisions that count up are one detector: `grounding@1.1` made what `grounding@1.0` did. What tells models apart
    counts: `judge:spans@1+one` and `judge:spans@1+two` are two.
    """
    return not {_unversioned(name) for name in makers}.isdisjoint(_unversioned(name) for name in names if name)


def _by_models(sample: Sample) -> list[Annotation]:
    return [annotation for annotation in labelled(sample) if annotation.kind is Kind.MODEL]


def _unversioned(name: str) -> str:
    return _VERSION.sub("", name)


def sentence_samples(table: ItemTable) -> list[Sample]:
    """Each item of a table as a response of its own, held against the same evidence: how Kang et al. score sentences.

    Labels are left out: a sentence has none of its own, and no scorer may look at them. The language is that of the
    whole response.
    """
    result = []
    for number, (owner, (start, end)) in enumerate(zip(table.owner.tolist(), table.places.tolist(), strict=True)):
        sample = table.samples[owner]
        result.append(
            msgspec.structs.replace(
                sample, id=f"{sample.id}#{number}", response=sample.response[start:end], annotations=()
            )
        )
    return result

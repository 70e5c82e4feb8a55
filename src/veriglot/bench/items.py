"""Items of a data set: their labels (factual or not, the share of supported facts), and the systems' scores.

Kang et al.'s rules (section 5.1): an item is factual if all its facts are supported; its support rate is N_vs / N_t
and its unverified rate N_nv / N_t, over facts that the evidence supports, contradicts, or does not mention. Facts are
those of `text.facts`, or as many as an annotator counted in a sentence. A fact is unsupported if a mark overlaps it;
contradicted if such a mark has a type that counts as `contradicted` in the taxonomy `support`; and unverified if all
such marks count as `unverified`. The label of a fact applies to that fact alone, since facts may be nested.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec.structs import replace

from veriglot.detectors.units import judged_units
from veriglot.errors import UsageError
from veriglot.metrics.measures import Items, badness_of
from veriglot.metrics.reference import Reference, labelled, reference, response_label
from veriglot.metrics.spans import (
    fact_marks,
    fact_scores,
    marked,
    max_by_character,
    ranges,
    segmenter,
    unit_probabilities,
    word_probabilities,
)
from veriglot.records import Direction, Kind, Prediction, Sample, Score, Status, Unit, languages
from veriglot.records.taxonomy import taxonomies, taxonomy
from veriglot.signatures import digest
from veriglot.text.facts import Fact, facts
from veriglot.text.segmentation import sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from veriglot.arrays import Bools, Float64s, Int32s, Int64s
    from veriglot.bench.results import Level

    Array = Float64s
    Bounds = Int32s
    Mask = Bools

__all__ = [
    "OWN_MARKS",
    "WITHOUT_CONFIDENCES",
    "ItemTable",
    "SystemScores",
    "cluster_of",
    "item_labels",
    "made_by",
    "same_maker",
    "tag_of",
]


# The language and the text of a sample.


def tag_of(name: str | None) -> str:
    """The tag under which a language is counted, `und` if it is not stated."""
    return languages.tag_of(name) or languages.UNDETERMINED


def cluster_of(sample: Sample) -> str:
    """The cluster for resampling: the query or group that the source names, as in rates, or else the text."""
    named = map(sample.meta.get, ("query", "group"))
    group = next((each for each in named if isinstance(each, str | int)), None)
    return digest([sample.response])[:16] if group is None else f"group:{group}"


_KINDS = {"contradicted", "unverified"}


class ItemLabels(NamedTuple):
    """The labels of one item.

    Attributes:
        start, end: its range in the response, half-open, in code points.
        nonfactual: whether anything in it is marked.
        facts: number of its facts (for a sentence: of those that begin in it).
        support: share of them that are supported; None if it has none.
        contradicted, unverified: share of them that the evidence contradicts, and that it does not mention; None if the
            item has no facts, and for every item, also clean ones, if its labels do not distinguish the two: with a
            taxonomy of one type, such as `hat`, only the clean items would have a value.
    """

    start: int
    end: int
    nonfactual: bool = False
    facts: int = 0
    support: float | None = None
    contradicted: float | None = None
    unverified: float | None = None


def item_labels(sample: Sample, level: str = "response", annotator: str | None = None) -> list[ItemLabels] | None:
    """The items of one sample, in order, with their labels.

    Args:
        sample: with annotations.
        level: `response`, `sentence` or `fact`.
        annotator: whose labels; see `metrics.reference`.

    Returns:
        None if the sample has no labels (of that annotator) of this level. A response without words is one item; it
        has no sentences and no facts.

    Raises:
        UsageError: several annotators labelled it, and none is named.
    """
    labels = reference(sample, annotator)
    if labels is None:
        rated = response_label(sample, annotator) if level == "response" else None
        return [_item(0, len(sample.response), rated[1], (), False)] if rated else None
    tag = tag_of(sample.language)
    every = _facts(sample)
    verdicts = _verdicts(labels, every, len(sample.response))
    distinguishes = bool(_meanings(labels.taxonomy))
    if level == "fact":
        return [_item(f.start, f.end, v != "", [v], distinguishes) for f, v in zip(every, verdicts, strict=True)]
    known = [*zip((fact.start for fact in every), verdicts, strict=True)]
    for unit in labels.units:
        if unit.counts:  # facts that a person counted replace those of `text.facts`
            known = [row for row in known if not unit.start <= row[0] < unit.end]
            known += ((unit.start, verdict) for verdict in _counted(unit, labels.taxonomy))
    if level == "response":
        return [_item(0, len(sample.response), bool(len(labels.marks.spans)), [v for _, v in known], distinguishes)]
    places = np.array(sentences(sample.response, tag), np.int32).reshape(-1, 2)
    bad = marked(places, labels.marks.spans).tolist()
    return [
        _item(start, end, wrong, [verdict for at, verdict in known if start <= at < end], distinguishes)
        for (start, end), wrong in zip(places.tolist(), bad, strict=True)
    ]


def _counted(unit: Unit, taxonomy_name: str | None) -> Iterator[str | None]:
    """The verdicts on the facts that an annotator counted in a unit."""
    known, meaning = taxonomies().get(taxonomy_name or ""), _meanings(taxonomy_name)
    for label, count in unit.counts.items():
        yield from repeat("" if known and label in known.clean else meaning.get(label), count)


def _facts(sample: Sample) -> list[Fact]:
    return facts(sample.response, tag_of(sample.language))


def _item(start: int, end: int, nonfactual: bool, verdicts: Sequence[str | None], distinguishes: bool) -> ItemLabels:
    """One item with the verdicts on its facts; `distinguishes`: whether labels tell contradicted from unverified."""
    total = len(verdicts)
    shares = [verdicts.count(verdict) / total if total else None for verdict in ("", "contradicted", "unverified")]
    if not distinguishes or None in verdicts:
        shares[1:] = None, None
    return ItemLabels(start, end, nonfactual, total, *shares)


def _verdicts(labels: Reference, every: Sequence[Fact], length: int) -> list[str | None]:
    """The verdict on each fact: empty if supported, `contradicted`, `unverified`, or None if the labels do not say."""
    meaning = _meanings(labels.taxonomy)
    kinds = np.array([meaning.get(name or "", "") for name in labels.marks.types], object)
    verdicts: NDArray[np.object_] = np.full(len(every), "", object)
    spans = labels.marks.spans
    index = {(fact.start, fact.end): number for number, fact in enumerate(every)} if labels.units else {}
    own = np.array([index.get((start, end), -1) for start, end in spans.tolist()], np.int64)
    for kind, verdict in (("unverified", "unverified"), ("", None), ("contradicted", "contradicted")):
        verdicts[fact_marks(every, length, spans[(kinds == kind) & (own < 0)])] = verdict  # later kinds override
        verdicts[own[(kinds == kind) & (own >= 0)]] = verdict  # a labelled fact, which may contain others
    return list(verdicts.tolist())


def type_mapping(source: str | None, target: str) -> dict[str, str] | None:
    """Type to type, or None if no mapping is defined."""
    try:
        return taxonomy(source).to(target) if source in taxonomies() and source is not None else None
    except UsageError:
        return None


def _meanings(name: str | None) -> dict[str, str]:
    """Type to `contradicted` or `unverified`; empty if the taxonomy does not distinguish the two (`hat`)."""
    mapping = {own: other for own, other in (type_mapping(name, "support") or {}).items() if other in _KINDS}
    return mapping if set(mapping.values()) == _KINDS else {}


# The items of a data set at one level, in an order shared by all systems: words, facts, sentences or responses.


@dataclass(frozen=True)
class ItemTable:
    """The items of one part of a data set at one level.

    Attributes:
        level: of the items.
        samples: the samples, in order.
        owner: index of the sample of each item, ascending, shape `(n,)`.
        bounds: its range in the response, half-open, in code points, shape `(n, 2)`.
        languages: tag of each item, shape `(n,)`.
        texts: the text of each item, for resampling, shape `(n,)`.
        nonfactual: whether the labels mark anything in it, shape `(n,)`.
        support: share of its facts that are supported, NaN if it has none; None at level `word`.
        unverified: share of its facts that the evidence does not mention, NaN if the labels do not say; None at level
            `word`.
        labelled: whether there are labels; if not, `nonfactual` has no meaning.
    """

    level: Level
    samples: tuple[Sample, ...]
    owner: Int64s
    bounds: Int32s
    languages: NDArray[np.str_]
    texts: tuple[str, ...]
    nonfactual: Mask
    support: Array | None
    unverified: Array | None
    labelled: bool = True

    @classmethod
    def of(
        cls,
        samples: Sequence[Sample],
        texts: Mapping[str, str],
        level: Level,
        *,
        annotator: str | None = None,
        unit: str = "word",
        labelled: bool = True,
    ) -> ItemTable:
        """Split samples into items.

        Args:
            samples: with labels of the annotator, unless `labelled` is false.
            texts: id of a sample to the text that it belongs to.
            level: `word`, `fact`, `sentence` or `response`.
            annotator: whose labels; see `metrics.reference`.
            unit: what level `word` counts.
            labelled: whether they have labels.
        """
        rows = [
            (index, item)
            for index, sample in enumerate(samples)
            for item in (_labelled(sample, level, annotator, unit) if labelled else _unlabelled(sample, level, unit))
        ]
        owner, items = np.array([index for index, _ in rows], np.int64), [item for _, item in rows]
        owners = [samples[index] for index in owner.tolist()]
        support = np.array([item.support for item in items], np.float64)
        return cls(
            level,
            tuple(samples),
            owner,
            np.array([item[:2] for item in items], np.int32).reshape(-1, 2),
            np.array([tag_of(sample.language) for sample in owners], np.str_),
            tuple(texts[sample.id] for sample in owners),
            np.array([item.nonfactual for item in items], bool),
            None if level == "word" else support,
            None if level == "word" else np.array([item.unverified for item in items], np.float64),
            labelled,
        )

    def __len__(self) -> int:
        return len(self.owner)

    def tags(self) -> list[str]:
        """The languages of the items, sorted."""
        return sorted(set(self.languages.tolist()))

    def items(self, badness: Array, right: Array | None = None) -> Items:
        """The items with a system's scores, shape `(n,)`, and whether it named their types."""
        return Items(badness, self.nonfactual, self.support, self.unverified, right=right)

    def of_sample(self, index: int) -> slice:
        """The indices of one sample's items."""
        return slice(*np.searchsorted(self.owner, [index, index + 1]).tolist())

    def item_samples(self, samples: Sequence[Sample]) -> list[Sample]:
        """Each item as a response of its own, with the same evidence: Kang et al. score sentences and facts like this.

        Labels are left out: a sentence has none of its own, and scorers must not see them. A fact is worded with its
        context. The language is that of the whole response.

        Args:
            samples: those of the table, in order, with everything else that scorers may see.
        """
        rows = []
        for index, sample in enumerate(samples):
            items = self.of_sample(index)
            texts = [sample.response[start:end] for start, end in self.bounds[items].tolist()]
            if self.level == "fact" and texts:
                texts = [fact.text(sample.response) for fact in _facts(sample)]
            rows += [
                replace(sample, id=f"{sample.id}#{number}", response=text, annotations=())
                for number, text in enumerate(texts, items.start)
            ]
        return rows


def _labelled(sample: Sample, level: Level, annotator: str | None, unit: str) -> list[ItemLabels]:
    if level != "word":
        return item_labels(sample, level, annotator) or []
    labels = reference(sample, annotator)
    if labels is None:
        return []
    bounds = segmenter(unit)(sample.response, tag_of(sample.language))
    bad = marked(bounds, labels.marks.spans).tolist()
    return [ItemLabels(start, end, wrong) for (start, end), wrong in zip(bounds.tolist(), bad, strict=True)]


def _unlabelled(sample: Sample, level: Level, unit: str) -> list[ItemLabels]:
    """The items of a sample without labels."""
    tag = tag_of(sample.language)
    if level == "response":
        places = [(0, len(sample.response))]
    elif level == "fact":
        places = [(fact.start, fact.end) for fact in _facts(sample)]
    else:
        places = segmenter(unit)(sample.response, tag).tolist() if level == "word" else sentences(sample.response, tag)
    return [ItemLabels(start, end) for start, end in places]


# Labels made by models: in a bench they count only if the bench file names their annotator, and never for that model.


OWN_MARKS = "the labels are its own marks, or those of another revision or a member of it"
"""Why a system is not run on a data set."""

_VERSION = re.compile(r"@[0-9.]+$")


def made_by(samples: Iterable[Sample], annotator: str | None) -> frozenset[str]:
    """The names of the models that made labels: annotators, and the detectors that the annotations name.

    Args:
        samples: with annotations.
        annotator: whose labels; None for every model's.

    Returns:
        Empty if people made them.
    """
    annotations = [
        annotation
        for sample in samples
        for annotation in labelled(sample)
        if annotation.kind is Kind.MODEL and annotator in {None, annotation.annotator}
    ]
    stated = {annotation.ratings.get("detector") for annotation in annotations}
    names = {annotation.annotator for annotation in annotations} | stated
    return frozenset(name for name in names if isinstance(name, str))


def same_maker(makers: Iterable[str], names: Iterable[str | None]) -> bool:
    """Whether any of the names is a maker's.

    Numbered revisions are one detector: `grounding@1.1` made what `grounding@1.0` did. Names of models count:
    `judge:spans@1+one` and `judge:spans@1+two` are two.
    """
    unversioned = ({_VERSION.sub("", name) for name in group if name} for group in (makers, names))
    return not set.isdisjoint(*unversioned)


# A system's score of each item (greater is worse), and its own verdict.
#
# A detector's score is, for a word, its confidence; for a fact, the greatest confidence; for a sentence, computed from
# its facts (`metrics.unit_scores`); for a response, its score. If it gives no confidences of words: the greatest of the
# spans that touch the item, or 1 and 0 if spans have none either. Its own verdict is whether a span touches the item;
# for a fact or sentence with confidences, whether its score reaches the threshold, as in `veriglot evaluate`.


WITHOUT_CONFIDENCES = "spans without confidences: a mark counts 1 and no mark 0, so figures of ranking rest on verdicts"


@dataclass(frozen=True)
class SystemScores:
    """A system's scores of all items of a table.

    Attributes:
        badness: greater is worse, NaN if the item was not scored, shape `(n,)`.
        verdict: 1 if its own threshold marks the item, 0 if not, NaN if not scored; None if it has no threshold.
        notes: what a reader of figures must know.
        types: of the labels, `none` if clean and empty if there are several; None if they are not compared.
        right: 1 if it names that type, 0 if not, NaN if it was not scored, or the labels have several.
        untyped: why types of the labels are not compared.
    """

    badness: Array
    verdict: Array | None
    notes: tuple[str, ...] = ()
    types: NDArray[np.str_] | None = None
    right: Array | None = None
    untyped: str = ""

    @classmethod
    def of_detector(cls, table: ItemTable, predictions: Sequence[Prediction], threshold: float | None) -> SystemScores:
        """A detector's scores of each item.

        Args:
            table: the items.
            predictions: of the table's samples, in order.
            threshold: confidence from which it marks; None if it is not known: the verdict then comes from spans only.
        """
        badness, verdict = np.full(len(table), np.nan), np.full(len(table), np.nan)
        hard = 0
        for index, (sample, prediction) in enumerate(zip(table.samples, predictions, strict=True)):
            items = table.of_sample(index)
            if prediction.status is not Status.SCORED or items.start == items.stop:
                continue
            bounds = table.bounds[items]
            values, graded = _item_scores(sample, prediction, table.level, bounds)
            badness[items] = values
            hard += not graded
            if table.level == "response":
                verdict[items] = float(bool(prediction.spans))
            elif table.level != "word" and prediction.words is not None and threshold is not None:
                verdict[items] = values >= threshold
            elif table.level == "fact":
                verdict[items] = fact_marks(_facts(sample), len(sample.response), ranges(prediction.spans or ()))
            else:
                verdict[items] = marked(bounds, ranges(prediction.spans or ()))
        return cls(badness, verdict, (WITHOUT_CONFIDENCES,) if hard else ())

    @classmethod
    def of_scorer(cls, scores: Sequence[Score], direction: Direction | str, threshold: float | None) -> SystemScores:
        """A scorer's scores of each item.

        Args:
            scores: one per item, in order.
            direction: whether a greater score is better or worse.
            threshold: in its own scores; None if it has none.
        """
        badness = badness_of([score.value for score in scores], direction)
        if threshold is None:
            return cls(badness, None)
        cut = threshold if Direction(direction) is Direction.HIGHER_IS_WORSE else -threshold
        return cls(badness, np.where(np.isnan(badness), np.nan, (badness >= cut).astype(np.float64)))


def _item_scores(sample: Sample, prediction: Prediction, level: str, bounds: Bounds) -> tuple[Array, bool]:
    """The score of each item, and whether it is more than a verdict."""
    spans = prediction.spans or ()
    if level == "response":
        assert prediction.score is not None
        return np.array([prediction.score]), not any(note.startswith("confidence:verdict") for note in prediction.notes)
    length = len(sample.response)
    graded = prediction.words is not None or all(span.confidence is not None for span in spans)
    if prediction.words is None:
        sure = ((span.start, span.end, 1.0 if span.confidence is None else span.confidence) for span in spans)
        by_character = max_by_character(length, sure)
    else:
        by_character = word_probabilities(length, prediction.words)
    if level == "fact":
        return fact_scores(_facts(sample), by_character), graded
    if level == "sentence":
        units = {(unit.start, unit.end): unit.score for unit in judged_units(sample, prediction, "sentence") or ()}
        places = list(map(tuple, bounds.tolist()))
        if units.keys() >= set(places):
            return np.array([units[start_end] for start_end in places], np.float64), True
    return unit_probabilities(bounds, by_character), graded

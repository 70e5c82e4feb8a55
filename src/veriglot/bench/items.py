"""Items of a data set: what labels say of them (factual or not, the share of supported facts), and what systems say.

Kang et al.'s rules (section 5.1): an item is factual where all its facts are supported; its support rate is N_vs / N_t
and its unverified rate N_nv / N_t, over facts that the evidence supports, contradicts, or says nothing of. Facts are
those of `text.facts`, or as many as an annotator counted in a sentence. A fact is unsupported where a mark overlaps it;
it is contradicted where a mark that does is of a type that counts as `contradicted` in the taxonomy `support`, and
unverified where all that do count as `unverified`. The label of a fact is of that fact alone, for facts lie in facts.
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
    greatest,
    marked,
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

__all__ = ["HARD", "OWN_MARKS", "ItemTable", "Opinion", "cluster_of", "item_labels", "made_by", "same_maker", "tag_of"]


# Which language and text a sample belongs to.


def tag_of(name: str | None) -> str:
    """The tag that a language is counted under, `und` where it is not stated."""
    return languages.tag_of(name) or languages.UNDETERMINED


def cluster_of(sample: Sample) -> str:
    """What is resampled as one: the query or group that the source names, as in rates, or else the text."""
    named = map(sample.meta.get, ("query", "group"))
    group = next((each for each in named if isinstance(each, str | int)), None)
    return digest([sample.response])[:16] if group is None else f"group:{group}"


_KINDS = {"contradicted", "unverified"}


class ItemLabels(NamedTuple):
    """What the labels say of one item.

    Attributes:
        start, end: its place in the response, half-open, in code points.
        nonfactual: whether anything in it is marked.
        facts: how many facts it holds (a sentence: how many begin in it).
        support: share of them that are supported; None where it holds none.
        contradicted, unverified: share of them that the evidence contradicts, and that it does not speak of; None where
            it holds none, and for every item, clean ones too, whose labels do not tell the two apart: of a taxonomy
            with one type, such as `hat`, the clean items alone would be known.
    """

    start: int
    end: int
    nonfactual: bool = False
    facts: int = 0
    support: float | None = None
    contradicted: float | None = None
    unverified: float | None = None


def item_labels(sample: Sample, level: str = "response", annotator: str | None = None) -> list[ItemLabels] | None:
    """The items of one sample, in order, with what its labels say of them.

    Args:
        sample: with annotations.
        level: `response`, `sentence` or `fact`.
        annotator: whose labels; see `metrics.reference`.

    Returns:
        None where the sample has no labels (of that annotator) of this level. A response without words is one item; it
        has no sentences and no facts.

    Raises:
        UsageError: the labels cannot be chosen without a name.
    """
    labels = reference(sample, annotator)
    if labels is None:
        rated = response_label(sample, annotator) if level == "response" else None
        return [_item(0, len(sample.response), rated[1], (), False)] if rated else None
    tag = tag_of(sample.language)
    every = _facts(sample)
    verdicts = _verdicts(labels, every, len(sample.response))
    telling = bool(_meanings(labels.taxonomy))
    if level == "fact":
        return [_item(f.start, f.end, v != "", [v], telling) for f, v in zip(every, verdicts, strict=True)]
    known = [*zip((fact.start for fact in every), verdicts, strict=True)]
    for unit in labels.units:
        if unit.counts:  # what a person counted takes the place of the facts that rules see
            known = [row for row in known if not unit.start <= row[0] < unit.end]
            known += ((unit.start, verdict) for verdict in _counted(unit, labels.taxonomy))
    if level == "response":
        return [_item(0, len(sample.response), bool(len(labels.marks.spans)), [v for _, v in known], telling)]
    places = np.array(sentences(sample.response, tag), np.int32).reshape(-1, 2)
    bad = marked(places, labels.marks.spans).tolist()
    return [
        _item(start, end, wrong, [verdict for at, verdict in known if start <= at < end], telling)
        for (start, end), wrong in zip(places.tolist(), bad, strict=True)
    ]


def _counted(unit: Unit, taxonomy_name: str | None) -> Iterator[str | None]:
    """The verdicts on the facts that an annotator counted in a unit."""
    known, meaning = taxonomies().get(taxonomy_name or ""), _meanings(taxonomy_name)
    for label, count in unit.counts.items():
        yield from repeat("" if known and label in known.clean else meaning.get(label), count)


def _facts(sample: Sample) -> list[Fact]:
    return facts(sample.response, tag_of(sample.language))


def _item(start: int, end: int, nonfactual: bool, verdicts: Sequence[str | None], telling: bool) -> ItemLabels:
    """One item with the verdicts on its facts; `telling` is whether the labels tell contradicted from unverified."""
    total = len(verdicts)
    shares = [verdicts.count(verdict) / total if total else None for verdict in ("", "contradicted", "unverified")]
    if not telling or None in verdicts:
        shares[1:] = None, None
    return ItemLabels(start, end, nonfactual, total, *shares)


def _verdicts(labels: Reference, every: Sequence[Fact], length: int) -> list[str | None]:
    """Of each fact: empty where it is supported, `contradicted`, `unverified`, or None where the labels do not tell."""
    meaning = _meanings(labels.taxonomy)
    kinds = np.array([meaning.get(name or "", "") for name in labels.marks.types], object)
    verdicts: NDArray[np.object_] = np.full(len(every), "", object)
    spans = labels.marks.spans
    index = {(fact.start, fact.end): number for number, fact in enumerate(every)} if labels.units else {}
    own = np.array([index.get((start, end), -1) for start, end in spans.tolist()], np.int64)
    for kind, verdict in (("unverified", "unverified"), ("", None), ("contradicted", "contradicted")):
        verdicts[fact_marks(every, length, spans[(kinds == kind) & (own < 0)])] = verdict  # the last one holds
        verdicts[own[(kinds == kind) & (own >= 0)]] = verdict  # a labelled fact, in which others may lie
    return list(verdicts.tolist())


def type_mapping(source: str | None, target: str) -> dict[str, str] | None:
    """Type to type, or None where no mapping is defined."""
    try:
        return taxonomy(source).to(target) if source in taxonomies() and source is not None else None
    except UsageError:
        return None


def _meanings(name: str | None) -> dict[str, str]:
    """Type to `contradicted` or `unverified`; empty where the taxonomy does not tell the two apart (`hat`)."""
    mapping = {own: other for own, other in (type_mapping(name, "support") or {}).items() if other in _KINDS}
    return mapping if set(mapping.values()) == _KINDS else {}


# The items of a data set at one level, in an order that all systems share: words, facts, sentences or responses.


@dataclass(frozen=True)
class ItemTable:
    """The items of one part of a data set at one level.

    Attributes:
        level: of the items.
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

    level: Level
    samples: tuple[Sample, ...]
    owner: Int64s
    places: Int32s
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
        """Lay out the items of samples.

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
            for item in (_labelled(sample, level, annotator, unit) if labelled else _bare(sample, level, unit))
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
        """The languages that items are of, sorted."""
        return sorted(set(self.languages.tolist()))

    def items(self, badness: Array, right: Array | None = None) -> Items:
        """The items with what a system said of them, shape `(n,)`, and whether it named their types."""
        return Items(badness, self.nonfactual, self.support, self.unverified, right=right)

    def of_sample(self, index: int) -> slice:
        """Where the items of one sample stand."""
        return slice(*np.searchsorted(self.owner, [index, index + 1]).tolist())

    def item_samples(self, samples: Sequence[Sample]) -> list[Sample]:
        """Each item as a response of its own, held against the same evidence: so Kang et al. score sentences and facts.

        Labels are left out: a sentence has none of its own, and no scorer may look at them. A fact is worded with its
        context. The language is that of the whole response.

        Args:
            samples: those of the table, in order, with all else that a scorer may look at.
        """
        rows = []
        for index, sample in enumerate(samples):
            items = self.of_sample(index)
            texts = [sample.response[start:end] for start, end in self.places[items].tolist()]
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


def _bare(sample: Sample, level: Level, unit: str) -> list[ItemLabels]:
    """The items of a sample without labels."""
    tag = tag_of(sample.language)
    if level == "response":
        places = [(0, len(sample.response))]
    elif level == "fact":
        places = [(fact.start, fact.end) for fact in _facts(sample)]
    else:
        places = segmenter(unit)(sample.response, tag).tolist() if level == "word" else sentences(sample.response, tag)
    return [ItemLabels(start, end) for start, end in places]


# Labels that a model made: in a bench they count only where its file names their annotator, and never for their maker.


OWN_MARKS = "the labels are its own marks, or those of another revision or a member of it"
"""Why a system is not judged on a data set."""

_VERSION = re.compile(r"@[0-9.]+$")


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
        for annotation in labelled(sample)
        if annotation.kind is Kind.MODEL and annotator in {None, annotation.annotator}
    ]
    stated = {annotation.ratings.get("detector") for annotation in annotations}
    names = {annotation.annotator for annotation in annotations} | stated
    return frozenset(name for name in names if isinstance(name, str))


def same_maker(makers: Iterable[str], names: Iterable[str | None]) -> bool:
    """Whether any of the names is one of the makers'.

    Revisions that count up are one detector: `grounding@1.1` made what `grounding@1.0` did. What tells models apart
    counts: `judge:spans@1+one` and `judge:spans@1+two` are two.
    """
    unversioned = ({_VERSION.sub("", name) for name in group if name} for group in (makers, names))
    return not set.isdisjoint(*unversioned)


# What a system said of each item: a number that is greater the worse the item is, and its own verdict.
#
# A detector's number of a word is its confidence, of a fact its greatest, of a sentence what its facts add up to
# (`metrics.unit_scores`), of a response its score; where it gives no confidences of words, the greatest of the spans
# that touch the item, or 1 and 0 where spans have none either. Its own verdict is whether a span touches the item; of a
# fact or sentence with confidences, whether its number reaches the threshold, as in `veriglot evaluate`.


HARD = "spans without confidences: a mark counts 1 and no mark 0, so figures of ranking rest on verdicts"


@dataclass(frozen=True)
class Opinion:
    """What a system said of every item of a table.

    Attributes:
        badness: greater is worse, NaN where the item was not scored, shape `(n,)`.
        verdict: 1 where its own threshold marks the item, 0 where not, NaN where not scored; None where it has none.
        notes: what a reader of figures must know.
        types: of the labels, `none` where clean and empty where there are several; None where they are not compared.
        right: 1 where it names that type, 0 where not, NaN where it was not scored, or the labels have several.
        untyped: why types of the labels are not compared.
    """

    badness: Array
    verdict: Array | None
    notes: tuple[str, ...] = ()
    types: NDArray[np.str_] | None = None
    right: Array | None = None
    untyped: str = ""

    @classmethod
    def of_detector(cls, table: ItemTable, predictions: Sequence[Prediction], threshold: float | None) -> Opinion:
        """A detector's opinion of each item.

        Args:
            table: the items.
            predictions: of the table's samples, in order.
            threshold: confidence from which it marks; None where it is not known, so that spans alone are its verdict.
        """
        badness, verdict = np.full(len(table), np.nan), np.full(len(table), np.nan)
        hard = 0
        for index, (sample, prediction) in enumerate(zip(table.samples, predictions, strict=True)):
            items = table.of_sample(index)
            if prediction.status is not Status.SCORED or items.start == items.stop:
                continue
            bounds = table.places[items]
            values, graded = _numbers(sample, prediction, table.level, bounds)
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
        return cls(badness, verdict, (HARD,) if hard else ())

    @classmethod
    def of_scorer(cls, scores: Sequence[Score], direction: Direction | str, threshold: float | None) -> Opinion:
        """A scorer's opinion of each item.

        Args:
            scores: one an item, in order.
            direction: of its numbers.
            threshold: in its own numbers; None where it has none.
        """
        badness = badness_of([score.value for score in scores], direction)
        if threshold is None:
            return cls(badness, None)
        cut = threshold if Direction(direction) is Direction.HIGHER_IS_WORSE else -threshold
        return cls(badness, np.where(np.isnan(badness), np.nan, (badness >= cut).astype(np.float64)))


def _numbers(sample: Sample, prediction: Prediction, level: str, bounds: Bounds) -> tuple[Array, bool]:
    """The number of each item, and whether it is more than a verdict."""
    spans = prediction.spans or ()
    if level == "response":
        assert prediction.score is not None
        return np.array([prediction.score]), not any(note.startswith("confidence:verdict") for note in prediction.notes)
    length = len(sample.response)
    graded = prediction.words is not None or all(span.confidence is not None for span in spans)
    if prediction.words is None:
        sure = ((span.start, span.end, 1.0 if span.confidence is None else span.confidence) for span in spans)
        by_character = greatest(length, sure)
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

"""Statistics of labelled data sets as the papers print them: hat, Tables 1 and 2; halluverse, Table 2; kang, Table 9.

Sums first: a statistic is made of counts that are added sample by sample, so that data of any size passes through, and
the statistics of parts can be joined.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from veriglot.bench.belonging import tag_of
from veriglot.bench.labels import item_labels
from veriglot.metrics.marks import covered
from veriglot.metrics.reference import reference
from veriglot.metrics.units import segmenter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from veriglot.metrics.units import Segmenter
    from veriglot.records import Sample

__all__ = ["BANDS", "DataStatistics", "statistics_by_language", "statistics_of"]

BANDS = ((0, 5), (5, 25), (25, 100))  # of hallucinated characters in percent, half-open below: (0, 5], (5, 25], ...


@dataclass
class DataStatistics:
    """Counts of one data set, or of one language of it. Lengths are in code points.

    Attributes:
        unit: of `evidence_units` and `response_units`: `word` or another that `metrics.units` knows.
        samples: all of them.
        labelled: those with labels; everything below is of these alone.
        with_evidence: labelled ones with evidence and a response, over which length ratios are taken.
        hallucinated: labelled ones in which anything is marked.
        bands: how many of these fall into each of `BANDS`, by the share of the response that is marked.
        evidence_length, response_length: code points of those with evidence, summed.
        ratio_sum: their response / evidence, summed.
        hallucinated_with_evidence, hallucinated_evidence_length, hallucinated_response_length, hallucinated_ratio_sum:
            the same of the hallucinated ones.
        length: code points of all labelled responses.
        marked: of these, in any mark.
        evidence_units, response_units: units of labelled samples with evidence (halluverse: original and edited).
        marks: number of marks.
        types: how many marks are of each type; the key is empty where a mark has none.
        facts, supported, contradicted, unverified: atomic facts of labelled responses; the last two only of responses
            whose labels tell them apart, whose facts are `told`.
        support_sum: support rates of responses with facts, summed; there are `with_facts` of them.
    """

    unit: str = "word"
    samples: int = 0
    labelled: int = 0
    with_evidence: int = 0
    hallucinated: int = 0
    bands: list[int] = field(default_factory=lambda: [0] * len(BANDS))
    evidence_length: int = 0
    response_length: int = 0
    ratio_sum: float = 0.0
    hallucinated_with_evidence: int = 0
    hallucinated_evidence_length: int = 0
    hallucinated_response_length: int = 0
    hallucinated_ratio_sum: float = 0.0
    length: int = 0
    marked: int = 0
    evidence_units: int = 0
    response_units: int = 0
    marks: int = 0
    types: Counter[str] = field(default_factory=Counter)
    facts: int = 0
    supported: int = 0
    told: int = 0
    contradicted: int = 0
    unverified: int = 0
    with_facts: int = 0
    support_sum: float = 0.0

    def __add__(self, other: DataStatistics) -> DataStatistics:
        """The statistics of both.

        Raises:
            ValueError: they count different units.
        """
        if self.unit != other.unit:
            raise ValueError(f"statistics in {self.unit} and {other.unit} cannot be added")
        joined = {name: getattr(self, name) + getattr(other, name) for name in _SUMMED}
        bands = [one + two for one, two in zip(self.bands, other.bands, strict=True)]
        return DataStatistics(unit=self.unit, bands=bands, types=self.types + other.types, **joined)

    @property
    def length_ratio(self) -> float | None:
        """Response over evidence, of summed lengths: hat's T2SLR for translations."""
        return _share(self.response_length, self.evidence_length)

    @property
    def mean_length_ratio(self) -> float | None:
        """The mean of the samples' own ratios. hat does not say which of the two its T2SLR is."""
        return _share(self.ratio_sum, self.with_evidence)

    @property
    def hallucinated_length_ratio(self) -> float | None:
        """`length_ratio` of the hallucinated samples: hat's T2SLRHG."""
        return _share(self.hallucinated_response_length, self.hallucinated_evidence_length)

    @property
    def hallucinated_mean_length_ratio(self) -> float | None:
        """`mean_length_ratio` of the hallucinated samples."""
        return _share(self.hallucinated_ratio_sum, self.hallucinated_with_evidence)

    @property
    def character_rate(self) -> float | None:
        """Share of the characters of all labelled responses that is marked: hat's CHR."""
        return _share(self.marked, self.length)

    @property
    def sentence_rate(self) -> float | None:
        """Share of labelled samples in which anything is marked: hat's SHR, whose samples are sentences."""
        return _share(self.hallucinated, self.labelled)

    @property
    def band_shares(self) -> list[float | None]:
        """Share of the hallucinated samples in each of `BANDS`: hat's SHR (0-5], (5-25], (25-100]."""
        return [_share(count, self.hallucinated) for count in self.bands]

    @property
    def mean_evidence_units(self) -> float | None:
        """Units of evidence a sample: in halluverse's data, tokens of the original sentence."""
        return _share(self.evidence_units, self.with_evidence)

    @property
    def mean_response_units(self) -> float | None:
        """Units of response a sample: in halluverse's data, tokens of the edited sentence."""
        return _share(self.response_units, self.with_evidence)

    @property
    def support_rate(self) -> float | None:
        """The mean over responses of the share of their facts that is supported (kang, Table 9)."""
        return _share(self.support_sum, self.with_facts)

    def row(self) -> dict[str, float | int | None]:
        """Everything that is printed, by name, in the order of hat's columns, then halluverse's and kang's."""
        bands = {f"band_{low}_{high}": share for (low, high), share in zip(BANDS, self.band_shares, strict=True)}
        return {
            "samples": self.samples,
            "labelled": self.labelled,
            "length_ratio": self.length_ratio,
            "mean_length_ratio": self.mean_length_ratio,
            "hallucinated_length_ratio": self.hallucinated_length_ratio,
            "hallucinated_mean_length_ratio": self.hallucinated_mean_length_ratio,
            "character_rate": self.character_rate,
            "sentence_rate": self.sentence_rate,
            "hallucinated": self.hallucinated,
            **bands,
            "marks": self.marks,
            "evidence_units": self.evidence_units,
            "response_units": self.response_units,
            "mean_evidence_units": self.mean_evidence_units,
            "mean_response_units": self.mean_response_units,
            "facts": self.facts,
            "support_rate": self.support_rate,
            "supported": _share(self.supported, self.facts),
            "contradicted": _share(self.contradicted, self.told),
            "unverified": _share(self.unverified, self.told),
        }


_SUMMED = tuple(name for name in DataStatistics.__dataclass_fields__ if name not in {"unit", "bands", "types"})


def band_of(marked: int, length: int) -> int | None:
    """Which of `BANDS` a response belongs to, of whose `length` characters `marked` are marked; None where none is.

    A share that lies on the border of two belongs to the lower one.
    """
    if marked <= 0:
        return None
    return next(place for place, (_, high) in enumerate(BANDS) if 100 * marked <= high * length)


def statistics_of(samples: Iterable[Sample], *, unit: str = "word", annotator: str | None = None) -> DataStatistics:
    """The statistics of a data set.

    Args:
        samples: read once.
        unit: what tokens are: `word`, `char` or `hf:<tokenizer>`. halluverse does not say which tokens it counts.
        annotator: whose labels; see `metrics.reference`.

    Raises:
        UnknownNameError: no such unit.
        UsageError: the labels cannot be chosen without a name.
    """
    parts = statistics_by_language(samples, unit=unit, annotator=annotator)
    return sum(parts.values(), DataStatistics(unit))


def statistics_by_language(
    samples: Iterable[Sample], *, unit: str = "word", annotator: str | None = None
) -> dict[str, DataStatistics]:
    """The statistics of each language of a data set, in the order of the tags; translations by pair, as `de-en`.

    Arguments and errors are those of `statistics_of`.
    """
    segment = segmenter(unit)
    found: dict[str, DataStatistics] = {}
    for sample in samples:
        _count(found.setdefault(_stratum(sample), DataStatistics(unit)), sample, annotator, segment)
    return dict(sorted(found.items()))


def _stratum(sample: Sample) -> str:
    tag = tag_of(sample.language)
    source = next((passage.language for passage in sample.evidence if passage.language), None)
    return tag if source is None or tag_of(source) == tag else f"{tag_of(source)}-{tag}"


def _count(into: DataStatistics, sample: Sample, annotator: str | None, segment: Segmenter) -> None:
    into.samples += 1
    found = reference(sample, annotator)
    if found is None:
        return
    into.labelled += 1
    length = len(sample.response)
    marked = int(np.count_nonzero(covered(length, found.marks.spans)))
    into.length += length
    into.marked += marked
    into.marks += len(found.marks.spans)
    into.types.update(name or "" for name in found.marks.types)
    band = band_of(marked, length)
    if band is not None:
        into.hallucinated += 1
        into.bands[band] += 1
    _count_lengths(into, sample, segment, hallucinated=band is not None)
    _count_facts(into, sample, annotator)


def _count_lengths(into: DataStatistics, sample: Sample, segment: Segmenter, *, hallucinated: bool) -> None:
    evidence, length = sum(len(passage.text) for passage in sample.evidence), len(sample.response)
    if not evidence or not length:
        return
    into.with_evidence += 1
    into.evidence_length += evidence
    into.response_length += length
    into.ratio_sum += length / evidence
    into.evidence_units += sum(len(segment(passage.text, passage.language)) for passage in sample.evidence)
    into.response_units += len(segment(sample.response, sample.language))
    if hallucinated:
        into.hallucinated_with_evidence += 1
        into.hallucinated_evidence_length += evidence
        into.hallucinated_response_length += length
        into.hallucinated_ratio_sum += length / evidence


def _count_facts(into: DataStatistics, sample: Sample, annotator: str | None) -> None:
    for item in item_labels(sample, "response", annotator) or ():
        if item.support is None:
            continue
        into.with_facts += 1
        into.support_sum += item.support
        into.facts += item.facts
        into.supported += round(item.support * item.facts)
        if item.contradicted is not None and item.unverified is not None:
            into.told += item.facts
            into.contradicted += round(item.contradicted * item.facts)
            into.unverified += round(item.unverified * item.facts)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None

"""A detector's measured error rates, per language and pooled (DESIGN: the error profile)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["CONFIDENCE_BINS", "Confusion", "DataSource", "ErrorProfile", "LanguageProfile"]

CONFIDENCE_BINS = 20
"""Equal bins on [0, 1] of a profile's confidences: bin k holds k/20 <= c < (k + 1)/20, the last one 1.0 as well."""


class Confusion(NamedTuple):
    """Counts of units in one response: true and false positives, false and true negatives."""

    tp: int
    fp: int
    fn: int
    tn: int


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


class LanguageProfile(msgspec.Struct, frozen=True, omit_defaults=True):
    """Error rates over the responses of one language (or of all).

    A rate whose denominator is zero is None: it was not measured.

    Attributes:
        tp: unsupported units that were marked.
        fp: supported units that were marked.
        fn: unsupported units that were not marked.
        tn: supported units that were not marked.
        tpr: tp / (tp + fn).
        fpr: fp / (fp + tn).
        precision: tp / (tp + fp).
        recall: the same figure as `tpr`, under the name that the field uses beside precision.
        prevalence: (tp + fn) / all units.
        responses: the counts of each response, so that it can be resampled without inference.
        clusters: what each response belongs to, as numbers: responses to one text share one. Empty where each is
            its own.
        confidences: units by confidence, in 20 equal bins on [0, 1], each `[unsupported, supported]`. Empty where the
            detector gave no confidence of every word.
        histograms: the same of each response, without its empty bins, each `[bin, unsupported, supported]`, so that
            they can be resampled. Empty like `confidences`.
    """

    tp: int
    fp: int
    fn: int
    tn: int
    tpr: float | None
    fpr: float | None
    precision: float | None
    recall: float | None
    prevalence: float | None
    responses: tuple[Confusion, ...]
    clusters: tuple[int, ...] = ()
    confidences: tuple[tuple[int, int], ...] = ()
    histograms: tuple[tuple[tuple[int, int, int], ...], ...] = ()

    def __post_init__(self) -> None:
        if self.clusters and len(self.clusters) != len(self.responses):
            raise ValueError(f"{len(self.clusters)} `clusters` for {len(self.responses)} `responses`")
        if self.confidences and len(self.confidences) != CONFIDENCE_BINS:
            raise ValueError(f"`confidences` has {CONFIDENCE_BINS} bins, not {len(self.confidences)}")
        if self.histograms and len(self.histograms) != len(self.responses):
            raise ValueError(f"{len(self.histograms)} `histograms` for {len(self.responses)} `responses`")
        if any(not 0 <= cell[0] < CONFIDENCE_BINS for cells in self.histograms for cell in cells):
            raise ValueError(f"`histograms` names a bin outside 0 to {CONFIDENCE_BINS - 1}")

    @classmethod
    def of(
        cls,
        responses: Iterable[Confusion],
        *,
        clusters: Sequence[int] = (),
        confidences: Iterable[tuple[int, int]] = (),
        histograms: Iterable[Iterable[tuple[int, int, int]]] = (),
    ) -> LanguageProfile:
        """Sum the counts of responses into rates; the rest as the attributes.

        Without `confidences`, those are summed from `histograms`.
        """
        counts = tuple(Confusion(*row) for row in responses)
        cells = tuple(tuple(part) for part in histograms)
        tp, fp, fn, tn = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0, 0, 0)
        return cls(
            tp, fp, fn, tn,
            tpr=_ratio(tp, tp + fn),
            fpr=_ratio(fp, fp + tn),
            precision=_ratio(tp, tp + fp),
            recall=_ratio(tp, tp + fn),
            prevalence=_ratio(tp + fn, tp + fp + fn + tn),
            responses=counts,
            clusters=tuple(clusters),
            confidences=tuple(confidences) or _summed(cells),
            histograms=cells,
        )  # fmt: skip


def _summed(histograms: Iterable[Iterable[tuple[int, int, int]]]) -> tuple[tuple[int, int], ...]:
    """Units of all responses by confidence; empty where there are none."""
    sums = [[0, 0] for _ in range(CONFIDENCE_BINS)]
    for cells in histograms:
        for index, unsupported, supported in cells:
            sums[index][0] += unsupported
            sums[index][1] += supported
    return tuple((unsupported, supported) for unsupported, supported in sums) if any(map(any, sums)) else ()


class DataSource(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which data a profile was measured on: SHA-256, whose labels (`gold`, `silver`, `mixed`), and its name."""

    sha256: str
    kind: str
    name: str | None = None


class ErrorProfile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A detector's error rates at one unit and one threshold.

    Attributes:
        unit: `char`, `word` or `hf:<tokenizer>`.
        threshold: confidence from which a unit counts as marked.
        detector: name and revision.
        languages: BCP 47 tag to rates.
        pooled: the same over all languages.
        data: the labelled data.
        signature: one line that says how it was measured.
    """

    unit: str
    threshold: float
    detector: str
    languages: dict[str, LanguageProfile]
    pooled: LanguageProfile
    data: DataSource
    signature: str

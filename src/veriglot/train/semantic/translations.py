"""From translations labelled by people to training examples, and to parallel texts where they are right."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from veriglot.records import Kind
from veriglot.text import fold, words
from veriglot.train.grounding.example import Example, Mark
from veriglot.train.grounding.reading import majority
from veriglot.train.semantic.parallel import Parallel
from veriglot.train.semantic.translating import translations_of

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Sequence
    from random import Random

    from veriglot.records import Annotation, Sample

__all__ = ["TOKENS", "labelled_translations"]

TOKENS = "translation tokens"  # every word was looked at: nothing teaches more
_ERRORS, _PATHOLOGIES, _CRITICAL = "translation errors", "translation pathologies", "translation critical"
_MOST_WITHOUT = 1500  # translations without an addition, among those of error spans: additions are rare
_MOST_RIGHT = 4000  # right translations of those with critical errors
_MOST_PARALLEL = 2500  # of these that others are made from, in a language
_MOST_MADE = 1800  # made from these, in a language
_TIMES = 6  # examples made of one text at most, on average
_DIVIDED = 0.6  # how unsupported a word of a strongly detached translation is: a part is, and nobody said which


def labelled_translations(samples: Sequence[Sample], left_out: Counter[str], rng: Random) -> Iterator[Example]:
    """Every labelled translation that teaches something, and some made by rule from those that are right.

    What a label teaches hangs on its form. Spans that are agreed on (`gold`) say of every word whether the source has
    it. Spans of single raters are one category of an error typology, additions, and rare: translations without any
    are sampled. Flags name a pathology of the whole. A binary judgement says that a translation is right, or that
    something somewhere is wrong, which teaches nothing.

    Args:
        samples: translations whose evidence is their source.
        left_out: counts, by reason, what is not used.
        rng: draws samples, and what is made.
    """
    sources: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.evidence[0].language is None or len(sample.evidence) != 1:
            left_out["translation without a language or with several sources"] += 1
            continue
        sources[_source(sample)].append(sample)
    for sample in sources[TOKENS]:
        yield _example(sample, TOKENS, _marked(sample))
    yield from _with_errors(sources[_ERRORS], left_out, rng)
    for sample in sources[_PATHOLOGIES]:
        yield _with_pathology(sample)
    right = [sample for sample in sources[_CRITICAL] if not _gold(sample).units]
    left_out["translation with a critical error somewhere"] += len(sources[_CRITICAL]) - len(right)
    yield from _of_right_ones(right, rng)


def _gold(sample: Sample) -> Annotation:
    return next((layer for layer in sample.annotations if layer.annotator == "gold"), sample.annotations[0])


def _source(sample: Sample) -> str:
    layer = _gold(sample)
    if layer.taxonomy == "critical":
        return _CRITICAL
    if layer.spans is None:
        return _PATHOLOGIES
    return TOKENS if layer.annotator == "gold" else _ERRORS


def _marked(sample: Sample) -> tuple[Mark, ...]:
    layer = _gold(sample)
    if layer.annotator == "gold":
        return tuple(Mark(span.start, span.end, "invented") for span in layer.spans or ())
    people = [a for a in sample.annotations if a.kind is Kind.HUMAN and a.spans is not None]
    return tuple(Mark(mark.start, mark.end, "invented") for mark in majority(sample, people))


def _example(
    sample: Sample,
    source: str,
    marks: tuple[Mark, ...],
    *,
    kind: str = "natural",
    shares: tuple[tuple[int, int, float], ...] | None = None,
) -> Example:
    text = sample.evidence[0].text
    return Example(
        kind, source, f"translation:{text}", sample.language, sample.response, (text,), None, marks, (), shares,
        evidence_language=sample.evidence[0].language, translation=True,
    )  # fmt: skip


def _with_errors(samples: list[Sample], left_out: Counter[str], rng: Random) -> Iterator[Example]:
    marks = [_marked(sample) for sample in samples]
    without = [nth for nth, found in enumerate(marks) if not found]
    kept = set(rng.sample(without, min(len(without), _MOST_WITHOUT)))
    left_out["translation without an addition, beyond the sample"] += len(without) - len(kept)
    for nth, sample in enumerate(samples):
        if marks[nth] or nth in kept:
            yield _example(sample, _ERRORS, marks[nth])


def _with_pathology(sample: Sample) -> Example:
    whole, flags = len(sample.response), _gold(sample).flags
    if "full_detachment" in flags:
        return _example(sample, _PATHOLOGIES, (Mark(0, whole, "invented"),))
    if "strong_detachment" in flags:
        return _example(sample, _PATHOLOGIES, (Mark(0, whole, "invented"),), shares=((0, whole, _DIVIDED),))
    return _example(sample, _PATHOLOGIES, tuple(_repeats(sample)) if "oscillation" in flags else ())


def _repeats(sample: Sample) -> Iterator[Mark]:
    """The words of every pair of neighbours that stood further left already."""
    bounds = words(sample.response, sample.language)
    forms = [fold(sample.response[start:end]) for start, end in bounds]
    seen: set[tuple[str, str]] = set()
    marked: set[int] = set()
    for nth, pair in enumerate(pairwise(forms)):
        if pair in seen:
            marked |= {nth, nth + 1}
        seen.add(pair)
    for nth in sorted(marked):
        yield Mark(*bounds[nth], "invented")


def _of_right_ones(right: list[Sample], rng: Random) -> Iterator[Example]:
    for sample in rng.sample(right, min(len(right), _MOST_RIGHT)):
        yield _example(sample, _CRITICAL, (), kind="clean")
    by_pair: dict[tuple[str | None, str | None], list[Sample]] = defaultdict(list)
    for sample in right:
        by_pair[sample.language, sample.evidence[0].language].append(sample)
    for (ours, theirs), samples in by_pair.items():
        if ours == theirs:
            continue
        texts = [
            Parallel(
                f"translation:{sample.evidence[0].text}",
                {ours or "": sample.response, theirs or "": sample.evidence[0].text},
            )
            for sample in rng.sample(samples, min(len(samples), _MOST_PARALLEL))
        ]
        yield from translations_of(texts, min(_MOST_MADE, _TIMES * len(texts)), rng)

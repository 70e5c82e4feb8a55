"""Labelled translations, and which of them are for development.

Development is what `share_of(source text) < 0.5` says, in every set and every file of it; the rest is for testing. The
rule depends on the source alone, so a source that several systems translated, or that several language pairs hold, is
on one side everywhere. The labelled files of mlqe are `train` and `dev`: both halves are taken from both together, as
the labels of its test file were never published. What is trained or tuned may use the development half and nothing
else: no test row of one pair whose source is a development row of another exists.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import veriglot
from veriglot.formats.translations import HALLUCINATIONS
from veriglot.training.grounding.examples import share_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from veriglot.records import Sample

DEVELOPMENT, TEST = "development", "test"
PARTS = (DEVELOPMENT, TEST)
_SHARE = 0.5

ZHOU, GUERREIRO, MLQE, MQM = "zhou", "guerreiro", "mlqe", "mqm"
FOLDERS = {ZHOU: "mt_zhou_zhen", GUERREIRO: "mt_guerreiro_deen", MLQE: "mt_mlqe_catastrophic", MQM: "mt_mqm_ted"}

# Pathologies of guerreiro: name in the tables to the flags that make it.
PATHOLOGIES = {
    "any hallucination": HALLUCINATIONS,
    "oscillation": ("oscillation",),
    "strong detachment": ("strong_detachment",),
    "full detachment": ("full_detachment",),
    "omission": ("omission",),
    "named entities": ("named_entities",),
}


@dataclass(frozen=True)
class Group:
    """Translations of one pair, or one system, and one part, with a label each.

    Attributes:
        name: pair or system.
        part: `development` or `test`.
        samples: in the order of their hash, so that a limit takes the same ones whatever else is there.
    """

    name: str
    part: str
    samples: tuple[Sample, ...]

    @property
    def sources(self) -> list[str]:
        """The source of each: what a bootstrap draws."""
        return [sample.evidence[0].text for sample in self.samples]


def part_of(sample: Sample) -> str:
    """`development` or `test`, by the source text alone."""
    return DEVELOPMENT if share_of(sample.evidence[0].text) < _SHARE else TEST


def groups(data: Path, name: str, limit: int | None) -> list[Group]:
    """The groups of a set: systems of zhou, pairs of mlqe and mqm, all of guerreiro; development first.

    Args:
        data: the folder of data sets.
        name: a key of `FOLDERS`.
        limit: the most translations of a group, None for all; of mqm only those without an addition are limited, as
            additions are rare.
    """
    found: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for sample in veriglot.read(data / FOLDERS[name]):
        if sample.annotations:
            found[_group_of(sample, name), part_of(sample)].append(sample)
    made = []
    for (group, part), samples in sorted(found.items()):
        ordered = sorted(samples, key=lambda s: share_of(s.id))
        made.append(Group(group, part, tuple(_limited(ordered, name, limit))))
    return made


def _group_of(sample: Sample, name: str) -> str:
    if name == ZHOU:
        assert sample.generator is not None
        return sample.generator.name
    return f"{sample.evidence[0].language}-{sample.language}"


def _limited(samples: Iterable[Sample], name: str, limit: int | None) -> Iterator[Sample]:
    count = 0
    for sample in samples:
        if name == MQM and has_addition(sample):
            yield sample
        elif limit is None or count < limit:
            count += 1
            yield sample


def has_addition(sample: Sample) -> bool:
    """Whether a rater of mqm marked something that the source does not say."""
    return any(annotation.spans for annotation in sample.annotations)


def is_critical(sample: Sample) -> bool:
    """Whether most people of mlqe saw a critical error."""
    return bool(sample.annotations[0].units)


def pathology(sample: Sample, name: str) -> bool | None:
    """Whether a translation of guerreiro has a pathology of that name; None where it is in no comparison.

    Held against it are the translations without any hallucination, and for `omission` and `named entities` those
    without anything: a hallucination may well leave out a part of the source too.
    """
    flags = sample.annotations[0].flags
    if any(flag in flags for flag in PATHOLOGIES[name]):
        return True
    others = HALLUCINATIONS if set(PATHOLOGIES[name]) <= set(HALLUCINATIONS) else flags
    return None if any(flag in flags for flag in others) else False


def token_labels(sample: Sample) -> list[tuple[int, int, bool]]:
    """The tokens of a translation of zhou: start, end, and whether it is hallucinated."""
    spans = sample.annotations[0].spans or ()
    labels, place = [], 0
    for token in sample.response.split():
        place = sample.response.index(token, place)
        end = place + len(token)
        labels.append((place, end, any(span.start < end and place < span.end for span in spans)))
        place = end
    return labels

"""Sisters: the other responses of the same model to the same query, as `pairwise` scorers need them beside a sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from veriglot.records import Sample

__all__ = ["SISTERS", "sisters_of", "with_sisters"]

SISTERS = "samples"  # the key of `meta`


def sisters_of(sample: Sample) -> tuple[str, ...]:
    """The texts of the other responses to the sample's query, from `meta["samples"]`; empty where there are none.

    What is no text is left out, so a list of anything else is none.
    """
    given = sample.meta.get(SISTERS)
    return tuple(text for text in given if isinstance(text, str)) if isinstance(given, (list, tuple)) else ()


def with_sisters(samples: Iterable[Sample]) -> list[Sample]:
    """The samples in order, each with the texts of its sisters in `meta["samples"]`.

    Sisters share question, language, task, and the generator's name and revision, and differ in the response or its
    seed. So the same answer under two seeds is a sister, which agrees, while the same row in a file twice (with other
    annotators, say) is not. Samples without a question, without sisters, or with a list of their own stay as they are.

    Args:
        samples: all of a file, since sisters may stand anywhere; nothing else of them is kept.
    """
    every = list(samples)
    groups: dict[tuple[object, ...], dict[tuple[str, int | None], None]] = {}
    for sample in every:
        if sample.question is not None:
            groups.setdefault(_query(sample), {})[_own(sample)] = None
    return [_filled(sample, groups.get(_query(sample), {})) for sample in every]


def _query(sample: Sample) -> tuple[object, ...]:
    generator = sample.generator
    who = (generator.name, generator.revision) if generator else None
    return sample.question, sample.language, sample.task, who


def _own(sample: Sample) -> tuple[str, int | None]:
    return sample.response, sample.generator.seed if sample.generator else None


def _filled(sample: Sample, group: Iterable[tuple[str, int | None]]) -> Sample:
    if sample.question is None or SISTERS in sample.meta:
        return sample
    own = _own(sample)
    found = [response for response, seed in group if (response, seed) != own]
    return msgspec.structs.replace(sample, meta={**sample.meta, SISTERS: found}) if found else sample

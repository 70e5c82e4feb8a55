"""Ask a scorer about batches and hold it to its protocol, as `run.judge` does with detectors; and cut responses."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from veriglot.errors import VeriglotError
from veriglot.records import Score, Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.bench.items import ItemTable
    from veriglot.records import Sample, Scorer

__all__ = ["scores_of", "sentence_samples"]


def scores_of(scorer: Scorer, samples: Iterator[Sample], batch_size: int) -> Iterator[Score]:
    """One score a sample, in order, whatever happens: where a scorer raises, its samples are asked about one by one.

    A sample over which it raises alone has the status `failed` and the reason.
    """
    while batch := list(islice(samples, batch_size)):
        yield from _asked(scorer, batch)


def _asked(scorer: Scorer, batch: Sequence[Sample]) -> list[Score]:
    try:
        return _in_order(scorer, batch)
    except Exception as error:
        if len(batch) == 1:
            why = str(error) if isinstance(error, VeriglotError) else f"{type(error).__name__}: {error}"
            return [
                Score(
                    batch[0].id,
                    Status.FAILED,
                    scorer.name,
                    language=batch[0].language,
                    reason=f"the scorer raised: {why}",
                    signature=scorer.signature,
                )
            ]
    return [score for sample in batch for score in _asked(scorer, [sample])]


def _in_order(scorer: Scorer, batch: Sequence[Sample]) -> list[Score]:
    scores = list(scorer.score(batch))
    if [score.id for score in scores] != [sample.id for sample in batch]:
        raise VeriglotError(
            f"{scorer.name} gave {len(scores)} scores for other samples than the {len(batch)} asked for"
        )
    return scores


def sentence_samples(table: ItemTable) -> list[Sample]:
    """Each item of a table as a response of its own, held against the same evidence: how kang scores sentences.

    Labels are left out: a sentence has none of its own, and no scorer may look at them. The language is that of the
    whole response.
    """
    found = []
    for number, (owner, (start, end)) in enumerate(zip(table.owner.tolist(), table.places.tolist(), strict=True)):
        sample = table.samples[owner]
        found.append(
            msgspec.structs.replace(
                sample, id=f"{sample.id}#{number}", response=sample.response[start:end], annotations=()
            )
        )
    return found

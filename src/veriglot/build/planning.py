"""Which query is asked with which seed: the designs of a study, by name.

The paper is ambiguous: its text divides the queries into five subsets, a seed each (mfava, section 4), while its figure
averages over five responses (Figure 4). Both are here.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

import msgspec

from veriglot.errors import UsageError
from veriglot.provenance import digest
from veriglot.records import Sample
from veriglot.run import FailedRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["DESIGNS", "MFAVA_SEEDS", "Design", "Planned", "plan"]

Design = Literal["subsets", "runs"]
DESIGNS: tuple[Design, ...] = ("subsets", "runs")

MFAVA_SEEDS = (42, 43, 44, 47, 49)  # mfava, A.6


class Planned(msgspec.Struct, frozen=True):
    """One response that the design asks for.

    Attributes:
        id: of the response: `<query id>/<model>/<seed>`.
        query: what is asked; its language is set.
        seed: what it is asked with; None leaves it to the server.
    """

    id: str
    query: Sample
    seed: int | None


def plan(
    queries: Iterable[Sample | FailedRow], model: str, *, design: Design, seeds: Sequence[int | None]
) -> Iterator[Planned | FailedRow]:
    """The responses of one model, in order; nothing is held but a counter per language.

    Args:
        queries: samples with a question; those that could not be read pass through.
        model: the model's name, for the ids.
        design: `subsets` parts the queries of each language into as many disjoint subsets as there are seeds, whose
            sizes differ by one at most, and asks each with its seed: every query once. `runs` asks every query with
            every seed.
        seeds: each once.

    Yields:
        A `Planned`, or a `FailedRow` for a query that cannot be asked: without a question, or in a language that is
        neither stated nor to be told from the question. Nothing is set to English.

    Raises:
        UsageError: no seeds, a seed twice, or no such design.
    """
    if not seeds or len(set(seeds)) < len(seeds):
        raise UsageError("A study needs at least one seed, and each seed once.")
    if design not in DESIGNS:
        raise UsageError(f"There is no design {design!r}.", remedy=f"Known: {', '.join(DESIGNS)}.")
    return _plan(queries, model, design, seeds)


def _plan(
    queries: Iterable[Sample | FailedRow], model: str, design: Design, seeds: Sequence[int | None]
) -> Iterator[Planned | FailedRow]:
    places: Counter[str] = Counter()
    for row in queries:
        query = row if isinstance(row, FailedRow) else _askable(row)
        if isinstance(query, FailedRow):
            yield query
            continue
        assert query.language is not None
        chosen = seeds if design == "runs" else [_subset(query.language, places[query.language], seeds)]
        places[query.language] += 1
        for seed in chosen:
            yield Planned(f"{query.id}/{model}/{'-' if seed is None else seed}", query, seed)


def _askable(query: Sample) -> Sample | FailedRow:
    if not (query.question or "").strip():
        return FailedRow("the query has no question", field="question", id=query.id)
    if query.language is not None:
        return query
    from veriglot.text import identify

    found = identify(query.question or "")
    if found is None:
        return FailedRow(
            "the query states no language, and its question does not tell",
            field="language",
            remedy="Write its BCP 47 tag into `language`.",
            id=query.id,
        )
    return msgspec.structs.replace(query, language=found.tag)


def _subset(language: str, place: int, seeds: Sequence[int | None]) -> int | None:
    """The seed of the query that is the `place`-th of its language.

    Each run of as many queries as there are seeds gets every seed once, in an order drawn anew for each run: taken in
    turns, the first of an article's two queries would always meet the same seed.
    """
    run, inside = divmod(place, len(seeds))
    order = sorted(range(len(seeds)), key=lambda number: digest([language, str(run), str(number)]))
    return seeds[order[inside]]

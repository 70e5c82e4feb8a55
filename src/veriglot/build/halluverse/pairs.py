"""The second step: an error put into each factual sentence, its type drawn so that what passes is even."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.build.halluverse.drawing import BalancedDraw, block_sizes, dealt
from veriglot.build.halluverse.facts import PageFacts
from veriglot.build.injection.made import Made, SilverRejection
from veriglot.build.injection.silver import CHECK_VERSION, part_rows
from veriglot.build.injection.wording import injection_types
from veriglot.records import Evidence, Sample, Task
from veriglot.run import FailedRow, Stage
from veriglot.run.journal import Journal
from veriglot.text import sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from veriglot.build.halluverse.pages import Page
    from veriglot.run import Tally
    from veriglot.run.manifest import Option

    Maker = Callable[[Iterable[tuple["Seed", str]]], Iterable[Made | FailedRow]]

__all__ = ["TYPES", "Seed", "make_pairs", "read_facts", "seeds_of", "settled"]

TYPES = injection_types("halluverse")


class Seed(msgspec.Struct, frozen=True):
    """A factual sentence that is to get an error.

    Attributes:
        id: the fact's, and that of the pair.
        sample: the sentence as response, its page as evidence, so that what the page says is no error.
    """

    id: str
    sample: Sample

    @property
    def language(self) -> str:
        """BCP 47 tag."""
        return self.sample.language or ""


def read_facts(path: Path) -> list[PageFacts]:
    """The pages of a finished first step, with their facts."""
    decoder = msgspec.json.Decoder(PageFacts)
    return [decoder.decode(line) for line in path.read_bytes().splitlines()]


def seeds_of(found: Iterable[PageFacts], pages: Mapping[str, Page]) -> list[Seed]:
    """The sentences, language by language, in the order of their pages.

    Args:
        found: the facts.
        pages: the pages that they are from, by id.
    """
    seeds = [_seed(fact.id, fact.text, pages[row.id]) for row in found for fact in row.facts]
    return sorted(seeds, key=attrgetter("language"))


def _seed(id_: str, text: str, page: Page) -> Seed:
    reference = page.reference
    meta: dict[str, Any] = {"group": page.group, "page": page.id}
    if page.reference.meta.get("revision") is not None:
        meta["revision"] = page.reference.meta["revision"]
    return Seed(
        id_,
        Sample(id_, text, task=Task.BIOGRAPHY, language=reference.language, evidence=(reference.evidence,), meta=meta),
    )


def make_pairs(
    output: Path,
    seeds: Sequence[Seed],
    make: Maker,
    *,
    signature: str,
    maker: str,
    types: Sequence[str] = TYPES,
    able: Callable[[Seed], Collection[str]] | None = None,
    seed: int | None = None,
    inputs: Sequence[str] = (),
    options: dict[str, Option] | None = None,
    restart: bool = False,
    retry: bool = False,
    seen: Callable[[msgspec.Struct | FailedRow], None] | None = None,
) -> Tally:
    """Make a pair of every sentence.

    Args:
        output: JSON lines of samples: the edited sentence as response, the factual one as evidence. What was rejected
            goes to `rejected_path(output)`, the account to `account_path(output)`.
        seeds: language by language; the same ones at each call.
        make: puts errors of the types that are named with them into sentences; one result each, in order.
        signature: of what makes them.
        maker: the same in one word, for messages.
        types: of the errors.
        able: the types that a sentence can have an error of, where that is known beforehand; None where it is not.
        seed: of the draw of types.
        inputs, restart, retry, seen: as for `queries`.
        options: every setting that changes the rows.

    Returns:
        What became of the sentences. One of which nothing passed is done; one whose calls gave nothing failed.

    Raises:
        UsageError: the output was begun otherwise.
        ModelError: what every further call would meet too.
    """
    stage: Stage[Seed] = Stage(
        output,
        signature=signature,
        inputs=inputs,
        options={"seed": seed, "check": f"check@{CHECK_VERSION}", "types": ",".join(types), **(options or {})},
        finish=lambda rows, target: part_rows(rows, target, types),
        restart=restart,
        retry=retry,
        maker=maker,
    )
    kept = output.with_name(output.name + ".rows.jsonl")

    def work(rows: Iterator[Seed]) -> Iterator[Made | FailedRow]:
        todo = {one.id for one in rows}
        done = _outcomes(kept)
        for tag, group in groupby(seeds, key=attrgetter("language")):
            of_language = list(group)
            draw = BalancedDraw(types, f"halluverse {seed} {tag}")
            start = 0
            for size in block_sizes(len(of_language)):
                block = of_language[start : start + size]
                start += size
                deck = draw.block(size)
                deck = deck if able is None else dealt(deck, [able(one) for one in block])
                yield from _block(list(zip(block, deck, strict=True)), todo, done, make, draw)

    return stage.run(seeds, work, seen=seen)


def _block(
    block: list[tuple[Seed, str]], todo: set[str], done: dict[str, bool], make: Maker, draw: BalancedDraw
) -> Iterator[Made | FailedRow]:
    """What is missing of a block; whatever an earlier call did of it counts for the blocks that follow."""
    outcomes = dict(done)
    for one in make((seed, type_) for seed, type_ in block if seed.id in todo):
        if isinstance(one, Made):
            outcomes[one.id] = bool(one.samples)
        yield one
    for seed, type_ in block:
        if seed.id in outcomes:
            draw.note(type_, taken=outcomes[seed.id])


def _outcomes(rows: Path) -> dict[str, bool]:
    """Which sentences earlier calls are done with, and whether each became a pair."""
    if not rows.exists():
        return {}
    decoder = msgspec.json.Decoder(Made)
    return {made.id: bool(made.samples) for made in map(decoder.decode, Journal(rows).lines())}


def _longer(made: Made, sample: Sample, seed: Seed) -> Made:
    (unit,) = sample.annotations[0].units or ()
    said = "the edit is more than one sentence"
    rejection = SilverRejection(seed.id, seed.id, seed.language, unit.label, "outside", said, text=sample.response)
    taken = {**made.taken, unit.label: 0}
    return msgspec.structs.replace(made, samples=(), rejections=(*made.rejections, rejection), taken=taken)


def settled(made: Made | FailedRow, seed: Seed) -> Made | FailedRow:
    """What a maker gave, as a pair: under the sentence's id, held against the sentence and not the whole page.

    An error that added a sentence is none of halluverse's types: it is rejected as `outside`.
    """
    if isinstance(made, FailedRow):
        return made
    for sample in made.samples:
        if len(sentences(sample.response, seed.language)) > 1:
            return settled(_longer(made, sample, seed), seed)
    page = seed.sample.evidence[0]
    evidence = (Evidence(seed.sample.response, title=page.title, language=seed.language, url=page.url),)
    samples = tuple(msgspec.structs.replace(one, id=seed.id, evidence=evidence) for one in made.samples)
    rejections = tuple(msgspec.structs.replace(one, id=seed.id) for one in made.rejections)
    return msgspec.structs.replace(made, samples=samples, rejections=rejections)

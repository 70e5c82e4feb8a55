"""Training data of the reader: rows of every source, sampled by share of tokens, as input sequences.

Each source has a share of the tokens. Twins are drawn without end; the rows of other sources repeat in a seeded order.
A chunk depends only on its number, so that a training that was interrupted resumes with the same rows.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from hashlib import sha256
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.reader.sequences import input_sequences
from veriglot.errors import InputError
from veriglot.hub.checkpoints import batches
from veriglot.plugins import read_package_data
from veriglot.training.grounding.examples import Example, labels_of, read_labelled
from veriglot.training.grounding.synthetic_data import (
    answers_across,
    count_words,
    is_held_out_group,
    paragraphs,
    remove_test_data,
    sentences_across,
    synthetic_examples,
)
from veriglot.training.reader.network import TrainingInput
from veriglot.training.reader.sources import (
    Row,
    is_source,
    read_answers,
    read_parallel,
    read_sources,
    read_unanswerable,
)
from veriglot.training.reader.translations import aligned, labelled_translations, translations_of
from veriglot.training.reader.twins import draw_case, draw_written, facts, held_out_written, languages, wordings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from veriglot.arrays import Bools
    from veriglot.encoders.e5 import Pair, Tokeniser

__all__ = ["FIRST_PART", "SHARES", "Chunks", "TrainingData", "read_training_data"]

ROOM = 320  # tokens of a training sequence
# Kinds of twins with only the twin loss in the first part of a training: they take longest to learn,
# and until then the network would suspect all right answers of these kinds.
_SLOW, FIRST_PART = ("roles", "order"), 0.3
_ACROSS = 0.1  # share of twins with evidence in another language
_UNASKED = 0.12  # share of rows whose question is left out
_CLOSE = 0.9  # share of answers in the evidence's language that are split into sentences, as `detect` does
_VIEWS = (64, 128, 192)  # tokens of evidence for such a sentence
_TRANSLATIONS = 6000  # made from parallel data sets
_HELD_OUT_CASES = 400  # of held-out facts, for the fusion weights

SHARES = read_package_data(__package__, "shares.toml", dict[str, float])


@dataclass
class Source:
    """Rows of one source."""

    name: str
    rows: list[Row] = field(default_factory=list)

    def drawn(self, seed: int, first: int) -> Iterator[Row]:
        """Endless rows, from row number `first` in the seeded order of passes."""
        count = len(self.rows)
        while True:
            order = list(range(count))
            Random(f"{self.name} {seed} {first // count}").shuffle(order)  # noqa: S311  a seeded order, not a secret
            for index in order[first % count :]:
                yield self.rows[index]
                first += 1


@dataclass
class TrainingData:
    """All sources, and the held-out rows."""

    sources: dict[str, Source]
    held_out: list[Row]
    left_out: dict[str, int]


def is_held_out(row: Row) -> bool:
    """Whether a row is held out: by its group, in the same way as in the training of the grounding detector."""
    return row.example.kind == "calibrating" or is_held_out_group(row.example.group)


def part_of(group: str) -> str:
    """The half of a group of held-out texts: one half is for calibration, the other for reported figures.

    It uses the last byte of the SHA-256; the choice of held-out texts uses the first ones (`share_of`).
    """
    return ("calibration", "report")[sha256(group.encode("utf-8", "surrogatepass")).digest()[-1] % 2]


def text_key(text: str) -> str:
    """The group of all rows about one text, independent of case and spaces."""
    return sha256("".join(c for c in text.lower() if c.isalnum()).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def calibrates(row: Row) -> bool:
    """Whether a held-out row may be used for calibration: by its text or its group, as `benchmarks/gates.py` splits.

    For parallel articles always, because `benchmarks/cross_lingual.py` reports on other ones.
    """
    example = row.example
    if example.source.startswith("parallel "):
        return True
    by_text = example.kind == "calibrating" or (example.kind == "natural" and example.source != "summarization")
    return part_of(text_key("\n".join(example.passages)) if by_text else example.group) == "calibration"


def read_training_data(paths: Sequence[Path], seed: int) -> TrainingData:
    """Read every source.

    Args:
        paths: files and folders in any readable format, and data sets that `sources.toml` names.
        seed: for all random draws.

    Raises:
        InputError: a file cannot be read, or there are no rows for calibration.
    """
    folders = [path for path in paths if is_source(path)]
    pairs = list(read_sources(folders, seed))
    labelled = read_labelled(str(path) for path in paths if not is_source(path))
    remove_test_data(labelled)
    rng = Random(f"reader {seed}")  # noqa: S311  a seeded draw, not a secret
    parallel = paragraphs(labelled.answers)
    labelled.answers += read_answers(folders)
    frequencies = count_words(labelled)
    by_source = defaultdict[str, list[Example]](list)
    for example in labelled.examples:
        if example.source == "qa":
            example = replace(example, kind="calibrating")
        by_source["silver" if example.kind == "silver" else "natural"].append(example)
    for example in synthetic_examples(labelled, frequencies, seed):
        by_source[example.source].append(example)
    asked = [*parallel, *paragraphs(list(read_parallel(folders)))]  # the latter are parallel only around their answers
    by_source["across"] = [*answers_across(asked, rng), *sentences_across(parallel, frequencies, rng)]
    texts = aligned(parallel)
    by_source["translations"] = [
        *translations_of(texts, min(_TRANSLATIONS, 6 * len(texts)), rng),
        *labelled_translations(labelled.translations, labelled.left_out, rng),
    ]
    rows = {name: [Row(e, bool(e.marks), True, None) for e in examples] for name, examples in by_source.items()}
    rows["pairs"] = pairs
    rows["answers"] = [*rows.get("answers", []), *_unanswered(folders, rng)]
    aside = {name: [row for row in some if is_held_out(row) and calibrates(row)] for name, some in rows.items()}
    held_out = [row for some in aside.values() for row in some]
    if not any(row.located for row in held_out):
        raise InputError("There is too little data: none was left for calibration.", remedy="Give more samples.")
    held_out += held_out_written(rng)
    for _ in range(_HELD_OUT_CASES):
        held_out += _case(rng, held_out=True)
    # A passage can be in several sources, which have groups of their own.
    texts_aside = {text for some in rows.values() for row in some if is_held_out(row) for text in row.example.passages}
    training = {
        name: [row for row in rows.get(name, []) if texts_aside.isdisjoint(row.example.passages)] for name in SHARES
    }
    training["pairs"] += list(_across(training["pairs"], rng))
    sources = {name: Source(name, some) for name, some in training.items() if some}
    return TrainingData(sources, held_out, dict(+labelled.left_out))


def _across(pairs: Sequence[Row], rng: Random) -> Iterator[Row]:
    """Pairs that exist in several languages, with the evidence in another language."""
    groups = defaultdict[str, list[Row]](list)
    for row in pairs:
        groups[row.example.group].append(row)
    for group in groups.values():
        for row in group:
            source = rng.choice(group).example
            if source.language != row.example.language:
                example = replace(row.example, passages=source.passages, evidence_language=source.language, marks=())
                yield Row(example, row.unsupported, located=not row.unsupported)


def _unanswered(folders: Sequence[Path], rng: Random) -> Iterator[Row]:
    """Questions that their passage does not answer, with a refusal as the right answer."""
    known = set(languages())
    for language, passage, question, group in read_unanswerable(folders):
        if language in known:
            refusal = rng.choice(wordings(language)["refusals"])
            yield Row(Example("clean", "answers", group, language, refusal, (passage,), question), False, True)


def training_inputs(row: Row, tokeniser: Tokeniser, rng: Random) -> list[TrainingInput]:
    """The sequences of a row; only the first if the words have no labels."""
    example = row.example
    question = None if rng.random() < _UNASKED else example.question
    by_sentence = question and rng.random() < _CLOSE and not example.evidence_language
    for room in (rng.choice(_VIEWS) if by_sentence else 0, 0):  # a response's label is not valid for one sentence
        sequences = input_sequences(
            tokeniser, example.response, example.language, question, example.passages, ROOM, evidence_room=room
        )
        if row.located or len(sequences) == 1:
            break
    items = []
    for sequence in sequences:
        labels = labels_of(example, sequence.bounds, np.zeros(len(sequence.bounds), bool))
        typed = labels.types.argmax(axis=1) if len(labels.types) else np.zeros(0, np.int64)
        types = np.where(labels.types.any(axis=1), typed, -1)
        weight = np.where(labels.weight > 0, 1.0, 0.0).astype(np.float32)
        unsupported = row.unsupported
        if not row.located:
            weight[:] = 0
        elif len(sequences) > 1 or unsupported:
            unsupported = bool((labels.target * weight > 0.5).any())
        answer = _answer_tokens(example, sequence.pair, tokeniser) if question else None
        items.append(TrainingInput(sequence.pair, labels.target, weight, types, unsupported, answer=answer))
    return items if row.located else items[:1]


def _answer_tokens(example: Example, pair: Pair, tokeniser: Tokeniser) -> Bools | None:
    """Which tokens of the evidence are the right answer; None if it is unknown or the input has not all evidence."""
    if example.answer is None:
        return None
    bounds = tokeniser.tokens(example.passages[0])[1]
    start, end = example.answer
    inside = (bounds[:, 0] < end) & (bounds[:, 1] > start)
    return inside if len(inside) == pair.evidence[1] - pair.evidence[0] and inside.any() else None


class Chunks:
    """Batches of training inputs, a chunk at a time.

    Args:
        material: the sources.
        tokeniser: the reader's.
        seed: for all random draws.
        tokens: approximate number in a chunk.
        batch: tokens of a batch including padding.
        shares: share of the tokens of each source.
    """

    def __init__(
        self,
        material: TrainingData,
        tokeniser: Tokeniser,
        *,
        seed: int,
        tokens: int,
        batch: int,
        shares: Mapping[str, float] = SHARES,
    ) -> None:
        self._material, self._tokeniser, self._seed = material, tokeniser, seed
        self._tokens, self._batch, self._shares = tokens, batch, shares
        drawn = {"twins": _case, "written": draw_written}
        self._drawn = {name: draw for name, draw in drawn.items() if name in shares}
        self._names = [name for name in shares if name in self._drawn or name in material.sources]
        self._lengths = {name: self._length(name) for name in self._names if name in material.sources}

    def _length(self, name: str) -> float:
        """Mean number of tokens of a row of a source, from a sample."""
        rows = self._material.sources[name].drawn(self._seed, 0)
        rng = Random(0)  # noqa: S311  a seeded draw, not a secret
        lengths = [sum(len(x.pair.ids) for x in training_inputs(next(rows), self._tokeniser, rng)) for _ in range(200)]
        return max(1.0, float(np.mean(lengths)))

    def batches(self, number: int, *, first: bool) -> list[list[TrainingInput]]:
        """The batches of a chunk, in a seeded order; both twins are in the same batch, one after the other.

        Args:
            number: of the chunk, from 0.
            first: whether it is in the first part of the training, see `_SLOW`.
        """
        rng = Random(f"chunk {self._seed} {number}")  # noqa: S311  a seeded draw, not a secret
        total = sum(self._shares[name] for name in self._names)
        tokens = {name: self._tokens * self._shares[name] / total for name in self._names}
        units: list[list[TrainingInput]] = []
        for name, draw in self._drawn.items():
            slow = _SLOW if first and "twins" in self._drawn else ()  # else there is no twin loss
            units += self._twins(rng, tokens[name], draw, slow=slow)
        for name, length in self._lengths.items():
            count = max(1, round(tokens[name] / length))
            rows = self._material.sources[name].drawn(self._seed, number * count)
            for _ in range(count):
                units += [[item] for item in training_inputs(next(rows), self._tokeniser, rng)]
        units = [unit for unit in units if all(len(item.target) for item in unit)]
        lengths = [max(len(item.pair.ids) for item in unit) for unit in units]
        blurred = [len(unit) * (length + rng.randrange(16)) for unit, length in zip(units, lengths, strict=True)]
        pairs = [[index for index, unit in enumerate(units) if len(unit) == size] for size in (1, 2)]
        order = [
            [some[index] for index in batch]
            for some in pairs
            for batch in batches([blurred[index] for index in some], self._batch)
        ]
        rng.shuffle(order)
        return [[item for index in batch for item in units[index]] for batch in order]

    def _twins(
        self, rng: Random, left: float, draw: Callable[[Random], list[Row]], slow: Sequence[str]
    ) -> Iterator[list[TrainingInput]]:
        """Twins with this number of tokens; kinds in `slow` have only the twin loss."""
        while left > 0 and (rows := draw(rng)):
            state = rng.random()
            asked = Random(state)  # noqa: S311  a seeded draw, not a secret
            twins: list[list[TrainingInput]] = []
            for row in rows:
                draws = Random(state) if row.twin else asked  # noqa: S311  twins are asked alike
                items = training_inputs(row, self._tokeniser, draws)
                left -= sum(len(item.pair.ids) for item in items)
                if row.twin:
                    twins.append(items)
                else:
                    yield from ([item] for item in items)
            yield from _paired(*twins, only_difference=rows[1].example.kind in slow)


def _paired(
    right: list[TrainingInput], wrong: list[TrainingInput], *, only_difference: bool
) -> Iterator[list[TrainingInput]]:
    """The sentences of twins; those that differ as pairs, if both have the same number of sentences."""
    if len(right) != len(wrong):
        yield from ([item] for item in (*right, *wrong))
        return
    for first, second in zip(right, wrong, strict=True):
        if not second.unsupported:
            yield [first]
            continue
        pair = [first, replace(second, twin=True)]
        if only_difference:
            pair = [replace(item, weight=np.zeros_like(item.weight), unsupported=None) for item in pair]
        yield pair


def _case(rng: Random, *, held_out: bool = False) -> list[Row]:
    """Twins in a random language, sometimes with answers in another."""
    tags = languages()
    (tag,) = rng.choices(tags, [len(facts(tag, held_out)) for tag in tags])
    other = rng.choice(tags) if rng.random() < _ACROSS else None
    return draw_case(tag, rng, answer_language=other, held_out=held_out)

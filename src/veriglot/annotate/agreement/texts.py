"""Samples of several annotators, joined into texts: who marked what in which response."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from veriglot.metrics import Marks, reference
from veriglot.metrics.agreement import Layered
from veriglot.metrics.reference import labelled
from veriglot.provenance import digest
from veriglot.records import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from veriglot.metrics.units import Segmenter
    from veriglot.records import Sample

__all__ = ["Repeat", "Texts", "join", "person_and_model"]

_MODEL, _PERSON = "model ", "person "  # a person and a model may have the same name
_ANYBODY = "people"
_GOLD = "gold"  # who labels are called after that were made of several people's, or of which nobody says whose they are


class Repeat(msgspec.Struct, frozen=True):
    """A text that stands twice under one name.

    Attributes:
        annotator: the name.
        first: where it stands first.
        again: where it stands again.
    """

    annotator: str
    first: str
    again: str


@dataclass
class _Text:
    sample: Sample
    people: list[tuple[str, Marks]] = field(default_factory=list)
    models: dict[str, Marks] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    def marks(self) -> Iterator[tuple[str, Marks]]:
        yield from ((_PERSON + name, marks) for name, marks in self.people)
        yield from ((_MODEL + name, marks) for name, marks in self.models.items())


@dataclass(frozen=True)
class Texts:
    """What annotators said of texts.

    Attributes:
        found: by the digest of language and response, in its order.
        changed: texts of which a model's annotations differ from row to row; the first counts.
        repeated: every text that a name annotated again, in the order of the samples.
        settled: texts with a layer `gold` beside people's own, which was made of theirs and counts as nobody's.
    """

    found: dict[str, _Text]
    changed: int
    repeated: tuple[Repeat, ...]
    settled: int

    @property
    def anonymous(self) -> bool:
        """Whether one name stands for several people: it annotated a text more than once."""
        return bool(self.repeated)

    def annotators(self) -> dict[str, int]:
        """Person to how many texts they annotated, sorted; empty where `anonymous`."""
        if self.anonymous:
            return {}
        return dict(sorted(Counter(name for text in self.found.values() for name, _ in text.people).items()))

    def types(self) -> list[str]:
        """All types that occur, sorted; an empty one where a span has none."""
        return sorted({one or "" for text in self.found.values() for _, marks in text.marks() for one in marks.types})

    def of_people(self, bounds: Segmenter) -> list[Layered]:
        """The texts with people's layers; where `anonymous` they are numbered, which says nothing across texts."""
        return [
            self._layered(key, text, bounds, [
                (str(number) if self.anonymous else name, marks)
                for number, (name, marks) in enumerate(text.people, start=1)
            ])
            for key, text in self.found.items()
            if text.people
        ]  # fmt: skip

    def of_models(self, bounds: Segmenter) -> list[Layered]:
        """The texts that two models or more annotated, with their layers alone."""
        return [
            self._layered(key, text, bounds, list(text.models.items()))
            for key, text in self.found.items()
            if len(text.models) > 1
        ]

    def against_models(self, bounds: Segmenter) -> list[Layered]:
        """The texts that models annotated, with people's layers and theirs (`parted` tells them apart).

        Where `anonymous`, each person of a text stands in a row of their own, all under one name.
        """
        found = []
        for key, text in self.found.items():
            models = [(_MODEL + name, marks) for name, marks in text.models.items()]
            if not models or not text.people:
                continue
            if self.anonymous:
                rows = [[(_PERSON + _ANYBODY, marks)] for _, marks in text.people]
            else:
                rows = [[(_PERSON + name, marks) for name, marks in text.people]]
            found += [self._layered(key, text, bounds, [*row, *models]) for row in rows]
        return found

    def _layered(self, key: str, text: _Text, bounds: Segmenter, layers: list[tuple[str, Marks]]) -> Layered:
        sample = text.sample
        units = bounds(sample.response, sample.language)
        return Layered(key, sample.language or "", len(sample.response), units, dict(layers))

    def digest(self) -> str:
        """Of all that was said, whatever the order."""
        return digest(
            part
            for key, text in sorted(self.found.items())
            for part in (key, *sorted(f"{name} {marks.spans.tolist()} {marks.types}" for name, marks in text.marks()))
        )


def person_and_model(pair: tuple[str, str]) -> tuple[str, str] | None:
    """Who the two of a pair of `Texts.against_models` are; None where they are not a person and a model."""
    model, person = pair  # pairs are in the order of their names
    if not (model.startswith(_MODEL) and person.startswith(_PERSON)):
        return None
    return person.removeprefix(_PERSON), model.removeprefix(_MODEL)


def join(samples: Iterable[Sample], *, where: Callable[[int], str] | None = None) -> Texts:
    """Samples with the same response in the same language are one text, wherever they stand.

    Args:
        samples: with annotations.
        where: what the place of a sample is called, by its number from 0; its id where nothing is given.
    """
    found: dict[str, _Text] = {}
    changed = set()
    repeated = []
    for number, sample in enumerate(samples):
        key = digest([sample.language or "", sample.response])[:16]
        for annotation in labelled(sample):
            said = reference(sample, annotation.annotator)
            if said is None:
                continue
            text = found.setdefault(key, _Text(sample))
            if annotation.kind is Kind.HUMAN:
                name = annotation.annotator
                text.people.append((name, said.marks))
                place = f"id {sample.id!r}" if where is None else where(number)
                first = text.places.setdefault(name, place)
                if sum(one == name for one, _ in text.people) > 1:
                    repeated.append(Repeat(name, first, place))
            elif not _same(text.models.setdefault(annotation.annotator, said.marks), said.marks):
                changed.add(key)
    settled = sum(_without_gold(text) for text in found.values())
    # Texts whatever the order of the samples.
    return Texts(dict(sorted(found.items())), len(changed), tuple(repeated), settled)


def _without_gold(text: _Text) -> bool:
    """Leave out gold that stands beside what it was made of, as in an export of the studio; whether there was such."""
    others = [(name, marks) for name, marks in text.people if name != _GOLD]
    if not others or len(others) == len(text.people):
        return False
    text.people = others
    return True


def _same(first: Marks, second: Marks) -> bool:
    return first.types == second.types and first.spans.tolist() == second.spans.tolist()

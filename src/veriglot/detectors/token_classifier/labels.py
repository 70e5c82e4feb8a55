"""Which output of a token classifier says what: read from the names in its configuration, never guessed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec

from veriglot.errors import WeightsError
from veriglot.records.taxonomy import taxonomies

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Labels", "labels_of"]

_SUPPORTED = "supported"
_TAXONOMIES = ("hat", "support", "fava", "halluverse")  # the first that holds all types of a model is taken
_SCHEME = re.compile(r"(?P<place>[BIESLU])[-_](?P<name>.+)")  # IO, BIO, BIOES and BILOU
_BEGINS = frozenset("BSU")
_UNNAMED = ("label_0", "label_1")  # what transformers writes where a model was given no names


@dataclass(frozen=True)
class Labels:
    """What the outputs of a token classifier mean.

    Attributes:
        taxonomy: name of the taxonomy that the types belong to.
        types: the types that mark a token.
        outputs: of each type, the outputs that say it.
        supported: the outputs that say that a token is supported.
        begins: the outputs that say that a span begins with the token.
    """

    taxonomy: str
    types: tuple[str, ...]
    outputs: tuple[tuple[int, ...], ...]
    supported: tuple[int, ...]
    begins: tuple[int, ...]

    @property
    def line(self) -> str:
        """All of it in one line, for a signature."""
        numbers = {"supported": self.supported, **dict(zip(self.types, self.outputs, strict=True))}
        if self.begins:  # they part spans
            numbers["begins"] = self.begins
        return ";".join(f"{name}={','.join(map(str, outputs))}" for name, outputs in numbers.items())


def labels_of(
    names: Mapping[int, str] | Sequence[str] | str, model: str, *, outputs: int | None = None, unnamed: bool = False
) -> Labels:
    """The meaning of each output of a model.

    Args:
        names: the labels by output (`id2label` of a configuration), or in order, or in order with commas between them.
            Types stand bare or behind the places of IO, BIO, BIOES or BILOU (`B-entity`). Case, hyphens, spaces and
            usual variants make no difference (`label_names.json`).
        model: its name, for the error.
        outputs: how many outputs it has; None for as many as there are names.
        unnamed: whether two outputs without names are `supported` and `hallucination`, as LettuceDetect's are.

    Raises:
        WeightsError: a name that says nothing of support, such as those of a model that finds names of persons; no
            output for supported tokens, or none for others; or types that are in no taxonomy together.
    """
    given = _in_order(names)
    if outputs is not None and len(given) != outputs:
        raise WeightsError(
            f"{model!r} has {outputs} outputs, and {len(given)} labels were given.", remedy="Give one for each output."
        )
    if unnamed and tuple(_plain(name) for name in given) == _UNNAMED:
        given = [_SUPPORTED, "hallucination"]
    places = [_SCHEME.fullmatch(name) for name in given]
    meanings = [
        _aliases().get(_plain(place["name"] if place else name)) for place, name in zip(places, given, strict=True)
    ]
    types = tuple(dict.fromkeys(meaning for meaning in meanings if meaning not in (None, _SUPPORTED)))
    taxonomy = next((name for name in _TAXONOMIES if types and set(types) <= taxonomies()[name].types.keys()), None)
    if None in meanings or _SUPPORTED not in meanings or taxonomy is None:
        raise WeightsError(
            f"Which outputs of {model!r} mark text that the evidence does not support cannot be told from its labels:"
            f" {', '.join(map(repr, given)) or 'none'}.",
            remedy="Take a model trained to find such text; where you know what its outputs mean, say so in their"
            " order, such as labels='supported,hallucination' or labels='O,B-entity,I-entity'.",
        )
    return Labels(
        taxonomy=taxonomy,
        types=tuple(str(type_) for type_ in types),
        outputs=tuple(tuple(place for place, meaning in enumerate(meanings) if meaning == type_) for type_ in types),
        supported=tuple(place for place, meaning in enumerate(meanings) if meaning == _SUPPORTED),
        begins=tuple(nth for nth, place in enumerate(places) if place and place["place"] in _BEGINS),
    )


def _in_order(names: Mapping[int, str] | Sequence[str] | str) -> list[str]:
    if isinstance(names, str):
        return [name.strip() for name in names.split(",") if name.strip()]
    if isinstance(names, Sequence):
        return [str(name) for name in names]
    numbered = {int(place): str(name) for place, name in names.items()}
    return [numbered[place] for place in sorted(numbered)]


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "_", name.strip().casefold())


@cache
def _aliases() -> dict[str, str]:
    data = files(__package__).joinpath("label_names.json").read_bytes()
    table = msgspec.json.decode(data, type=dict[str, list[str]])
    return {alias: meaning for meaning, aliases in table.items() for alias in aliases}

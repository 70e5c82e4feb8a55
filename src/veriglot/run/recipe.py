"""How to make a detector or a scorer, as data that another process can be given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import TypeIs

    from veriglot.records import Detector, Scorer

__all__ = ["Description", "Recipe", "scores"]


@dataclass(frozen=True)
class Recipe:
    """A factory and what to call it with.

    Attributes:
        factory: a function or class that a module holds by name, so that it can be pickled; it returns a
            detector or a scorer.
        arguments: positional arguments of the factory.
        options: keyword arguments of the factory.
    """

    factory: Callable[..., Detector | Scorer]
    arguments: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    def make(self) -> Any:
        """Call the factory for a detector or a scorer. Raises whatever it raises."""
        return self.factory(*self.arguments, **self.options)


@dataclass(frozen=True)
class Description:
    """What a detector says of itself: see `records.Detector`. A scorer has no taxonomy and no threshold.

    Attributes:
        name, taxonomy, threshold, signature: as there; "" and 1.0 of a scorer.
        kind: which of the two it is.
    """

    name: str
    taxonomy: str
    threshold: float
    signature: str
    kind: Literal["detector", "scorer"] = "detector"

    @classmethod
    def of(cls, maker: Detector | Scorer) -> Description:
        """Describe a detector or a scorer."""
        if scores(maker):
            return cls(maker.name, "", 1.0, maker.signature, "scorer")
        return cls(maker.name, maker.taxonomy, maker.threshold, maker.signature)


def scores(maker: Detector | Scorer) -> TypeIs[Scorer]:
    """Whether it gives numbers and no predictions."""
    return not hasattr(maker, "predict")

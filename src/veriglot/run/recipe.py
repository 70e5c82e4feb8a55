"""How to make a detector, as data that another process can be given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from veriglot.records import Detector

__all__ = ["Description", "Recipe"]


@dataclass(frozen=True)
class Recipe:
    """A factory and what to call it with.

    Attributes:
        factory: a function or class that a module holds by name, so that it can be pickled; it returns a detector.
        arguments: positional arguments of the factory.
        options: keyword arguments of the factory.
    """

    factory: Callable[..., Detector]
    arguments: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    def make(self) -> Detector:
        """Call the factory. Raises whatever it raises."""
        return self.factory(*self.arguments, **self.options)


@dataclass(frozen=True)
class Description:
    """What a detector says of itself: see `records.Detector`."""

    name: str
    taxonomy: str
    threshold: float
    signature: str

    @classmethod
    def of(cls, detector: Detector) -> Description:
        """Describe `detector`."""
        return cls(detector.name, detector.taxonomy, detector.threshold, detector.signature)

"""What an annotator fills in: the kind of task, made concrete by a project's taxonomy, ratings, flags and reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from veriglot.annotate.entries import RatingEntry, TaskKind
from veriglot.errors import UnknownNameError, UsageError
from veriglot.records import taxonomy

if TYPE_CHECKING:
    from veriglot.annotate.entries import Entries
    from veriglot.records import Taxonomy

__all__ = ["Choice", "Form", "form_of"]

_TAXONOMIES = {
    TaskKind.SPANS: "fava",
    TaskKind.TRANSLATION: "hat",
    TaskKind.FACTS: "support",
    TaskKind.PAIRS: "halluverse",
}
_SOURCE_FLAGS = {  # hat, section 3.3
    TaskKind.TRANSLATION: ("wrong_language", "nonsensical", "spelling_errors", "mixed_languages"),
}
_SKIP_REASONS = ("sensitive_content", "not_sure", "too_specialised", "unreadable")  # hat, section 3.3
_NO_HALLUCINATION = "0"
# Told apart by those who see colours differently as well (after Okabe and Ito); the page darkens them for text.
_COLOURS = ("#e69f00", "#56b4e9", "#009e73", "#cc79a7", "#d55e00", "#0072b2", "#b8a900", "#7f7f7f")
_SUPPORT_COLOURS = {"supported": "#009e73", "contradicted": "#d55e00", "unverified": "#e69f00"}


class Choice(msgspec.Struct, frozen=True):
    """One of several things to choose: a type of span, a label.

    Attributes:
        name: its key in the data.
        meaning: what it means, in English; the interface has its own words for the ones that Veriglot ships.
        colour: `#rrggbb`.
        shortcut: the key that chooses it, a digit; empty beyond nine.
    """

    name: str
    meaning: str
    colour: str
    shortcut: str


class Form(msgspec.Struct, frozen=True):
    """What there is to fill in.

    Attributes:
        task: the kind of task.
        taxonomy: the name of the taxonomy.
        types: of spans; empty where no spans are marked.
        unit: what is labelled one by one: each `fact`, each `sentence`, or None.
        unit_labels: labels of these.
        labels: of the whole item; empty where it has none.
        evidence: whether a labelled unit points to places in the evidence.
        unit_flags: flags of a unit.
        flags: flags of the item.
        source_flags: what may be wrong with the source or the question.
        skip_reasons: why the item may be left out.
        span_rating: the rating of each span, or None.
        item_ratings: those of the item.
    """

    task: TaskKind
    taxonomy: str
    types: tuple[Choice, ...] = ()
    unit: Literal["fact", "sentence"] | None = None
    unit_labels: tuple[Choice, ...] = ()
    labels: tuple[Choice, ...] = ()
    evidence: bool = False
    unit_flags: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    source_flags: tuple[str, ...] = ()
    skip_reasons: tuple[str, ...] = ()
    span_rating: RatingEntry | None = None
    item_ratings: tuple[RatingEntry, ...] = ()

    @property
    def has_spans(self) -> bool:
        """Whether spans are marked."""
        return bool(self.types)


def form_of(entries: Entries) -> Form:
    """The form of a project.

    Raises:
        UnknownNameError: no such taxonomy, or a colour for a type that it does not have.
        UsageError: the taxonomy does not go with the task.
    """
    about = entries.project
    named = taxonomy(about.taxonomy or _TAXONOMIES[about.task])
    for type_ in about.colours:
        if type_ not in named.types:
            raise UnknownNameError(f"type in the taxonomy {named.name!r}", type_, named.types)
    choices = _choices(named, about.colours)
    facts, pairs = about.task is TaskKind.FACTS, about.task is TaskKind.PAIRS
    if facts and not named.clean:
        raise UsageError(
            f"The taxonomy {named.name!r} has no label for what is supported, which a task of kind `facts` needs.",
            remedy="Take the taxonomy `support`.",
        )
    flags = named.flags if about.flags is None else about.flags
    usual = _SOURCE_FLAGS.get(about.task, ())
    return Form(
        task=about.task,
        taxonomy=named.name,
        types=() if facts or pairs else tuple(choice for choice in choices if choice.name not in named.clean),
        unit=about.units if facts else None,
        unit_labels=choices if facts else (),
        labels=(Choice(_NO_HALLUCINATION, "no hallucination", "#7f7f7f", "0"), *choices) if pairs else (),
        evidence=facts,
        unit_flags=flags if facts else (),
        flags=() if facts else _without_source(flags),
        source_flags=usual if about.source_flags is None else about.source_flags,
        skip_reasons=_SKIP_REASONS if about.skip_reasons is None else about.skip_reasons,
        span_rating=next((rating for rating in entries.ratings if rating.of == "span"), None),
        item_ratings=tuple(rating for rating in entries.ratings if rating.of == "item"),
    )


def _without_source(flags: tuple[str, ...]) -> tuple[str, ...]:
    """Flags of the taxonomy that speak of the source are asked for apart."""
    return tuple(flag for flag in flags if not flag.startswith("source_"))


def _choices(named: Taxonomy, colours: dict[str, str]) -> tuple[Choice, ...]:
    return tuple(
        Choice(
            name,
            meaning,
            colours.get(name) or _SUPPORT_COLOURS.get(name) or _COLOURS[index % len(_COLOURS)],
            str(index + 1) if index < 9 else "",
        )
        for index, (name, meaning) in enumerate(named.types.items())
    )

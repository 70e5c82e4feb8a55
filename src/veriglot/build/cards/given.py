"""What people say of a data set, since no run can know it: a TOML file, read strictly."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec

from veriglot.errors import InputError
from veriglot.records.toml_file import read_toml_records

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["About", "Cost", "Given", "Licence", "Maintenance", "People", "Uses", "blank", "read_given"]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the file; what is empty is unknown."""


class About(_Table, frozen=True):
    """`[about]`: what it is and who made it."""

    title: str = ""
    summary: str = ""
    purpose: str = ""
    creators: tuple[str, ...] = ()
    funding: str = ""
    contact: str = ""
    version: str = ""
    homepage: str = ""
    citation: str = ""


class Licence(_Table, frozen=True):
    """`[licence]`: `id` as the Hugging Face Hub writes it, the terms in words, and those of the sources."""

    id: str = ""
    terms: str = ""
    sources: str = ""


class People(_Table, frozen=True):
    """`[people]`: who annotated, and whose texts these are."""

    annotators: str = ""
    consent: str = ""
    sensitive: str = ""


class Uses(_Table, frozen=True):
    """`[uses]`: what it is for, what it is not for, and its limits."""

    intended: str = ""
    unsuitable: str = ""
    limits: str = ""


class Maintenance(_Table, frozen=True):
    """`[maintenance]`: who keeps it, and when this version was made."""

    plan: str = ""
    updated: str = ""


class Cost(_Table, frozen=True):
    """`[cost]`: prices of a million tokens in a currency, and seconds; 0 is unknown."""

    currency: str = ""
    prompts: float = 0.0
    replies: float = 0.0
    seconds: float = 0.0


class Given(_Table, frozen=True):
    """The whole file."""

    about: About = About()
    licence: Licence = Licence()
    people: People = People()
    uses: Uses = Uses()
    maintenance: Maintenance = Maintenance()
    cost: Cost = Cost()


def read_given(path: Path) -> Given:
    """Read the file.

    Raises:
        InputError: it is no TOML, has a key that is not known, or a price or a time below 0.
    """
    try:
        given = read_toml_records(path, Given, "card's TOML file")
    except InputError as error:
        raise error.at(path=str(path)) from None
    if min(given.cost.prompts, given.cost.replies, given.cost.seconds) < 0:
        raise InputError("prices and seconds are at least 0", path=str(path), field="cost")
    return given


def blank() -> str:
    """The file with every question and no answer."""
    return files(__package__).joinpath("given.toml").read_text("utf-8")

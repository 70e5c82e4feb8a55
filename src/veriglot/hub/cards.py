"""What is known of checkpoints that others publish: under which licence they stand, shown before they are used.

Registries (`registry.py`) hold models with the hashes of their files. Checkpoints that users name by a folder or by the
hub's name have no entry there; of these, `cards.json` holds what their makers say, and a folder may hold its own card.
"""

from __future__ import annotations

import os
import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from veriglot.hub.cache import to_stderr
from veriglot.hub.registry import Licence, LicenceError, model, models, permissive

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["agree"]

ACCEPTED = "VERIGLOT_ACCEPT_LICENCES"
_CACHED = re.compile(r"models--(?P<owner>[^/\\]+?)--(?P<name>[^/\\]+)")  # a folder of the hub's cache
_STATED = re.compile(r"^license(_name)?:[ \t]*['\"]?(?P<name>[\w.+-]+)", re.MULTILINE)
_LONGEST_CARD = 1 << 20
_shown: set[str] = set()


class Card(msgspec.Struct, frozen=True):
    """What is known of a checkpoint.

    Attributes:
        names: on the hub.
        licence: None where we do not know it.
        languages: base tags that its makers name; empty where they name none, or we do not know.
    """

    names: tuple[str, ...] = ()
    licence: Licence | None = None
    languages: tuple[str, ...] = ()


@cache
def _known() -> dict[str, Card]:
    cards = msgspec.json.decode(files(__package__).joinpath("cards.json").read_bytes(), type=list[Card])
    return {name: card for card in cards for name in card.names}


def card_of(checkpoint: str | Path) -> Card | None:
    """What is known of a checkpoint; None of a folder without a card, and of names that we know nothing of.

    Args:
        checkpoint: a folder or file, a name of a registry, or a name on the hub.
    """
    name = str(checkpoint)
    if name in _known():
        return _known()[name]
    path = Path(name).expanduser()
    cached = _CACHED.search(str(path.absolute())) if path.exists() else None
    if cached and f"{cached['owner']}/{cached['name']}" in _known():
        return _known()[f"{cached['owner']}/{cached['name']}"]
    if path.is_dir():
        return _own_card(path)
    if name in models():
        entry = model(name)
        return Card((name,), entry.licence, entry.languages)
    return None


def agree(checkpoint: str | Path, *, accepted: bool = False, say: Callable[[str], None] = to_stderr) -> None:
    """Show the licence of a checkpoint, once a process; have one that is not permissive accepted.

    It counts as accepted where `accepted` says so, or where the variable `VERIGLOT_ACCEPT_LICENCES` holds its name
    (several are parted by commas). Of a licence that we do not know, that much is said; a folder without a card is its
    owner's business.

    Raises:
        LicenceError: it forbids something and was not accepted.
    """
    card = card_of(checkpoint)
    if card is None:
        return
    if card.licence is None:
        _once(f"{checkpoint}: we do not know its licence; read its card before you use it.", say)
        return
    _once(f"{checkpoint}: licence {card.licence}", say)
    named = {part.strip().casefold() for part in os.environ.get(ACCEPTED, "").split(",")}
    if accepted or permissive(card.licence) or card.licence.name.casefold() in named:
        return
    raise LicenceError(
        f"The licence of {str(checkpoint)!r}, {card.licence}, has to be accepted before it is used.",
        remedy=f"Read it, then give accept_licence=true, or set {ACCEPTED}={card.licence.name}.",
    )


def _once(line: str, say: Callable[[str], None]) -> None:
    if line not in _shown:
        _shown.add(line)
        say(line)


def _own_card(folder: Path) -> Card | None:
    """The licence that a folder's own card states at its head, as the hub has it."""
    file = folder / "README.md"
    if not file.is_file() or file.stat().st_size > _LONGEST_CARD:
        return None
    text = file.read_text(encoding="utf-8", errors="replace")
    head = text.split("\n---", 1)[0] if text.startswith("---") else ""
    names = {match[1] or "": match["name"] for match in _STATED.finditer(head)}
    name = names.get("_name") or names.get("")
    return (
        Card(licence=Licence(_spelled(name), file.absolute().as_uri(), "by the card in its folder")) if name else None
    )


def _spelled(name: str) -> str:
    """A licence's name as the list of permissive ones spells it; the hub writes all of it small."""
    known = ("Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause", "CC-BY-4.0", "CC0-1.0", "ISC", "Unlicense", "Zlib")
    return {spelling.casefold(): spelling for spelling in known}.get(name.casefold(), name)

"""Accounts of whole folders, and whether they are a file's own: they name it, or it lies where such a run puts files.

Files called `manifest.json` or `report.json` are common, and so are folders that hold several data sets: an account
that says nothing of a file is not told of it.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path, PurePath

__all__ = ["REJECTED", "Accounted", "account_in", "folder_of"]

_UP = 3  # folders above a file in which the account of its whole folder may lie
_FIRST = 100  # rows of a file among which one says that it was checked
_FACTUAL = frozenset({"people.jsonl", "articles.jsonl", "prompts.jsonl", "candidates.jsonl"})  # beside those it names
REJECTED = "rejected.jsonl"


class Accounted(NamedTuple):
    """The folder whose account tells of a file.

    Attributes:
        path: of the folder.
        accounts: by file name, as they stand.
        rejected: whether the rows that it sets aside belong to it.
        damaged: accounts in it that cannot be read, so that nobody knows what they are of.
        before: files of single steps that its data were made from.
    """

    path: Path
    accounts: dict[str, Any]
    rejected: bool = False
    damaged: tuple[str, ...] = ()
    before: tuple[Path, ...] = ()


class _Kind(NamedTuple):
    keys: frozenset[str]  # by which an account of ours is known
    owns: Callable[[dict[str, Any], PurePath], bool]


def folder_of(path: Path) -> Accounted | None:
    """The nearest folder above a file whose account tells of it; None where there is none.

    Of damaged accounts those beside the file are named.
    """
    place = path.resolve()
    for folder in list(place.parents)[:_UP]:
        found: dict[str, Any] = {}
        damaged: list[str] = []
        for name, kind in _KINDS.items():
            account = account_in(folder / name, damaged)
            if account is not None and kind.keys <= account.keys() and kind.owns(account, place.relative_to(folder)):
                found[name] = account
        if found:
            rejected = REJECTED in _names(found.get("manifest.json", {}).get("files"))
            return Accounted(folder, found, rejected, tuple(damaged), _before(folder, found))
        if (folder / REJECTED).is_file() and _is_cleaned(place):
            return Accounted(folder, {}, rejected=True)
        if damaged and folder == place.parent:
            return Accounted(folder, {}, damaged=tuple(damaged))
    return None


def account_in(path: Path, damaged: list[str]) -> dict[str, Any] | None:
    """The mapping that a JSON file holds; None where there is none, `damaged` told where it cannot be read."""
    if not path.is_file():
        return None
    try:
        found = msgspec.json.decode(path.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError, OSError):
        found = None
    if not isinstance(found, dict):
        damaged.append(path.name)
        return None
    return found


def _of_factual(account: dict[str, Any], place: PurePath) -> bool:
    return place.as_posix() in _names(account.get("files")) | _FACTUAL or place.parent.as_posix() == "responses"


def _of_sample(account: dict[str, Any], place: PurePath) -> bool:
    sample = account.get("sample")
    parts = _names(sample.get("parts")) if isinstance(sample, dict) else set()
    return place.as_posix() in {"clean.jsonl", *(f"{one}{kind}" for one in parts for kind in (".jsonl", ".hat.json"))}


def _of_study(_: dict[str, Any], place: PurePath) -> bool:
    return place.parts[0] in {"responses", "predictions"}


_KINDS = {
    "manifest.json": _Kind(frozenset({"made_by", "made_from"}), _of_factual),
    "report.json": _Kind(frozenset({"signature", "cleaned"}), _of_sample),
    "plan.json": _Kind(frozenset({"models", "detectors", "asked"}), _of_study),
}


def _names(found: Any) -> set[str]:
    return set(found) if isinstance(found, dict) else set()


def _before(folder: Path, accounts: dict[str, Any]) -> tuple[Path, ...]:
    """The steps of a set that keep a manifest of their own: its prompts and responses."""
    if "manifest.json" not in accounts:
        return ()
    kept = sorted([*folder.glob("prompts.jsonl.progress"), *folder.glob("responses/*.progress")])
    return tuple(one.with_suffix("") for one in kept)


def _is_cleaned(path: Path) -> bool:
    """Whether rows of a file say that `build check` wrote them."""
    if path.suffix != ".jsonl" or not path.is_file():
        return False
    with path.open("rb") as lines:
        for line in islice(lines, _FIRST):
            try:
                row = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            meta = row.get("meta") if isinstance(row, dict) else None
            if isinstance(meta, dict) and isinstance(meta.get("check"), dict):
                return True
    return False

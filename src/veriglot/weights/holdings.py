"""What is on this machine: the list of models, and their removal."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from veriglot.errors import UnknownNameError
from veriglot.weights.errors import writing
from veriglot.weights.folder import Places, folder
from veriglot.weights.local import in_place
from veriglot.weights.lock import Lock
from veriglot.weights.registry import Local, models
from veriglot.weights.verification import looks_verified, present

if TYPE_CHECKING:
    from veriglot.weights.registry import Model

__all__ = ["Listed", "State", "listing", "remove"]

State = Literal["here", "unverified", "missing"]
"""`here`: verified, and unchanged since. `unverified`: files are there, and are hashed when the model is opened."""


class Listed(msgspec.Struct, frozen=True):
    """A model of the registry and what of it is here.

    Attributes:
        name, title, languages, url, origin: as in the registry.
        licence: name of the weights' licence; `licence_url` where it stands.
        third_party: whether its entry comes from a registry that Veriglot does not ship.
        bytes: size of its files.
        state: see `State`.
        path: where its files lie; None where they are missing.
    """

    name: str
    title: str
    state: State
    path: str | None
    bytes: int
    languages: tuple[str, ...]
    licence: str
    licence_url: str
    url: str
    origin: str
    third_party: bool


def listing() -> list[Listed]:
    """Every model with a name, in the order of the registries. Hashes nothing and opens no connection.

    Raises:
        UsageError, InputError: a registry of the user's own that cannot be used.
    """
    return [_listed(one) for one in models().values()]


def _listed(model: Model) -> Listed:
    places = Places(model)
    root = places.files if present(model, places.files) else _standing(model)
    state: State = "missing"
    if root is not None:
        state = "here" if looks_verified(model, root, places.marker) else "unverified"
    return Listed(
        name=model.name,
        title=model.title,
        state=state,
        path=None if root is None else str(root),
        bytes=model.bytes,
        languages=model.languages,
        licence=model.licence.name,
        licence_url=model.licence.url,
        url=model.url,
        origin=model.origin,
        third_party=model.third_party,
    )


def _standing(model: Model) -> Path | None:
    for place in model.places:
        if isinstance(place, Local) and place.in_place:
            root = in_place(model, Path(place.path))
            if root is not None and present(model, root):
                return root
    return None


def remove(name: str) -> int:
    """Delete what the folder of models holds of a model: its files in every version, and what was on its way.

    Files that a registry uses in place are somebody else's, and stay.

    Returns:
        The bytes that were deleted; 0 where there was nothing.

    Raises:
        UnknownNameError: no such model.
        WeightsError: the folder cannot be written to.
    """
    known = models()
    if name not in known:
        raise UnknownNameError("model", name, known)
    root = folder()
    held = [root / name, root / ".incoming" / name]
    if not any(path.exists() for path in held):
        return 0
    with writing(root), Lock(Places(known[name]).lock, waiting=lambda: None):
        freed = sum(path.stat().st_size for top in held for path in top.rglob("*") if path.is_file())
        for marker in (root / name).glob("*.verified.json"):  # first, so that no half of a model counts as verified
            marker.unlink()
        for path in held:
            if path.exists():
                shutil.rmtree(path)
    return freed

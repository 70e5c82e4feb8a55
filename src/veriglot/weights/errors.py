"""What can go wrong between the name of a model and its files."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING

from veriglot.errors import WeightsError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["DamagedWeightsError", "LicenceError", "MissingWeightsError", "PlaceError", "writing"]

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}


class MissingWeightsError(WeightsError):
    """A model that is known but not here."""


class DamagedWeightsError(WeightsError):
    """Files of a model that are here, but are not what its hashes say."""


class LicenceError(WeightsError):
    """A licence that has to be accepted before the first download, and was not."""


class PlaceError(WeightsError):
    """One place that did not give the files; the next one may.

    Attributes:
        retryable: whether the same place may give them later.
        refused_bytes: whether it gave something whose size or hash is not the registry's.
    """

    def __init__(self, message: str, *, retryable: bool = False, refused_bytes: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.refused_bytes = refused_bytes


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn the operating system's refusals to write below `folder` into a `WeightsError` that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise WeightsError(
                f"There is no room for the model in {folder}: {error.strerror}.",
                remedy="Make room, or set VERIGLOT_WEIGHTS to a folder on another disk.",
            ) from error
        if error.errno in _REFUSED or isinstance(error, NotADirectoryError | FileExistsError):
            raise WeightsError(
                f"The folder of models, {folder}, cannot be written to: {error.strerror}.",
                remedy="Set VERIGLOT_WEIGHTS to a folder that you may write to, or have its owner get the model.",
            ) from error
        raise

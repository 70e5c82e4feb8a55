"""The files of a model on their way in: written as parts, held against the registry, and only then given their names.

`incoming/parts/` holds what is half here, and `incoming/files/` what is whole and right. When all are, that folder is
renamed to where the model lies, in one step, so nobody ever sees half a model.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from veriglot.provenance import file_sha256
from veriglot.weights.errors import PlaceError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from veriglot.weights.registry import Model, ModelFile

__all__ = ["BLOCK", "Arrivals"]

BLOCK = 1 << 20  # bytes read at once


class Arrivals:
    """What of a model has arrived.

    Args:
        model: whose files they are.
        incoming: the folder that they pass through; what an earlier attempt left there is used.
        progress: told how far the transfer of a file is: bytes here, and bytes in all.
    """

    def __init__(self, model: Model, incoming: Path, progress: Callable[[int, int], None]) -> None:
        self.model = model
        self.parts = incoming / "parts"
        self.progress = progress
        self._incoming = incoming
        self._whole = incoming / "files"
        self.parts.mkdir(parents=True, exist_ok=True)
        self._whole.mkdir(exist_ok=True)

    def missing(self) -> list[ModelFile]:
        """The files that have not arrived whole."""
        return [file for file in self.model.files if not (self._whole / file.name).is_file()]

    def part(self, file: ModelFile) -> Path:
        """Where the beginning of a file is kept until all of it is here."""
        path = self.parts / f"{file.name}.part"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def held(self) -> int:
        """Bytes of this model that are here already, whole or in part."""
        return sum(path.stat().st_size for path in self._incoming.rglob("*") if path.is_file())

    def take(self, file: ModelFile, blocks: Generator[bytes], origin: str) -> None:
        """Write a file from its beginning, and accept it.

        Args:
            file: which.
            blocks: its bytes, which raise `PlaceError` where their source fails.
            origin: the source in words, for messages.

        Raises:
            PlaceError: size or hash are not the registry's; nothing of it is kept.
        """
        path, written = self.part(file), 0
        try:
            with path.open("wb") as out:
                for block in blocks:
                    written += len(block)
                    if written > file.bytes:
                        raise PlaceError(
                            f"{origin} has more than the {file.bytes:,} bytes that {file.name} should have.",
                            refused_bytes=True,
                        )
                    out.write(block)
                    self.progress(written, file.bytes)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        finally:
            blocks.close()  # or the source would stay open for as long as somebody holds the error
        self.accept(file, origin)

    def accept(self, file: ModelFile, origin: str) -> None:
        """Give a part its name, if it is what the registry says.

        Raises:
            PlaceError: it is not; nothing of it is kept.
        """
        path = self.part(file)
        size = path.stat().st_size
        found = file_sha256(path) if size == file.bytes else ""
        if found != file.sha256:
            path.unlink()
            wrong = (
                f"{file.name} with the SHA-256 {found}, and it should be {file.sha256}"
                if found
                else f"{file.name} with {size:,} bytes, and it should have {file.bytes:,}"
            )
            raise PlaceError(f"{origin} gave {wrong}. It was not kept.", refused_bytes=True)
        with path.open("rb+") as out:
            os.fsync(out.fileno())  # the name must not outlive the bytes when the power fails
        target = self._whole / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        path.replace(target)

    def settle(self, target: Path) -> None:
        """Move all files, which have arrived, to where the model lies; what lay there is replaced."""
        assert not self.missing(), "a model settles when all of it is here"
        if target.exists():  # damaged, or it would not have been fetched again
            shutil.rmtree(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        self._whole.replace(target)
        shutil.rmtree(self._incoming)

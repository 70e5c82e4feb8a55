"""The small file beside an output that says what it is made from: `out.jsonl.progress`.

It decides whether a run may continue an output. The number of finished rows is not taken from it but from the output
itself, which cannot lag behind.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from veriglot.errors import UsageError
from veriglot.provenance import file_sha256

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["InputFile", "Manifest", "without_traces", "write_whole"]

_VERSION = 1
_TRACES = (".progress", ".failed.jsonl", ".rejected.jsonl", ".rows.jsonl", ".asked", ".lock", ".partial")

Option = str | int | float | bool | None


class InputFile(msgspec.Struct, frozen=True):
    """What an input was when the run began.

    Attributes:
        path: as the user gave it; `-` is standard input.
        size: bytes.
        mtime_ns: time of the last change, in nanoseconds since 1970.
        sha256: of the content, in hexadecimal; empty for standard input.
    """

    path: str
    size: int
    mtime_ns: int
    sha256: str

    @classmethod
    def of(cls, path: str, known: InputFile | None = None) -> InputFile:
        """Describe the file at `path`; its hash is taken from `known` where size and time are the same."""
        if path == "-":
            return cls(path, 0, 0, "")
        state = Path(path).stat()
        same = known is not None and (known.size, known.mtime_ns) == (state.st_size, state.st_mtime_ns)
        sha256 = known.sha256 if known is not None and same else file_sha256(path)
        return cls(path, state.st_size, state.st_mtime_ns, sha256)


class Manifest(msgspec.Struct, frozen=True):
    """What an output is made from, and how far it is.

    Attributes:
        inputs: the input files, in order.
        signature: of what makes the rows: the detector, or a model and its prompts.
        options: every other option that changes the rows.
        rows: rows written when the manifest was last written; the output itself may hold more.
        failed: rows that could not be read, likewise.
        statuses: how many predictions have which status; complete once `finished`.
        finished: whether every row is done.
        output_bytes: size of the finished output.
        seconds: wall time of all calls that worked on the output, reading of inputs included; None where a call of an
            earlier version, which did not say, has a part in it.
        version: of this format.
    """

    inputs: tuple[InputFile, ...]
    signature: str
    options: dict[str, Option]
    rows: int = 0
    failed: int = 0
    statuses: dict[str, int] = {}
    finished: bool = False
    output_bytes: int = 0
    seconds: float | None = None
    version: int = _VERSION

    @classmethod
    def load(cls, path: Path) -> Manifest | None:
        """The manifest at `path`, or None where there is none.

        Raises:
            UsageError: the file is not a manifest of this version.
        """
        try:
            manifest = msgspec.json.decode(path.read_bytes(), type=cls)
        except FileNotFoundError:
            return None
        except (msgspec.DecodeError, UnicodeDecodeError):
            manifest = None
        if manifest is None or manifest.version != _VERSION:
            raise UsageError(
                f"{path} does not say how its output was made: it is damaged or from another version.",
                remedy="Type the command again with --restart to make the output anew, or name another output.",
            )
        return manifest

    def save(self, path: Path) -> None:
        """Write it, whole or not at all."""
        write_whole(path, msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")

    def differences(self, other: Manifest, *, maker: str = "detector") -> list[str]:
        """What `other` (the present call) has otherwise than this one (the run that began), one sentence each.

        Args:
            other: the present call.
            maker: what the signature is of, in one word.
        """
        found = _input_differences(self.inputs, other.inputs)
        if self.signature != other.signature:
            found.append(f"the {maker} was {self.signature!r} and is now {other.signature!r}")
        for name in sorted(self.options.keys() | other.options.keys()):
            before, now = self.options.get(name), other.options.get(name)
            if before != now:
                found.append(f"{name} was {_shown(before)} and is now {_shown(now)}")
        return found


def _input_differences(before: Sequence[InputFile], now: Sequence[InputFile]) -> list[str]:
    if len(before) != len(now):
        return [f"it had {len(before)} input files and now has {len(now)}"]
    pairs = zip(before, now, strict=True)
    return [
        f"{new.path} has changed" if old.path == new.path else f"the input was {old.path} and is now {new.path}"
        for old, new in pairs
        if old.sha256 != new.sha256
    ]


def _shown(value: Option) -> str:
    return "not set" if value is None else repr(value)


def without_traces(files: Sequence[Path]) -> list[Path]:
    """The files without those that a run left beside its output: how far it is, failed rows, finished calls."""
    outputs = [path.with_suffix("") for path in files if path.suffix == ".progress"]
    beside = {path.with_name(path.name + suffix) for path in outputs for suffix in _TRACES}
    calls = {path.with_name(path.name + ".calls") for path in outputs}
    return [path for path in files if path not in beside and calls.isdisjoint(path.parents)]


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file in one step, so that a reader (or a kill) never meets half of it."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)

"""Stages of one piece of work in a folder: what is done is taken over, as long as it was done in the same way."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from veriglot.errors import UsageError
from veriglot.provenance import digest
from veriglot.run.manifest import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Stages"]

T = TypeVar("T")


class _Marker(msgspec.Struct, frozen=True):
    """What a stage was begun with, and what came of it."""

    key: str
    settings: dict[str, Any]
    finished: bool = False
    result: msgspec.Raw = msgspec.Raw(b"null")


class Stages:
    """The stages in a folder.

    Args:
        folder: each stage has a folder of its own in it.
        restart: do again what was done in another way, instead of refusing.
    """

    def __init__(self, folder: Path, *, restart: bool) -> None:
        self._folder = folder
        self._restart = restart
        self._keys: dict[str, str] = {}

    def path(self, name: str) -> Path:
        """The folder of a stage."""
        return self._folder / name

    def key(self, name: str) -> str:
        """What a stage of this run, and all before it, were done with, as a hash."""
        return self._keys[name]

    def do(
        self,
        name: str,
        settings: dict[str, Any],
        work: Callable[[Path], T],
        type_: type[T],
        *,
        after: str | None = None,
    ) -> T:
        """What comes of a stage, from an earlier run where it was finished in the same way.

        Args:
            name: of the stage, and of its folder.
            settings: all that decides what comes of it, besides the stage before.
            work: does it, in the folder given; what it finds there of an earlier run was made in the same way.
            type_: of what comes of it, which JSON can hold.
            after: the stage that it builds on.

        Raises:
            UsageError: it was begun in another way, and `restart` is off.
        """
        self.check(name, settings, after=after)
        folder, key = self.path(name), self._keys[name]
        marker = self._marker(folder)
        if marker is not None and marker.key != key:
            shutil.rmtree(folder)
            marker = None
        if marker is not None and marker.finished:
            return msgspec.json.decode(marker.result, type=type_)
        folder.mkdir(parents=True, exist_ok=True)
        self._write(folder, _Marker(key, settings))
        result = work(folder)
        self._write(folder, _Marker(key, settings, finished=True, result=msgspec.Raw(msgspec.json.encode(result))))
        return result

    def check(self, name: str, settings: dict[str, Any], *, after: str | None = None) -> None:
        """Refuse what `do` would refuse, before anything is done.

        Raises:
            UsageError: the stage was begun in another way, and `restart` is off.
        """
        before = self._keys[after] if after is not None else ""
        key = digest([before, name, msgspec.json.encode(settings, order="deterministic")])
        self._keys[name] = key
        folder = self.path(name)
        marker = self._marker(folder)
        if marker is not None and marker.key != key and not self._restart:
            raise UsageError(
                f"{folder} was made in another way: {_difference(marker.settings, settings)}.",
                remedy="Type the command again with --restart to do this stage and those after it again, or name"
                " another output.",
            )

    @staticmethod
    def _marker(folder: Path) -> _Marker | None:
        try:
            return msgspec.json.decode((folder / "stage.json").read_bytes(), type=_Marker)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError:
            raise UsageError(
                f"{folder / 'stage.json'} is damaged, or from another version.",
                remedy="Remove the folder, or name another output.",
            ) from None

    @staticmethod
    def _write(folder: Path, marker: _Marker) -> None:
        write_whole(folder / "stage.json", msgspec.json.encode(marker))


def _difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    before, now = (_flat(msgspec.json.decode(msgspec.json.encode(one))) for one in (before, now))
    changed = [name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]
    if not changed:
        return "a stage before it was done again"
    return ", ".join(f"{name} was {_short(before.get(name))} and is now {_short(now.get(name))}" for name in changed)


def _flat(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings without those that are only there to hold others."""
    inner = [value for value in settings.values() if isinstance(value, dict)]
    own = {name: value for name, value in settings.items() if not isinstance(value, dict)}
    return {name: value for part in (own, *inner) for name, value in part.items()}


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 200 else text[:200] + "..."

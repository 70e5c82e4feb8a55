"""Which Python runs an engine: the one of the option, of a setting, or of the folder where we look for it."""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec

from veriglot.errors import UsageError

__all__ = ["ENVIRONMENTS", "Environment", "MissingEnvironmentError", "environment", "python_of"]


class Environment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An environment that one of our engines needs.

    Attributes:
        engine: file in `engines/`, without its suffix.
        steps: what pip is to install there, one call after the other.
        python: versions of Python that these packages run on, in words.
        licence: of the packages' code.
        why: why they are not installed beside ours.
    """

    engine: str
    steps: tuple[tuple[str, ...], ...]
    python: str
    licence: str
    why: str


class MissingEnvironmentError(UsageError):
    """A Python environment that is not here; the remedy is the commands that make it."""


@cache
def _environments() -> dict[str, Environment]:
    data = files(__package__).joinpath("environments.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, Environment])


ENVIRONMENTS = ("comet", "laser", "sonar")
"""The environments that have a name."""


def environment(name: str) -> Environment:
    """What is known of an environment of `ENVIRONMENTS`."""
    return _environments()[name]


def setting(name: str) -> str:
    """The environment variable that names the Python of an environment."""
    return f"VERIGLOT_ENV_{name.upper()}"


def folder(name: str) -> Path:
    """Where an environment is looked for without option or setting: `environments/<name>` in this user's cache."""
    from platformdirs import user_cache_path

    return user_cache_path("veriglot", appauthor=False) / "environments" / name


def python_of(name: str, python: str | Path | None = None) -> Path:
    """The interpreter of an environment.

    Args:
        name: of `ENVIRONMENTS`.
        python: an interpreter, or the folder of an environment; goes before the setting `VERIGLOT_ENV_<NAME>`, which
            goes before the folder in this user's cache.

    Raises:
        MissingEnvironmentError: none of them is there; the remedy gives the commands.
    """
    asked = python or os.environ.get(setting(name))
    place = Path(asked).expanduser() if asked else folder(name)
    found = _interpreter(place)
    if found is None and asked:
        on_path = shutil.which(str(asked))
        found = Path(on_path) if on_path else None
    if found is None:
        raise MissingEnvironmentError(
            f"There is no Python environment {name!r} at {place}.", remedy=instructions(name, folder(name))
        )
    return found


def instructions(name: str, place: Path) -> str:
    """The commands that make an environment, and how to name it where it lies elsewhere."""
    known = environment(name)
    python = place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    make = f"python3 -m venv '{place}'"
    calls = [" ".join([f"'{python}' -m pip install", *(f"'{name}'" for name in step)]) for step in known.steps]
    return (
        f"Type: {' && '.join([make, *calls])}   (Python {known.python}; "
        f"{known.why}). One that lies elsewhere: {setting(name)}=PYTHON, or the option python."
    )


def _interpreter(place: Path) -> Path | None:
    """The interpreter at a place; not resolved: a link into an environment is what makes it that environment."""
    if place.is_file():
        return place.absolute()
    inside = (place / "bin" / "python", place / "Scripts" / "python.exe")
    return next((path.absolute() for path in inside if path.is_file()), None)

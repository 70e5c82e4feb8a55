"""Tables from a short name to a class, imported on use; third parties join by entry point.

`Table("detector", "veriglot.detectors", {"grounding": Entry("veriglot.detectors.grounding.detector:Grounding")})`
maps `grounding` to the class without importing it. A package that declares an entry point in the table's group adds a
name; the names that Veriglot ships win. A name may take an argument after a colon: `hf:FOLDER` is the entry `hf`, with
the folder as the option that the entry calls its `argument`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from importlib.metadata import entry_points
from importlib.resources import files
from numbers import Real
from typing import Any, Self, TypeVar

import msgspec

from veriglot.errors import MissingExtraError, UnknownNameError, UsageError

__all__ = ["Configured", "Entry", "Table", "packaged", "read_settings"]

T = TypeVar("T")


def packaged(package: str, name: str, kind: type[T]) -> T:
    """The data file of a package, JSON or TOML by its name, as `kind`."""
    data = files(package).joinpath(name).read_bytes()
    return msgspec.toml.decode(data, type=kind) if name.endswith(".toml") else msgspec.json.decode(data, type=kind)


@dataclass(frozen=True)
class Entry:
    """Where a name leads.

    Attributes:
        target: `module:attribute`.
        extra: what its imports need; None for the core.
        summary: a line for people.
        argument: the option that what stands after a colon in the name is given as; None where nothing may stand there.
    """

    target: str
    extra: str | None = None
    summary: str = ""
    argument: str | None = None


class Table:
    """A lazy name table.

    Args:
        kind: what the names are, in messages ("detector").
        group: the entry point group that third parties declare.
        entries: the names that Veriglot ships.
        renamed: names of earlier versions, each with the one of today.
    """

    def __init__(
        self, kind: str, group: str, entries: Mapping[str, Entry], renamed: Mapping[str, str] | None = None
    ) -> None:
        self.kind = kind
        self.group = group
        self._renamed = renamed or {}
        self._built_in = dict(entries)

    @cached_property
    def _entries(self) -> dict[str, Entry]:
        joined = {e.name: Entry(e.value, summary=f"from {e.value}") for e in entry_points(group=self.group)}
        return joined | self._built_in

    def names(self) -> list[str]:
        """Every known name, sorted."""
        return sorted(self._entries)

    def joined(self) -> list[dict[str, Any]]:
        """What other packages add, by name: `name`, `target`, `package`, `hidden` where ours of the name is taken."""
        entries = [
            {
                "name": entry.name,
                "target": entry.value,
                "package": f"{entry.dist.name} {entry.dist.version}" if entry.dist else "",
                "hidden": entry.name in self._built_in,
            }
            for entry in entry_points(group=self.group)
        ]
        return sorted(entries, key=lambda entry: (entry["name"], entry["package"]))

    def __contains__(self, name: str) -> bool:
        """Whether `name` is known, with an argument or without."""
        head = self._entries.get(name.partition(":")[0])
        return name in self._entries or (head is not None and head.argument is not None)

    def entry(self, name: str) -> Entry:
        """Where `name` leads, without importing it; an argument after a colon makes no difference.

        Raises:
            UnknownNameError: no such name; the error suggests the nearest.
        """
        return self._parted(name)[0]

    def _parted(self, name: str) -> tuple[Entry, str]:
        """The entry, and what stands after the colon of a name with an argument, or nothing."""
        if name in self._entries:  # another package's name may hold a colon
            return self._entries[name], ""
        head, _, argument = name.partition(":")
        entry = self._entries.get(head)
        if entry is None or entry.argument is None:
            raise UnknownNameError(self.kind, name, self._entries, renamed=self._renamed.get(name))
        return entry, argument

    def load(self, name: str) -> Any:
        """Import and return what `name` stands for.

        Raises:
            UnknownNameError: no such name.
            MissingExtraError: its imports are not installed.
            UsageError: a third party's entry point that leads nowhere.
        """
        entry = self.entry(name)
        module, _, attribute = entry.target.partition(":")
        try:
            return getattr(import_module(module), attribute)
        except ModuleNotFoundError as error:
            if entry.extra is not None and not (error.name or "").startswith("veriglot"):
                raise MissingExtraError(f"The {self.kind} {name!r}", entry.extra) from error
            raise UsageError(
                f"The {self.kind} {name!r} cannot be loaded from {entry.target}: {error}.",
                "Install the package that provides it.",
            ) from error
        except AttributeError as error:
            raise UsageError(f"The {self.kind} {name!r} leads to {entry.target}, which does not exist.") from error

    def make(self, name: str, **options: Any) -> Any:
        """Call what `name` stands for, with options that it has.

        Raises:
            UnknownNameError: no such name, or no such option; the error suggests the nearest.
            MissingExtraError: its imports are not installed.
            UsageError: an option without a default that was not given, one given both by itself and in the name, or
                a value of another kind than the option is annotated with: no number, no table, not true or false.
        """
        entry, argument = self._parted(name)
        if argument and entry.argument is not None:
            if entry.argument in options:
                raise UsageError(f"{name!r} names its {entry.argument}, and so does the option {entry.argument!r}.")
            options[entry.argument] = argument
        kind = self.load(name)
        parameters = inspect.signature(kind).parameters
        known = {
            option: parameter
            for option, parameter in parameters.items()
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        }
        any_other = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        for option, value in options.items():
            if option not in known and not any_other:
                error = UnknownNameError(f"option of the {self.kind} {name!r}", option, known)
                if option == "calibration" and "calibrated" in self:
                    error.remedy = f"Ask for calibrated:{name}, which has it."
                raise error
            if option in known and (expected := _expected_kind(known[option], value)):
                raise UsageError(f"{option!r} of the {self.kind} {name!r} is {expected}, but {value!r} was given.")
        missing = [
            option
            for option, parameter in known.items()
            if parameter.default is parameter.empty and option not in options
        ]
        if entry.argument in missing:
            raise UsageError(
                f"The {self.kind} {name!r} needs its {entry.argument}.",
                f"Name it after a colon: {name.rstrip(':')}:NAME" + (f" ({entry.summary})." if entry.summary else "."),
            )
        if missing:
            remedy = f"Set {missing[0]}=VALUE (--set in the command line)."
            raise UsageError(f"The {self.kind} {name!r} needs the option {missing[0]!r}.", remedy)
        return kind(**options)


def _expected_kind(parameter: inspect.Parameter, value: Any) -> str:
    """What the value of an option should have been, in words; empty where it fits, or where nothing says so."""
    if isinstance(parameter.default, bool):
        return "" if isinstance(value, bool) else "true or false"
    annotation = parameter.annotation
    text = annotation.__name__ if annotation in (int, float, dict) else str(annotation)
    kinds = {part.partition("[")[0].strip() for part in text.split("|")} - {"None"}
    if value is None or not kinds:
        return ""
    if kinds <= {"int", "float"}:
        return "" if isinstance(value, Real) and not isinstance(value, bool) else "a number"
    if kinds <= {"dict", "Mapping"}:
        return "" if isinstance(value, Mapping) else "a table"
    return ""


def read_settings(
    settings: Sequence[str], *, option: str = "--set", own: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Options given as `NAME=VALUE`.

    A value is read as TOML (`true`, `false`, a number, a list, a text in quotes), then as JSON (an object, `null`); all
    else is text.

    Args:
        settings: as they were typed.
        option: of the command line that gave them, for messages.
        own: names that have an option of their own there.

    Raises:
        UsageError: there is no `=`, a name is no name, or is given twice.
    """
    result: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name.isidentifier():
            raise UsageError(f"{option} takes NAME=VALUE, but {setting!r} was given.")
        if name in result:
            raise UsageError(f"{option} gives {name!r} twice.")
        if name in own:
            raise UsageError(f"{option} cannot give {name!r}.", f"It has an option of its own: --{name}.")
        result[name] = _setting_value(value)
    return result


def _setting_value(text: str) -> Any:
    import tomllib

    try:
        table = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            return text
    plain = isinstance(table["value"], bool | int | float | str | list) and len(table) == 1
    return table["value"] if plain and "#" not in text else text  # neither a date nor a comment is meant


class Configured:
    """What pickles as its class and the arguments that it was made with: another process loads its model anew."""

    _arguments: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Remember the arguments."""
        instance = super().__new__(cls)
        instance._arguments = args, options
        return instance

    def __reduce__(self) -> tuple[Any, ...]:
        args, options = self._arguments
        return partial(type(self), **options), args

"""Registries that map a short name to a class, imported on first use; other packages add names by entry points.

`Registry("detector", "veriglot.detectors", {"grounding": Entry("veriglot.detectors.grounding.detector:Grounding")})`
maps `grounding` to the class without importing it. A package adds a name with an entry point in the registry's group;
Veriglot's own names take precedence. A name may have an argument after a colon: `hf:FOLDER` is the entry `hf` with the
folder as the option that the entry calls its `argument`.
"""

from __future__ import annotations

import gzip
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

__all__ = ["Entry", "PickledByArguments", "Registry", "read_package_data", "read_settings"]

T = TypeVar("T")


def read_package_data(package: str, name: str, kind: type[T]) -> T:
    """A data file of a package (TOML, JSON or compressed JSON, by its name), decoded as `kind`."""
    data = files(package).joinpath(name).read_bytes()
    if name.endswith(".toml"):
        return msgspec.toml.decode(data, type=kind)
    return msgspec.json.decode(gzip.decompress(data) if name.endswith(".gz") else data, type=kind)


@dataclass(frozen=True)
class Entry:
    """The target of a name.

    Attributes:
        target: `module:attribute`.
        extra: the extra that its imports need; None for the core.
        summary: one line of description.
        argument: the option that gets the text after a colon in the name; None if the name takes no argument.
    """

    target: str
    extra: str | None = None
    summary: str = ""
    argument: str | None = None


class Registry:
    """A registry with lazy imports.

    Args:
        kind: what the names stand for, in messages ("detector").
        group: the entry point group for other packages.
        entries: Veriglot's own names.
        renamed: old name to new name.
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
        third_party = {e.name: Entry(e.value, summary=f"from {e.value}") for e in entry_points(group=self.group)}
        return third_party | self._built_in

    def names(self) -> list[str]:
        """All known names, sorted."""
        return sorted(self._entries)

    def third_party(self) -> list[dict[str, Any]]:
        """Names from other packages: `name`, `target`, `package`; `hidden` if Veriglot has the same name."""
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
        """Whether `name`, with or without an argument, is known."""
        head = self._entries.get(name.partition(":")[0])
        return name in self._entries or (head is not None and head.argument is not None)

    def entry(self, name: str) -> Entry:
        """The entry of `name`, without importing it; an argument after a colon is ignored.

        Raises:
            UnknownNameError: no such name; the error suggests the most similar ones.
        """
        return self._parted(name)[0]

    def _parted(self, name: str) -> tuple[Entry, str]:
        """The entry, and the argument after the colon; empty if there is none."""
        if name in self._entries:  # names of other packages may contain a colon
            return self._entries[name], ""
        head, _, argument = name.partition(":")
        entry = self._entries.get(head)
        if entry is None or entry.argument is None:
            raise UnknownNameError(self.kind, name, self._entries, renamed=self._renamed.get(name))
        return entry, argument

    def load(self, name: str) -> Any:
        """Import and return the target of `name`.

        Raises:
            UnknownNameError: no such name.
            MissingExtraError: its imports are not installed.
            UsageError: another package's entry point has no valid target.
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
        """Call the target of `name` with options.

        Raises:
            UnknownNameError: no such name or option; the error suggests the most similar ones.
            MissingExtraError: its imports are not installed.
            UsageError: a required option is missing, an option is given twice (by itself and in the name), or a value
                does not have the annotated type of its option (number, table, true or false).
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
    """The expected type of an option, in words; empty if the value fits or the option has no annotation."""
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
    """Parse options given as `NAME=VALUE`.

    A value is parsed as TOML (`true`, `false`, a number, a list, a text in quotes), then as JSON (an object, `null`);
    anything else is a text.

    Args:
        settings: as typed.
        option: the command line option they come from, for messages.
        own: names with a command line option of their own.

        Raises:
            UsageError: `=` is missing, or a name is invalid or given twice.
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
    return table["value"] if plain and "#" not in text else text  # dates and comments stay text


class PickledByArguments:
    """Pickles as its class and constructor arguments, so that another process loads its model again."""

    _arguments: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Remember the arguments."""
        instance = super().__new__(cls)
        instance._arguments = args, options
        return instance

    def __reduce__(self) -> tuple[Any, ...]:
        args, options = self._arguments
        return partial(type(self), **options), args

"""Commands from functions, and their options, each declared once with one meaning.

A parameter of a command is declared in `options.toml` under its name: `seed` is the option `--seed`; a parameter with
the kind `setting` is read from the TOML file of `--config`. If a name has different meanings in different commands,
`parameters.toml` declares the parameter of a command, or of a group of options: an option, an argument or a setting;
its `more` adds command-specific text to a shared help. The default is appended to the help, unless the help has it. A
parameter whose type is a class of `Options` stands for all its fields.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from contextvars import copy_context
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
import typer
from typer.core import TyperArgument, TyperGroup

from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.plugins import read_package_data
from veriglot.records.settings import read_toml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["Options", "command", "commented_toml", "new_app"]


@dataclass(frozen=True)
class _Declared:
    """Declaration of a parameter; with `more`, it is the shared one of its name, with this text added to the help."""

    kind: Literal["option", "argument", "setting", "root"] = "option"
    help: str = ""
    more: str = ""
    metavar: str | None = None
    short: str | None = None
    min: int | float | None = None
    max: int | float | None = None
    envvar: str | None = None
    names: tuple[str, ...] = ()


_OPTIONS = read_package_data(__package__, "options.toml", dict[str, _Declared])
_PARAMETERS = read_package_data(__package__, "parameters.toml", dict[str, dict[str, dict[str, _Declared]]])


def _declared_by(owner: Callable[..., Any]) -> dict[str, _Declared]:
    """The declarations of a command or of a class of options itself."""
    return _PARAMETERS.get(owner.__module__.rpartition(".")[2], {}).get(owner.__name__, {})


# The type of a value does not help users: INPUT, not INPUT <list[str]>.
TyperArgument.display_type_rich = lambda self, ctx: None  # type: ignore[method-assign]  # noqa: ARG005


class Verbs(TyperGroup):
    """A group whose help has the whole first sentence of each command, which typer would cut to one line."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list of commands."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        first = [(name, (verb.help or "").strip().split("\n\n")[0]) for name, verb in commands if verb]
        with formatter.section("Commands"):
            formatter.write_dl([(name, " ".join(text.split())) for name, text in first])


def new_app(group: type[TyperGroup] = Verbs) -> typer.Typer:
    """A verb with subcommands."""
    return typer.Typer(cls=group, add_completion=False, rich_markup_mode=None, no_args_is_help=True)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class Options:
    """Base class of groups of options: a frozen dataclass, whose fields are parameters or further groups."""

    declared: ClassVar[dict[str, _Declared]] = {}

    def __init_subclass__(cls) -> None:
        cls.declared = cls.declared | _declared_by(cls)
        dataclass(frozen=True, kw_only=True)(cls)


class _Group(NamedTuple):
    name: str
    type: type[Options]
    members: list[Parameter | _Group]


@dataclass(frozen=True)
class Parameter:
    """One parameter of a command; `default` is `...` if it is required."""

    name: str
    type: Any
    info: _Declared
    default: Any
    more: str

    @property
    def key(self) -> str:
        """The name in a settings file."""
        return self.name.rstrip("_")

    @property
    def repeated(self) -> bool:
        """Whether it accepts several values."""
        return "list[" in str(self.type) or "tuple[" in str(self.type)

    @property
    def help(self) -> str:
        """Its help, with the default for an option."""
        shared = self.info.help.rstrip(".") if self.more[:1].islower() else self.info.help
        text = f"{shared} {self.more}".strip()
        if self.info.kind != "option" or self.default is ... or "Default: " in text:
            return text
        default = "none" if self.default is None or self.default == () else self.default
        return f"{text} Default: {'off' if default is False else default}."


def _parameters(
    names: Mapping[str, Any], hints: Mapping[str, Any], own: Mapping[str, _Declared]
) -> list[Parameter | _Group]:
    """The parameters with these names and defaults; `own` are their local declarations."""
    return [_parameter(name, hints[name], default, own.get(name)) for name, default in names.items()]


def _parameter(name: str, hint: Any, default: Any, own: _Declared | None) -> Parameter | _Group:
    if isinstance(hint, type) and issubclass(hint, Options):
        members: dict[str, Any] = {
            member.name: {} if member.default_factory is dict else member.default
            for member in fields(hint)  # type: ignore[arg-type]
        }
        return _Group(name, hint, _parameters(members, get_type_hints(hint), hint.declared))
    if default in (inspect.Parameter.empty, MISSING):
        default = ...
    if own is None or own.more:
        return Parameter(name, hint, _OPTIONS[name.rstrip("_")], default, "" if own is None else own.more)
    return Parameter(name, hint, own, default, "")


def _leaves(nodes: list[Parameter | _Group]) -> Iterator[Parameter]:
    for node in nodes:
        if isinstance(node, Parameter):
            yield node
        else:
            yield from _leaves(node.members)


def _arguments(nodes: list[Parameter | _Group], values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        node.name: values[node.name] if isinstance(node, Parameter) else node.type(**_arguments(node.members, values))
        for node in nodes
    }


# Replaces --map in messages of readers, in a command without it.
_WITHOUT_MAP = (
    " (This command has no --map. Type `veriglot convert FILE --map ... -o NEW.jsonl` and give it NEW.jsonl;"
    ' or write columns = {PART = "COLUMN"} into the bench or study file.)'
)


def command(function: Callable[..., int | None]) -> Callable[..., Any]:
    """The function as typer needs it: groups expanded, settings moved to `--config`, the root's options added.

    Its return value is the exit code.
    """
    signature = inspect.signature(function).parameters
    hints = get_type_hints(function)
    defaults = {name: parameter.default for name, parameter in signature.items()}
    nodes = _parameters(defaults, hints, _declared_by(function))
    flat = list(_leaves(nodes))
    tuples = {parameter.name for parameter in flat if get_origin(parameter.type) is tuple}
    configurable = any(parameter.info.kind == "setting" for parameter in flat)

    def run(_context: typer.Context, **given: Any) -> None:
        path = given.pop("_config", None)
        root = _context.obj or {}
        values = {
            parameter.name: root.get(parameter.key) if parameter.info.kind == "root" else parameter.default
            for parameter in flat
        }
        values |= {name: tuple(value or ()) if name in tuples else value for name, value in given.items()}
        if path is not None:
            values |= _from_file(Path(path), flat, _context)
        for parameter in flat:
            if configurable and parameter.default is ... and not values[parameter.name]:
                raise UsageError(
                    f"Missing option --{parameter.key}.", f"Add it, or write {parameter.key} into the file of --config."
                )
        try:
            code = copy_context().run(function, **_arguments(nodes, values))  # its context variables end with it
        except InputError as error:
            if re.search("--map|columns=", error.remedy) and "columns" not in values:
                error.remedy += _WITHOUT_MAP
            raise
        if code:
            raise typer.Exit(code)

    typed = [parameter for parameter in flat if parameter.info.kind in {"option", "argument"}]
    if configurable:
        typed.append(Parameter("_config", str | None, _OPTIONS["config"], None, ""))
    parameters = [inspect.Parameter("_context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    parameters += [_typer_parameter(parameter, optional=configurable) for parameter in typed]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__name__, run.__doc__, run.__module__ = function.__name__, function.__doc__, function.__module__
    run.parameters = flat  # type: ignore[attr-defined]
    return run


def _typer_parameter(parameter: Parameter, *, optional: bool) -> inspect.Parameter:
    info, default, type_, help_ = parameter.info, parameter.default, parameter.type, parameter.help
    if get_origin(type_) is tuple:
        type_ = list[get_args(type_)[0]]  # type: ignore[misc]
        default = None if default == () else default
    if info.kind == "argument":
        name = (info.metavar or "").strip("[].")  # typer adds them
        declared: Any = typer.Argument(metavar=name, show_default=False, help=help_)
    else:
        if default is ... and optional:
            default, help_ = None, f"{help_} Required, here or in the file of --config."
        names = info.names or (f"--{parameter.key.replace('_', '-')}", *([info.short] if info.short else ()))
        declared = typer.Option(
            *names, metavar=info.metavar, min=info.min, max=info.max, envvar=info.envvar, show_default=False, help=help_
        )
    if default is None:
        type_ = type_ | None
    kind, required = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    default = required if default is ... else default
    return inspect.Parameter(parameter.name, kind, default=default, annotation=Annotated[type_, declared])


def _from_file(path: Path, flat: list[Parameter], context: typer.Context) -> dict[str, Any]:
    """The values of a settings file, except those given on the command line."""
    known = {parameter.key: parameter for parameter in flat if parameter.info.kind in {"option", "setting"}}
    values: dict[str, Any] = {}
    for key, value in read_toml(path, "settings file").items():
        parameter = known.get(key.replace("-", "_"))
        if parameter is None:
            raise UnknownNameError("setting", key, known)
        source = context.get_parameter_source(parameter.name)
        if source is None or source.name != "COMMANDLINE":
            values[parameter.name] = _checked(parameter, value, path)
    return values


def _checked(parameter: Parameter, value: Any, path: Path) -> Any:
    """A value of the file as the type of its parameter; a list replaces names that options separate by commas."""
    if isinstance(value, dict) and parameter.repeated:  # the table [columns]
        value = [f"{key}={each}" for key, each in value.items()]
    if isinstance(value, list) and not parameter.repeated:
        value = ",".join(map(str, value))
    try:
        result = msgspec.convert(value, parameter.type, dec_hook=lambda kind, text: kind(text))
    except (msgspec.ValidationError, TypeError) as error:
        raise UsageError(f"{path}: {parameter.key} cannot be used: {error}.") from error
    low, high = parameter.info.min, parameter.info.max
    if isinstance(result, int | float) and not ((low is None or result >= low) and (high is None or result <= high)):
        bounds = f"at least {low}" if high is None else f"at most {high}" if low is None else f"{low} to {high}"
        raise UsageError(f"{path}: {parameter.key} is {result}, which is out of range: {bounds}.")
    return result


def commented_toml(name: str, function: object) -> str:
    """A settings file of a command, all lines commented out: each setting with its help and its default.

    Raises:
        UsageError: the command takes no settings file.
    """
    flat: list[Parameter] = getattr(function, "parameters", [])
    if not any(parameter.info.kind == "setting" for parameter in flat):
        raise UsageError(f"`{name}` takes no settings file.", f"Type: {name} --help")
    return "\n".join(_page(name, flat)) + "\n"


def _page(name: str, flat: list[Parameter]) -> Iterator[str]:
    yield f"# Settings of `{name}`, given by --config. Remove the # before what you set; the command line overrides it."
    given = [each for each in flat if each.info.kind in {"option", "setting"} and each.key != "json"]
    for parameter in sorted(given, key=lambda each: isinstance(each.default, dict)):  # tables come last in TOML
        yield from ("", *textwrap.wrap(parameter.help, 110, initial_indent="# ", subsequent_indent="# "))
        table = isinstance(parameter.default, dict)
        yield f"# [{parameter.key}]" if table else f"# {parameter.key} = {_toml_value(parameter)}"


def _toml_value(parameter: Parameter) -> str:
    if parameter.default in (None, (), ...):
        value = f'"{parameter.info.metavar or "..."}"'
        return f"[{value}]" if parameter.repeated else value
    return msgspec.json.encode(parameter.default).decode()

"""Commands made of functions: groups of options, a settings file in TOML, and the options of the root.

A parameter of a command is an option of the command line (`typer.Option`), an argument, a `Setting` of the file that
`--config` names, or `FromRoot`. A parameter whose type is a dataclass stands for all the fields of that class.
"""

from __future__ import annotations

import inspect
import textwrap
import tomllib
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

from veriglot.errors import InputError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["FromRoot", "Help", "Setting", "command", "commented_toml"]

_REQUIRED: Any = inspect.Parameter.empty
_CONFIG = typer.Option(
    "--config",
    metavar="FILE",
    help="TOML file with settings and options of this command, which the command line overrides; --write-config prints"
    " one with comments. Default: none.",
)


@dataclass(frozen=True)
class Setting:
    """Marks a parameter that only the settings file gives.

    Attributes:
        help: one or two sentences, with unit and default.
        min: the smallest number allowed, or None.
        max: the largest number allowed, or None.
    """

    help: str
    min: float | None = None
    max: float | None = None


@dataclass(frozen=True)
class Help:
    """What a command adds to the help of an option that several commands share, such as its default."""

    text: str


@dataclass(frozen=True)
class FromRoot:
    """Marks a parameter that `veriglot` itself takes, wherever it stands on the command line."""

    name: str


@dataclass(frozen=True)
class Parameter:
    """One parameter of a command.

    Attributes:
        name: of the Python parameter, and with dashes of the option.
        type: without metadata.
        info: what it is on the command line, in the file or at the root.
        default: `inspect.Parameter.empty` where it is required.
    """

    name: str
    type: Any
    info: Any
    default: Any

    @property
    def key(self) -> str:
        """The name in a settings file."""
        return self.name.rstrip("_")

    @property
    def help(self) -> str:
        """Its help, or an empty string."""
        return getattr(self.info, "help", None) or ""


def parameters_of(function: Callable[..., Any]) -> list[tuple[str, type | None, list[Parameter]]]:
    """The parameters of a command, by the Python parameter that takes them, with its class where it is a group."""
    hints = get_type_hints(function, include_extras=True)
    groups: list[tuple[str, type | None, list[Parameter]]] = []
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints[name]
        if is_dataclass(hint) and isinstance(hint, type):
            own = get_type_hints(hint, include_extras=True)
            members = [
                _parameter(member.name, own[member.name], _field_default(member))
                for member in fields(hint)
                if member.init
            ]
            groups.append((name, hint, members))
        else:
            groups.append((name, None, [_parameter(name, hint, parameter.default)]))
    return groups


def _field_default(field: Any) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return _REQUIRED if field.default is MISSING else field.default


def _parameter(name: str, hint: Any, default: Any) -> Parameter:
    base, *metadata = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    info: Any = next(
        annotation for annotation in metadata if isinstance(annotation, OptionInfo | ArgumentInfo | Setting | FromRoot)
    )
    more = [annotation.text for annotation in metadata if isinstance(annotation, Help)]
    if more:
        info = copy(info)
        info.help = " ".join([info.help or "", *more]).strip()
    return Parameter(name, base, info, default)


def command(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as typer takes it: groups taken apart, settings left to `--config`, the root's options put in."""
    groups = parameters_of(function)
    flat = [parameter for _, _, members in groups for parameter in members]
    configurable = any(isinstance(parameter.info, Setting) for parameter in flat)

    def run(_context: typer.Context, **given: Any) -> Any:
        values = {parameter.name: parameter.default for parameter in flat if isinstance(parameter.info, Setting)}
        values |= {
            parameter.name: (_context.obj or {}).get(parameter.info.name)
            for parameter in flat
            if isinstance(parameter.info, FromRoot)
        }
        path = given.pop("_config", None)
        values |= given
        if path is not None:
            values |= _from_file(Path(path), flat, _context)
        for parameter in flat:
            if configurable and parameter.default is _REQUIRED and not values[parameter.name]:
                raise UsageError(
                    f"Missing option --{parameter.key}.",
                    remedy=f"Add it, or write {parameter.key} into the file of --config.",
                )
        arguments = {
            name: values[name]
            if kind is None
            else kind(**{parameter.name: values[parameter.name] for parameter in members})
            for name, kind, members in groups
        }
        return function(**arguments)

    parameters = [inspect.Parameter("_context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    typed = [parameter for parameter in flat if isinstance(parameter.info, OptionInfo | ArgumentInfo)]
    parameters += [_typer_parameter(parameter, optional=configurable) for parameter in typed]
    if configurable:
        hint = Annotated[str | None, _CONFIG]
        parameters.append(inspect.Parameter("_config", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint))
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__name__, run.__doc__, run.__module__ = function.__name__, function.__doc__, function.__module__
    run.parameters = flat  # type: ignore[attr-defined]
    return run


def _typer_parameter(parameter: Parameter, *, optional: bool) -> inspect.Parameter:
    info, default, type_ = parameter.info, parameter.default, parameter.type
    if isinstance(info, OptionInfo):
        info = copy(info)
        info.show_default = False  # the help says it in words
        if default is _REQUIRED and optional:
            info.help = f"{info.help} Required, here or in the file of --config."
            default, type_ = None, type_ | None
    return inspect.Parameter(
        parameter.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[type_, info]
    )


def _from_file(path: Path, flat: list[Parameter], context: typer.Context) -> dict[str, Any]:
    """What a settings file gives, but for what stands on the command line.

    Raises:
        InputError: there is no such file, or it is not TOML.
        UnknownNameError: no such setting.
        UsageError: a value is of the wrong type or out of range.
    """
    known = {parameter.key: parameter for parameter in flat if isinstance(parameter.info, OptionInfo | Setting)}
    values: dict[str, Any] = {}
    for key, value in _read(path).items():
        parameter = known.get(key.replace("-", "_"))
        if parameter is None:
            raise UnknownNameError("setting", key, known)
        if isinstance(parameter.info, Setting) or not _is_typed(context, parameter.name):
            values[parameter.name] = _checked(parameter, value, path)
    return values


def _is_typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _read(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InputError("there is no such file", path=str(path), remedy="Check the path.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"this is not TOML: {error}", path=str(path)) from error


def _checked(parameter: Parameter, value: Any, path: Path) -> Any:
    """A value of the file as the type of its parameter; a list stands for names that options separate by commas.

    Raises:
        UsageError: it is of the wrong type or out of range; as it is where an option of the command line has it.
    """
    import msgspec

    if isinstance(value, list) and "list" not in str(parameter.type):
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
    """A settings file of a command in which every line is a comment: each setting with its help and its default.

    Raises:
        UsageError: the command takes no settings file.
    """
    flat: list[Parameter] = getattr(function, "parameters", [])
    if not any(isinstance(parameter.info, Setting) for parameter in flat):
        raise UsageError(f"`{name}` takes no settings file.", remedy=f"Type: {name} --help")
    return "\n".join(_page(name, flat)) + "\n"


def _page(name: str, flat: list[Parameter]) -> Iterator[str]:
    yield f"# Settings of `{name}`, given by --config. Remove the # before what you set; the command line overrides it."
    tables = []
    for parameter in flat:
        if parameter.key == "json" or not isinstance(parameter.info, OptionInfo | Setting):
            continue
        if isinstance(parameter.default, dict):
            tables.append(parameter)
            continue
        yield from ("", *textwrap.wrap(parameter.help, 110, initial_indent="# ", subsequent_indent="# "))
        yield f"# {parameter.key} = {_toml_value(parameter)}"
    for parameter in tables:
        yield from (
            "",
            *textwrap.wrap(parameter.help, 110, initial_indent="# ", subsequent_indent="# "),
            f"# [{parameter.key}]",
        )


def _toml_value(parameter: Parameter) -> str:
    import msgspec

    if parameter.default is None or parameter.default is _REQUIRED:
        return f'"{getattr(parameter.info, "metavar", None) or "..."}"'
    return msgspec.json.encode(parameter.default).decode()

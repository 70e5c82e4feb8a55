"""Commands made of functions, and the options of all of them, each declared once with one meaning.

A parameter of a command is what `_OPTIONS` declares under its name, so that one called `seed` has the option
`--seed`, or what its own annotation says: an `Option` or an `Argument` of the command line, or a `Setting` of the
TOML file that `--config` names, such as `facts: int = Setting(5, "Number of facts of each page.")`. `Help` adds
what is a command's own. The default is said at the end where the help does not say it. A parameter whose type is a
class of `Options` stands for all its fields.
"""

from __future__ import annotations

import inspect
import textwrap
from contextvars import copy_context
from dataclasses import dataclass, field, fields
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

import typer
from typer.core import TyperArgument, TyperGroup

from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.records.settings import read_toml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = [
    "JSON_ACCOUNT",
    "JSON_TABLE",
    "Argument",
    "Help",
    "Option",
    "Options",
    "Setting",
    "command",
    "commented_toml",
    "new_app",
]


@dataclass(frozen=True)
class _Declared:
    """How a parameter is declared; a default of `...` is none: it is required."""

    kind: Literal["option", "argument", "setting", "help", "root"]
    default: Any
    help: str
    metavar: str | None = None
    short: str | None = None
    min: float | None = None
    max: float | None = None
    envvar: str | None = None
    names: tuple[str, ...] = ()


def Option(  # noqa: N802  # as in typer
    default: Any,
    help: str,  # noqa: A002
    metavar: str | None = None,
    short: str | None = None,
    *,
    min: int | None = None,  # noqa: A002
    max: int | None = None,  # noqa: A002
    envvar: str | None = None,
    names: tuple[str, ...] = (),
) -> Any:
    """An option of the command line.

    Args:
        default: what holds without it; `...` where it is required.
        help: what it is, with its unit; the default is added.
        metavar: what stands for its value.
        short: its short form, such as `-o`.
        min: the smallest number allowed, or None.
        max: the largest number allowed, or None.
        envvar: the environment variable that stands in for it.
        names: how it is written; of itself `--` and the parameter's name.
    """
    return _Declared("option", default, help, metavar, short, min, max, envvar, names)


def Argument(default: Any, metavar: str, help: str) -> Any:  # noqa: A002, N802
    """An argument of the command line: what stands for it, and its help."""
    return _Declared("argument", default, help, metavar)


def Setting(default: Any, help: str, min: float | None = None, max: float | None = None) -> Any:  # noqa: A002, N802
    """A parameter that only the settings file gives: its help with its unit, and the numbers allowed."""
    return _Declared("setting", default, help, min=min, max=max)


def Help(default: Any, help: str) -> Any:  # noqa: A002, N802
    """What a command adds to the help of an option that several commands share; in small letters, to its sentence."""
    return _Declared("help", default, help)


_OPTIONS: dict[str, _Declared] = {
    "annotator": Option(..., "Annotator whose labels to use: a name, majority or union.", "NAME"),
    "attempts": Setting(..., "How often to ask a model until a result passes the checks, 1 to 9.", 1, 9),
    "batch_size": Option(
        ..., "How many rows a detector judges at once. The results do not depend on it. Default: 32 rows.", "N", min=1
    ),
    "calibration": Option(
        ..., "Calibrate the detector's confidences with this file of veriglot evaluate --calibrate.", "FILE"
    ),
    "columns": Option(
        ...,
        "Columns that hold the parts of a sample (response, evidence, question, id, language, model, label or spans),"
        " such as response=answer,evidence=contexts. In a TOML file, a table [columns]. Default: by name.",
        "PART=COLUMN,...",
        names=("--map",),
    ),
    "count": Option(..., "How many.", "N", "-n", min=1),
    "database": _Declared("root", None, "database"),
    "detector": Option(
        ...,
        "Name of the detector: grounding (compares words), reader (reads question, response and evidence together,"
        " also across languages; needs the extra reader), auto (the best that is installed), or your own"
        " package.module:Class. Some names take an argument, such as hf:FOLDER, nli:FOLDER, judge:KIND and"
        " ensemble:NAME+NAME. veriglot doctor lists all.",
        "NAME",
    ),
    "dry_run": Option(..., "Write no file and call no model: only estimate what it would cost."),
    "encoder": Option(..., "ONNX file of the sentence encoder.", "FILE"),
    "epochs": Option(..., "Passes over the data.", "N", min=1),
    "fail_on": Option(..., "Exit with 4.", "NAMES"),
    "format": Option(..., "Format of the input. Default: recognised from its content.", "NAME"),
    "host": Option(..., "Address to listen on; 0.0.0.0 for the network.", "ADDRESS"),
    "json": Option(..., "Print JSON."),
    "language": Option(
        ..., "Language of rows without one, as a BCP 47 tag, a code or a name (de, deu, German).", "TAG"
    ),
    "languages": Option(..., "Comma-separated languages.", "TAGS", "-l"),
    "model": Option(..., "The model to ask, as its server names it.", "MODEL", "-m"),
    "on_error": Option(
        ...,
        "What to do with a row that cannot be read. stop: end the run. skip: write the row to OUTPUT.failed.jsonl,"
        " and exit with 3 at the end.",
    ),
    "output": Option(..., "Where to write.", "PATH", "-o"),
    "overwrite": Option(
        ..., "Replace the output of an earlier run; finished calls of models are used again. Default: resume."
    ),
    "part": Setting(..., "Part of an article to use as the reference: its lead section (lead), or all of it (text)."),
    "people": Option(..., "People, as `veriglot dataset people` writes them; may be repeated.", "FILE"),
    "port": Option(..., "Port to listen on.", "N", "-p", min=1, max=65535),
    "predictions": Option(..., "Predictions of `veriglot detect`, joined to the samples by id.", "FILE"),
    "processes": Option(..., "Worker processes; 0 means one for each core.", "N", "-j", min=0),
    "prompt": Option(
        ...,
        "Your own prompts, as TOML with the keys and placeholders of the shipped ones"
        " (src/veriglot/datasets/prompts/).",
        "FILE",
    ),
    "public_url": Option(
        ..., "Address at which people reach the studio, such as https://studio.example.org; it may have a path.", "URL"
    ),
    "quiet": _Declared("root", None, "quiet"),
    "resamples": Option(..., "Bootstrap resamples of whole texts; 0 gives no intervals.", "N", min=0),
    "retry": Option(..., "Retry what failed in an earlier run. Default: do not."),
    "revision": Setting(..., "Revision of the model, stored with its responses."),
    "seed": Option(..., "Seed of all random draws.", "N", min=0),
    "set": Option(..., "A further option of the detector, such as model=NAME; may be repeated.", "NAME=VALUE"),
    "splits": Option(
        ...,
        "How to recognise splits, to find leaks between them. names: by meta.split of the samples, or by train, dev,"
        " test in the names of files and folders. files: each file is a split. arguments: each DATA is a split.",
    ),
    "table": Option(..., "Which table to write.", "NAME"),
    "taxonomy": Option(..., "Taxonomy of the types of spans.", "NAME"),
    "threshold": Option(..., "Mark words with at least this confidence, a probability from 0 to 1.", "P"),
    "to": Option(..., "Format of the output.", "FORMAT"),
    "unit": Option(..., "What is counted: char, word, or hf:TOKENIZER (a tokenizer.json or a hub name).", "UNIT"),
}


JSON_ACCOUNT = Help(False, "with the account of the run. Default: a table.")
JSON_TABLE = Help(False, "Default: a table.")
_CONFIG = Option(
    None,
    "TOML file with settings and options of this command. The command line overrides it. --write-config prints one"
    " with comments.",
    "FILE",
    names=("--config",),
)


# A value's type tells a reader nothing: INPUT, not INPUT <list[str]>.
TyperArgument.display_type_rich = lambda self, ctx: None  # type: ignore[method-assign]  # noqa: ARG005


class Verbs(TyperGroup):
    """A group whose help gives the whole first sentence of each command; typer cuts them at one line."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list of commands."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        first = [(name, (verb.help or "").strip().split("\n\n")[0]) for name, verb in commands if verb]
        with formatter.section("Commands"):
            formatter.write_dl([(name, " ".join(text.split())) for name, text in first])


def new_app(group: type[TyperGroup] = Verbs) -> typer.Typer:
    """A verb that has verbs of its own."""
    return typer.Typer(cls=group, add_completion=False, rich_markup_mode=None, no_args_is_help=True)


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Options:
    """Base of groups of options: a frozen dataclass whose fields are parameters of a command, or further groups."""

    declared: ClassVar[dict[str, _Declared]] = {}

    def __init_subclass__(cls) -> None:
        own = {name: value for name, value in vars(cls).items() if isinstance(value, _Declared)}
        cls.declared = cls.declared | own
        for name, value in own.items():
            if value.default is ...:
                delattr(cls, name)
            else:
                setattr(cls, name, field(default_factory=dict) if value.default == {} else value.default)
        dataclass(frozen=True, kw_only=True)(cls)


class _Group(NamedTuple):
    name: str
    type: type[Options]
    members: list[Parameter | _Group]


@dataclass(frozen=True)
class Parameter:
    """One parameter of a command; `default` is `...` where it is required."""

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
        """Whether it takes several values."""
        return "list[" in str(self.type) or "tuple[" in str(self.type)

    @property
    def help(self) -> str:
        """Its help, with its default where it is an option."""
        shared = self.info.help.rstrip(".") if self.more[:1].islower() else self.info.help
        text = f"{shared} {self.more}".strip()
        if self.info.kind != "option" or self.default is ... or "Default: " in text:
            return text
        default = "none" if self.default is None or self.default == () else self.default
        return f"{text} Default: {'off' if default is False else default}."


def _parameters(names: Mapping[str, Any], hints: Mapping[str, Any]) -> list[Parameter | _Group]:
    """The parameters of these names and defaults."""
    return [_parameter(name, hints[name], default) for name, default in names.items()]


def _parameter(name: str, hint: Any, default: Any) -> Parameter | _Group:
    if isinstance(hint, type) and issubclass(hint, Options):
        members = {member.name: member.default for member in fields(hint)} | hint.declared  # type: ignore[arg-type]
        return _Group(name, hint, _parameters(members, get_type_hints(hint)))
    if not isinstance(default, _Declared):
        return Parameter(name, hint, _OPTIONS[name.rstrip("_")], default, "")
    if default.kind == "help":
        return Parameter(name, hint, _OPTIONS[name.rstrip("_")], default.default, default.help)
    return Parameter(name, hint, default, default.default, "")


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


# What reading says of --map, in a command that lacks it.
_WITHOUT_MAP = (
    " This command has no --map. Type `veriglot convert FILE --map ... -o NEW.jsonl` and give it NEW.jsonl;"
    ' or write columns = {PART = "COLUMN"} into the bench or study file.'
)


def command(function: Callable[..., int | None]) -> Callable[..., Any]:
    """The function as typer takes it: groups taken apart, settings left to `--config`, the root's options put in.

    What it returns is the exit code.
    """
    signature = inspect.signature(function).parameters
    hints = get_type_hints(function)
    nodes = _parameters({name: parameter.default for name, parameter in signature.items()}, hints)
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
                    f"Missing option --{parameter.key}.",
                    f"Add it, or write {parameter.key} into the file of --config.",
                )
        try:
            code = copy_context().run(function, **_arguments(nodes, values))  # prompts of its own end with it
        except InputError as error:
            if "--map" in error.remedy and "columns" not in values:
                error.remedy += _WITHOUT_MAP
            raise
        if code:
            raise typer.Exit(code)

    typed = [parameter for parameter in flat if parameter.info.kind in {"option", "argument"}]
    if configurable:
        typed.append(Parameter("_config", str | None, _CONFIG, None, ""))
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
    """What a settings file gives, but for what stands on the command line."""
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
    """A value of the file as the type of its parameter; a list stands for names that options separate by commas."""
    import msgspec

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
    """A settings file of a command in which every line is a comment: each setting with its help and its default.

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
    for parameter in sorted(given, key=lambda each: isinstance(each.default, dict)):  # tables stand last in TOML
        yield from ("", *textwrap.wrap(parameter.help, 110, initial_indent="# ", subsequent_indent="# "))
        table = isinstance(parameter.default, dict)
        yield f"# [{parameter.key}]" if table else f"# {parameter.key} = {_toml_value(parameter)}"


def _toml_value(parameter: Parameter) -> str:
    import msgspec

    if parameter.default in (None, (), ...):
        value = f'"{parameter.info.metavar or "..."}"'
        return f"[{value}]" if parameter.repeated else value
    return msgspec.json.encode(parameter.default).decode()

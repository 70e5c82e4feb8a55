"""The registry of verbs. A verb's module is imported when the verb is called, or when a help page lists all."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from veriglot.cli.command import commented_toml, new_app
from veriglot.cli.console import FormatLogHandler
from veriglot.errors import EXIT_USAGE, UnknownNameError, VeriglotError
from veriglot.plugins import read_package_data

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["run"]

WIDTH = 100  # columns of help pages, so that they are the same everywhere


VERBS = read_package_data(__package__, "verbs.toml", dict[str, str])


class _Verbs(TyperGroup):
    """A group that imports a command on demand."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  # typer's signature
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in VERBS:
            if cmd_name.startswith("-"):
                return None
            raise UnknownNameError("command", cmd_name, VERBS)
        return load_verb(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """The list of verbs, from the table above, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


def load_verb(name: str) -> Any:
    """The command of a verb, with its subcommands in `commands` if it has some."""
    module = import_module(f"veriglot.cli.{name}")
    if hasattr(module, "app"):
        verb = module.app
    else:
        verb = new_app()
        verb.command(name)(getattr(module, name))
    command = get_command(verb)
    command.name = name
    return command


app = typer.Typer(
    cls=_Verbs,
    no_args_is_help=True,
    rich_markup_mode=None,  # rich pages load longer than most commands run, and depend on the terminal
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDTH},
)


def _version(wanted: bool) -> None:
    if wanted:
        from veriglot.signatures import __version__

        print(f"veriglot {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
    # The other flags are removed before typer sees them, at any position.
    quiet: bool = typer.Option(
        False,
        "--quiet",
        "-q",
        help="Print no progress, counts or warnings on standard error. May be anywhere on the command line.",
    ),
    write_config: bool = typer.Option(
        False,
        "--write-config",
        help="Print a settings file for the --config of the command. May be anywhere on the command line.",
    ),
    debug: bool = typer.Option(
        False, "--debug", help="Show the traceback of an error. May be anywhere on the command line."
    ),
) -> None:
    """Find, measure and compare the hallucinations of language models, in every language.

    Results go to standard output, progress and warnings to standard error. Exit codes: 0 done, 1 failed, 2 wrong usage,
    3 finished with rows that failed, 4 over a limit that you set, 130 interrupted.
    """


def run(arguments: list[str], flags: Collection[str] = ()) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: the words after `veriglot`, without the flags.
        flags: the flags of `veriglot` that are set: `quiet`, `write_config`.

    Raises:
        VeriglotError: for `main` to report.
    """
    command = get_command(app)
    if "_VERIGLOT_COMPLETE" in os.environ:  # a shell asks for completions
        with suppress(VeriglotError):  # an earlier word is wrong: no completions
            command.main(arguments, prog_name="veriglot")
        return 0
    if "write_config" in flags:
        names = ["veriglot"]
        for word in arguments:  # the first words name the command
            if word.startswith("-") or not isinstance(command, TyperGroup):
                break
            command = command.get_command(None, word)  # type: ignore[arg-type, assignment]
            names.append(word)
        sys.stdout.write(commented_toml(" ".join(names), getattr(command, "callback", None)))
        return 0
    quiet = "quiet" in flags
    try:
        with (
            command.make_context("veriglot", arguments, obj={"quiet": quiet}) as context,
            FormatLogHandler(shown=not quiet),
        ):
            code = command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except typer.TyperException as error:
        return _refuse(error)
    return code if isinstance(code, int) else 0


_PLAIN = {  # messages of the type check, and our plain versions
    "Value error, ": "",
    "Input should be a valid number, unable to parse string as a number": "a number is expected",
    "Input should be a valid integer, unable to parse string as an integer": "a whole number is expected",
    "Input should be": "it must be",
}


def _refuse(error: Any) -> int:
    """Report invalid words on the command line."""
    context = getattr(error, "ctx", None)
    message = error.format_message()
    for typed, plain in _PLAIN.items():
        message = message.replace(typed, plain)
    if not message or message.lstrip().startswith("Usage:"):  # no arguments: the help page
        print(message, file=sys.stderr)
        return EXIT_USAGE
    print(f"veriglot: {message}", file=sys.stderr)
    key = getattr(error, "option_name", "").lstrip("-").replace("-", "_")
    for parameter in getattr(getattr(getattr(context, "command", None), "callback", None), "parameters", ()):
        if parameter.key == key and parameter.info.kind == "setting":
            remedy = f"Write {key} into a TOML file and add --config FILE; --write-config prints one with comments."
            print(f"  {remedy}", file=sys.stderr)
    if context is not None:
        print(f"  Type: {context.command_path} --help", file=sys.stderr)
    return int(error.exit_code) or EXIT_USAGE

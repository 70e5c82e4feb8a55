"""The command line. `main` runs a command and reports every error: message, remedy, exit code."""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING

from veriglot.errors import EXIT_FAILED, EXIT_INTERRUPTED, VeriglotError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

# Flags of `veriglot` that may be anywhere on the command line, with their names.
_ANYWHERE = {"--debug": "debug", "--quiet": "quiet", "-q": "quiet", "--write-config": "write_config"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: the words after `veriglot` on the command line; None reads them from there.

    Returns:
        The exit code: 0 done, 1 failed, 2 wrong usage, 3 finished with failed rows, 4 a verdict over
        the limit that was asked for, 130 interrupted.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    end = words.index("--") if "--" in words else len(words)
    flags = {_ANYWHERE[word] for word in words[:end] if word in _ANYWHERE}
    words = [word for word in words[:end] if word not in _ANYWHERE] + words[end:]
    try:
        from veriglot.cli.app import run  # imported here, so that Ctrl-C during the import is handled as well

        return run(words, flags)
    except (Exception, KeyboardInterrupt) as error:
        if "debug" in flags:
            raise
        return _ended_by(error)


def _ended_by(error: BaseException) -> int:
    """Print the error that ended a command; returns the exit code."""
    code, remedy = EXIT_FAILED, ""
    match error:
        case VeriglotError():
            code, message, remedy = error.exit_code, error.message, error.remedy
        case KeyboardInterrupt():
            print(file=sys.stderr)  # after the terminal's ^C
            return EXIT_INTERRUPTED
        case BrokenPipeError():  # the reader of our output has closed the pipe
            # Discard buffered output, or Python would report the broken pipe again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return code
        case OSError():
            message = f"{f'{error.filename}: ' if error.filename else ''}{error.strerror or error}."
            remedies = {
                errno.ENOSPC: "Make room, then rerun the command.",
                errno.EACCES: "Check the permissions of the file and its folder.",
            }
            remedy = remedies.get(error.errno or 0, "")
        case _:
            message = f"Unexpected error: {type(error).__name__}: {error}"
            remedy = "Rerun the command with --debug for the traceback, and please report it."
    print(f"veriglot: {message}", file=sys.stderr)
    if remedy:
        print(f"  {remedy}", file=sys.stderr)
    return code

"""The command line. `main` is where it begins and where every error ends: message, remedy, exit code."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from veriglot.errors import EXIT_FAILED, EXIT_INTERRUPTED, VeriglotError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["main"]

# Flags of `veriglot` that may stand anywhere on the command line, and what they are called.
_ANYWHERE = {"--debug": "debug", "--quiet": "quiet", "-q": "quiet", "--write-config": "write_config"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: what stands after `veriglot` on the command line; None takes it from there.

    Returns:
        The exit code: 0 done, 1 failed, 2 wrong usage, 3 finished with failed rows, 4 a verdict over
        the limit that was asked for, 130 interrupted.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    end = words.index("--") if "--" in words else len(words)
    flags = {_ANYWHERE[word] for word in words[:end] if word in _ANYWHERE}
    words = [word for word in words[:end] if word not in _ANYWHERE] + words[end:]
    return _run(words, flags) if "debug" in flags else _guarded(lambda: _run(words, flags))


def _run(words: list[str], flags: set[str]) -> int:
    from veriglot.cli.app import run  # here, so that Ctrl-C while it loads is met as well

    return run(words, flags)


def _guarded(command: Callable[[], int]) -> int:
    try:
        return command()
    except VeriglotError as error:
        _say(error.message, error.remedy)
        return error.exit_code
    except KeyboardInterrupt:
        print(file=sys.stderr)  # after the ^C that the terminal shows
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _mute(sys.stdout)  # whoever read our output has seen enough
        return EXIT_FAILED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _say(f"{where}{error.strerror or error}.", "")
        return EXIT_FAILED
    except Exception as error:
        _say(
            f"Veriglot met an error that it does not know: {type(error).__name__}: {error}",
            "Type the command again with --debug to see where, and report it, please.",
        )
        return EXIT_FAILED


def _say(message: str, remedy: str) -> None:
    print(f"veriglot: {message}", file=sys.stderr)
    if remedy:
        print(f"  {remedy}", file=sys.stderr)


def _mute(stream: object) -> None:
    """Have what is still buffered go nowhere, or Python would complain of the pipe once more on its way out."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # type: ignore[attr-defined]

"""The errors of Veriglot: what happened, what to do, whether a retry can help, and the exit code.

Every error for users is a `VeriglotError`. Its message says what happened; its `remedy` says what to type or
change. The command line prints both and exits with `exit_code`.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "EXIT_FAILED",
    "EXIT_INTERRUPTED",
    "EXIT_OVER_LIMIT",
    "EXIT_ROWS_FAILED",
    "EXIT_USAGE",
    "InputError",
    "InputTypeError",
    "MissingExtraError",
    "NotChecked",
    "UnknownNameError",
    "UsageError",
    "VeriglotError",
    "WeightsError",
    "requires_extra",
]

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_ROWS_FAILED = 3
EXIT_OVER_LIMIT = 4
EXIT_INTERRUPTED = 130


class VeriglotError(Exception):
    """An error that the user can fix.

    Attributes:
        message: what happened, in one sentence.
        remedy: what to do, in one sentence; may be empty.
        retryable: whether the same call may succeed later.
        exit_code: exit code of the command line.
    """

    retryable: bool = False
    exit_code: int = EXIT_FAILED

    def __init__(self, message: str, remedy: str = "", *, retryable: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.retryable = retryable or self.retryable

    def __str__(self) -> str:
        if not self.remedy:
            return self.message
        stop = "" if self.message.endswith((".", "!", "?")) else "."
        return f"{self.message}{stop} {self.remedy}"


class UsageError(VeriglotError):
    """The call itself is wrong: an unknown name, options that exclude each other, a missing argument."""

    exit_code = EXIT_USAGE


class UnknownNameError(UsageError):
    """An unknown name; the message suggests its new name or the most similar known names."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, renamed: str | None = None) -> None:
        known = sorted(known)
        near = get_close_matches(name, known)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"Known: {', '.join(known)}."
        super().__init__(f"There is no {kind} named {name!r}.", f"It is called {renamed}." if renamed else hint)


class MissingExtraError(UsageError):
    """A part of Veriglot needs packages that are not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs packages that are not installed.", f"Type: pip install 'veriglot[{extra}]'")
        self.extra = extra


@contextmanager
def requires_extra(what: str, extra: str) -> Iterator[None]:
    """Context for importing the packages of an extra, which `what` needs.

    Raises:
        MissingExtraError: a package is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError(what, extra) from error


_UNREADABLE = {
    FileNotFoundError: ("there is no such file or folder", "Check the path."),
    NotADirectoryError: ("there is no such file or folder", "Check the path."),
    IsADirectoryError: ("this is a folder, not a file", "Name a file in it."),
    PermissionError: ("you are not allowed to read it", "Check the permissions (chmod)."),
}


class InputError(VeriglotError):
    """Invalid input, with its position.

    Attributes:
        path: the file, or None if the input had no name.
        line: the line (or row) in the file, counted from 1, or None.
        field: the path of the field inside the record, such as `annotations[0].spans[2].end`, or None.
    """

    def __init__(
        self,
        message: str,
        remedy: str = "",
        *,
        path: str | None = None,
        line: int | None = None,
        field: str | None = None,
    ) -> None:
        self.path = path
        self.line = line
        self.field = field
        self.detail = message
        location = ", ".join(filter(None, (path, None if line is None else f"line {line}", field and f"field {field}")))
        super().__init__(f"{location}: {message}" if location else message, remedy)

    @classmethod
    def of(cls, error: OSError, path: object, remedy: str = "") -> InputError:
        """The error for a file that the operating system cannot read."""
        reason, usual = _UNREADABLE.get(type(error)) or (f"it cannot be read: {error.strerror or error}", "")
        if isinstance(error, FileNotFoundError):
            file = Path(str(path))
            with suppress(OSError, ValueError):
                near = get_close_matches(file.name, [each.name for each in file.parent.iterdir()], 1, 0.75)
                usual = f"Did you mean {file.with_name(near[0])}?" if near else usual
        return cls(reason, remedy or usual, path=str(path))

    def at(self, *, path: str | None = None, line: int | None = None, field: str | None = None) -> InputError:
        """The same error with the parts of the position that it lacked."""
        kind = InputTypeError if isinstance(self, InputTypeError) else InputError
        return kind(
            self.detail,
            self.remedy,
            path=self.path or path,
            line=self.line if self.line is not None else line,
            field=self.field or field,
        )


class InputTypeError(InputError, TypeError):
    """A field with a value of the wrong type, such as a number instead of a text."""


class NotChecked(VeriglotError):  # noqa: N818  the verdict's own word
    """Spans were requested for a response that was not checked; an empty list would look like a clean response."""


class WeightsError(VeriglotError):
    """Model weights that are missing, damaged, or not for this version."""

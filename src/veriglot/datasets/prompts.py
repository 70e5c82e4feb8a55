"""Prompts as data: texts with slots, some of them by language, and their versions for signatures.

They are in the files of `prompts/`, or in a user's file that replaces them: see `use_prompts`.
"""

from __future__ import annotations

import string
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.errors import InputError, UnknownNameError
from veriglot.plugins import read_package_data
from veriglot.records.languages import find_language, get_language, language_name
from veriglot.records.settings import check_placeholders, errors_of, read_toml, require
from veriglot.signatures import file_sha256

if TYPE_CHECKING:
    from collections.abc import Mapping

    Table = dict[str, Any]  # of prompts, by name and language

__all__ = ["by_language", "default_prompts", "filled", "load_prompts", "prompt_version", "use_prompts"]


@cache
def default_prompts(name: str) -> Table:
    """The table of `prompts/NAME.toml`: its `version`, and texts with slots."""
    return read_package_data(__package__, f"prompts/{name}.toml", dict[str, Any])


def load_prompts(name: str) -> Table:
    """The table in this context: the installed one, or that with the user's texts."""
    return _USED.get().get(name) or default_prompts(name)


def prompt_version(name: str) -> str:
    """Name and version of a table, such as `answer@1`, with a user's own file `answer@1+FILE.HASH`; for signatures."""
    return f"{name}@{load_prompts(name)['version']}"


def filled(table: str, key: str, tag: str, /, **values: object) -> str:
    """A text of a table with its slots filled in; `language` is the English name of the BCP 47 tag's language."""
    text: str = load_prompts(table)[key]
    return text.format(language=language_name(tag), **values).strip()


def by_language(name: str, tag: str) -> Any:
    """The entry of a table in the language of a BCP 47 tag; else its English `fallback`, which names the language."""
    table, entry = load_prompts(name), find_language(tag)
    return table["languages"].get(entry.tag if entry else tag, table["fallback"])


# A user's own texts instead of the installed ones.


_USED: ContextVar[Mapping[str, Table]] = ContextVar("prompts", default={})  # noqa: B039  # never changed
_LANGUAGES, _FALLBACK, _VERSION = "languages", "fallback", "version"

# The required slots of a text, without which the model lacks its input. Other slots are optional.
_NEEDED = frozenset({"name", "page", "parts", "passage", "question", "reference", "sentences", "statement", "text"})
_FIXED = ("how", "reference")  # keys of a type of error that control the program and are not text


def use_prompts(path: str | Path, *names: str) -> None:
    """Replace installed texts by a user's, for everything in this context (`contextvars`): a whole command.

    Args:
        path: TOML with some of the texts of the tables, under their keys, and optionally a `version`. With a
            `fallback`, languages without a text of their own use it instead of the installed texts.
        names: the tables whose texts can be replaced.

    Raises:
        InputError: the file cannot be read or replaces nothing; a key is unknown, or a text has another type than the
            installed one; placeholders are missing or unknown, which the error names.
    """
    path = Path(path)
    own = read_toml(path, "prompt file")
    version = str(own.pop(_VERSION, ""))
    home = {key: name for name in names for key in default_prompts(name) if key != _VERSION}
    made_by = ".".join(filter(None, (path.stem, version, file_sha256(path)[:12])))
    with errors_of(path):
        require(own, "there is no prompt", "", f"Write one or more of {', '.join(home)}.")
        tables: dict[str, Table] = {}
        for key, value in own.items():
            if key not in home:
                unknown = UnknownNameError("prompt", key, home)
                raise InputError(unknown.message, unknown.remedy, field=key)
            tables.setdefault(home[key], {})[key] = value
        used = {name: _over(default_prompts(name), table, "") for name, table in tables.items()}
    for table in used.values():
        table[_VERSION] = f"{table[_VERSION]}+{made_by}"
    _USED.set({**_USED.get(), **used})


def _over(default: Table, own: Mapping[str, Any], field: str) -> Table:
    """A table with the user's texts instead of installed ones."""
    result = dict(default)
    if _LANGUAGES in default and _FALLBACK in own:
        result[_LANGUAGES] = {}
    for key, value in own.items():
        inside = f"{field}.{key}" if field else key
        if key == _LANGUAGES and _LANGUAGES in default:
            require(isinstance(value, dict), "this is a table: a text for each language", inside)
            texts = ((tag, _text(default[_FALLBACK], text, f"{inside}.{tag}")) for tag, text in value.items())
            result[key] = result[key] | {get_language(tag).tag: text for tag, text in texts}
            continue
        known = [name for name in default if not (field and name in _FIXED)]
        if key not in known:
            unknown = UnknownNameError("prompt", key, known)
            raise InputError(unknown.message, unknown.remedy, field=inside)
        result[key] = _text(default[key], value, inside)
    return result


def _text(default: Any, own: Any, field: str) -> Any:
    """A text, or a table or list of texts, of the same type as the installed one."""
    if isinstance(default, dict):
        require(isinstance(own, dict), "this is a table of texts", field)
        return _over(default, own, field)
    if not isinstance(default, str):
        try:
            return msgspec.convert(own, list[tuple[str, str]])
        except msgspec.ValidationError as error:
            raise InputError(f"these are pairs of texts, without and with the error: {error}", field=field) from None
    require(isinstance(own, str) and own.strip(), "this is a text", field)
    slots = {name for _, name, _, _ in string.Formatter().parse(default) if name}
    if slots:  # a text without slots is inserted into another prompt unchanged
        check_placeholders(own, slots, slots & _NEEDED, field=field)
    return own

"""The prompts of judges as data: a TOML file each, with a version, beside this module or the user's own."""

from __future__ import annotations

import string
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from veriglot.errors import InputError
from veriglot.signatures import digest

if TYPE_CHECKING:
    from veriglot.records import Sample

__all__ = ["Prompt", "load_prompt", "passage_blocks", "question_block", "tagged"]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: str
    user: str
    max_tokens: int
    system: str = ""


class Prompt(msgspec.Struct, frozen=True):
    """A prompt with the fields that are filled in.

    Attributes:
        name: of the file, without its ending.
        version: as the file has it.
        user: what is said, with `{fields}`; braces of the text are doubled.
        system: what is said before it, without fields; empty for nothing.
        max_tokens: the most tokens of a reply, unless the user sets another bound.
        digest: the first 12 hexadecimal digits of the SHA-256 of what is said.
    """

    name: str
    version: str
    user: str
    system: str
    max_tokens: int
    digest: str

    @property
    def signature(self) -> str:
        """Name, version and digest, such as `spans@1.0f3a...`: a word that changes changes it."""
        return f"{self.name}@{self.version}.{self.digest}"

    def filled(self, **fields: str) -> str:
        """The text with its fields. What is filled in may hold braces."""
        return self.user.strip().format(**fields)


def load_prompt(name: str, fields: frozenset[str], own: str | None = None) -> Prompt:
    """A prompt that is shipped, or the user's own in its place.

    Args:
        name: of a file in `prompts/`.
        fields: what can be filled in.
        own: a TOML file with `version`, `user`, `max_tokens` and perhaps `system`.

    Raises:
        InputError: the file cannot be read, lacks something, or names a field that there is none of.
    """
    if own is None:
        return _shipped(name, fields)
    path = Path(own)
    try:
        return _prompt(path.stem, path.read_text("utf-8"), fields)
    except OSError as error:
        raise InputError(f"The prompt cannot be read: {error.strerror}.", path=own) from error
    except (ValueError, msgspec.ValidationError) as error:  # no UTF-8, no TOML, or not of the form
        raise InputError(
            f"The prompt cannot be used: {error}.",
            remedy=f"It holds version, max_tokens, and user with the fields {_listed(fields)}; double other braces.",
            path=own,
        ) from error


@cache
def _shipped(name: str, fields: frozenset[str]) -> Prompt:
    return _prompt(name, files(__package__).joinpath("prompts", f"{name}.toml").read_text("utf-8"), fields)


def _prompt(name: str, text: str, fields: frozenset[str]) -> Prompt:
    read = msgspec.convert(tomllib.loads(text), _File)
    named = {field for _, field, _, _ in string.Formatter().parse(read.user) if field is not None}
    if unknown := named - fields:
        raise ValueError(f"it names {_listed(unknown)}, which is not filled in")
    hashed = digest([read.system, read.user])[:12]
    return Prompt(name, read.version, read.user, read.system, read.max_tokens, hashed)


def _listed(fields: set[str] | frozenset[str]) -> str:
    return ", ".join(f"{{{field}}}" for field in sorted(fields))


def tagged(tag: str, text: str, *others: str) -> str:
    """A text between tags that neither it nor the others of its prompt hold, so that none can end another early."""
    number, name = 1, tag
    while any(f"{name}>" in held for held in (text, *others)):
        number += 1
        name = f"{tag}-{number}"
    return f"<{name}>\n{text}\n</{name}>"


def passage_blocks(passages: list[tuple[str, str]], *others: str, tag: str = "evidence") -> str:
    """The passages of the evidence, each between tags, with its title where it has one.

    Args:
        passages: title (or nothing) and text.
        others: the other texts of the prompt.
        tag: what a passage is here.
    """
    texts = [f"{title}\n\n{text}" if title else text for title, text in passages]
    return "\n\n".join(tagged(tag, text, *texts, *others) for text in texts)


def question_block(sample: Sample) -> str:
    """The question of a sample between tags, with room after it; nothing where there is none."""
    if not (sample.question or "").strip():
        return ""
    others = (sample.response, *(passage.text for passage in sample.evidence))
    return tagged("question", sample.question or "", *others) + "\n\n"

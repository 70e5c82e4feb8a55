"""The prompt that asks for factual sentences: what stands in `facts.toml`, filled in."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec

from veriglot.build.prompts import known_language

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["choose_prompt", "facts_version"]


class _Prompts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: str
    choose: str
    taken: str


@cache
def _prompts() -> _Prompts:
    text = files(__package__).joinpath("facts.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _Prompts)


def facts_version() -> str:
    """Name and version of the prompt, such as `facts@1`."""
    return f"facts@{_prompts().version}"


def choose_prompt(tag: str, name: str, page: str, count: int, *, taken: Sequence[str] = ()) -> str:
    """Asks for factual sentences of a page.

    Args:
        tag: BCP 47 tag of the page.
        name: whom it is about.
        page: its text.
        count: how many are wanted.
        taken: sentences that are not wanted again.
    """
    prompts = _prompts()
    entry = known_language(tag)
    shown = "\n".join(f"- {one}" for one in taken)
    return prompts.choose.format(
        count=count,
        language=entry.name if entry else tag,
        name=name,
        page=page,
        taken=f"\n\n{prompts.taken.format(sentences=shown).strip()}" if taken else "",
    ).strip()

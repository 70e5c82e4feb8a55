"""What a model that thinks first wrote between `<think>` tags, and its answer."""

from __future__ import annotations

import re

__all__ = ["after_thoughts", "parted_thoughts"]

_OPENED = re.compile(r"\s*<think(?:ing)?>(?P<thought>.*?)(?:</think(?:ing)?>|\Z)\s*", re.DOTALL)
_CLOSED = re.compile(r"(?P<thought>.*)</think(?:ing)?>\s*", re.DOTALL)


def parted_thoughts(text: str) -> tuple[str, str]:
    """The thoughts at the beginning, and what stands after them: nothing where they never end.

    Some chat templates end the prompt with the opening tag, so that the reply has the closing one alone.
    """
    found = _OPENED.match(text) or _CLOSED.match(text)
    return (found["thought"].strip(), text[found.end() :]) if found else ("", text)


def after_thoughts(text: str) -> str:
    """What stands after the thoughts; see `parted_thoughts`."""
    return parted_thoughts(text)[1]

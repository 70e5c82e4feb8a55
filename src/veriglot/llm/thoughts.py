"""The answer of a model that thinks first, without its thoughts."""

from __future__ import annotations

import re

__all__ = ["after_thoughts"]

_OPENED = re.compile(r"\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)\s*", re.DOTALL)
_CLOSED = re.compile(r".*</think(?:ing)?>\s*", re.DOTALL)


def after_thoughts(text: str) -> str:
    """What stands after the thoughts between `<think>` tags at the beginning; nothing where they never end.

    Some chat templates end the prompt with the opening tag, so that the reply has the closing one alone.
    """
    found = _OPENED.match(text) or _CLOSED.match(text)
    return text[found.end() :] if found else text

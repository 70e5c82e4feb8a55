"""Text from anywhere made safe to print: what would steer the terminal or the reader's eye becomes visible instead.

A response can hold escape sequences that recolour, retitle or rewrite the screen, and direction overrides that show
letters in another order than they stand in. Here each such code point becomes a sign that names it. Line breaks become
plain ones and tabs four spaces. Joiners and direction marks (ZWJ, ZWNJ, LRM, RLM, ALM) stay: scripts need them.
"""

from __future__ import annotations

import re

__all__ = ["printable"]

_LINE_BREAK = re.compile("\r\n|[\v\f\x85\u2028\u2029]")
_STEERING = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f"  # C0 and C1 controls without the line feed: escape sequences start here
    "\u202a-\u202e\u2066-\u2069"  # direction embeddings, overrides and isolates
    "\ud800-\udfff]"  # surrogates cannot be encoded
)


def printable(text: str) -> str:
    """`text` with every steering code point replaced by a visible sign.

    Controls become their pictures (U+001B is `␛`), direction controls and C1 controls their names (`<U+202E>`), a lone
    surrogate U+FFFD.
    """
    return _STEERING.sub(_sign, _LINE_BREAK.sub("\n", text))


def _sign(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code == 0x09:
        return "    "
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return f"<U+{code:04X}>"

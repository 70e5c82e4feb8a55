"""Markdown to HTML that can do nothing: markup in it is shown as text, nothing is loaded, links lead to the web.

Examples stand in a block of their own, one `label: text` a line, marked with the house's inline tags:

    ```example de
    Evidence: Der Turm steht in Paris.
    Answer: Der Turm steht in <entity>Rom</entity>.
    ```

The word after `example` is the language of the texts, and may be left out; `Source [de]: ...` is a line in another one.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from veriglot.text import direction_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token

__all__ = ["render"]

_LONGEST = 200_000  # characters; guidelines that nobody reads
_MARKED = re.compile(r"<([a-z][a-z0-9_]{0,63})>(.*?)</\1>", re.DOTALL)
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_LABELLED = re.compile(r"([^:：<>\[\]]{1,40})(?:\[([^\[\]]*)\])?\s*[:：]\s*(.*)", re.DOTALL)


def render(markdown: str) -> str:
    """Guidelines as HTML.

    The elements are those of CommonMark, tables and struck text, without images and without any markup of the author's;
    headings begin at the second level, since the page has one of its own. Marked places of examples are `mark` elements
    with the type in `data-type` and as a visible word.

    Raises:
        ValueError: it is longer than 200,000 characters.
    """
    if len(markdown) > _LONGEST:
        raise ValueError(f"guidelines have at most {_LONGEST:,} characters, but these have {len(markdown):,}")
    made: str = _maker().render(markdown)
    return made


@cache
def _maker() -> MarkdownIt:
    from markdown_it import MarkdownIt

    maker = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    maker.disable("image")
    maker.validateLink = _is_harmless  # type: ignore[method-assign]
    for rule, make in {
        "fence": _fence,
        "heading_open": _heading,
        "heading_close": _heading,
        "link_open": _link,
        "th_open": _cell,
        "td_open": _cell,
    }.items():
        maker.add_render_rule(rule, make)
    return maker


def _is_harmless(url: str) -> bool:
    return url.lower().startswith(("https://", "http://", "mailto:", "#"))


def _heading(_: RendererHTML, tokens: Sequence[Token], place: int, *_rest: Any) -> str:
    level = min(int(tokens[place].tag[1]) + 1, 6)
    return f"<h{level}>" if tokens[place].nesting > 0 else f"</h{level}>\n"


def _link(_: RendererHTML, tokens: Sequence[Token], place: int, *_rest: Any) -> str:
    address = str(tokens[place].attrGet("href") or "")
    away = "" if address.startswith("#") else ' target="_blank" rel="noopener noreferrer"'
    return f'<a href="{escape(address)}"{away}>'


def _cell(_: RendererHTML, tokens: Sequence[Token], place: int, *_rest: Any) -> str:
    """Without the alignment, which is an inline style that the page's policy refuses."""
    return f"<{tokens[place].tag}>"


def _fence(_: RendererHTML, tokens: Sequence[Token], place: int, *_rest: Any) -> str:
    token = tokens[place]
    kind, language = (*token.info.split(), "", "")[:2]
    if kind != "example":
        return f"<pre><code>{escape(token.content)}</code></pre>\n"
    return _example(token.content, language)


def _example(content: str, language: str) -> str:
    rows = []
    for line in content.splitlines():
        found = _LABELLED.fullmatch(line.strip())
        label, own, text = (found[1].strip(), found[2], found[3]) if found else ("", None, line.strip())
        if label or text:
            tag = language if own is None else own.strip()
            spoken = f' lang="{tag}"' if _LANGUAGE.fullmatch(tag) else ""
            way = direction_of(_MARKED.sub(r"\2", text)) or "ltr"
            rows.append(f'<div><dt>{escape(label)}</dt><dd{spoken} dir="{way}">{_marked(text)}</dd></div>')
    return f'<dl class="example">{"".join(rows)}</dl>\n'


def _marked(text: str) -> str:
    """A text with its tags as `mark` elements; tags that have no other half are text."""
    made, end = [], 0
    for found in _MARKED.finditer(text):
        made.append(escape(text[end : found.start()]))
        inner, name = _marked(found[2]), found[1]
        made.append(f'<mark data-type="{name}">{inner}<span class="mark-type" lang="en">{name}</span></mark>')
        end = found.end()
    return "".join([*made, escape(text[end:])])

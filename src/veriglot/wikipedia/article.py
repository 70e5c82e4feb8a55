"""The article of an encyclopaedia, and the place where one should have been."""

from __future__ import annotations

import re

import msgspec

__all__ = ["Absent", "Article", "split_sections"]

_HEADING = re.compile(r"^(={1,6})[ \t]*(.*?)[ \t]*\1[ \t]*$")


class Article(msgspec.Struct, frozen=True, omit_defaults=True):
    """One article of one Wikipedia, as it stood at one revision.

    Attributes:
        id: `<language>-<page id>`, unique in a file.
        language: BCP 47 tag that was asked for; an edition in several scripts (zh, sr) keeps its text as written.
        title: the page's title, with spaces.
        page_id: the page's number in its Wikipedia.
        revision: the number of the revision that the text is of; None where the source does not say.
        url: the address of the page.
        text: plain text, paragraphs and headings on lines of their own; without tables, references and what templates
            would show (from a dump), or as TextExtracts gives it (from the API).
        lead: the text before the first heading, which the mFAVA study uses as reference (section A.5).
        categories: names without their namespace, those meant for maintenance included.
        hidden_categories: those of `categories` that the wiki does not show to readers; empty from a dump.
        templates: names without their namespace of the templates that the page uses; from the API also those that
            templates use.
        timestamp: when the revision was made, ISO 8601.
        size: bytes of wikitext, or None.
        edits: how many edits the page has had, or None where nobody counted.
        bot_edits: those of `edits` by accounts marked as bots, or None.
        editors: how many accounts and addresses edited it, or None.
        item: the Wikidata item, such as `Q42`, or None.
        unchecked: the filters that could not judge the article, for want of data.
    """

    id: str
    language: str
    title: str
    page_id: int
    url: str
    text: str
    lead: str
    revision: int | None = None
    categories: tuple[str, ...] = ()
    hidden_categories: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()
    timestamp: str | None = None
    size: int | None = None
    edits: int | None = None
    bot_edits: int | None = None
    editors: int | None = None
    item: str | None = None
    unchecked: tuple[str, ...] = ()


class Absent(msgspec.Struct, frozen=True):
    """A page that was met and gives no article.

    Attributes:
        title: the title, as it was asked for or met.
        reason: `missing`, `invalid title`, `redirect`, `disambiguation`, `not an article` or `no text`.
    """

    title: str
    reason: str


def split_sections(marked: str) -> tuple[str, str]:
    """Text and lead of a text whose headings are written `== Heading ==`.

    Headings lose their marks; those with no text of their own or below them are left out, runs of empty lines become
    one.

    Returns:
        The whole text, and the part of it before the first heading.
    """
    lines: list[str] = []
    lead: str | None = None
    pending: list[tuple[int, str]] = []  # headings that no text has followed yet: depth, words
    for line in marked.splitlines():
        match = _HEADING.match(line.strip())
        if match and match[2]:
            if lead is None:
                lead = "\n".join(lines)
            depth = len(match[1])
            pending = [*(heading for heading in pending if heading[0] < depth), (depth, match[2])]
            continue
        text = line.rstrip()
        if text:
            for _, words in pending:
                lines += ["", words] if lines and lines[-1] else [words]
            pending = []
        if text or (lines and lines[-1] and not pending):
            lines.append(text)
    whole = "\n".join(lines)
    return whole.strip(), (whole if lead is None else lead).strip()

"""Articles of a Wikipedia from its XML dump, streamed: memory stays flat however long the file is.

Reads what dumps.wikimedia.org calls `pages-articles`, `pages-meta-current` and `pages-meta-history`, as bzip2 (one
stream or many), gzip, xz or plain XML, of any version of the export schema.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import msgspec

from veriglot.errors import InputError
from veriglot.records.languages import language as known_language
from veriglot.sources.article import Absent, Article, split_sections
from veriglot.sources.editions import language_of, wiki_url
from veriglot.sources.wikitext import Namespaces, parse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element

__all__ = ["Page", "Wiki", "open_dump", "read_dump"]

_OPENERS: dict[bytes, Any] = {b"BZh": bz2.open, b"\x1f\x8b": gzip.open, b"\xfd7zXZ": lzma.open}
_SEVEN_ZIP = b"7z\xbc\xaf"
_VARIANTS = {
    "zh-Hans": ("zh-hans", "zh-cn", "zh-sg", "zh"),
    "zh-Hant": ("zh-hant", "zh-tw", "zh-hk", "zh"),
    "sr-Cyrl": ("sr-ec", "sr-cyrl", "sr"),
    "sr-Latn": ("sr-el", "sr-latn", "sr"),
}


class Wiki(msgspec.Struct, frozen=True):
    """The wiki that a dump is of.

    Attributes:
        language: BCP 47 tag.
        edition: the first part of its host's name.
        file_names, category_names: what its namespaces 6 and 14 are called.
    """

    language: str
    edition: str
    file_names: tuple[str, ...] = ()
    category_names: tuple[str, ...] = ()


class Page(msgspec.Struct, frozen=True):
    """A page of a dump as it stands there.

    Attributes:
        wiki: where it belongs.
        title: with spaces.
        page_id, namespace: its numbers; namespace 0 is that of articles.
        redirect: whether it only leads elsewhere.
        wikitext: of the newest revision in the dump.
        revision, timestamp: of that revision.
        edits, editors: how many revisions, and different contributors, the dump holds of it; None where it does not
            hold the whole history.
    """

    wiki: Wiki
    title: str
    page_id: int
    namespace: int
    redirect: bool
    wikitext: str
    revision: int | None
    timestamp: str | None
    edits: int | None
    editors: int | None

    def article(self) -> Article | Absent:
        """The article, its wikitext made plain.

        Raises:
            MissingExtraError: the parser of wikitext is not installed.
        """
        if self.namespace != 0:
            return Absent(self.title, "not an article")
        if self.redirect:
            return Absent(self.title, "redirect")
        wiki = self.wiki
        names = Namespaces().with_names(file=wiki.file_names, category=wiki.category_names)
        parsed = parse(self.wikitext, names, variants=_VARIANTS.get(wiki.language, ()))
        text, lead = split_sections(parsed.marked)
        if not text:
            return Absent(self.title, "no text")
        return Article(
            id=f"{wiki.language}-{self.page_id}",
            language=wiki.language,
            title=self.title,
            page_id=self.page_id,
            url=f"{wiki_url(wiki.edition)}wiki/{quote(self.title.replace(' ', '_'))}",
            text=text,
            lead=lead,
            revision=self.revision,
            categories=parsed.categories,
            templates=parsed.templates,
            timestamp=self.timestamp,
            size=len(self.wikitext.encode()),
            edits=self.edits,
            editors=self.editors,
        )


def read_dump(path: str | Path, *, language: str | None = None) -> Iterator[Article | Absent]:
    """The articles of a dump, and what else was met, in the dump's order.

    Args:
        path: the file.
        language: of the wiki, where the dump does not say it or the script matters (`zh-Hant`).

    Raises:
        InputError: not a dump, damaged or cut off; what came before was given out.
        MissingExtraError: the parser of wikitext is not installed.
    """
    for page in open_dump(path, language=language):
        yield page.article()


def open_dump(path: str | Path, *, language: str | None = None) -> Iterator[Page]:
    """The pages of a dump with their wikitext; arguments and errors as for `read_dump`."""
    from xml.etree.ElementTree import ParseError, iterparse  # expat of today bounds expansion itself

    history = "history" in Path(path).name
    pages = 0
    try:
        with _opened(path) as file:
            events = iterparse(file, events=("start", "end"))  # noqa: S314
            _, root = next(events)
            if _tag(root) != "mediawiki":
                raise InputError("is not a dump of a wiki", path=str(path), remedy="Give a pages-articles.xml.bz2.")
            wiki: Wiki | None = None
            collected = _Revisions()
            for event, element in events:
                tag = _tag(element)
                if event == "start":
                    continue
                if tag == "siteinfo":
                    wiki = _wiki(element, root, language, str(path))
                elif tag == "revision":
                    collected.add(element)
                    element.clear()
                elif tag == "page":
                    wiki = wiki or _wiki(element, root, language, str(path))
                    yield _page(element, wiki, collected, history=history)
                    pages += 1
                    collected = _Revisions()
                    root.clear()
    except (ParseError, EOFError, OSError, lzma.LZMAError, ValueError) as error:
        if isinstance(error, FileNotFoundError):
            raise InputError("there is no such file", path=str(path), remedy="Check the path.") from error
        raise InputError(
            f"is damaged or cut off after {pages:,} pages ({error})",
            path=str(path),
            remedy="Fetch the file again, and compare its checksum.",
        ) from error


class _Revisions:
    """The newest revision of a page, and how many there were of how many people."""

    def __init__(self) -> None:
        self.count = 0
        self.people: set[str] = set()
        self.newest: dict[str, Any] = {}

    def add(self, element: Element) -> None:
        self.count += 1
        parts = {_tag(child): child for child in element}
        contributor = parts.get("contributor")
        if contributor is not None:
            told = {_tag(child): child.text or "" for child in contributor}
            who = told.get("username") or told.get("ip")
            if who:
                self.people.add(who)
        timestamp = _text(parts.get("timestamp"))
        if timestamp >= self.newest.get("timestamp", ""):
            self.newest = {
                "timestamp": timestamp,
                "revision": _text(parts.get("id")),
                "text": _text(parts.get("text")),
            }


def _page(element: Element, wiki: Wiki, revisions: _Revisions, *, history: bool) -> Page:
    parts = {_tag(child): child for child in element}
    newest = revisions.newest
    return Page(
        wiki=wiki,
        title=_text(parts.get("title")),
        page_id=int(_text(parts.get("id"))),
        namespace=int(_text(parts.get("ns")) or 0),
        redirect="redirect" in parts,
        wikitext=newest.get("text", ""),
        revision=int(newest["revision"]) if newest.get("revision") else None,
        timestamp=newest.get("timestamp") or None,
        edits=revisions.count if history else None,
        editors=len(revisions.people) if history else None,
    )


def _wiki(siteinfo: Element, root: Element, language: str | None, path: str) -> Wiki:
    """What a dump says of its wiki; `language` wins."""
    parts = {_tag(child): child for child in siteinfo}
    base = urlsplit(_text(parts.get("base"))).hostname or ""
    edition = base.partition(".")[0] if base.endswith(".wikipedia.org") else ""
    edition = edition or _text(parts.get("dbname")).removesuffix("wiki").replace("_", "-")
    edition = edition or root.get("{http://www.w3.org/XML/1998/namespace}lang", "")
    tag = known_language(language).tag if language else language_of(edition) if edition else None
    if tag is None:
        raise InputError("does not say which language it is in", path=path, remedy="Name it: --language de.")
    names: dict[str, list[str]] = {"6": [], "14": []}
    for one in parts.get("namespaces", ()):
        if one.get("key") in names and one.text:
            names[one.get("key", "")].append(one.text)
    return Wiki(tag, edition or tag, tuple(names["6"]), tuple(names["14"]))


@contextmanager
def _opened(path: str | Path) -> Iterator[IO[bytes]]:
    with Path(path).open("rb") as raw:
        head = raw.read(6)
        raw.seek(0)
        if head.startswith(_SEVEN_ZIP):
            raise InputError("is a 7z archive", path=str(path), remedy="Unpack it, or take the .bz2 of the same dump.")
        opener = next((opener for magic, opener in _OPENERS.items() if head.startswith(magic)), None)
        if opener is None:
            yield raw
        else:
            with opener(raw, "rb") as file:
                yield file


def _tag(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _text(element: Element | None) -> str:
    return (element.text or "") if element is not None else ""

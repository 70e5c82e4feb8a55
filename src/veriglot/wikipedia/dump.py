"""Articles of a Wikipedia from its XML dump, streamed, with wikitext as plain text.

Reads the dumps `pages-articles`, `pages-meta-current` and `pages-meta-history` of dumps.wikimedia.org, as bzip2 (one
stream or several), gzip, xz or plain XML, in any version of the export schema.
"""

from __future__ import annotations

import bz2
import gzip
import heapq
import lzma
import re
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from veriglot.errors import InputError, requires_extra
from veriglot.records import Record
from veriglot.records.languages import get_language
from veriglot.wikipedia.articles import Absent, Article, FilterChain, draw_rank, split_sections, table, wiki_url

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from xml.etree.ElementTree import Element

    from mwparserfromhell.nodes import Tag, Template, Wikilink
    from mwparserfromhell.wikicode import Wikicode


__all__ = ["draw_articles", "open_dump"]


# Plain text of wikitext, with the page's categories and templates.
#
# mwparserfromhell parses; which parts of the tree are text is decided here, since its own `strip_code` does not remove
# picture captions, references and category links. Templates are not expanded, since their text is not available: all
# but a few that only wrap a text (`text_templates.json`) are removed, with the empty parentheses that they leave.


_DROPPED = re.compile(  # tags whose content is not running text
    "ref|references|gallery|math|chem|ce|table|style|script|timeline|imagemap|score|syntaxhighlight|"
    "source|hiero|graph|templatestyles|indicator|section|mapframe|maplink|inputbox|categorytree|includeonly|pre|noinclude"
)
_MAGIC = re.compile(r"__[^\W\d_]+__")
_EMPTY = re.compile(r"[ \t]*[(（\[]\s*(?:[;,:،、，；/–-]\s*)*[)）\]]")
_OPENING = re.compile(r"([(（])\s*(?:[;,،、，；]\s*)+")
_CLOSING = re.compile(r"(?:\s*[;,،、，；])+\s*([)）])")
_GAPS = re.compile(r"[ \t\u00a0]{2,}")
_BEFORE = re.compile(r"[ \t]+([,.;:!?)](?:\s|$))")
_VARIANT_MARKUP = re.compile(r"-\{(.*?)\}-", re.DOTALL)
_LANGUAGE_TEMPLATE = re.compile(r"lang-[a-z]{2,3}(-[a-z]{2,8})*")  # {{lang-pt|...}}
_CENTURIES = {"s", "s-"}  # French centuries; in Italian, {{S|biografie}} marks a stub
_ROMAN = re.compile(r"[ivx]+", re.IGNORECASE)
_LANGUAGE_PREFIX = re.compile(r"[a-z]{2,3}(-[a-z]{2,12}){0,2}")


class Wiki(Record):
    """The wiki of a dump: its language tag, and the names of its namespaces 6 and 14, in lower case."""

    language: str
    edition: str
    files: frozenset[str] = frozenset({"file", "image"})
    categories: frozenset[str] = frozenset({"category"})


def parse(wikitext: str, wiki: Wiki) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Read the wikitext of a page.

    Returns:
        Plain text with headings as `== Heading ==`; categories in order, without namespace and sort key;
        and names of templates without namespace, each once, in order, including those in arguments of others.
    """
    with requires_extra("Reading a dump", "wikipedia"):
        import mwparserfromhell
    variants = table("codes")["variants"].get(wiki.language, ())
    code = mwparserfromhell.parse(_VARIANT_MARKUP.sub(lambda match: _variant(match[1], variants), wikitext))
    reader = _Reader(wiki)
    text = "".join(reader.text_of(code))
    templates = dict.fromkeys(_name_of(template) for template in code.filter_templates(recursive=True))
    return _tidy(text), tuple(dict.fromkeys(reader.categories)), tuple(filter(None, templates))


class _Reader:
    def __init__(self, wiki: Wiki) -> None:
        self._wiki = wiki
        self.categories: list[str] = []

    def text_of(self, code: Wikicode | None) -> Iterator[str]:
        """The text of wikitext nodes, in pieces."""
        from mwparserfromhell import nodes

        for node in code.nodes if code is not None else ():
            if isinstance(node, nodes.Text):
                yield _MAGIC.sub("", str(node.value))
            elif isinstance(node, nodes.Wikilink):
                yield from self._link(node)
            elif isinstance(node, nodes.Tag):
                yield from self._tag(node)
            elif isinstance(node, nodes.Template):
                yield from self._template(node)
            elif isinstance(node, nodes.Heading):
                title = "".join(self.text_of(node.title)).strip()
                yield f"\n{'=' * node.level} {title} {'=' * node.level}\n" if title else "\n"
            elif isinstance(node, nodes.HTMLEntity):
                yield node.normalize() or ""
            elif isinstance(node, nodes.ExternalLink):
                yield from self.text_of(node.title)

    def _link(self, node: Wikilink) -> Iterator[str]:
        title = str(node.title).strip()
        prefix, colon, rest = title.partition(":")
        prefix = prefix.replace("_", " ").strip().casefold()
        if colon and prefix in self._wiki.categories:
            self.categories.append(rest.replace("_", " ").strip())
        elif colon and (prefix in self._wiki.files or (not node.text and _LANGUAGE_PREFIX.fullmatch(prefix))):
            return
        elif node.text is not None and str(node.text).strip():
            yield from self.text_of(node.text)
        else:
            yield title.removeprefix(":")

    def _tag(self, node: Tag) -> Iterator[str]:
        name = str(node.tag).strip().casefold()
        if name in ("br", "hr"):
            yield "\n"
        elif not _DROPPED.fullmatch(name):
            yield from self.text_of(node.contents)
            if name in ("p", "div", "li") and node.contents:
                yield "\n"

    def _template(self, node: Template) -> Iterator[str]:
        name = _name_of(node).casefold()
        form = table("text_templates").get(name, "{1}" if _LANGUAGE_TEMPLATE.fullmatch(name) else None)
        if form is None:  # `{{formatnum:1234}}` looks like a template; without its number, a fact is lost
            call, _, number = str(node.name).strip().partition(":")
            if call.casefold() == "formatnum":
                yield number.strip()
            return
        values = {
            str(parameter.name).strip(): "".join(self.text_of(parameter.value)).strip() for parameter in node.params
        }
        if name in _CENTURIES and not _ROMAN.fullmatch(values.get("1", "")):
            return
        yield re.sub(r"\{(\d)\}", lambda match: values.get(match[1], ""), form).strip(" ") or (
            " " if form == " " else ""
        )


def _name_of(template: Template) -> str:
    """A template's name: `Foo bar` for `{{ template:Foo_bar <!-- x --> }}`; empty for a parser function."""
    name = str(template.name.strip_code(normalize=False, collapse=False)).replace("_", " ").strip()
    if name.startswith("#") or ":" in name:
        name = name.partition(":")[2].strip() if name.casefold().startswith(("template:", "t:")) else ""
    return " ".join(name.split())


def _variant(inner: str, variants: Collection[str]) -> str:
    """The text of a conversion `-{...}-` in wikis with several scripts."""
    flags, bar, content = inner.partition("|")
    if not bar:
        content = inner
    elif set(flags.strip().upper()) & set("THD-"):  # rules for other places: title, glossary, description
        return ""
    forms = dict(part.strip().split(":", 1) for part in content.split(";") if re.match(r"\s*[a-z]+(-[a-z]+)?:", part))
    if not forms:
        return content
    plain = {name.strip(): text.strip() for name, text in forms.items()}
    return next((plain[name] for name in variants if name in plain), next(iter(plain.values())))


def _tidy(text: str) -> str:
    """Text without the traces of removed parts."""
    for _ in range(3):  # parentheses in parentheses
        text, count = _EMPTY.subn("", text)
        if not count:
            break
    for pattern, replacement in ((_OPENING, r"\1"), (_CLOSING, r"\1"), (_GAPS, " "), (_BEFORE, r"\1")):
        text = pattern.sub(replacement, text)
    return "\n".join(line.strip() for line in text.splitlines())


_OPENERS: dict[bytes, Any] = {b"BZh": bz2.open, b"\x1f\x8b": gzip.open, b"\xfd7zXZ": lzma.open}
_SEVEN_ZIP = b"7z\xbc\xaf"


class Page(Record):
    """A page of a dump, unprocessed."""

    wiki: Wiki
    title: str
    page_id: int
    namespace: int
    redirect: bool
    revisions: _Revisions
    history: bool

    def article(self) -> Article | Absent:
        """The article, with its wikitext as plain text."""
        if self.namespace != 0:
            return Absent(self.title, "not an article")
        if self.redirect:
            return Absent(self.title, "redirect")
        wiki, revisions = self.wiki, self.revisions
        marked, categories, templates = parse(revisions.text, wiki)
        text, lead = split_sections(marked)
        if not text:
            return Absent(self.title, "no text")
        return Article(
            id=f"{wiki.language}-{self.page_id}",
            language=wiki.language,
            title=self.title,
            page_id=self.page_id,
            url=wiki_url(wiki.edition, self.title),
            text=text,
            lead=lead,
            revision=int(revisions.revision) if revisions.revision else None,
            categories=categories,
            templates=templates,
            timestamp=revisions.timestamp or None,
            size=len(revisions.text.encode()),
            edits=revisions.count if self.history else None,
            editors=len(revisions.people - {""}) if self.history else None,
        )


def draw_articles(pages: Iterable[Page], chain: FilterChain, count: int, *, seed: int = 0) -> list[Article]:
    """A random sample of the articles of a dump that pass the filters; memory holds `count` of them.

    Every page has a rank by the hash of seed and page number; the `count` lowest that pass are drawn. A page that ranks
    after `count` articles found so far is not read (`FilterReport.not_drawn`).

    Returns:
        The articles in the dump's order; fewer than `count` if no more pass.
    """
    heap: list[tuple[int, int, Article]] = []  # the highest rank first
    for index, page in enumerate(pages):
        rank = draw_rank(seed, str(page.page_id))
        if len(heap) == count and page.namespace == 0 and not page.redirect and rank >= -heap[0][0]:
            chain.report.met += 1
            chain.report.not_drawn += 1
            continue
        article = chain.judge(page.article())
        if article is not None:
            if len(heap) < count:
                heapq.heappush(heap, (-rank, index, article))
            elif rank < -heap[0][0]:
                heapq.heapreplace(heap, (-rank, index, article))
    return [article for _, _, article in sorted(heap, key=lambda entry: entry[1])]


def open_dump(path: str | Path, *, language: str | None = None) -> Iterator[Page]:
    """The pages of a dump with their wikitext, in its order; `Page.article` gives plain text.

    Args:
        path: the file.
        language: of the wiki, if the dump does not state it or the script matters (`zh-Hant`).

    Raises:
        InputError: not a dump, damaged or truncated; pages before the damage were yielded.
        MissingExtraError: the parser of wikitext is not installed.
    """
    from xml.etree.ElementTree import ParseError, iterparse  # current versions of expat limit entity expansion

    history = "history" in Path(path).name
    pages = 0
    try:
        with _opened(path) as file:
            events = iterparse(file, events=("start", "end"))  # noqa: S314
            _, root = next(events)
            if _tag(root) != "mediawiki":
                raise InputError("is not a dump of a wiki", "Give a pages-articles.xml.bz2.", path=str(path))
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
                    parts = {_tag(child): child for child in element}
                    yield Page(
                        wiki or _wiki(element, root, language, str(path)),
                        _text(parts.get("title")),
                        int(_text(parts.get("id"))),
                        int(_text(parts.get("ns")) or 0),
                        "redirect" in parts,
                        collected,
                        history,
                    )
                    pages += 1
                    collected = _Revisions()
                    root.clear()
    except (ParseError, EOFError, OSError, lzma.LZMAError, ValueError) as error:
        if isinstance(error, FileNotFoundError):
            raise InputError.of(error, path) from error
        raise InputError(
            f"is damaged or cut off after {pages:,} pages ({error})",
            "Download the file again, and compare its checksum.",
            path=str(path),
        ) from error


class _Revisions:
    """The newest revision of a page, and the numbers of its revisions and editors."""

    def __init__(self) -> None:
        self.count = 0
        self.people = set[str]()
        self.timestamp = self.revision = self.text = ""

    def add(self, element: Element) -> None:
        self.count += 1
        parts = {_tag(child): child for child in element}
        fields = {_tag(child): child.text or "" for child in parts.get("contributor", ())}
        self.people.add(fields.get("username") or fields.get("ip") or "")
        timestamp = _text(parts.get("timestamp"))
        if timestamp >= self.timestamp:
            self.timestamp, self.revision, self.text = timestamp, _text(parts.get("id")), _text(parts.get("text"))


def _wiki(siteinfo: Element, root: Element, language: str | None, path: str) -> Wiki:
    """The wiki described in a dump; `language` overrides."""
    parts = {_tag(child): child for child in siteinfo}
    base = urlsplit(_text(parts.get("base"))).hostname or ""
    edition = base.partition(".")[0] if base.endswith(".wikipedia.org") else ""
    edition = edition or _text(parts.get("dbname")).removesuffix("wiki").replace("_", "-")
    edition = edition or root.get("{http://www.w3.org/XML/1998/namespace}lang", "")
    tag = get_language(language).tag if language else _language_of(edition) if edition else None
    if tag is None:
        raise InputError("does not say which language it is in", "Name it: --language de.", path=path)
    names = {"6": {"file", "image"}, "14": {"category"}}
    for namespace in parts.get("namespaces", ()):
        if namespace.get("key") in names and namespace.text:
            names[namespace.get("key", "")].add(namespace.text.casefold())
    return Wiki(tag, edition or tag, frozenset(names["6"]), frozenset(names["14"]))


def _language_of(edition: str) -> str:
    """The language tag of an edition; the inverse of `edition_of`."""
    back = {name: tag for tag, name in table("editions").items() if name}
    return get_language(back.get(edition, edition)).tag


@contextmanager
def _opened(path: str | Path) -> Iterator[IO[bytes]]:
    with Path(path).open("rb") as raw:
        head = raw.read(6)
        raw.seek(0)
        if head.startswith(_SEVEN_ZIP):
            raise InputError("is a 7z archive", "Unpack it, or take the .bz2 of the same dump.", path=str(path))
        opener = next((opener for magic, opener in _OPENERS.items() if head.startswith(magic)), None)
        with opener(raw, "rb") if opener is not None else nullcontext(raw) as file:
            yield file


def _tag(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _text(element: Element | None) -> str:
    return (element.text or "") if element is not None else ""

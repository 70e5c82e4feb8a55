"""Plain text of wikitext, with what the page uses: categories and templates.

mwparserfromhell parses; what of the tree is text is decided here, as its own `strip_code` leaves picture captions,
references and category links in. Templates are not expanded, for want of their text: all but a few that only wrap a
text (`text_templates.json`) are left out, and the empty parentheses they leave behind too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec

from veriglot.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from mwparserfromhell.nodes import Node, Tag, Template, Wikilink
    from mwparserfromhell.wikicode import Wikicode

__all__ = ["Namespaces", "Parsed", "parse"]

_DROPPED = frozenset(
    {
        "ref",
        "references",
        "gallery",
        "math",
        "chem",
        "ce",
        "table",
        "style",
        "script",
        "timeline",
        "imagemap",
        "score",
        "syntaxhighlight",
        "source",
        "hiero",
        "graph",
        "templatestyles",
        "indicator",
        "section",
        "mapframe",
        "maplink",
        "inputbox",
        "categorytree",
        "includeonly",
        "pre",
        "noinclude",
    }
)  # tags whose content is no running text
_MAGIC = re.compile(r"__[^\W\d_]+__")
_EMPTY = re.compile(r"[ \t]*[(（\[]\s*(?:[;,:،、，；/–-]\s*)*[)）\]]")
_OPENING = re.compile(r"([(（])\s*(?:[;,،、，；]\s*)+")
_CLOSING = re.compile(r"(?:\s*[;,،、，；])+\s*([)）])")
_GAPS = re.compile(r"[ \t\u00a0]{2,}")
_BEFORE = re.compile(r"[ \t]+([,.;:!?)](?:\s|$))")
_VARIANTS = re.compile(r"-\{(.*?)\}-", re.DOTALL)
_LANGUAGE_TEMPLATE = re.compile(r"lang-[a-z]{2,3}(-[a-z]{2,8})*")  # {{lang-pt|...}}
_CENTURIES = {"s", "s-"}  # French centuries; in Italian, {{S|biografie}} marks a stub
_ROMAN = re.compile(r"[ivx]+", re.IGNORECASE)
_LANGUAGE_PREFIX = re.compile(r"[a-z]{2,3}(-[a-z]{2,12}){0,2}")


@dataclass(frozen=True)
class Namespaces:
    """What the namespaces of files and categories are called in a wiki, in lower case; the English names hold too."""

    file: frozenset[str] = frozenset({"file", "image"})
    category: frozenset[str] = frozenset({"category"})

    def with_names(self, *, file: Collection[str] = (), category: Collection[str] = ()) -> Namespaces:
        """The same with further names."""
        return Namespaces(
            self.file | {name.casefold() for name in file}, self.category | {name.casefold() for name in category}
        )


@dataclass(frozen=True)
class Parsed:
    """What wikitext holds.

    Attributes:
        marked: plain text whose headings are written `== Heading ==`; see `article.split_sections`.
        categories: in order, without namespace and sort key.
        templates: names without namespace, each once, in order; those inside other templates' arguments too.
    """

    marked: str
    categories: tuple[str, ...]
    templates: tuple[str, ...]


def parse(wikitext: str, namespaces: Namespaces | None = None, *, variants: Collection[str] = ()) -> Parsed:
    """Read the wikitext of a page.

    Args:
        wikitext: as in a dump.
        namespaces: of the wiki.
        variants: which of the forms in `-{zh-hans:...; zh-hant:...}-` to take, best first; else the first one there.

    Raises:
        MissingExtraError: the parser is not installed.
    """
    try:
        import mwparserfromhell
    except ModuleNotFoundError as error:
        raise MissingExtraError("Reading a dump", "wikipedia") from error
    code = mwparserfromhell.parse(_VARIANTS.sub(lambda found: _variant(found[1], variants), wikitext))
    reader = _Reader(namespaces or Namespaces())
    text = "".join(reader.text_of(code))
    templates = dict.fromkeys(_name_of(template) for template in code.filter_templates(recursive=True))
    return Parsed(_tidy(text), tuple(dict.fromkeys(reader.categories)), tuple(name for name in templates if name))


class _Reader:
    def __init__(self, namespaces: Namespaces) -> None:
        self._namespaces = namespaces
        self.categories: list[str] = []

    def text_of(self, code: Wikicode | None) -> Iterator[str]:
        """The text of a piece of wikitext, in pieces."""
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
            else:
                yield from self._rest(node)

    def _rest(self, node: Node) -> Iterator[str]:
        from mwparserfromhell import nodes

        if isinstance(node, nodes.Heading):
            title = "".join(self.text_of(node.title)).strip()
            yield f"\n{'=' * node.level} {title} {'=' * node.level}\n" if title else "\n"
        elif isinstance(node, nodes.HTMLEntity):
            yield node.normalize() or ""
        elif isinstance(node, nodes.ExternalLink) and node.title is not None:
            yield from self.text_of(node.title)

    def _link(self, node: Wikilink) -> Iterator[str]:
        title = str(node.title).strip()
        prefix, colon, rest = title.partition(":")
        prefix = prefix.replace("_", " ").strip().casefold()
        if colon and prefix in self._namespaces.category:
            self.categories.append(rest.replace("_", " ").strip())
        elif colon and (prefix in self._namespaces.file or (not node.text and _LANGUAGE_PREFIX.fullmatch(prefix))):
            return
        elif node.text is not None and str(node.text).strip():
            yield from self.text_of(node.text)
        else:
            yield title.removeprefix(":")

    def _tag(self, node: Tag) -> Iterator[str]:
        name = str(node.tag).strip().casefold()
        if name in ("br", "hr"):
            yield "\n"
        elif name not in _DROPPED:
            yield from self.text_of(node.contents)
            if name in ("p", "div", "li") and node.contents:
                yield "\n"

    def _template(self, node: Template) -> Iterator[str]:
        name = _name_of(node).casefold()
        form = _text_templates().get(name, "{1}" if _LANGUAGE_TEMPLATE.fullmatch(name) else None)
        if form is None:
            yield from self._number(node)
            return
        values = {
            str(parameter.name).strip(): "".join(self.text_of(parameter.value)).strip() for parameter in node.params
        }
        if name in _CENTURIES and not _ROMAN.fullmatch(values.get("1", "")):
            return
        yield re.sub(r"\{(\d)\}", lambda found: values.get(found[1], ""), form).strip(" ") or (
            " " if form == " " else ""
        )

    def _number(self, node: Template) -> Iterator[str]:
        """The number of `{{formatnum:1234}}`, which is no template but looks like one; without, a fact is lost."""
        call, colon, number = str(node.name).strip().partition(":")
        if colon and call.casefold() == "formatnum":
            yield number.strip()


@cache
def _text_templates() -> dict[str, str]:
    return msgspec.json.decode(files(__package__).joinpath("text_templates.json").read_bytes(), type=dict[str, str])


def _name_of(template: Template) -> str:
    """A template's name: `Foo bar` of `{{ template:Foo_bar <!-- x --> }}`; that of a parser function is empty."""
    name = str(template.name.strip_code(normalize=False, collapse=False)).replace("_", " ").strip()
    if name.startswith("#") or ":" in name:
        name = name.partition(":")[2].strip() if name.casefold().startswith(("template:", "t:")) else ""
    return " ".join(name.split())


def _variant(inner: str, variants: Collection[str]) -> str:
    """The text of a conversion `-{...}-` of wikis that are written in several scripts."""
    flags, bar, content = inner.partition("|")
    if not bar:
        content = inner
    elif set(flags.strip().upper()) & set("THD-"):  # rules for elsewhere: title, glossary, description
        return ""
    forms = dict(part.strip().split(":", 1) for part in content.split(";") if re.match(r"\s*[a-z]+(-[a-z]+)?:", part))
    if not forms:
        return content
    plain = {name.strip(): text.strip() for name, text in forms.items()}
    return next((plain[name] for name in variants if name in plain), next(iter(plain.values())))


def _tidy(text: str) -> str:
    """Text without the traces of what was left out."""
    for _ in range(3):  # parentheses in parentheses
        text, found = _EMPTY.subn("", text)
        if not found:
            break
    text = _OPENING.sub(r"\1", text)
    text = _CLOSING.sub(r"\1", text)
    text = _GAPS.sub(" ", text)
    text = _BEFORE.sub(r"\1", text)
    return "\n".join(line.strip() for line in text.splitlines())

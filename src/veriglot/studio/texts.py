"""Texts for the page: items, guidelines as safe HTML, and the texts of the interface.

HTML in Markdown is shown as text, nothing is loaded, links lead to the web.

Examples have a block of their own, one `label: text` per line, with Veriglot's inline tags:

    ```example de
    Evidence: Der Turm steht in Paris.
    Answer: Der Turm steht in <entity>Rom</entity>.
    ```

The word after `example` is the language of the texts, and is optional; `Source [de]: ...` is a line in another
language.
"""

from __future__ import annotations

import json
import re
from functools import cache, lru_cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import msgspec
from fastapi import Request  # noqa: TC002  # the call reads its annotations

from veriglot.errors import InputError
from veriglot.records import Pointer, Sample
from veriglot.records.settings import Record
from veriglot.report import text_layout
from veriglot.studio.project import LANGUAGE_TAG, Project, TaskKind
from veriglot.studio.web import Router, SignedIn, Studio, Studios, Tag, view
from veriglot.text.normalization import fold
from veriglot.text.segmentation import sentences
from veriglot.text.segmentation import words as word_ranges

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token


__all__ = [
    "Direction",
    "SharedView",
    "direction",
    "interface_languages",
    "item_view",
    "router",
    "sample_of",
    "shared_words",
    "words_of",
]


Direction = Literal["ltr", "rtl"]


class EvidenceView(Record):
    """A passage; `url` only if it is a web address."""

    id: str
    title: str | None
    text: str
    language: str | None
    direction: Direction
    url: str | None


class ItemView(Record):
    """An item: its texts, and the ranges of words, sentences and units.

    `units` are to be labelled, if the form has any; `original` is the sentence before the edit, in pairs.
    """

    id: int
    language: str | None
    direction: Direction
    question: str | None
    question_direction: Direction | None
    response: str
    evidence: list[EvidenceView]
    words: list[tuple[int, int]]
    sentences: list[tuple[int, int]]
    units: list[tuple[int, int]]
    original: str | None


class SharedWord(Record):
    """A word of the response with its first occurrences in the evidence."""

    start: int
    end: int
    places: list[Pointer]


class SharedView(Record):
    """The words of the response that also occur in the evidence, in order."""

    words: list[SharedWord]


# Items for the page. An item never changes after its import, so computed views are cached.


_CACHED = 256  # items
_MAX_PLACES = 20  # of one word in the evidence


@lru_cache(_CACHED)
def sample_of(studio: Studio, item_id: int) -> Sample:
    """The texts of an item."""
    with studio.store.reading() as tx:
        return tx.sample(item_id)


@lru_cache(_CACHED)
def item_view(studio: Studio, item_id: int) -> msgspec.Raw:
    """An item for the page, encoded."""
    return msgspec.Raw(msgspec.json.encode(_item_view(studio, item_id, sample_of(studio, item_id))))


@lru_cache(_CACHED)
def shared_words(studio: Studio, item_id: int) -> msgspec.Raw:
    """The words of a response that also occur in its evidence, as an encoded `SharedView`."""
    return msgspec.Raw(msgspec.json.encode(_shared_words(sample_of(studio, item_id))))


def direction(text: str, tag: str | None) -> Direction:
    """The direction of a text: that of its language, unless its letters have the other one."""
    way = text_layout.direction(text, tag)
    return "ltr" if way == "auto" else way


def _item_view(studio: Studio, item_id: int, sample: Sample) -> ItemView:
    form, question = studio.project.form, sample.question
    return view(
        ItemView,
        sample,
        id=item_id,
        direction=direction(sample.response, sample.language),
        question_direction=None if question is None else direction(question, sample.language),
        evidence=[
            view(
                EvidenceView,
                passage,
                id=passage.id or "",
                direction=direction(passage.text, passage.language),
                url=_web_address(passage.url),
            )
            for passage in sample.evidence
        ],
        words=word_ranges(sample.response, sample.language),
        sentences=sentences(sample.response, sample.language),
        units=form.units_of(sample),
        original=sample.evidence_text if form.task is TaskKind.PAIRS else None,
    )


def _web_address(url: str | None) -> str | None:
    """The address, if it is a web address: a click on `javascript:` would run code from a file."""
    try:
        parts = urlsplit(url or "")
    except ValueError:
        return None
    return url if parts.scheme in {"http", "https"} and parts.netloc else None


def _shared_words(sample: Sample) -> SharedView:
    """The words of a response that also occur in its evidence, ignoring case, accents and the like."""
    places: dict[str, list[Pointer]] = {}
    for passage in sample.evidence:
        for start, end in word_ranges(passage.text, passage.language or sample.language):
            same = places.setdefault(fold(passage.text[start:end]), [])
            if len(same) < _MAX_PLACES:
                same.append(Pointer(passage.id or "", start, end))
    ranges = word_ranges(sample.response, sample.language)
    matches = ((start, end, places.get(fold(sample.response[start:end]))) for start, end in ranges)
    return SharedView([SharedWord(start, end, same) for start, end, same in matches if same])


# Guidelines.


_LONGEST = 200_000  # characters; nobody reads longer guidelines
_MARKED = re.compile(r"<([a-z][a-z0-9_]{0,63})>(.*?)</\1>", re.DOTALL)
_LABELLED = re.compile(r"([^:：<>\[\]]{1,40})(?:\[([^\[\]]*)\])?\s*[:：]\s*(.*)", re.DOTALL)


def render(markdown: str) -> str:
    """Guidelines as HTML.

    The elements are those of CommonMark, tables and strikethrough, without images and HTML of the author; headings
    start at the second level, because the page has its own title. Marked spans of examples are `mark` elements with the
    type in `data-type` and as a visible word.
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
    maker.validateLink = lambda url: url.lower().startswith(("https://", "http://", "mailto:", "#"))  # type: ignore[method-assign]
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


def _heading(_: RendererHTML, tokens: Sequence[Token], index: int, *_rest: Any) -> str:
    level = min(int(tokens[index].tag[1]) + 1, 6)
    return f"<h{level}>" if tokens[index].nesting > 0 else f"</h{level}>\n"


def _link(_: RendererHTML, tokens: Sequence[Token], index: int, *_rest: Any) -> str:
    address = str(tokens[index].attrGet("href") or "")
    away = "" if address.startswith("#") else ' target="_blank" rel="noopener noreferrer"'
    return f'<a href="{escape(address)}"{away}>'


def _cell(_: RendererHTML, tokens: Sequence[Token], index: int, *_rest: Any) -> str:
    """Without the alignment, an inline style that the page's security policy forbids."""
    return f"<{tokens[index].tag}>"


def _fence(_: RendererHTML, tokens: Sequence[Token], index: int, *_rest: Any) -> str:
    token = tokens[index]
    kind, language = (*token.info.split(), "", "")[:2]
    if kind != "example":
        return f"<pre><code>{escape(token.content)}</code></pre>\n"
    return _example(token.content, language)


def _example(content: str, language: str) -> str:
    rows = []
    for line in content.splitlines():
        match = _LABELLED.fullmatch(line.strip())
        label, own, text = (match[1].strip(), match[2], match[3]) if match else ("", None, line.strip())
        if label or text:
            tag = language if own is None else own.strip()
            lang_attribute = f' lang="{tag}"' if LANGUAGE_TAG.fullmatch(tag) else ""
            way = direction(_MARKED.sub(r"\2", text), None)
            rows.append(f'<div><dt>{escape(label)}</dt><dd{lang_attribute} dir="{way}">{_marked(text)}</dd></div>')
    return f'<dl class="example">{"".join(rows)}</dl>\n'


def _marked(text: str) -> str:
    """A text with its tags as `mark` elements; unpaired tags stay text."""
    made, end = [], 0
    for match in _MARKED.finditer(text):
        made.append(escape(text[end : match.start()]))
        inner, name = _marked(match[2]), match[1]
        made.append(f'<mark data-type="{name}">{inner}<span class="mark-type" lang="en">{name}</span></mark>')
        end = match.end()
    return "".join([*made, escape(text[end:])])


# Choice of guidelines: the project's own, else Veriglot's for the taxonomy.
#
# Veriglot's are data files beside this one, `<taxonomy>.<language>.md`, in our own words after the papers: `fava` after
# mFAVA (figure 8), `hat` after HAT (section 3.4), `support` after Kang et al. 2024 (section 5.1), `halluverse` after
# HalluVerse25 (appendix B).


_FALLBACK = "en"


class Guidelines(Record):
    """Guidelines as HTML, made here from Markdown, without HTML of the author."""

    language: str
    direction: Direction
    html: str


def guidelines(project: Project, language: str) -> Guidelines:
    """The guidelines of a project in a language, or in the closest available one.

    The project's own come first: in the language, in its base language (`pt` for `pt-BR`), in English, in any. If a
    project has none, Veriglot's are used; if its taxonomy has none, a list of its types.
    """
    tag, markdown = _own(project, language) or _built_in(project, language) or (_FALLBACK, _listed(project))
    return Guidelines(tag, direction(markdown, tag), render(markdown))


def _own(project: Project, language: str) -> tuple[str, str] | None:
    own = project.entries.guidelines
    for tag in (*_tags(language), *own):
        if tag in own:
            path = project.resolve(own[tag])
            try:
                return tag, path.read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(f"the guidelines cannot be read: {error}", path=str(path)) from error
    return None


def _built_in(project: Project, language: str) -> tuple[str, str] | None:
    for tag in _tags(language):
        entry = files(__package__) / "guidelines" / f"{project.form.taxonomy}.{tag}.md"
        if entry.is_file():
            return tag, entry.read_text("utf-8")
    return None


def _listed(project: Project) -> str:
    """The types or labels of a project's taxonomy, with their meanings."""
    form = project.form
    choices = form.types or form.unit_labels or form.labels
    lines = [f"- **{choice.name}**: {choice.meaning}" for choice in choices]
    return "\n".join([f"# {project.name}", "", *lines, ""])


def _tags(language: str) -> Iterator[str]:
    """The tag, shortened step by step, then English; only valid tags, because a tag is part of a file name."""
    parts = [part for part in language.split("-") if part.isascii() and part.isalnum()]
    for length in range(len(parts), 0, -1):
        yield "-".join(parts[:length])
    yield _FALLBACK


@cache
def _interface_words() -> dict[str, dict[str, str]]:
    """Interface texts by language; missing texts are English."""
    folder = files("veriglot.studio") / "words"
    texts = {entry.name.removesuffix(".json"): json.loads(entry.read_text("utf-8")) for entry in folder.iterdir()}
    return {tag: texts[_FALLBACK] | own for tag, own in sorted(texts.items())}


def interface_languages(project: Project) -> list[str]:
    """Interface languages that people of a project may choose."""
    chosen = project.entries.project.interface
    return [tag for tag in _interface_words() if not chosen or tag in chosen] or [_FALLBACK]


def words_of(tag: str) -> tuple[str, dict[str, str]]:
    """The texts for a language tag, and their language: its own, its base language, or English."""
    for candidate in (tag, tag.partition("-")[0]):
        if candidate in _interface_words():
            return candidate, _interface_words()[candidate]
    return _FALLBACK, _interface_words()[_FALLBACK]


router = Router()


class WordsView(Record):
    """The texts of the interface in a language; missing ones are English."""

    language: str
    direction: Direction
    languages: list[str]
    words: dict[str, str]


@router.call("GET", "/api/words/{language}")
def words(request: Request, language: str) -> WordsView:
    """The texts of the interface in a language; missing ones are English."""
    tag, words = words_of(language)
    studios: Studios = request.app.state.studios
    offered = sorted({tag for studio in studios for tag in interface_languages(studio.project)})
    return WordsView(tag, direction("", tag), offered, words)


@router.call("GET", "/api/guidelines")
def show_guidelines(caller: SignedIn, language: Tag = None) -> Guidelines:
    """The guidelines of the project, in the requested language if available."""
    return guidelines(caller.studio.project, language or caller.person.language or "en")

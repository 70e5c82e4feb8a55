"""Texts as the page shows them: items, guidelines as safe HTML, and the words of the interface.

Markup in Markdown is shown as text, nothing is loaded, links lead to the web.

Examples stand in a block of their own, one `label: text` a line, marked with the house's inline tags:

    ```example de
    Evidence: Der Turm steht in Paris.
    Answer: Der Turm steht in <entity>Rom</entity>.
    ```

The word after `example` is the language of the texts, and may be left out; `Source [de]: ...` is a line in another one.
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
]


Direction = Literal["ltr", "rtl"]


class EvidenceView(Record):
    """A passage; `url` only where it is a web address."""

    id: str
    title: str | None
    text: str
    language: str | None
    direction: Direction
    url: str | None


class ItemView(Record):
    """What is annotated: its texts, and where their words, sentences and facts lie.

    `units` are the ones to label, where the form has any; `original` is the sentence that was changed, in pairs.
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
    """A word of the response with the places of the evidence where it occurs too, the first of them."""

    start: int
    end: int
    places: list[Pointer]


class SharedView(Record):
    """The words of the response that occur in the evidence too, in order."""

    words: list[SharedWord]


# Items as people see them. An item never changes after its import, so what is made of its texts is cached.


_CACHED = 256  # items
_MAX_PLACES = 20  # of one word in the evidence


@lru_cache(_CACHED)
def sample_of(studio: Studio, item_id: int) -> Sample:
    """The texts of an item."""
    with studio.store.reading() as tx:
        return tx.sample(item_id)


@lru_cache(_CACHED)
def item_view(studio: Studio, item_id: int) -> msgspec.Raw:
    """An item as the page shows it, encoded."""
    return msgspec.Raw(msgspec.json.encode(_item_view(studio, item_id, sample_of(studio, item_id))))


@lru_cache(_CACHED)
def shared_words(studio: Studio, item_id: int) -> msgspec.Raw:
    """The words of a response that its evidence holds too, as a `SharedView`, encoded."""
    return msgspec.Raw(msgspec.json.encode(_shared_words(sample_of(studio, item_id))))


def direction(text: str, tag: str | None) -> Direction:
    """The direction to lay out a text in: its language's, unless its letters run the other way."""
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
    """The address, where it is one of the web: a click on `javascript:` runs what a file brought."""
    try:
        parts = urlsplit(url or "")
    except ValueError:
        return None
    return url if parts.scheme in {"http", "https"} and parts.netloc else None


def _shared_words(sample: Sample) -> SharedView:
    """The words of a response that occur in its evidence too, without regard to case, accents and such."""
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


_LONGEST = 200_000  # characters; guidelines that nobody reads
_MARKED = re.compile(r"<([a-z][a-z0-9_]{0,63})>(.*?)</\1>", re.DOTALL)
_LABELLED = re.compile(r"([^:：<>\[\]]{1,40})(?:\[([^\[\]]*)\])?\s*[:：]\s*(.*)", re.DOTALL)


def render(markdown: str) -> str:
    """Guidelines as HTML.

    The elements are those of CommonMark, tables and struck text, without images and without any markup of the author's;
    headings begin at the second level, since the page has one of its own. Marked places of examples are `mark` elements
    with the type in `data-type` and as a visible word.
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
    """Without the alignment, which is an inline style that the page's policy refuses."""
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
    """A text with its tags as `mark` elements; tags that have no other half are text."""
    made, end = [], 0
    for match in _MARKED.finditer(text):
        made.append(escape(text[end : match.start()]))
        inner, name = _marked(match[2]), match[1]
        made.append(f'<mark data-type="{name}">{inner}<span class="mark-type" lang="en">{name}</span></mark>')
        end = match.end()
    return "".join([*made, escape(text[end:])])


# Which guidelines somebody reads: the project's own, else the ones that Veriglot ships for its taxonomy.
#
# Shipped ones are data files beside this one, `<taxonomy>.<language>.md`, in our own words after the papers: `fava`
# after mFAVA (figure 8), `hat` after HAT (section 3.4), `support` after Kang et al. 2024 (section 5.1), `halluverse`
# after HalluVerse25 (appendix B).


_FALLBACK = "en"


class Guidelines(Record):
    """Guidelines to read, as HTML that was made here from Markdown and holds no markup of its author's."""

    language: str
    direction: Direction
    html: str


def guidelines(project: Project, language: str) -> Guidelines:
    """The guidelines of a project in a language, or in the nearest that there are.

    The project's own come first: in the language, in its base language (`pt` for `pt-BR`), in English, in any. Only
    where a project has none of its own are the shipped ones taken; where its taxonomy has none, a list of its types.
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
    """The types or labels of a taxonomy of the project's own, with what they mean."""
    form = project.form
    choices = form.types or form.unit_labels or form.labels
    lines = [f"- **{choice.name}**: {choice.meaning}" for choice in choices]
    return "\n".join([f"# {project.name}", "", *lines, ""])


def _tags(language: str) -> Iterator[str]:
    """The tag, shorter and shorter, then English; only what can be a tag: it becomes a part of a file's name."""
    parts = [part for part in language.split("-") if part.isascii() and part.isalnum()]
    for length in range(len(parts), 0, -1):
        yield "-".join(parts[:length])
    yield _FALLBACK


@cache
def _interface_words() -> dict[str, dict[str, str]]:
    """Words by language; each language has English ones where it lacks its own."""
    folder = files("veriglot.studio") / "words"
    texts = {entry.name.removesuffix(".json"): json.loads(entry.read_text("utf-8")) for entry in folder.iterdir()}
    return {tag: texts[_FALLBACK] | own for tag, own in sorted(texts.items())}


def interface_languages(project: Project) -> list[str]:
    """Languages that people of a project may choose for the interface."""
    chosen = project.entries.project.interface
    return [tag for tag in _interface_words() if not chosen or tag in chosen] or [_FALLBACK]


def words_of(tag: str) -> tuple[str, dict[str, str]]:
    """The words of a language, and the language that they are in: its own, its base language's, or English."""
    for candidate in (tag, tag.partition("-")[0]):
        if candidate in _interface_words():
            return candidate, _interface_words()[candidate]
    return _FALLBACK, _interface_words()[_FALLBACK]


router = Router()


class WordsView(Record):
    """The texts of the interface: those of the language, and English ones where it has none."""

    language: str
    direction: Direction
    languages: list[str]
    words: dict[str, str]


@router.call("GET", "/api/words/{language}")
def words(request: Request, language: str) -> WordsView:
    """The interface's words in a language; those that it lacks are English."""
    tag, words = words_of(language)
    studios: Studios = request.app.state.studios
    offered = sorted({tag for studio in studios for tag in interface_languages(studio.project)})
    return WordsView(tag, direction("", tag), offered, words)


@router.call("GET", "/api/guidelines")
def show_guidelines(caller: SignedIn, language: Tag = None) -> Guidelines:
    """The guidelines of the project, in the language asked for where there are such."""
    return guidelines(caller.studio.project, language or caller.person.language or "en")

"""Pages about people, and their sentences; which of them are too short to choose facts from (halluverse25, 3.1)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from veriglot.build.references import Reference  # msgspec reads it at run time
from veriglot.formats.garbled import garbled
from veriglot.run import FailedRow
from veriglot.sources import Person
from veriglot.text import sentences, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["LEAST_SENTENCES", "Page", "Unfit", "page_sentences", "pages_of", "unfit"]

LEAST_SENTENCES = 20  # halluverse25, 3.1

Unfit = Literal["nobody", "short", "garbled"]

_FEWEST_WORDS = 4
_ENDS = frozenset(".!?…。！？؟۔।॥։።๚")
_CLOSERS = "\"'”’»」』）)]›"
_NOTE = re.compile(r"\[(?:\d{1,3}|[a-z]|\w{1,8} \d{1,3})\]")
_WITHOUT_MARKS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]$")  # Thai, Lao, Burmese, Khmer


class Page(msgspec.Struct, frozen=True):
    """A page about a person.

    Attributes:
        reference: the page.
        person: whom it is about; None where nobody said.
    """

    reference: Reference
    person: Person | None = None

    @property
    def id(self) -> str:
        """The page's."""
        return self.reference.id

    @property
    def language(self) -> str:
        """BCP 47 tag."""
        return self.reference.language

    @property
    def group(self) -> str:
        """What is the same for pages about one person: their item, or else the page's own id."""
        return self.person.id if self.person is not None else str(self.reference.meta.get("item") or self.id)

    @property
    def names(self) -> tuple[str, ...]:
        """What the person may be called on the page, the best first."""
        known = self.person.names.get(self.language, "") if self.person is not None else ""
        title = re.sub(r"\s*[(（][^()（）]*[)）]\s*$", "", self.reference.title)
        return tuple(dict.fromkeys(name for name in (known, title) if name))


def pages_of(rows: Iterable[Reference | FailedRow], people: Mapping[str, Person] | None) -> Iterator[Page | FailedRow]:
    """The pages with whom they are about: by Wikidata's item, or by language and title.

    Args:
        rows: pages as `veriglot build articles` writes them, read with `part="text"`.
        people: by item; None where nobody is known.
    """
    titled = {(tag, title): one for one in (people or {}).values() for tag, title in one.titles.items()}
    for row in rows:
        if isinstance(row, FailedRow):
            yield row
            continue
        item = str(row.meta.get("item") or "")
        yield Page(row, (people or {}).get(item) or titled.get((row.language, row.title)))


def unfit(page: Page, *, least: int = LEAST_SENTENCES, known: bool = False) -> tuple[Unfit, str] | None:
    """Why no facts are chosen from a page, and the same in words; None where they are.

    Args:
        page: the page.
        least: sentences that it has to have.
        known: whether it has to be about a known person.
    """
    if known and page.person is None:
        return "nobody", "the page is about none of the people"
    if garbled(page.reference.text) is not None:
        return "garbled", "the page loops, or holds unknown characters"
    found = len(page_sentences(page.reference.text, page.language))
    if found < least:
        return "short", f"the page has {found} sentences, and {least} are needed"
    return None


def page_sentences(text: str, language: str) -> list[str]:
    """The sentences of a page in order: at least four words that end as sentences do; headings and lists are none.

    Marks of notes, such as `[3]`, are left out.
    """
    found = []
    for line in _NOTE.sub("", text).splitlines():
        for start, end in sentences(line, language):
            one = line[start:end].strip()
            if one and _ends(one) and len(words(one, language)) >= _FEWEST_WORDS:
                found.append(one)
    return found


def _ends(sentence: str) -> bool:
    bare = sentence.rstrip(_CLOSERS)
    return bare[-1:] in _ENDS or _WITHOUT_MARKS.search(bare) is not None

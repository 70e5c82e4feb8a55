"""Items as people see them: texts with their directions, cut into words and sentences once and kept.

What an item says never changes after its import, so what is made of it is kept by its id.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import urlsplit

import msgspec

from veriglot.annotate.checking import units_of
from veriglot.annotate.entries import TaskKind
from veriglot.errors import UsageError
from veriglot.records.languages import language as known_language
from veriglot.text import direction_of, fold, sentences, word_bounds
from veriglot.web.studio.views import EvidenceView, ItemView, SharedPlace, SharedView, SharedWord

if TYPE_CHECKING:
    from collections.abc import Callable

    from veriglot.records import Sample
    from veriglot.web.studio.studios import Studio
    from veriglot.web.studio.views import Direction

__all__ = ["Kept", "Shown", "direction", "shared"]

T = TypeVar("T")
_MOST_PLACES = 20  # of one word in the evidence


class Kept(Generic[T]):
    """The latest of what was made, by key; for threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._made: OrderedDict[tuple[object, ...], T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        """What is kept under a key; made where nothing is."""
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                return self._made[key]
        made = make()
        with self._lock:
            self._made[key] = made
            while len(self._made) > self._most:
                self._made.popitem(last=False)
        return made


class Shown:
    """Samples and views of items."""

    def __init__(self, most: int = 256) -> None:
        self._samples: Kept[Sample] = Kept(most)
        self._views: Kept[msgspec.Raw] = Kept(most)
        self._shared: Kept[msgspec.Raw] = Kept(most)

    def sample(self, studio: Studio, item_id: int) -> Sample:
        """The texts of an item."""

        def read() -> Sample:
            with studio.store.reading() as tx:
                return tx.sample(item_id)

        return self._samples.get((studio.slug, item_id), read)

    def item(self, studio: Studio, item_id: int) -> msgspec.Raw:
        """An `ItemView`, encoded."""
        return self._views.get(
            (studio.slug, item_id),
            lambda: msgspec.Raw(msgspec.json.encode(_view(studio, item_id, self.sample(studio, item_id)))),
        )

    def shared(self, studio: Studio, item_id: int) -> msgspec.Raw:
        """A `SharedView`, encoded."""
        return self._shared.get(
            (studio.slug, item_id),
            lambda: msgspec.Raw(msgspec.json.encode(shared(self.sample(studio, item_id)))),
        )


def direction(text: str, tag: str | None) -> Direction:
    """The direction of most letters of a text; of its language where it has none."""
    found = direction_of(text)
    if found is not None or tag is None:
        return found or "ltr"
    try:
        return known_language(tag).direction
    except UsageError:
        return "ltr"


def _view(studio: Studio, item_id: int, sample: Sample) -> ItemView:
    form = studio.project.form
    question = sample.question
    return ItemView(
        id=item_id,
        language=sample.language,
        direction=direction(sample.response, sample.language),
        question=question,
        question_direction=None if question is None else direction(question, sample.language),
        response=sample.response,
        evidence=[
            EvidenceView(
                passage.id or "",
                passage.title,
                passage.text,
                passage.language,
                direction(passage.text, passage.language),
                _web_address(passage.url),
            )
            for passage in sample.evidence
        ],
        words=_words(sample.response, sample.language),
        sentences=sentences(sample.response, sample.language),
        units=units_of(form, sample),
        original="\n\n".join(passage.text for passage in sample.evidence) if form.task is TaskKind.PAIRS else None,
    )


def _words(text: str, language: str | None) -> list[tuple[int, int]]:
    return [(int(start), int(end)) for start, end in word_bounds(text, language).tolist()]


def _web_address(url: str | None) -> str | None:
    """The address, where it is one of the web: a click on `javascript:` runs what a file brought."""
    try:
        parts = urlsplit(url or "")
    except ValueError:
        return None
    return url if parts.scheme in {"http", "https"} and parts.netloc else None


def shared(sample: Sample) -> SharedView:
    """The words of a response that occur in its evidence too, without regard to case, accents and such."""
    places: dict[str, list[SharedPlace]] = {}
    for passage in sample.evidence:
        for start, end in _words(passage.text, passage.language or sample.language):
            there = places.setdefault(fold(passage.text[start:end]), [])
            if len(there) < _MOST_PLACES:
                there.append(SharedPlace(passage.id or "", start, end))
    found = []
    for start, end in _words(sample.response, sample.language):
        same = places.get(fold(sample.response[start:end]))
        if same:
            found.append(SharedWord(start, end, same))
    return SharedView(found)

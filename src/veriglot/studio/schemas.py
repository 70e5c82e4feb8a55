"""What is sent and received: the records of the API. Offsets are half-open and count code points."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from veriglot.report import text_layout
from veriglot.studio.layers import Layer, units_of
from veriglot.studio.project import Form, TaskKind
from veriglot.studio.tables import BatchState, ItemRole, Purpose, Role, State
from veriglot.text.normalization import fold
from veriglot.text.segmentation import sentences, word_bounds

if TYPE_CHECKING:
    from veriglot.records import Sample
    from veriglot.studio.settings import Studio

__all__ = [
    "Adjudication",
    "AdjudicationBody",
    "Answered",
    "AssignmentHistory",
    "AssignmentLine",
    "AssignmentView",
    "BatchView",
    "ConflictAnswer",
    "DisagreementView",
    "Disagreements",
    "ErrorAnswer",
    "EventBody",
    "EventView",
    "ExamResult",
    "GuidelinesView",
    "History",
    "InvitationBody",
    "InvitationView",
    "ItemCache",
    "ItemLine",
    "Items",
    "JoinBody",
    "Joined",
    "Link",
    "Me",
    "Next",
    "OtherLayer",
    "PersonState",
    "SettleBody",
    "SharedView",
    "Stage",
    "SubmissionView",
    "WordsView",
    "direction",
]


Range = tuple[int, int]
Direction = Literal["ltr", "rtl"]
Stage = Literal["consent", "exam", "work", "done", "out"]
_Version = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
_Text = Annotated[str, msgspec.Meta(max_length=10_000)]


class ErrorView(msgspec.Struct, frozen=True, omit_defaults=True):
    """What went wrong: a word for programs, what happened, what to do, and the field it is about."""

    code: str
    message: str
    remedy: str
    field: str | None = None


class ErrorAnswer(msgspec.Struct, frozen=True):
    """The answer to a call that failed."""

    error: ErrorView


class ConflictAnswer(msgspec.Struct, frozen=True):
    """The answer to an event that came too late: what is there now. What was sent is kept in the history."""

    error: ErrorView
    version: int
    state: State
    layer: Layer


class JoinBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Taking up a link. Who has joined before keeps their name; the other fields are then not looked at."""

    token: Annotated[str, msgspec.Meta(max_length=512)]
    name: Annotated[str, msgspec.Meta(max_length=400)] = ""
    language: Annotated[str, msgspec.Meta(max_length=64)] = "en"
    consent: bool = False


class ProjectView(msgspec.Struct, frozen=True):
    """A project, for those who take part."""

    slug: str
    name: str
    task: str


class InvitationView(msgspec.Struct, frozen=True):
    """What a link leads to, before it is taken up: `consent` by interface language."""

    project: ProjectView
    role: Role
    joined: bool
    name: str | None
    languages: list[str]
    consent: dict[str, str]


class Joined(msgspec.Struct, frozen=True):
    """The answer to a link that was taken up; the session is in a cookie."""

    stage: Stage
    csrf: str


class PersonView(msgspec.Struct, frozen=True):
    """Whoever asks."""

    id: str
    name: str | None
    role: Role
    language: str
    stage: Stage
    exam_attempts: int


class MyProject(msgspec.Struct, frozen=True):
    """The project of whoever asks, with what there is to fill in."""

    slug: str
    name: str
    task: str
    form: Form
    idle: float
    exam_attempts: int | None
    languages: list[str]


class Me(msgspec.Struct, frozen=True):
    """Whoever asks, and what a page needs to begin."""

    person: PersonView
    project: MyProject
    csrf: str
    server_version: str


class EvidenceView(msgspec.Struct, frozen=True):
    """A passage; `url` only where it is a web address."""

    id: str
    title: str | None
    text: str
    language: str | None
    direction: Direction
    url: str | None


class ItemView(msgspec.Struct, frozen=True):
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
    words: list[Range]
    sentences: list[Range]
    units: list[Range]
    original: str | None


class OtherLayer(msgspec.Struct, frozen=True):
    """What somebody else said of the item, under their public id.

    `role` and `number` are what people read in its place (`Annotator 3`); `name` is for leads, who know the names.
    """

    layer: Layer
    by: str
    assignment: int
    role: Role
    number: int
    name: str | None = None


class AssignmentView(msgspec.Struct, frozen=True):
    """An item as it was given to whoever asks."""

    id: int
    purpose: Purpose
    state: State
    version: int
    layer: Layer
    item: msgspec.Raw
    suggestions: list[dict[str, Any]] | None
    subject: OtherLayer | None
    subjects: list[OtherLayer] | None
    message: str | None
    seconds: float


class AssignmentLine(msgspec.Struct, frozen=True):
    """An assignment in a list."""

    id: int
    purpose: Purpose
    state: State
    version: int
    item: int
    language: str | None
    message: str | None
    seconds: float
    changed_at: datetime


class Next(msgspec.Struct, frozen=True):
    """What to do next, and how much is left of what is known."""

    assignment: AssignmentView | None
    left: int
    stage: Stage


class EventBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What somebody does to an assignment of theirs; the same `event_id` again is the same event."""

    event_id: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9-]{8,64}$", max_length=64)]
    base_version: _Version
    kind: Literal["opened", "save", "submit", "skip", "reopen", "confirm", "correct", "return"]
    layer: Layer | None = None
    comment: _Text | None = None
    seconds: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 0.0
    at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None

    def __post_init__(self) -> None:
        """Refuse clocks that are out of all reason: their times cannot be told in UTC."""
        if self.at is not None and not 1970 <= self.at.year <= 9000:
            raise ValueError("no clock says this")


class Answered(msgspec.Struct, frozen=True):
    """What became of an event; `repeated` where it had been sent before."""

    version: int
    state: State
    repeated: bool


class SharedPlace(msgspec.Struct, frozen=True):
    """A place in the evidence."""

    id: str
    start: int
    end: int


class SharedWord(msgspec.Struct, frozen=True):
    """A word of the response with the places of the evidence where it occurs too, the first of them."""

    start: int
    end: int
    places: list[SharedPlace]


class SharedView(msgspec.Struct, frozen=True):
    """The words of the response that occur in the evidence too, in order."""

    words: list[SharedWord]


class WordsView(msgspec.Struct, frozen=True):
    """The texts of the interface: those of the language, and English ones where it has none."""

    language: str
    direction: Direction
    languages: list[str]
    words: dict[str, str]


class GuidelinesView(msgspec.Struct, frozen=True):
    """The guidelines, as HTML that was made here from Markdown and holds no markup of its author's."""

    language: str
    direction: Direction
    html: str


class Health(msgspec.Struct, frozen=True):
    """Whether the server answers and reaches its databases."""

    status: Literal["ok"]
    version: str


class ExamResult(msgspec.Struct, frozen=True):
    """What became of an attempt: `figures` are `precision` and `recall`, or `agreement`, as the project measures it."""

    passed: bool
    attempt: int
    attempts_left: int
    measure: str
    threshold: float
    figures: dict[str, float | None]


class InvitationBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whom to invite: `languages` are those of their items, none for all; the note is for leads."""

    role: Role
    languages: Annotated[list[Annotated[str, msgspec.Meta(max_length=64)]], msgspec.Meta(max_length=100)] = []
    note: Annotated[str, msgspec.Meta(max_length=200)] | None = None


class Link(msgspec.Struct, frozen=True):
    """A link for one person; it is not kept and cannot be shown again."""

    link: str
    expires: datetime
    person: str


class PersonState(msgspec.Struct, frozen=True):
    """Somebody after what was done to them."""

    id: str
    revoked: bool
    exam_attempts: int


class AdjudicationBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The item that a lead settles."""

    item: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class Adjudication(msgspec.Struct, frozen=True):
    """The assignment in which a lead settles an item."""

    assignment: int
    state: State


class SettleBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule that settles what it can decide, of one language or all; with `again` also gold that no lead set."""

    rule: Literal["agreed", "majority", "best_with_silver"]
    language: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    again: bool = False


class BatchView(msgspec.Struct, frozen=True):
    """A batch after what was done to it."""

    id: int
    number: int
    state: BatchState
    round: int


class SubmissionView(msgspec.Struct, frozen=True):
    """What one annotator said of an item: theirs, and what counts once a reviewer corrected it."""

    assignment: int
    by: str
    layer: Layer
    final: Layer


class DisagreementView(msgspec.Struct, frozen=True):
    """An item that several people annotated; `likeness` goes from 0 to 1."""

    key: str
    item: msgspec.Raw
    likeness: float
    settled: bool
    submissions: list[SubmissionView] = msgspec.field(name="said")


class Disagreements(msgspec.Struct, frozen=True):
    """Those items first that people are least alike on; `total` counts all."""

    total: int
    items: list[DisagreementView]


class ItemLine(msgspec.Struct, frozen=True):
    """An item in a list; `done` counts the annotations that were handed in."""

    id: int
    key: str
    language: str | None
    role: ItemRole
    done: int
    has_gold: bool


class Items(msgspec.Struct, frozen=True):
    """Items in the order of their import; `total` counts all that were asked for."""

    total: int
    items: list[ItemLine]


class AssignmentHistory(msgspec.Struct, frozen=True):
    """What one person was given to do with an item, and said of it."""

    id: int
    by: str
    purpose: Purpose
    state: State
    version: int
    round: int
    layer: Layer
    message: str | None
    seconds: float


class EventView(msgspec.Struct, frozen=True):
    """Something that happened to an item; `by` is null for rules and the command line."""

    id: int
    kind: str
    by: str | None
    assignment: int | None
    layer: Layer | None
    payload: dict[str, Any] | None
    seconds: float
    at: datetime


class History(msgspec.Struct, frozen=True):
    """An item with everything that was said of it, and everything that happened to it, the latest of it."""

    key: str
    item: msgspec.Raw
    gold: Layer | None
    silver: Layer | None
    assignments: list[AssignmentHistory]
    events: list[EventView]
    events_left_out: int


# Items as people see them. An item never changes after its import, so what is made of its texts is cached.


_MAX_PLACES = 20  # of one word in the evidence


class ItemCache:
    """Samples and encoded views of the items that were asked for last."""

    def __init__(self, size: int = 256) -> None:
        self.sample = lru_cache(size)(_sample)
        self.item = lru_cache(size)(self._item)
        self.shared = lru_cache(size)(self._shared)
        self.assigned = lru_cache(100_000)(_assigned)

    def _item(self, studio: Studio, item_id: int) -> msgspec.Raw:
        return msgspec.Raw(msgspec.json.encode(_view(studio, item_id, self.sample(studio, item_id))))

    def _shared(self, studio: Studio, item_id: int) -> msgspec.Raw:
        return msgspec.Raw(msgspec.json.encode(shared(self.sample(studio, item_id))))


def _sample(studio: Studio, item_id: int) -> Sample:
    with studio.store.reading() as tx:
        return tx.sample(item_id)


def _assigned(studio: Studio, assignment_id: int) -> tuple[int, int]:
    """The person and the item of an assignment, which never change."""
    with studio.store.reading() as tx:
        assignment = tx.assignment(assignment_id)
    return assignment.person_id, assignment.item_id


def direction(text: str, tag: str | None) -> Direction:
    """The direction to lay out a text in: its language's, unless its letters run the other way."""
    way = text_layout.direction(text, tag)
    return "ltr" if way == "auto" else way


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
            if len(there) < _MAX_PLACES:
                there.append(SharedPlace(passage.id or "", start, end))
    words = []
    for start, end in _words(sample.response, sample.language):
        same = places.get(fold(sample.response[start:end]))
        if same:
            words.append(SharedWord(start, end, same))
    return SharedView(words)

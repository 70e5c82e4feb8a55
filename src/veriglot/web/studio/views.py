"""What is sent and received: the records of the API. Offsets are half-open and count code points."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from veriglot.annotate.forms import Form
from veriglot.annotate.layers import Layer
from veriglot.annotate.store.rows import Purpose, Role, State

__all__ = [
    "Answered",
    "AssignmentLine",
    "AssignmentView",
    "ConflictAnswer",
    "ErrorAnswer",
    "EventBody",
    "EvidenceView",
    "ExamResult",
    "GuidelinesView",
    "InvitationView",
    "ItemView",
    "JoinBody",
    "Joined",
    "Me",
    "Next",
    "OtherLayer",
    "SharedView",
    "Stage",
    "WordsView",
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

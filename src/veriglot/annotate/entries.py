"""The tables of a project file, as records: what may stand in it, with its defaults."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

__all__ = [
    "ChecksEntry",
    "DataEntry",
    "Entries",
    "ExamEntry",
    "PaceEntry",
    "PeopleEntry",
    "ProjectEntry",
    "RatingEntry",
    "StoreEntry",
    "StratumEntry",
    "SuggestionsEntry",
    "TaskKind",
    "ValidationEntry",
    "WorkEntry",
]

Paths = str | tuple[str, ...]


class TaskKind(StrEnum):
    """What is marked.

    SPANS: typed spans on a response beside its evidence (mfava). TRANSLATION: hallucinated spans on a translation
    beside its source (hat). FACTS: each sentence or atomic fact supported, contradicted or unverified, with its
    evidence (kang).
    PAIRS: what was done to an original sentence (halluverse).
    """

    SPANS = "spans"
    TRANSLATION = "translation"
    FACTS = "facts"
    PAIRS = "pairs"


class RatingEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[ratings]]`: a question with steps for an answer.

    Attributes:
        name: its key in the data, such as `fools_reader`.
        steps: how many, counted from 1.
        of: what is rated: each `span`, or the whole `item`.
        required: whether work without an answer can be handed in.
        question: by interface language; empty for those that Veriglot has words for.
    """

    name: str
    steps: int = 5
    of: Literal["span", "item"] = "span"
    required: bool = False
    question: dict[str, str] = {}


class ProjectEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[project]`.

    Attributes:
        name: for people.
        slug: for addresses and files: small letters, digits and hyphens.
        task: the kind of task.
        taxonomy: of `records.taxonomies`; None for the task's usual one.
        languages: of the responses; empty for whatever the data holds.
        interface: languages of the interface that people may choose; empty for all that Veriglot has words in.
        units: what a task of kind `facts` labels: each `fact` or each `sentence`.
        flags: flags that an annotator may set on an item; None for the taxonomy's.
        source_flags: what may be wrong with the source or the question (hat, section 3.3); None for the task's usual
            ones.
        skip_reasons: why an item may be left out; None for the usual ones.
        colours: CSS colours of types, by name, as `#rrggbb`; usual ones for the rest.
    """

    name: str
    slug: str
    task: TaskKind
    taxonomy: str | None = None
    languages: tuple[str, ...] = ()
    interface: tuple[str, ...] = ()
    units: Literal["fact", "sentence"] = "fact"
    flags: tuple[str, ...] | None = None
    source_flags: tuple[str, ...] | None = None
    skip_reasons: tuple[str, ...] | None = None
    colours: dict[str, str] = {}


class DataEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[data]`: what is annotated.

    Attributes:
        path: files or folders, relative to the project file.
        format: of the files; None to recognise it.
        language: of samples that state none.
        gold: the annotator of the data whose layer is gold, for exam and check items; None for no gold.
        silver: the annotator whose layer is silver; None for no silver.
        limit: the most items of each language, in order; None for all.
    """

    path: Paths = ()
    format: str | None = None
    language: str | None = None
    gold: str | None = None
    silver: str | None = None
    limit: int | None = None


class StratumEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[exam.strata]]`: how many exam items have which share of hallucinated text (hat, section 3.2).

    Attributes:
        items: how many.
        low: the least share of code points that are marked, from 0 to 1.
        high: the largest.
        spans: the least number of spans that `several` of the items have.
        several: how many of the items have `spans` spans or more.
    """

    items: int
    low: float = 0.0
    high: float = 1.0
    spans: int = 2
    several: int = 0


class ExamEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[exam]`: what an annotator passes before the work; without the table there is none.

    Attributes:
        items: how many, by language.
        path: files of exam items, with a layer to hold answers against; empty to draw from the data.
        against: which layer answers are held against.
        measure: `precision_recall` (both reach the threshold, counted over characters) or `agreement` (Cohen's kappa of
            words).
        threshold: what is reached by those who pass; None for 0.95 of precision and recall, 0.40 of agreement.
        attempts: how often one may try.
        strata: composition by share of hallucinated text; empty for a plain draw.
        seed: of the draw.
    """

    items: int = 25
    path: Paths = ()
    against: Literal["gold", "silver"] = "gold"
    measure: Literal["precision_recall", "agreement"] = "precision_recall"
    threshold: float | None = None
    attempts: int = 2
    strata: tuple[StratumEntry, ...] = ()
    seed: int = 0

    @property
    def bar(self) -> float:
        """The threshold."""
        if self.threshold is not None:
            return self.threshold
        return 0.95 if self.measure == "precision_recall" else 0.40


class WorkEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[work]`: who gets what.

    Attributes:
        overlap: items of each language that everybody gets first, for agreement.
        per_person: items of a person's own after these; None for as many as there are.
        reviews: reviewers that look at each annotation, one after the other: 0, 1 or 2.
        adjudicate: whether a lead settles what was annotated more than once.
    """

    overlap: int = 50
    per_person: int | None = 50
    reviews: Literal[0, 1, 2] = 1
    adjudicate: bool = True


class ValidationEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[validation]`: batches are checked on a random subset and go back whole under the threshold; none without the
    table.

    Attributes:
        batch_size: items of a batch, all of one language.
        share: of a batch that is checked, above 0 and up to 1.
        threshold: of precision and of recall.
        seed: of the draw.
    """

    batch_size: int = 100
    share: float = 0.1
    threshold: float = 0.95
    seed: int = 0


class ChecksEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[checks]`: items with known answers among the work, which nobody is told of; none without the table.

    Attributes:
        share: of what a person gets, from 0 to 0.5.
        path: files of check items with a gold layer; empty to take items of the data that have one.
        threshold: F1 under which a person is shown to the lead.
    """

    share: float = 0.05
    path: Paths = ()
    threshold: float = 0.7


class PaceEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[pace]`: what is watched.

    Attributes:
        fastest: words a second of the response above which an item counts as too fast.
        idle: seconds without a keystroke after which time no longer counts.
        window: items of a person's newest work that is held against the work before (drift).
        hourly: what an hour costs, for the lead's figures; None where nobody asks.
        currency: of it.
    """

    fastest: float = 10.0
    idle: float = 120.0
    window: int = 20
    hourly: float | None = None
    currency: str = "USD"


class SuggestionsEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[suggestions]`: marks shown beforehand. They bias, so they are off without the table, and recorded with it.

    Attributes:
        detector: a detector's name; None where `silver` is shown.
        silver: show the silver layer.
        share: of the items that show any, from 0 to 1, so that their effect can be measured.
    """

    detector: str | None = None
    silver: bool = False
    share: float = 1.0


class PeopleEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[people]`: how long links and sessions hold.

    Attributes:
        invitation_days: until an invitation that nobody took up ends.
        resume_days: how long a person's own link opens their work again, from when they joined.
        session_days: until a browser has to use the link again.
    """

    invitation_days: int = 14
    resume_days: int = 180
    session_days: int = 14


class StoreEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[store]`: where the work is kept.

    Attributes:
        url: a file for SQLite, relative to the project file, or `postgresql://...`; None for `<slug>.sqlite` beside it.
            A password does not belong here: PostgreSQL takes it from the environment (`PGPASSWORD`) or `~/.pgpass`.
    """

    url: str | None = None


class Entries(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file.

    Attributes:
        project: `[project]`.
        data: `[data]`.
        work: `[work]`.
        pace: `[pace]`.
        people: `[people]`.
        store: `[store]`.
        exam: `[exam]`, or None for no exam.
        validation: `[validation]`, or None.
        checks: `[checks]`, or None.
        suggestions: `[suggestions]`, or None for none.
        ratings: `[[ratings]]`.
        consent: `[consent]`: the text that people agree to, by interface language.
        guidelines: `[guidelines]`: files in Markdown, by interface language; those that Veriglot ships where empty.
    """

    project: ProjectEntry
    data: DataEntry = DataEntry()
    work: WorkEntry = WorkEntry()
    pace: PaceEntry = PaceEntry()
    people: PeopleEntry = PeopleEntry()
    store: StoreEntry = StoreEntry()
    exam: ExamEntry | None = None
    validation: ValidationEntry | None = None
    checks: ChecksEntry | None = None
    suggestions: SuggestionsEntry | None = None
    ratings: tuple[RatingEntry, ...] = ()
    consent: dict[str, str] = {}
    guidelines: dict[str, str] = {}

"""The project file, read and validated: every key must be known, and whatever could fail later is checked here."""

from __future__ import annotations

import json
import re
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from veriglot.errors import UnknownNameError, UsageError, VeriglotError
from veriglot.records import Sample, from_mapping
from veriglot.records.languages import get_language
from veriglot.records.settings import Record, StrictRecord, errors_of, paths_in, read_toml_records, require
from veriglot.records.taxonomy import SOURCE_FLAGS, taxonomy
from veriglot.storage.files import open_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path


__all__ = [
    "LANGUAGE_TAG",
    "NO_HALLUCINATION",
    "Choice",
    "ExamEntry",
    "Form",
    "PaceEntry",
    "Project",
    "RatingEntry",
    "StratumEntry",
    "TaskKind",
    "changed_settings",
    "load",
    "preset",
]


def presets() -> tuple[str, ...]:
    """The names of the presets, sorted."""
    folder = files(__package__) / "presets"
    return tuple(sorted(file.name[:-5] for file in folder.iterdir() if file.name.endswith(".toml")))


def preset(name: str, *, title: str, slug: str, data: Sequence[str], languages: Sequence[str] = ()) -> str:
    """A project file as TOML.

    Args:
        name: of the preset.
        title: of the project.
        slug: of the project.
        data: paths of the data, relative to the new file.
        languages: BCP 47 tags of the responses; empty for all languages of the data.

    Raises:
        UnknownNameError: there is no such preset.
    """
    if name not in presets():
        raise UnknownNameError("preset", name, presets())
    text = files(__package__).joinpath("presets", f"{name}.toml").read_text("utf-8")
    values = {"name": _quoted(title)[1:-1], "slug": _quoted(slug)[1:-1], "data": _listed(data)}
    values["languages"] = _listed(languages)
    return re.sub(r"\{(name|slug|data|languages)\}", lambda match: values[match[1]], text)


def _listed(values: Sequence[str]) -> str:
    return f"[{', '.join(_quoted(value) for value in values)}]"


def _quoted(value: str) -> str:
    """A basic string of TOML; JSON's escapes are valid in TOML, except for the delete character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


# The tables of a project file, as records with defaults.


Paths = str | tuple[str, ...]
Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Few = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Above0 = Annotated[float, msgspec.Meta(gt=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class TaskKind(StrEnum):
    """The kind of task.

    SPANS: typed spans in a response beside its evidence (mFAVA). TRANSLATION: hallucinated spans in a translation
    beside its source (HAT). FACTS: each sentence or atomic fact is supported, contradicted or unverified, with its
    evidence (Kang et al.). PAIRS: the type of edit of an original sentence (HalluVerse25).
    """

    SPANS = "spans"
    TRANSLATION = "translation"
    FACTS = "facts"
    PAIRS = "pairs"


class RatingEntry(StrictRecord):
    """`[[ratings]]`: a question that is answered on a scale."""

    name: str  # its key in the data, such as `fools_reader`
    steps: Annotated[int, msgspec.Meta(ge=2, le=11)] = 5  # length of the scale, which starts at 1
    of: Literal["span", "item"] = "span"  # what is rated: each span, or the whole item
    required: bool = False  # whether work cannot be submitted without an answer
    question: dict[str, str] = {}  # noqa: RUF012  # by interface language; empty for Veriglot's own questions


class ProjectEntry(StrictRecord):
    """`[project]`."""

    name: str  # title
    slug: str  # for addresses and files: lower-case letters, digits and hyphens
    task: TaskKind
    taxonomy: str | None = None  # of `records.taxonomies`; None for the task's default
    languages: tuple[str, ...] = ()  # of the responses; empty for all languages of the data
    interface: tuple[str, ...] = ()  # available interface languages; empty for all of Veriglot's
    units: Literal["fact", "sentence"] = "fact"  # the labelled units of a task of kind `facts`
    flags: tuple[str, ...] | None = None  # flags of an item; None for the taxonomy's
    source_flags: tuple[str, ...] | None = None  # problems of the source or the question; None for the default
    skip_reasons: tuple[str, ...] | None = None  # reasons to skip an item; None for the default
    colours: dict[str, str] = {}  # noqa: RUF012  # type name to `#rrggbb`; other types have default colours


class DataEntry(StrictRecord):
    """`[data]`: the data to annotate."""

    path: Paths = ()  # files or folders, relative to the project file
    format: str | None = None  # of the files; None to detect it
    language: str | None = None  # of samples that have none
    gold: str | None = None  # the annotator in the data whose layer is gold, for exam and check items
    silver: str | None = None  # the annotator whose layer is silver
    limit: Positive | None = None  # maximum items of each language, in order


class StratumEntry(StrictRecord):
    """`[[exam.strata]]`: number of exam items by their share of hallucinated text (HAT, section 3.2)."""

    items: int
    low: Share = 0.0  # minimum share of marked code points
    high: Share = 1.0  # maximum
    spans: int = 2  # minimum number of spans in `several` of the items
    several: Count = 0  # how many of the items have `spans` spans or more


class ExamEntry(StrictRecord):
    """`[exam]`: the exam before the work; without the table there is none.

    `precision_recall` is over characters, and both must reach the threshold; `agreement` is Cohen's kappa over words.
    """

    items: Positive = 25  # number per language
    path: Paths = ()  # files of exam items with a reference layer; empty to draw from the data
    against: Literal["gold", "silver"] = "gold"  # the reference layer
    measure: Literal["precision_recall", "agreement"] = "precision_recall"
    threshold: Share | None = None  # minimum score to pass; None for 0.95, or 0.40 of agreement
    attempts: Positive = 2  # maximum attempts
    strata: tuple[StratumEntry, ...] = ()  # composition by share of hallucinated text; empty for a random sample
    seed: int = 0  # of the sample
    feedback: bool = False  # whether people see the reference beside their answers, once an attempt is submitted

    @property
    def bar(self) -> float:
        """The threshold, or its default."""
        if self.threshold is not None:
            return self.threshold
        return 0.95 if self.measure == "precision_recall" else 0.40


class WorkEntry(StrictRecord):
    """`[work]`: assignment of items."""

    overlap: Count = 50  # items of each language that everybody gets first, for agreement
    # Items of one person after these; None for no limit.
    per_person: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] | None = 50
    per_item: Few = 1  # people who annotate each of these
    per_disputed_item: Few | None = None  # the same if they disagree; None for no more people
    # Hours without a save after which others get an item; None for never.
    release_hours: Annotated[float, msgspec.Meta(gt=0, le=87_600)] | None = None
    reviews: Literal[0, 1, 2] = 1  # reviewers of each annotation, one after the other
    adjudicate: bool = True  # whether a lead adjudicates items with several annotations
    # Order of items that nobody has: random, as in the file, or by the imported predictions (the least certain first,
    # or those least similar to silver first). A share `random` of these is drawn at random, in between: only a random
    # sample shows how often a model hallucinates. Languages alternate, except with `file`.
    order: Literal["random", "file", "uncertainty", "disagreement"] = "random"
    random: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.5
    half_width: Annotated[float, msgspec.Meta(gt=0, lt=1)] | None = None  # target half-width of a rate's interval
    stop_when_enough: bool = True  # whether a language with that precision gets no new items; needs `half_width`

    @property
    def by_chance(self) -> float:
        """The share of items that an order draws at random."""
        return 1.0 if self.order == "random" else self.random

    @property
    def stops(self) -> bool:
        """Whether languages stop when they have enough labels."""
        return self.half_width is not None and self.stop_when_enough


class ValidationEntry(StrictRecord):
    """`[validation]`: a random subset of each batch is checked; below the threshold the whole batch is returned."""

    batch_size: Positive = 100  # items of a batch, all of one language
    share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.1  # checked share of a batch
    threshold: Share = 0.95  # of precision and of recall
    seed: int = 0  # of the sample


class ChecksEntry(StrictRecord):
    """`[checks]`: hidden items with known answers among the work; none without the table."""

    share: Annotated[float, msgspec.Meta(ge=0, le=0.5)] = 0.05  # of a person's items
    path: Paths = ()  # files of check items with a gold layer; empty to use items of the data with gold
    threshold: Share = 0.7  # F1 below which the lead sees a flag


class PaceEntry(StrictRecord):
    """`[pace]`: settings of the work statistics."""

    fastest: Above0 = 10.0  # words of the response per second; faster items count as too fast
    idle: Above0 = 120.0  # seconds without input after which time is not counted
    window: Positive = 20  # number of a person's newest items that are compared with the earlier ones (drift)
    hourly: float | None = None  # cost of an hour, for the lead's statistics; None for no cost
    currency: str = "USD"


class SuggestionsEntry(StrictRecord):
    """`[suggestions]`: marks shown before the work. They bias, so they need this table, and are recorded."""

    detector: str | None = None  # name of a detector that runs when items are assigned
    silver: bool = False  # whether to show the silver layer
    predictions: Paths = ()  # files of `veriglot detect`, by item id
    share: Share = 1.0  # of the items that show any, so that their effect can be measured


class PeopleEntry(StrictRecord):
    """`[people]`: validity of links and sessions."""

    invitation_days: Positive = 14  # until an invitation that is not accepted expires
    resume_days: Positive = 180  # how long a person's link opens their work after they joined
    session_days: Positive = 14  # until a browser has to use the link again


class SignInEntry(StrictRecord):
    """`[sign_in]`: an OpenID Connect provider; the client secret is in `VERIGLOT_STUDIO_OIDC_SECRET`.

    People invited by an e-mail address (`veriglot studio invite --email`) can then sign in without their link.
    """

    issuer: str  # its address, such as https://accounts.example.org
    client_id: str  # issued by the provider, which redirects to /api/signed-in of the server


class StoreEntry(StrictRecord):
    """`[store]`: the database.

    An SQLite file, relative to the project file, or `postgresql://...`; None for `<slug>.sqlite` beside the project
    file. Do not put a password here: PostgreSQL takes it from the environment (`PGPASSWORD`) or `~/.pgpass`.
    """

    url: str | None = None


class Entries(StrictRecord):
    """The whole file; None for missing tables: no exam, validation, checks, suggestions."""

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
    sign_in: SignInEntry | None = None
    ratings: tuple[RatingEntry, ...] = ()
    consent: dict[str, str] = {}  # noqa: RUF012  # the consent text, by interface language
    guidelines: dict[str, str] = {}  # noqa: RUF012  # Markdown files, by interface language; Veriglot's own if empty


# The form that an annotator fills in: from the kind of task, and the project's taxonomy, ratings, flags and reasons.


_TAXONOMIES = {
    TaskKind.SPANS: "fava",
    TaskKind.TRANSLATION: "hat",
    TaskKind.FACTS: "support",
    TaskKind.PAIRS: "halluverse",
}
_SOURCE_FLAGS = {TaskKind.TRANSLATION: SOURCE_FLAGS}
_SKIP_REASONS = ("sensitive_content", "not_sure", "too_specialised", "unreadable")  # HAT, section 3.3
NO_HALLUCINATION = "0"
"""The label of a pair without a hallucination."""
# Distinguishable with colour blindness (after Okabe and Ito); the page darkens them for text.
_COLOURS = ("#e69f00", "#56b4e9", "#009e73", "#cc79a7", "#d55e00", "#0072b2", "#b8a900", "#7f7f7f")
_SUPPORT_COLOURS = {"supported": "#009e73", "contradicted": "#d55e00", "unverified": "#e69f00"}


class Choice(Record):
    """An option: a type of span, or a label.

    Attributes:
        name: its key in the data.
        meaning: description in English; the interface has translations for Veriglot's own options.
        colour: `#rrggbb`.
        shortcut: its key, a digit; empty beyond nine.
    """

    name: str
    meaning: str
    colour: str
    shortcut: str


class Form(Record):
    """The form that an annotator fills in.

    Attributes:
        task: the kind of task.
        taxonomy: the name of the taxonomy.
        types: of spans; empty if no spans are marked.
        unit: the labelled units: each `fact`, each `sentence`, or None.
        unit_labels: labels of units.
        labels: of the whole item; empty if it has none.
        evidence: whether a labelled unit points to the evidence.
        unit_flags: flags of a unit.
        flags: flags of the item.
        source_flags: problems of the source or the question.
        skip_reasons: reasons to skip the item.
        span_rating: the rating of each span, or None.
        item_ratings: the ratings of the item.
    """

    task: TaskKind
    taxonomy: str
    types: tuple[Choice, ...] = ()
    unit: Literal["fact", "sentence"] | None = None
    unit_labels: tuple[Choice, ...] = ()
    labels: tuple[Choice, ...] = ()
    evidence: bool = False
    unit_flags: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    source_flags: tuple[str, ...] = ()
    skip_reasons: tuple[str, ...] = ()
    span_rating: RatingEntry | None = None
    item_ratings: tuple[RatingEntry, ...] = ()

    @property
    def has_spans(self) -> bool:
        """Whether spans are marked."""
        return bool(self.types)

    def units_of(self, sample: Sample) -> list[tuple[int, int]]:
        """The ranges of the labelled units in a response, in order; empty if the form has no units."""
        from veriglot.text.facts import facts
        from veriglot.text.segmentation import sentences

        if self.unit is None:
            return []
        if self.unit == "sentence":
            return sentences(sample.response, sample.language)
        return list(dict.fromkeys((fact.start, fact.end) for fact in facts(sample.response, sample.language)))


def form_of(entries: Entries) -> Form:
    """The form of a project."""
    about = entries.project
    named = taxonomy(about.taxonomy or _TAXONOMIES[about.task])
    for type_ in about.colours:
        if type_ not in named.types:
            raise UnknownNameError(f"type in the taxonomy {named.name!r}", type_, named.types)
    choices = tuple(
        Choice(
            name,
            meaning,
            about.colours.get(name) or _SUPPORT_COLOURS.get(name) or _COLOURS[index % len(_COLOURS)],
            str(index + 1) if index < 9 else "",
        )
        for index, (name, meaning) in enumerate(named.types.items())
    )
    facts, pairs = about.task is TaskKind.FACTS, about.task is TaskKind.PAIRS
    if facts and not named.clean:
        raise UsageError(
            f"The taxonomy {named.name!r} has no label for what is supported, which a task of kind `facts` needs.",
            "Take the taxonomy `support`.",
        )
    flags = named.flags if about.flags is None else about.flags
    usual = _SOURCE_FLAGS.get(about.task, ())
    return Form(
        task=about.task,
        taxonomy=named.name,
        types=() if facts or pairs else tuple(choice for choice in choices if choice.name not in named.clean),
        unit=about.units if facts else None,
        unit_labels=choices if facts else (),
        labels=(Choice(NO_HALLUCINATION, "no hallucination", "#7f7f7f", "0"), *choices) if pairs else (),
        evidence=facts,
        unit_flags=flags if facts else (),
        flags=() if facts else tuple(flag for flag in flags if not flag.startswith("source_")),  # asked separately
        source_flags=usual if about.source_flags is None else about.source_flags,
        skip_reasons=_SKIP_REASONS if about.skip_reasons is None else about.skip_reasons,
        span_rating=next((rating for rating in entries.ratings if rating.of == "span"), None),
        item_ratings=tuple(rating for rating in entries.ratings if rating.of == "item"),
    )


_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
LANGUAGE_TAG = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


@dataclass(frozen=True)
class Project:
    """A project file with its path.

    Attributes:
        path: the file.
        entries: its content.
        form: the form that an annotator fills in.
    """

    path: Path
    entries: Entries
    form: Form

    @property
    def name(self) -> str:
        """The title."""
        return self.entries.project.name

    @property
    def slug(self) -> str:
        """For addresses and files."""
        return self.entries.project.slug

    @property
    def task(self) -> TaskKind:
        """The kind of task."""
        return self.entries.project.task

    @property
    def languages(self) -> tuple[str, ...]:
        """BCP 47 tags of the responses; empty for all languages of the data."""
        return tuple(dict.fromkeys(get_language(name).tag for name in self.entries.project.languages))

    @property
    def database(self) -> str:
        """The database: a path of an SQLite file, or a URL of PostgreSQL."""
        url = self.entries.store.url
        if url is None:
            return str(self.path.parent / f"{self.slug}.sqlite")
        return url if "://" in url else str(self.resolve(url))

    @property
    def lock(self) -> str:
        """The lock of transactions that assign or withdraw work."""
        return f"assign {self.slug}"

    def resolve(self, path: str) -> Path:
        """A path of the file, resolved relative to the file's folder."""
        return paths_in(self.path.parent, path)[0]


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@contextmanager
def changed_settings(project: Project, changes: Mapping[tuple[str, str], Any]) -> Iterator[Project]:
    """The project with other settings; its file is written when the context ends, and is unchanged after an error.

    The rest of the file, with comments, stays as it is.

    Args:
        project: the project.
        changes: (table, key) to value; None removes the key.

    Raises:
        InputError: as `load`.
        UsageError: the file changed since the project was read, or cannot be written.
    """
    import tomlkit

    path = project.path.resolve()  # keep a symbolic link
    try:
        text = path.read_bytes().decode("utf-8", "surrogateescape")
        wanted = _read_same(project, text)
        document = tomlkit.parse(text)
        for (table, key), value in changes.items():
            control = isinstance(value, str) and _CONTROL.search(value)
            require(not control, "it holds control characters", f"{table}.{key}", "Take them out.")
            for tables in (wanted, document):
                if value is None:
                    tables.get(table, {}).pop(key, None)
                else:
                    tables.setdefault(table, {})[key] = value
        text = tomlkit.dumps(document)
        with errors_of(path):
            require(_parsed(text) == wanted, "it cannot be changed in place", "settings", "Edit the project file.")
            entries = from_mapping(wanted, Entries)
            _check(entries)
        with open_whole(path) as file:
            file.write(text.encode("utf-8", "surrogateescape"))
            file.flush()  # detect a full disk before anything else changes
            yield replace(project, entries=entries, form=form_of(entries))
    except OSError as error:
        raise UsageError(f"{path.name} cannot be changed: {error.strerror}.", "Edit it where it lies.") from error


def _read_same(project: Project, text: str) -> dict[str, Any]:
    """The tables of a project file, which must be unchanged since the project was read."""
    data = _parsed(text)
    try:
        same = data is not None and from_mapping(data, Entries) == project.entries
    except VeriglotError:
        same = False
    if data is None or not same:
        raise UsageError(f"{project.path.name} was changed since the server read it.", "Restart the server.")
    return data


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def load(path: Path) -> Project:
    """Read a project file.

    Raises:
        InputError: invalid TOML; an unknown key (with similar known ones), a missing key or a wrong type; values that
            do not go together; or a missing file of guidelines.
    """
    with errors_of(path):
        entries = read_toml_records(path, Entries, "project")
        _check(entries)
        project = Project(path, entries, form_of(entries))
        for tag, file in entries.guidelines.items():
            require(project.resolve(file).is_file(), f"there is no such file: {file}", f"guidelines.{tag}")
        return project


def _check(entries: Entries) -> None:
    about = entries.project
    require(about.name.strip(), "a project has a name", "project.name")
    require(
        _SLUG.fullmatch(about.slug) and len(about.slug) <= 64,
        f"{about.slug!r} is no slug: small letters a-z, digits and single hyphens, at most 64",
        "project.slug",
    )
    for name in about.languages:
        get_language(name)
    for type_, colour in about.colours.items():
        require(_COLOUR.fullmatch(colour), f"{colour!r} is no colour like #1f77b4", f"project.colours.{type_}")
    for field in ("flags", "source_flags", "skip_reasons"):
        for name in getattr(about, field) or ():
            require(_NAME.fullmatch(name), f"{name!r} is no name like `wrong_language`", f"project.{field}")
    for table in ("consent", "guidelines"):
        for tag in getattr(entries, table):
            require(LANGUAGE_TAG.fullmatch(tag), f"{tag!r} is no language tag", table)
    _check_ratings(entries)
    _check_tables(entries)
    _check_store(entries.store.url)
    if entries.sign_in is not None:
        issuer = urlsplit(entries.sign_in.issuer)
        local = issuer.hostname in {"localhost", "127.0.0.1"}
        named = bool(issuer.hostname) and (issuer.scheme == "https" or (local and issuer.scheme == "http"))
        require(named, f"{entries.sign_in.issuer!r} is no address like https://accounts.example.org", "sign_in.issuer")


def _check_ratings(entries: Entries) -> None:
    names = [(rating.name, rating.of) for rating in entries.ratings]
    require(len(set(names)) == len(names), "two ratings share a name", "ratings")
    require(len([of for _, of in names if of == "span"]) <= 1, "a span has one rating at most", "ratings")
    for name, _ in names:
        require(_NAME.fullmatch(name), f"{name!r} is no name like `fools_reader`", "ratings.name")


def _check_tables(entries: Entries) -> None:
    if (exam := entries.exam) is not None and exam.strata:
        for stratum in exam.strata:
            require(stratum.low <= stratum.high, "`low` is not above `high`", "exam.strata")
            require(stratum.several <= stratum.items, "`several` counts some of the items", "exam.strata.several")
        total = sum(stratum.items for stratum in exam.strata)
        require(total == exam.items, f"the strata have {total} items, the exam {exam.items}", "exam")
    disputed, usual = entries.work.per_disputed_item, entries.work.per_item
    require(
        disputed is None or disputed > usual,
        f"where people differ, more than `per_item` ({usual}) are asked",
        "work.per_disputed_item",
    )
    if (suggestions := entries.suggestions) is not None:
        sources = [suggestions.detector is not None, suggestions.silver, bool(suggestions.predictions)]
        require(sum(sources) == 1, "name a detector, predictions or the silver layer: one of them", "suggestions")

    if entries.work.order in {"uncertainty", "disagreement"}:
        has = suggestions is not None and bool(suggestions.predictions)
        require(has, "this order needs predictions", "work.order", "Name them as `predictions` under [suggestions].")
        if entries.work.order == "disagreement":
            require(
                entries.data.silver,
                "disagreement is with the silver layer",
                "work.order",
                "Name `silver` under [data].",
            )


def _check_store(url: str | None) -> None:
    if url is None or "://" not in url:
        return
    parts = urlsplit(url)
    known = parts.scheme in {"postgresql", "postgres", "sqlite"}
    require(known, "a file name or postgresql://... is expected", "store.url")
    remedy = "Take it out, and set PGPASSWORD or ~/.pgpass instead."
    require(not parts.password, "a password stands in the project file", "store.url", remedy)

"""A project file, read and checked: every word of it is known, and everything that could fail late is looked at now."""

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
        data: paths of the data, relative to where the file will lie.
        languages: BCP 47 tags of the responses; empty for whatever the data holds.

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
    """A basic string of TOML; JSON's escapes are among those of TOML, but for the delete character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


# The tables of a project file, as records: what may stand in it, with its defaults.


Paths = str | tuple[str, ...]
Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Few = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Above0 = Annotated[float, msgspec.Meta(gt=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class TaskKind(StrEnum):
    """What is marked.

    SPANS: typed spans on a response beside its evidence (mFAVA). TRANSLATION: hallucinated spans on a translation
    beside its source (HAT). FACTS: each sentence or atomic fact supported, contradicted or unverified, with its
    evidence (Kang et al.).
    PAIRS: what was done to an original sentence (HalluVerse25).
    """

    SPANS = "spans"
    TRANSLATION = "translation"
    FACTS = "facts"
    PAIRS = "pairs"


class RatingEntry(StrictRecord):
    """`[[ratings]]`: a question with steps for an answer."""

    name: str  # its key in the data, such as `fools_reader`
    steps: Annotated[int, msgspec.Meta(ge=2, le=11)] = 5  # how many, counted from 1
    of: Literal["span", "item"] = "span"  # what is rated: each span, or the whole item
    required: bool = False  # whether work without an answer can be handed in
    question: dict[str, str] = {}  # noqa: RUF012  # by interface language; empty for those that Veriglot has words for


class ProjectEntry(StrictRecord):
    """`[project]`."""

    name: str  # for people
    slug: str  # for addresses and files: small letters, digits and hyphens
    task: TaskKind
    taxonomy: str | None = None  # of `records.taxonomies`; None for the task's usual one
    languages: tuple[str, ...] = ()  # of the responses; empty for whatever the data holds
    interface: tuple[str, ...] = ()  # languages that people may choose for it; empty for all that Veriglot has words in
    units: Literal["fact", "sentence"] = "fact"  # what a task of kind `facts` labels
    flags: tuple[str, ...] | None = None  # that an annotator may set on an item; None for the taxonomy's
    source_flags: tuple[str, ...] | None = None  # what may be wrong with the source or the question; None for the usual
    skip_reasons: tuple[str, ...] | None = None  # why an item may be left out; None for the usual ones
    colours: dict[str, str] = {}  # noqa: RUF012  # of types, by name, as `#rrggbb`; usual ones for the rest


class DataEntry(StrictRecord):
    """`[data]`: what is annotated."""

    path: Paths = ()  # files or folders, relative to the project file
    format: str | None = None  # of the files; None to recognise it
    language: str | None = None  # of samples that state none
    gold: str | None = None  # the annotator of the data whose layer is gold, for exam and check items
    silver: str | None = None  # the annotator whose layer is silver
    limit: Positive | None = None  # the most items of each language, in order


class StratumEntry(StrictRecord):
    """`[[exam.strata]]`: how many exam items have which share of hallucinated text (HAT, section 3.2)."""

    items: int
    low: Share = 0.0  # the least share of code points that are marked
    high: Share = 1.0  # the largest
    spans: int = 2  # the least number of spans that `several` of the items have
    several: Count = 0  # how many of the items have `spans` spans or more


class ExamEntry(StrictRecord):
    """`[exam]`: what an annotator passes before the work; without the table there is none.

    `precision_recall` counts over characters, and both reach the threshold; `agreement` is Cohen's kappa of words.
    """

    items: Positive = 25  # how many, by language
    path: Paths = ()  # files of exam items, with a layer to hold answers against; empty to draw from the data
    against: Literal["gold", "silver"] = "gold"  # the layer that answers are held against
    measure: Literal["precision_recall", "agreement"] = "precision_recall"
    threshold: Share | None = None  # what is reached by those who pass; None for 0.95, or 0.40 of agreement
    attempts: Positive = 2  # how often one may try
    strata: tuple[StratumEntry, ...] = ()  # composition by share of hallucinated text; empty for a plain draw
    seed: int = 0  # of the draw
    feedback: bool = False  # whether people see each item's known answer beside theirs, once an attempt is handed in

    @property
    def bar(self) -> float:
        """The threshold."""
        if self.threshold is not None:
            return self.threshold
        return 0.95 if self.measure == "precision_recall" else 0.40


class WorkEntry(StrictRecord):
    """`[work]`: who gets what."""

    overlap: Count = 50  # items of each language that everybody gets first, for agreement
    # Items of a person's own after these; None for as many as there are.
    per_person: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] | None = 50
    per_item: Few = 1  # people who annotate each of these
    per_disputed_item: Few | None = None  # as many where those differ; None for no more
    # Without a save, after which others get what somebody holds; None for never.
    release_hours: Annotated[float, msgspec.Meta(gt=0, le=87_600)] | None = None
    reviews: Literal[0, 1, 2] = 1  # reviewers that look at each annotation, one after the other
    adjudicate: bool = True  # without effect: project files of earlier versions have it
    # Items that nobody has yet go by chance, as in the file, or by what the imported predictions say: the least certain
    # first, or those least like silver first. `random` of these are drawn by chance, in between: only what came by
    # chance tells how often a model hallucinates. Languages take turns, except with `file`.
    order: Literal["random", "file", "uncertainty", "disagreement"] = "random"
    random: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.5
    half_width: Annotated[float, msgspec.Meta(gt=0, lt=1)] | None = None  # of a rate that is sure enough
    stop_when_enough: bool = True  # whether nobody gets new items of a language whose rate is; needs `half_width`

    @property
    def by_chance(self) -> float:
        """The share of items that an order draws by chance."""
        return 1.0 if self.order == "random" else self.random

    @property
    def stops(self) -> bool:
        """Whether a language can have enough."""
        return self.half_width is not None and self.stop_when_enough


class ValidationEntry(StrictRecord):
    """`[validation]`: batches are checked on a random subset and go back whole under the threshold; none without it."""

    batch_size: Positive = 100  # items of a batch, all of one language
    share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.1  # of a batch that is checked
    threshold: Share = 0.95  # of precision and of recall
    seed: int = 0  # of the draw


class ChecksEntry(StrictRecord):
    """`[checks]`: items with known answers among the work, which nobody is told of; none without the table."""

    share: Annotated[float, msgspec.Meta(ge=0, le=0.5)] = 0.05  # of what a person gets
    path: Paths = ()  # files of check items with a gold layer; empty to take items of the data that have one
    threshold: Share = 0.7  # F1 under which a person is shown to the lead


class PaceEntry(StrictRecord):
    """`[pace]`: what is watched."""

    fastest: Above0 = 10.0  # words a second of the response above which an item counts as too fast
    idle: Above0 = 120.0  # seconds without a keystroke after which time no longer counts
    window: Positive = 20  # items of a person's newest work that is held against the work before (drift)
    hourly: float | None = None  # what an hour costs, for the lead's figures; None where nobody asks
    currency: str = "USD"


class SuggestionsEntry(StrictRecord):
    """`[suggestions]`: marks shown beforehand. They bias, so they are off without the table, and recorded with it."""

    detector: str | None = None  # its name, to run as items are given out
    silver: bool = False  # show the silver layer
    predictions: Paths = ()  # files of `veriglot detect`, by the ids of the items
    share: Share = 1.0  # of the items that show any, so that their effect can be measured


class PeopleEntry(StrictRecord):
    """`[people]`: how long links and sessions hold."""

    invitation_days: Positive = 14  # until an invitation that nobody took up ends
    resume_days: Positive = 180  # how long a person's own link opens their work again, from when they joined
    session_days: Positive = 14  # until a browser has to use the link again


class SignInEntry(StrictRecord):
    """`[sign_in]`: a provider of OpenID Connect; the client secret is in `VERIGLOT_STUDIO_OIDC_SECRET`.

    Whoever was invited by an e-mail address (`veriglot studio invite --email`) can then sign in beside their link.
    """

    issuer: str  # its address, such as https://accounts.example.org
    client_id: str  # that it gave; it sends people back to /api/signed-in of the server


class StoreEntry(StrictRecord):
    """`[store]`: where the work is kept.

    That is a file for SQLite, relative to the project file, or `postgresql://...`; None for `<slug>.sqlite` beside it.
    A password does not belong here: PostgreSQL takes it from the environment (`PGPASSWORD`) or `~/.pgpass`.
    """

    url: str | None = None


class Entries(StrictRecord):
    """The whole file; what is None is not there: an exam, a validation, checks, suggestions."""

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
    consent: dict[str, str] = {}  # noqa: RUF012  # the text that people agree to, by interface language
    guidelines: dict[str, str] = {}  # noqa: RUF012  # files in Markdown, by interface language; those that Veriglot ships where empty


# What an annotator fills in: the kind of task, made concrete by a project's taxonomy, ratings, flags and reasons.


_TAXONOMIES = {
    TaskKind.SPANS: "fava",
    TaskKind.TRANSLATION: "hat",
    TaskKind.FACTS: "support",
    TaskKind.PAIRS: "halluverse",
}
_SOURCE_FLAGS = {TaskKind.TRANSLATION: SOURCE_FLAGS}
_SKIP_REASONS = ("sensitive_content", "not_sure", "too_specialised", "unreadable")  # HAT, section 3.3
NO_HALLUCINATION = "0"
"""The label of a pair that has none."""
# Told apart by those who see colours differently as well (after Okabe and Ito); the page darkens them for text.
_COLOURS = ("#e69f00", "#56b4e9", "#009e73", "#cc79a7", "#d55e00", "#0072b2", "#b8a900", "#7f7f7f")
_SUPPORT_COLOURS = {"supported": "#009e73", "contradicted": "#d55e00", "unverified": "#e69f00"}


class Choice(Record):
    """One of several things to choose: a type of span, a label.

    Attributes:
        name: its key in the data.
        meaning: what it means, in English; the interface has its own words for the ones that Veriglot ships.
        colour: `#rrggbb`.
        shortcut: the key that chooses it, a digit; empty beyond nine.
    """

    name: str
    meaning: str
    colour: str
    shortcut: str


class Form(Record):
    """What there is to fill in.

    Attributes:
        task: the kind of task.
        taxonomy: the name of the taxonomy.
        types: of spans; empty where no spans are marked.
        unit: what is labelled one by one: each `fact`, each `sentence`, or None.
        unit_labels: labels of these.
        labels: of the whole item; empty where it has none.
        evidence: whether a labelled unit points to places in the evidence.
        unit_flags: flags of a unit.
        flags: flags of the item.
        source_flags: what may be wrong with the source or the question.
        skip_reasons: why the item may be left out.
        span_rating: the rating of each span, or None.
        item_ratings: those of the item.
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
        """The units of a response that are labelled one by one, in order; none where the form has no units."""
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
        flags=() if facts else tuple(flag for flag in flags if not flag.startswith("source_")),  # these are asked apart
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
    """A project file with its place.

    Attributes:
        path: the file.
        entries: what stands in it.
        form: what an annotator fills in.
    """

    path: Path
    entries: Entries
    form: Form

    @property
    def name(self) -> str:
        """For people."""
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
        """BCP 47 tags of the responses; empty for whatever the data holds."""
        return tuple(dict.fromkeys(get_language(name).tag for name in self.entries.project.languages))

    @property
    def database(self) -> str:
        """Where the work is kept: a path of an SQLite file, or a URL of PostgreSQL."""
        url = self.entries.store.url
        if url is None:
            return str(self.path.parent / f"{self.slug}.sqlite")
        return url if "://" in url else str(self.resolve(url))

    @property
    def lock(self) -> str:
        """The word by which transactions that give or take work follow each other."""
        return f"assign {self.slug}"

    def resolve(self, path: str) -> Path:
        """Where a path of the file leads: it is relative to the folder that the file is in."""
        return paths_in(self.path.parent, path)[0]


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@contextmanager
def changed_settings(project: Project, changes: Mapping[tuple[str, str], Any]) -> Iterator[Project]:
    """The project with other settings; its file has them once the context ends, and is as it was where that raises.

    The rest of the file stays as it is, comments too.

    Args:
        project: the project.
        changes: table and key to the value; None takes the key out.

    Raises:
        InputError: as `load` does.
        UsageError: the file is no longer what the project was read from, or cannot be written.
    """
    import tomlkit

    path = project.path.resolve()  # a link stays one
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
            file.flush()  # a full disk is met before anything else is changed
            yield replace(project, entries=entries, form=form_of(entries))
    except OSError as error:
        raise UsageError(f"{path.name} cannot be changed: {error.strerror}.", "Edit it where it lies.") from error


def _read_same(project: Project, text: str) -> dict[str, Any]:
    """The tables of a project file, which are those that the project was read from."""
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
        InputError: it is no TOML, a key is unknown (with the nearest that are known), missing or of a wrong kind,
        values do
            not go together, or a file of guidelines does not exist.
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

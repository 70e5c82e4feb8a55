"""A data card as a record: what a data set holds, how it was made, and what people say of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.datasets.cards.lineage import Step, trace
from veriglot.datasets.checks.checker import check
from veriglot.datasets.checks.findings import CheckReport
from veriglot.datasets.checks.scan import Splits, find_files
from veriglot.errors import InputError, UsageError
from veriglot.formats.base import Report
from veriglot.formats.containers import BadRow
from veriglot.formats.reader import read_rows
from veriglot.records.settings import read_toml_records
from veriglot.signatures import __version__, file_sha256

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.datasets.checks.findings import CheckedFile
    from veriglot.datasets.checks.scan import DataFile, Splitting
    from veriglot.pipeline.engine import Watch
    from veriglot.records import Sample

__all__ = ["Card", "Contents", "Cost", "Generated", "Given", "blank", "card", "contents_of", "read_given"]


# What is in a data set: rows by language, split and task, who gave the responses, and what their calls took.


_LONGEST = 60  # different settings of one model that are told apart


class Generated(msgspec.Struct, frozen=True):
    """The responses of one model with one revision and one set of settings.

    Attributes:
        name, revision, settings: as the rows say; None and empty where they do not.
        rows: responses.
        seeds: different seeds.
        again: those of them that only hold the response of another row against something else (`meta.response`), where
            the rows themselves are there too. Their tokens are not counted again.
        tokens_in, tokens_out: as `meta` of the others says, summed; `counted` rows say it.
    """

    name: str
    revision: str | None
    settings: dict[str, Any]
    rows: int
    seeds: int
    again: int
    tokens_in: int
    tokens_out: int
    counted: int


class Contents(msgspec.Struct, frozen=True):
    """Counts of a data set.

    Attributes:
        rows: samples that could be read.
        cells: rows by language and split; both are empty where nothing says.
        tasks: rows by task.
        generated: by model, most rows first; rows that name no model are in none.
        unnamed: responses whose model is not named.
        with_evidence: rows with evidence.
        urls: passages that say where they stand.
        passages: passages.
    """

    rows: int
    cells: dict[tuple[str, str], int]
    tasks: dict[str, int]
    generated: tuple[Generated, ...]
    unnamed: int
    with_evidence: int
    urls: int
    passages: int


@dataclass
class _Tokens:
    rows: int = 0
    counted: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def add(self, sample: Sample) -> None:
        self.rows += 1
        tokens = [sample.meta.get(key) for key in ("tokens_in", "tokens_out")]
        if all(isinstance(count, int) for count in tokens):
            self.counted += 1
            self.tokens_in += tokens[0] or 0
            self.tokens_out += tokens[1] or 0


@dataclass
class _Model:
    seeds: set[int | None] = field(default_factory=set)
    first: _Tokens = field(default_factory=_Tokens)
    again: _Tokens = field(default_factory=_Tokens)  # rows of another row's response: `en.jsonl` of a factual set

    def generated(self, name: str, revision: str | None, settings: dict[str, Any]) -> Generated:
        paid = self.first if self.first.rows else self.again
        rows = self.first.rows + self.again.rows
        return Generated(
            name, revision, settings, rows, len(self.seeds - {None}), rows - paid.rows, paid.tokens_in,
            paid.tokens_out, paid.counted,
        )  # fmt: skip


def contents_of(
    files: Sequence[DataFile],
    *,
    format: str | None = None,  # noqa: A002  the word that users type
    language: str | None = None,
    splits: Splitting = "names",
) -> Contents:
    """Count what is in files; memory grows with models and languages, not with rows.

    Raises:
        InputError: a file is in no known format.
    """
    count = _Count()
    numbers = Splits(splits)
    for file in files:
        of_file = numbers.of_file(file.argument, file.place)
        for row in read_rows(file.path, format=format, language=language):
            if not isinstance(row, BadRow):
                count.add(row, numbers.names[numbers.number(row, of_file)])
    return count.contents()


class _Count:
    def __init__(self) -> None:
        self._cells: Counter[tuple[str, str]] = Counter()
        self._tasks: Counter[str] = Counter()
        self._models: dict[tuple[str, str | None, bytes], _Model] = {}
        self._totals: Counter[str] = Counter()
        self._encode = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode

    def add(self, sample: Sample, split: str) -> None:
        self._cells[sample.language or "", split] += 1
        self._tasks[str(sample.task)] += 1
        self._totals["passages"] += len(sample.evidence)
        self._totals["urls"] += sum(passage.url is not None for passage in sample.evidence)
        self._totals["with_evidence"] += bool(sample.evidence)
        if sample.generator is None:
            self._totals["unnamed"] += bool(sample.response.strip())
            return
        model = self._model(sample)
        model.seeds.add(sample.generator.seed)
        (model.again if "response" in sample.meta else model.first).add(sample)

    def _model(self, sample: Sample) -> _Model:
        generator = sample.generator
        assert generator is not None
        key = (generator.name, generator.revision, self._encode(generator.settings))
        if key not in self._models and len(self._models) >= _LONGEST:
            key = (generator.name, generator.revision, b'{"settings":"of several kinds"}')
        return self._models.setdefault(key, _Model())

    def contents(self) -> Contents:
        generated = [
            model.generated(name, revision, msgspec.json.decode(settings))
            for (name, revision, settings), model in self._models.items()
        ]
        return Contents(
            self._cells.total(), dict(sorted(self._cells.items())), dict(self._tasks.most_common()),
            tuple(sorted(generated, key=lambda model: (-model.rows, model.name))), self._totals["unnamed"],
            self._totals["with_evidence"], self._totals["urls"], self._totals["passages"],
        )  # fmt: skip


# What people say of a data set, since no run can know it: a TOML file, read strictly.


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the file; what is empty is unknown."""


class About(_Table, frozen=True):
    """`[about]`: what it is and who made it."""

    title: str = ""
    summary: str = ""
    purpose: str = ""
    creators: tuple[str, ...] = ()
    funding: str = ""
    contact: str = ""
    version: str = ""
    homepage: str = ""
    citation: str = ""


class Licence(_Table, frozen=True):
    """`[licence]`: `id` as the Hugging Face Hub writes it, the terms in words, and those of the sources."""

    id: str = ""
    terms: str = ""
    sources: str = ""


class People(_Table, frozen=True):
    """`[people]`: who annotated, and whose texts these are."""

    annotators: str = ""
    consent: str = ""
    sensitive: str = ""


class Uses(_Table, frozen=True):
    """`[uses]`: what it is for, what it is not for, and its limits."""

    intended: str = ""
    unsuitable: str = ""
    limits: str = ""


class Maintenance(_Table, frozen=True):
    """`[maintenance]`: who keeps it, and when this version was made."""

    plan: str = ""
    updated: str = ""


class Cost(_Table, frozen=True):
    """`[cost]`: prices of a million tokens in a currency, and seconds; 0 is unknown."""

    currency: str = ""
    prompts: float = 0.0
    replies: float = 0.0
    seconds: float = 0.0


class Given(_Table, frozen=True):
    """The whole file."""

    about: About = About()
    licence: Licence = Licence()
    people: People = People()
    uses: Uses = Uses()
    maintenance: Maintenance = Maintenance()
    cost: Cost = Cost()


def read_given(path: Path) -> Given:
    """Read the file.

    Raises:
        InputError: it is no TOML, has a key that is not known, or a price or a time below 0.
    """
    try:
        given = read_toml_records(path, Given, "card's TOML file")
    except InputError as error:
        raise error.at(path=str(path)) from None
    if min(given.cost.prompts, given.cost.replies, given.cost.seconds) < 0:
        raise InputError("prices and seconds are at least 0", path=str(path), field="cost")
    return given


def blank() -> str:
    """The file with every question and no answer."""
    return files(__package__).joinpath("given.toml").read_text("utf-8")


class Card(msgspec.Struct, frozen=True):
    """What a card says.

    Attributes:
        names: the name of each file below what was named.
        hashes: SHA-256 of each file.
        sizes: bytes of each file.
        contents: what is in them.
        checks: what `build check` finds.
        steps: how they were made, the files themselves first.
        given: what people said.
        version: of Veriglot.
    """

    names: tuple[str, ...]
    hashes: tuple[str, ...]
    sizes: tuple[int, ...]
    contents: Contents
    checks: CheckReport
    steps: tuple[Step, ...]
    given: Given
    version: str

    @property
    def files(self) -> tuple[CheckedFile, ...]:
        """What was read of each file, in the order of `names`; also of those in which no row could be read."""
        return tuple(file for file in self.checks.files if file.samples or file.unreadable)


def card(
    data: Sequence[str],
    *,
    given: Given | None = None,
    format: str | None = None,  # noqa: A002  the word that users type
    language: str | None = None,
    splits: Splitting = "names",
    watch: Watch | None = None,
) -> Card:
    """Put together the card of data sets.

    Args:
        data: files and folders in any readable format.
        given: what people say.
        format: of every file; guessed where None.
        language: BCP 47 tag for samples that state none.
        splits: what a split is, see `build.checking.Splits`.
        watch: told how far it is.

    Raises:
        InputError: a file does not exist or cannot be read.
        UsageError: standard input was named, which cannot be read as often as it takes.
    """
    if "-" in data:
        raise UsageError("Standard input cannot be read again.", remedy="Write it to a file first.")
    report = check(data, format=format, language=language, splits=splits, watch=watch)
    read = {checked.path for checked in report.files if checked.samples or checked.unreadable}
    files = [file for file in find_files(data, Report()) if file.path in read]
    paths = [file.path for file in files]
    return Card(
        tuple(str(file.place) for file in files), tuple(map(file_sha256, paths)),
        tuple(Path(path).stat().st_size for path in paths),
        contents_of(files, format=format, language=language, splits=splits),
        report, trace(paths), given or Given(), __version__,
    )  # fmt: skip

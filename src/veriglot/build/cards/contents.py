"""What is in a data set: rows by language, split and task, who gave the responses, and what their calls took."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.build.checking.splits import Splits
from veriglot.formats import BadRow, read_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.build.checking.reading import DataFile
    from veriglot.build.checking.splits import Splitting
    from veriglot.records import Sample

__all__ = ["Contents", "Generated", "contents_of"]

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
    again: _Tokens = field(default_factory=_Tokens)  # rows of the response of another row, such as `en.jsonl` of kang's

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
        one = self._model(sample)
        one.seeds.add(sample.generator.seed)
        (one.again if "response" in sample.meta else one.first).add(sample)

    def _model(self, sample: Sample) -> _Model:
        said = sample.generator
        assert said is not None
        key = (said.name, said.revision, self._encode(said.settings))
        if key not in self._models and len(self._models) >= _LONGEST:
            key = (said.name, said.revision, b'{"settings":"of several kinds"}')
        return self._models.setdefault(key, _Model())

    def contents(self) -> Contents:
        generated = [
            one.generated(name, revision, msgspec.json.decode(settings))
            for (name, revision, settings), one in self._models.items()
        ]
        return Contents(
            self._cells.total(), dict(sorted(self._cells.items())), dict(self._tasks.most_common()),
            tuple(sorted(generated, key=lambda one: (-one.rows, one.name))), self._totals["unnamed"],
            self._totals["with_evidence"], self._totals["urls"], self._totals["passages"],
        )  # fmt: skip

"""Data cards: contents of a data set, how it was made (from files beside it), what people add, and the page.

The page is Markdown with front matter for the Hugging Face Hub. Its sections are those of Gebru et al. (Datasheets for
Datasets, 2021), with the questions of the Hugging Face dataset card; their texts are in `page.md.jinja`. Every figure
is from the run; without a source it is "unknown".
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter, defaultdict
from contextlib import suppress
from importlib.resources import files
from itertools import islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from veriglot.datasets.checks.checker import CheckReport, check
from veriglot.datasets.checks.findings import CheckedFile, checks
from veriglot.datasets.checks.scan import DataFile, Splits, find_files
from veriglot.errors import UsageError
from veriglot.formats.base import Report
from veriglot.formats.reader import read_rows
from veriglot.plugins import read_package_data
from veriglot.records import Kind, Sample
from veriglot.records.languages import languages
from veriglot.records.settings import Record, errors_of, read_toml_records, require
from veriglot.signatures import digest, file_sha256
from veriglot.storage.checkpoint import FailedRow, InputFile, Manifest
from veriglot.storage.files import beside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from veriglot.pipeline.progress import ProgressReporter

__all__ = ["blank", "card", "card_page", "read_given"]


# Accounts of whole folders, and whether they belong to a file: if they name it, or if its path fits such a run.
#
# Files called `manifest.json` or `report.json` are common, and so are folders with several data sets: an account that
# does not cover a file is not used for it.


Json = dict[str, Any]

_UP = 3  # levels above a file for the account of its whole folder
_FIRST = 100  # rows at the beginning of a file, one of which shows that it was checked
_FACTUAL = frozenset({"people.jsonl", "articles.jsonl", "prompts.jsonl", "candidates.jsonl"})  # besides those it names
_REJECTED = "rejected.jsonl"


def _folder_of(path: Path) -> tuple[Path, Step, list[Path]] | None:
    """The nearest folder above a file with an account of it; the folder's step; files of the steps before."""
    file = path.resolve()
    for folder in list(file.parents)[:_UP]:
        step = Step(f"{folder.name}/")
        for name, (keys, owns) in _KINDS.items():
            account = _account_in(folder / name, step.damaged)
            if account is not None and keys <= account.keys() and owns(account, file.relative_to(folder)):
                step.accounts[name] = account
        if step.accounts:
            accounts, manifest = list(step.accounts.values()), step.accounts.get("manifest.json")
            step.signature = next((a["signature"] for a in accounts if isinstance(a.get("signature"), str)), None)
            step.settings = next((a["made_by"] for a in accounts if isinstance(a.get("made_by"), dict)), {})
            if manifest is not None and _REJECTED in _names(manifest.get("files")):
                step.add_rejections(folder / _REJECTED)
            before = [*folder.glob("prompts.jsonl.progress"), *folder.glob("responses/*.progress")] if manifest else []
            return folder, step, [progress.with_suffix("") for progress in sorted(before)]
        if (folder / _REJECTED).is_file() and _is_cleaned(file):
            step.damaged.clear()
            step.add_rejections(folder / _REJECTED)
            return folder, step, []
        if step.damaged and folder == file.parent:
            return folder, step, []
    return None


def _account_in(path: Path, damaged: list[str]) -> Json | None:
    """The mapping in a JSON file; None if there is none; a file that cannot be read is added to `damaged`."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Json)
    except (FileNotFoundError, IsADirectoryError):
        pass
    except (msgspec.DecodeError, UnicodeDecodeError, OSError):
        damaged.append(path.name)
    return None


def _of_sample(account: Json, path: PurePath) -> bool:
    sample = account.get("sample")
    parts = _names(sample.get("parts")) if isinstance(sample, dict) else set()
    return path.as_posix() in {"clean.jsonl", *(f"{part}{kind}" for part in parts for kind in (".jsonl", ".hat.json"))}


_KINDS: dict[str, tuple[set[str], Callable[[Json, PurePath], bool]]] = {  # keys that identify each kind of account
    "manifest.json": (
        {"made_by", "made_from"},
        lambda account, path: (
            path.as_posix() in _names(account.get("files")) | _FACTUAL or path.parent.as_posix() == "responses"
        ),
    ),
    "report.json": ({"signature", "cleaned"}, _of_sample),
    "plan.json": ({"models", "detectors", "asked"}, lambda _, path: path.parts[0] in {"responses", "predictions"}),
}


def _names(value: Any) -> set[str]:
    return set(value) if isinstance(value, dict) else set()


def _is_cleaned(path: Path) -> bool:
    """Whether rows of a file show that `build check` wrote them."""
    if path.suffix != ".jsonl" or not path.is_file():
        return False
    metas = (row.get("meta") for row in islice(_lines(path), _FIRST))
    return any(isinstance(meta, dict) and isinstance(meta.get("check"), dict) for meta in metas)


# Contents of a file of rejections: rejected rows, and rejected replies or attempts.
#
# One row may have several lines: translations have the kind of text in each line (`what`), silver data and pairs the id
# of the row (only these have `seed`). A line of any other step is a row, query or response.


_ROW = "row"
_OF_SEED = re.compile(r"/s\d+$")  # suffix of a row that is one sentence of its seed; the seed has attempts too


def _lines(path: Path) -> Iterator[Json]:
    """Every line; an empty mapping for one that cannot be read."""
    with path.open("rb") as file:
        for line in file:
            row: Json = {}
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                row = msgspec.json.decode(line, type=Json)
            yield row


class _Source(Record):
    """An input of a step."""

    name: str
    sha256: str
    state: str


class Step(msgspec.Struct):
    """A file (or folder) of a run, described by the files beside it; unknown values are None or empty.

    `rows` and `failed` count the input of the step (seeds, or planned rows). `rejected` counts rejected rows by reason,
    of which a row may have several; `tries` counts rejected replies and attempts, whose rows may have succeeded in the
    end.
    """

    output: str
    signature: str | None = None
    settings: Json = {}
    sources: tuple[_Source, ...] = ()
    rows: int | None = None
    failed: int | None = None
    finished: bool | None = None
    seconds: float | None = None
    rejected: dict[str, int] = {}
    rejected_rows: int | None = None
    tries: dict[str, int] = {}
    accounts: Json = {}
    damaged: list[str] = []

    def add_rejections(self, path: Path, output: Path | None = None) -> None:
        """Add rejections, line by line; ids of rows with several attempts are in memory.

        A row in the output was not rejected, whatever its attempts.
        """
        reasons, tries = Counter[str](), Counter[str]()
        rows = 0
        of_row = defaultdict[str, list[tuple[str, str]]](list)  # what and reason of every attempt, by row
        for line in _lines(path):
            stated = line.get("reasons", line.get("reason"))
            own = [str(reason) for reason in stated] if isinstance(stated, list) else []
            own = own or [stated if isinstance(stated, str) else "not said"]
            what, name = line.get("what"), line.get("id")
            if "seed" in line and isinstance(name, str):
                of_row[name].append((str(line.get("type", "")), own[0]))
            elif isinstance(what, str) and what != _ROW:
                tries[f"{what}: {own[0]}"] += 1
            else:
                rows += 1
                reasons.update(own)
        taken = set[str]()
        if output is not None and output.is_file() and of_row:
            names = (str(line.get("id")) for line in _lines(output))
            taken = {id_ for name in names for id_ in (name, _OF_SEED.sub("", name)) if id_ in of_row}
        for name, tried in of_row.items():
            if name not in taken:  # the reason of the row itself, or else of its last attempt
                rows += 1
                last = max((n for n, (of, _) in enumerate(tried) if of == _ROW), default=len(tried) - 1)
                reasons[tried.pop(last)[1]] += 1
            tries.update(f"{of}: {reason}" for of, reason in tried)
        self.rejected, self.rejected_rows, self.tries = dict(reasons.most_common()), rows, dict(tries.most_common())


def trace(paths: Iterable[str]) -> tuple[Step, ...]:
    """The steps that made files, and those that made their inputs, as far as the files still exist."""
    steps: dict[Path, Step] = {}
    waiting = [Path(path) for path in paths if path != "-"]
    while waiting:
        path = waiting.pop(0)
        if path.resolve() in steps:
            continue
        steps[path.resolve()], sources = _of_file(path)
        waiting += [source for source in sources if source.exists()]
        folder = _folder_of(path)
        if folder is not None and folder[0] not in steps:
            steps[folder[0]] = folder[1]
            waiting += folder[2]
    return tuple(step for step in steps.values() if step != Step(step.output))


def _of_file(path: Path) -> tuple[Step, list[Path]]:
    step, inputs = Step(path.name), tuple[InputFile, ...]()
    try:
        manifest = Manifest.load(path)
    except UsageError:
        step.damaged.append(f"{path.name}.progress")
    else:
        if manifest is not None:
            inputs = manifest.inputs
            step = Step(
                path.name, manifest.signature, dict(manifest.options), tuple(map(_source, inputs)),
                manifest.rows, manifest.failed, manifest.finished, manifest.seconds,
            )  # fmt: skip
    for kind in (".account.json", ".summary.json"):
        account = _account_in(beside(path, kind), step.damaged)
        if account is not None:
            step.accounts[path.name + kind] = account
    if beside(path, ".rejected.jsonl").is_file():
        step.add_rejections(beside(path, ".rejected.jsonl"), path)
    return step, [Path(source.path) for source in inputs if source.path != "-"]


def _source(known: InputFile) -> _Source:
    if known.path == "-":
        return _Source("standard input", "", "absent")
    name = PurePath(known.path).name
    try:
        same = InputFile.of(known.path, known).sha256 == known.sha256
    except OSError:
        return _Source(name, known.sha256, "absent")
    return _Source(name, known.sha256, "unchanged" if same else "changed")


# Contents of a data set: rows by language, split and task, models of the responses, and cost of their calls.


_LONGEST = 60  # maximum number of settings of one model that are listed
_STEPS = 11  # different answers to a rating that are counted, the maximum in the studio
_Questions = tuple[set[str], set[str], set[str]]  # hashes of categories, articles and questions
_OF_SPAN = re.compile(r"\[\d+:\d+\]$")  # end of the name of a rating of a span: `fools_reader[12:40]`


class _Generated(Record):
    """The responses of one model with one revision and one set of settings.

    `repeated` of its rows have the response of another row with other evidence; `counted` other rows have token counts.
    """

    name: str
    revision: str | None
    settings: Json
    rows: int
    seeds: int
    repeated: int
    tokens_in: int
    tokens_out: int
    counted: int


class _Rating(msgspec.Struct):
    """The answers to one rating by people or models in one language; `steps` has at most `_STEPS` + 1 of them."""

    numbers: int = 0
    total: float = 0.0
    squares: float = 0.0
    steps: Counter[str] = msgspec.field(default_factory=Counter)
    given: int = 0

    def add(self, value: float | str) -> None:
        self.given += 1
        if not isinstance(value, str):
            self.numbers, self.total, self.squares = self.numbers + 1, self.total + value, self.squares + value**2
        text = value if isinstance(value, str) else f"{value:g}"
        if text in self.steps or len(self.steps) <= _STEPS:
            self.steps[text] += 1


class _Contents(Record):
    """Counts of a data set; `cells` has rows by language and split, which are empty if unknown.

    `questions` are by language; `ratings` by name, kind of annotator and language, with `*` for all languages.
    """

    cells: dict[tuple[str, str], int]
    tasks: dict[str, int]
    generated: tuple[_Generated, ...]
    totals: Counter[str]
    questions: dict[str, _Questions]
    ratings: dict[tuple[str, str, str], _Rating]


def _contents_of(files: Sequence[DataFile], *, format_name: str | None, language: str | None, splits: str) -> _Contents:
    """Count the contents of files; memory grows with models, languages and questions, not with other rows."""
    cells = Counter[tuple[str, str]]()
    tasks, totals = Counter[str](), Counter[str]()
    models: dict[tuple[str, str | None, bytes], tuple[set[int], Counter[str], Counter[str]]] = {}
    encode = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode
    numbers = Splits(splits)
    questions = defaultdict[str, _Questions](lambda: (set(), set(), set()))
    ratings: dict[tuple[str, str, str], _Rating] = defaultdict(_Rating)
    for file in files:
        of_file = numbers.of_file(file)
        for row in read_rows(file.path, format=format_name, language=language):
            if isinstance(row, FailedRow):
                continue
            cells[row.language or "", numbers.names[numbers.number(row, of_file)]] += 1
            tasks[str(row.task)] += 1
            totals["rows"] += 1
            totals["passages"] += len(row.evidence)
            totals["urls"] += sum(passage.url is not None for passage in row.evidence)
            totals["with_evidence"] += bool(row.evidence)
            if row.evidence and (row.question or "").strip():
                categories, articles, asked = questions[row.language or ""]
                names = row.meta.get("categories", row.meta.get("category"))  # of `dataset queries`, of mFAVA's files
                names = names if isinstance(names, list) else [names]
                categories.update(digest([str(name)])[:16] for name in names if name)
                passage = row.evidence[0]
                article = digest([passage.url or passage.title or passage.text])[:16]
                articles.add(article)
                asked.add(digest([article, row.question or ""])[:16])
            for name, kind, value in _ratings_of(row):
                ratings[name, kind, row.language or ""].add(value)
                ratings[name, kind, "*"].add(value)
            by = row.generator
            if by is None:
                totals["unnamed"] += bool(row.response.strip())
                continue
            key = (by.name, by.revision, encode(by.settings))
            if key not in models and len(models) >= _LONGEST:
                key = (by.name, by.revision, b'{"settings":"of several kinds"}')
            seeds, first, repeated = models.setdefault(key, (set(), Counter(), Counter()))
            if by.seed is not None:
                seeds.add(by.seed)
            sums = repeated if "response" in row.meta else first  # of another row: `en.jsonl` of a factual data set
            sums["rows"] += 1
            tokens_in, tokens_out = (row.meta.get(key) for key in ("tokens_in", "tokens_out"))
            if isinstance(tokens_in, int) and isinstance(tokens_out, int):
                sums.update(counted=1, tokens_in=tokens_in, tokens_out=tokens_out)
    generated = []
    for (name, revision, settings), (seeds, first, repeated) in models.items():
        paid, rows = first if first["rows"] else repeated, first["rows"] + repeated["rows"]
        counts = (rows, len(seeds), rows - paid["rows"], paid["tokens_in"], paid["tokens_out"], paid["counted"])
        generated.append(_Generated(name, revision, msgspec.json.decode(settings), *counts))
    by_rows = tuple(sorted(generated, key=lambda model: (-model.rows, model.name)))
    if len({tag for tag, _ in cells}) == 1:
        ratings = {key: rating for key, rating in ratings.items() if key[2] != "*"}
    counted = dict(sorted(questions.items())), dict(sorted(ratings.items()))
    return _Contents(dict(sorted(cells.items())), dict(tasks.most_common()), by_rows, totals, *counted)


def _ratings_of(row: Sample) -> Iterator[tuple[str, str, float | str]]:
    """Name, kind of annotator and value; without ratings of gold that another person of the row has too."""
    people = {
        key
        for annotation in row.annotations
        if annotation.kind is Kind.HUMAN and annotation.annotator != "gold"
        for key in annotation.ratings
    }
    for annotation in row.annotations:
        for key, value in annotation.ratings.items():
            if annotation.annotator != "gold" or key not in people:
                yield _OF_SPAN.sub("", key), str(annotation.kind), value


# Information that people add, because no run has it: a TOML file, read strictly.


def blank() -> str:
    """The file with every question and no answer."""
    return files(__package__).joinpath("given.toml").read_text("utf-8")


def _record_of(name: str, table: Json) -> Any:
    """A table of the file as a record of its keys; empty values, and 0, are unknown."""
    kinds = {key: _record_of(key, value) if isinstance(value, dict) else type(value) for key, value in table.items()}
    fields = [(key, kind, kind()) for key, kind in kinds.items()]
    return msgspec.defstruct(name, fields, frozen=True, forbid_unknown_fields=True)


Given: Any = _record_of("Given", tomllib.loads(blank()))


def read_given(path: Path) -> Any:
    """Read the file: its tables as records, with every key of `given.toml`.

    Raises:
        InputError: it is not TOML, has an unknown key, or a price or a time below 0.
    """
    with errors_of(path):
        given = read_toml_records(path, Given, "card's TOML file")
        numbers = given.cost.prompts, given.cost.replies, given.cost.seconds
        require(min(numbers) >= 0, "prices and seconds are at least 0", "cost")
    return given


class _CardFile(Record):
    """One of the files of the arguments, even if no row could be read."""

    name: str
    sha256: str
    size: int
    checked: CheckedFile


class Card(Record):
    """The data of a card: of each file, and of all."""

    files: tuple[_CardFile, ...]
    contents: _Contents
    checks: CheckReport
    steps: tuple[Step, ...]
    given: Any


def card(
    data: Sequence[str],
    *,
    given: Any = None,
    format: str | None = None,  # noqa: A002  the word that users type
    language: str | None = None,
    splits: str = "names",
    progress: ProgressReporter | None = None,
) -> Card:
    """Make the card of data sets.

    Args:
        data: files and folders in any readable format.
        given: information that people add.
        format: of every file; None to detect it.
        language: BCP 47 tag for samples without a language.
        splits: definition of splits, see `build.checking.Splits`.
        progress: shows the steps and their finished rows.

    Raises:
        InputError: a file does not exist or cannot be read.
        UsageError: standard input was given, but the data are read more than once.
    """
    if "-" in data:
        raise UsageError("Standard input cannot be read again.", "Write it to a file first.")
    report = check(data, format=format, language=language, splits=splits, progress=progress)
    read = {checked.path: checked for checked in report.files if checked.samples or checked.unreadable}
    files = [file for file in find_files(data, Report()) if file.path in read]
    return Card(
        tuple(
            _CardFile(str(relative), file_sha256(path), Path(path).stat().st_size, read[path])
            for path, _, relative in files
        ),
        _contents_of(files, format_name=format, language=language, splits=splits),
        report,
        trace(read),
        given or Given(),
    )


# The page.


_BAR = re.compile(r"(?<!\\)\|")
_MARKS = re.compile(r"([\\`*_\[\]<>|#])")
_SIZES = read_package_data(__package__, "sizes.toml", dict[str, int])
_SPLITS = {"train": "train", "dev": "validation", "test": "test"}
_NATIVE = {"jsonl", "parquet", "native"}
_KINDS_OF = {"human": "people", "model": "model or rule"}
_LINES = 40  # of an account in another format
_NO_COUNTS = frozenset({"languages", "cells", "files", "types", "passages", "version", "made_by"})  # or only of parts


def card_page(card: Card) -> str:
    """The whole card as Markdown; deterministic for the same data and files."""
    environment = Environment(  # noqa: S701  Markdown, whose marks the filters escape
        loader=PackageLoader(__package__, "."),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "inline": _inline,
        "code": _code,
        "cell": lambda text: _BAR.sub(r"\\|", text),
        "n": lambda number: f"{number:,}",
        "figure": lambda value: "-" if value is None else f"{value:.2f}",
        "json": _sorted_json,
        "counts": _counts,
        "language": _language,
        "title_of": lambda name: checks()[name].title,
    }
    report = card.checks
    tags = {tag for tag, _ in card.contents.cells if tag}
    splits = sorted({split for _, split in card.contents.cells})
    kinds = {"human": "people", "model": "models or rules"}
    skipped = defaultdict[str, list[str]](list)
    for name, why in report.not_looked_for.items():
        skipped[why].append(checks()[name].title.lower())
    label_heads, labels = _labels(card)
    return environment.get_template("page.md.jinja").render(
        card=card,
        given=card.given,
        about=card.given.about,
        contents=card.contents,
        checks=report,
        front=_front_matter(card),
        name=card.files[0].name if len(card.files) == 1 else f"{len(card.files)} files",
        tags=len(tags),
        labelled=sum(file.labelled for file in report.files),
        who=" and ".join(sorted({kinds[entry.kind] for entry in report.labels})),
        split_heads=("language", *(split or "no split stated" for split in splits), "all"),
        by_language={
            tag: [card.contents.cells.get((tag, split), 0) for split in splits] for tag, _ in card.contents.cells
        },
        digest=lambda *parts: digest([part if isinstance(part, str) else _sorted_json(part) for part in parts])[:16],
        share=_share,
        yields=list(_yields(card)),
        costs=list(_costs(card)),
        seconds=_seconds(card),
        label_heads=label_heads,
        labels=labels,
        questions=list(_questions(card)),
        ratings=list(_ratings(card)),
        skipped="; ".join(f"{', '.join(titles)} ({why})" for why, titles in skipped.items()),
        limits=list(_limits(card)),
    )


def _inline(text: str) -> str:
    """A text on one line, with Markdown escaped."""
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


def _code(text: str) -> str:
    return f"`{' '.join(text.replace('`', chr(39)).split())}`" if text else "-"


def _sorted_json(value: object) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{_inline(name)} {count:,}" for name, count in counts.items())


def _language(tag: str) -> str:
    if tag == "*":
        return "all languages"
    known = languages().get(tag)
    return f"{known.name} ({tag})" if known is not None else _inline(tag) or "not stated"


def _share(part: int, whole: int) -> str:
    """A share in percent, with numerator and denominator."""
    if not whole:
        return "-"
    percent = "under 0.1%" if 0 < part / whole < 0.0005 else f"{100 * part / whole:.1f}%"
    return f"{percent} ({part:,} of {whole:,})"


def _front_matter(card: Card) -> Json:
    """The metadata for the Hub, as JSON, which is valid YAML. Unknown values are empty, except `unknown` licences."""
    tags = sorted({tag.partition("-")[0] for tag, _ in card.contents.cells if tag})
    rows = card.contents.totals["rows"]
    kinds = {labels.kind for labels in card.checks.labels}
    return {
        "pretty_name": card.given.about.title,
        "language": tags,
        "multilinguality": [] if not tags else ["multilingual" if len(tags) > 1 else "monolingual"],
        "license": card.given.licence.id or "unknown",
        "size_categories": [next((name for name, bound in _SIZES.items() if rows < bound), "n>100M")],
        "task_categories": ["token-classification"] if any(labels.types for labels in card.checks.labels) else [],
        "annotations_creators": ["machine-generated"] if kinds == {"model"} else [],
        "tags": ["hallucination-detection"],
        "configs": _configs(card),
    }


def _configs(card: Card) -> list[Json]:
    """Which file is which split, if each is one of the Hub's three and in the native format."""
    by_split = defaultdict[str, list[str]](list)
    for file in card.files:
        if file.checked.split not in _SPLITS or file.checked.format not in _NATIVE:
            return []
        by_split[_SPLITS[file.checked.split]].append(PurePath(file.name).as_posix())
    if not by_split:
        return []
    return [{"config_name": "default", "data_files": [{"split": k, "path": v} for k, v in by_split.items()]}]


def _yields(card: Card) -> Iterator[tuple[str, str, list[tuple[str, ...]]]]:
    """Yield of steps: output, account if its format differs from silver data's, and rows of the table."""
    for step in card.steps:
        types = _types(step)
        if types:
            yield step.output, "", types
            continue
        for name, account in step.accounts.items():
            counts = list(_numbers(account, ""))[:_LINES]
            if counts:
                yield step.output, name, [(_inline(path), f"{number:,}") for path, number in counts]


def _types(step: Step) -> list[tuple[str, ...]]:
    """Yield by type, of silver data (`asked`, `taken`, `reasons`) and of translations (`asked`, `dropped`)."""
    for account in step.accounts.values():
        total = account.get("total")
        if not isinstance(total, dict):
            continue
        types = total.get("types")
        parts = {"passages": total.get("passages"), **(types if isinstance(types, dict) else {})}
        rows: list[tuple[str, ...]] = []
        for name, counts in parts.items():
            asked = counts.get("asked") if isinstance(counts, dict) else None
            if isinstance(asked, int) and asked:
                taken = counts.get("taken", asked - counts.get("dropped", 0))
                share = _share(taken, asked).partition(" (")[0]
                reasons = _counts(counts.get("reasons") or {}) or "-"
                rows.append((_inline(name), f"{asked:,}", f"{taken:,}", share, reasons))
        if rows:
            return rows  # another account beside the same file repeats these
    return []


def _numbers(value: Any, path: str) -> Iterator[tuple[str, int | float]]:
    """Numbers of any account by their path in it, without those of single languages and cells, and settings."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in _NO_COUNTS:
                yield from _numbers(item, f"{path}.{key}" if path else str(key))


def _costs(card: Card) -> Iterator[tuple[str, ...]]:
    """The rows of the table of costs: steps from their most detailed account, and responses from the data."""
    prices = card.given.cost
    currency = f" {_inline(prices.currency)}" if prices.currency else ""
    for step in card.steps:
        totals = [a for a in step.accounts.values() if isinstance(a.get("total"), dict) and "tokens_in" in a["total"]]
        account = max(totals, key=lambda account: _tokens(step, account["total"]) or 0, default=None)
        if account is None:
            continue
        total = account["total"]
        calls = total.get("calls")
        if _tokens(step, total) is None:
            here = _translator(step) in {"hf", "ct2"}
            called = "none of a service: the model runs here" if here else _count(calls or None)
            yield (_inline(step.output), called, "unknown", "unknown", _money(account.get("money"), currency, run=True))
            continue
        tokens_in, tokens_out = int(total["tokens_in"]), int(total.get("tokens_out", 0))
        money = _price(tokens_in, tokens_out, prices) if tokens_in + tokens_out else 0.0
        shown = _money(account.get("money"), currency, run=True) if money is None else _money(money, currency)
        yield _inline(step.output), _count(calls), f"{tokens_in:,}", f"{tokens_out:,}", shown
    for model in card.contents.generated:
        if model.counted:
            name = f"responses of {_inline(model.name)} ({model.counted:,} of {model.rows - model.repeated:,} counted)"
            money = _price(model.tokens_in, model.tokens_out, prices)
            counts = (model.counted, model.tokens_in, model.tokens_out)
            yield name, *(f"{count:,}" for count in counts), _money(money, currency)


def _tokens(step: Step, total: Json) -> int | None:
    """The tokens of an account; None if nobody counted them.

    Clients and rules count tokens, so their 0 is correct; for other translators 0 may mean that they report nothing.
    """
    tokens = int(total["tokens_in"]) + int(total.get("tokens_out", 0))
    if tokens:
        return tokens
    translates = str(step.settings.get("method", "")).startswith("translating@")
    counted = step.signature is not None and (not translates or _translator(step) == "llm")
    return None if total.get("calls") or not counted else 0


def _translator(step: Step) -> str:
    """The kind of translator in a signature; empty if there is none."""
    kind, _, name = (step.signature or "").partition("|")[0].partition(":")
    return name if kind == "translator" else ""


def _price(tokens_in: int, tokens_out: int, prices: Any) -> float | None:
    if not prices.prompts and not prices.replies:
        return None
    money: float = (tokens_in * prices.prompts + tokens_out * prices.replies) / 1e6
    return money


def _money(money: float | None, currency: str, *, run: bool = False) -> str:
    """Money in the currency that people gave; the currency of a run's own prices is unknown."""
    if money is None:
        return "unknown"
    return f"{money:,.2f}" + (", in the currency of the run's prices" if run and money else currency)


def _count(known: int | None) -> str:
    return "unknown" if known is None else f"{known:,}"


def _seconds(card: Card) -> str:
    """The time that people gave, or else the sum over steps; empty if neither is known."""
    if card.given.cost.seconds:
        return f"{card.given.cost.seconds:,.0f}"
    known = [step.seconds for step in card.steps if step.seconds is not None]
    rest = len(card.steps) - len(known)
    total = f"{sum(known):,.1f}" if known else ""
    return f"at least {total}; {rest:,} of the steps do not say" if known and rest else total


def _labels(card: Card) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and rows of the table of labels, by annotator and language over all files."""
    sums = defaultdict[tuple[str, ...], Counter[str]](Counter)
    types = defaultdict[tuple[str, ...], Counter[str]](Counter)
    for entry in card.checks.labels:
        key = (entry.annotator, entry.kind, entry.taxonomy, entry.language)
        sums[key].update(responses=entry.responses, clean=entry.clean, words=entry.words, marked=entry.marked_words)
        types[key].update(entry.types)
    names = sorted({name for counts in types.values() for name in counts})
    for who, count in Counter(key[:3] for key in sums).items():
        for table in (sums, types) if count > 1 else ():
            table[*who, "*"] = sum((table[key] for key in list(table) if key[:3] == who), Counter())
    rows = [
        (
            _inline(key[0]), _KINDS_OF[key[1]], _inline(key[2]), _language(key[3]),
            f"{counts['responses']:,}", _share(counts["clean"], counts["responses"]),
            _share(counts["marked"], counts["words"]), *(f"{types[key][name]:,}" for name in names),
            f"{types[key].total():,}",
        )
        for key, counts in sums.items()
    ]  # fmt: skip
    heads = ("annotator", "kind", "taxonomy", "language", "responses", "clean", "words marked")
    return (*heads, *(name or "no type" for name in names), "spans"), rows


def _questions(card: Card) -> Iterator[tuple[str, ...]]:
    """Categories, articles and questions by language, and their sums (mFAVA, Table 9)."""
    rows = {tag: [*map(len, counts)] for tag, counts in card.contents.questions.items()}
    if len(rows) > 1:
        rows["*"] = [*map(sum, zip(*rows.values(), strict=True))]
    yield from ((_language(tag), *(f"{count:,}" for count in counts)) for tag, counts in rows.items())


def _ratings(card: Card) -> Iterator[tuple[str, ...]]:
    """Each rating by language and over all: count, mean and deviation, and the share of each answer (Table 1)."""
    for (name, kind, tag), rating in card.contents.ratings.items():
        n, mean = rating.numbers, "-"
        if n == rating.given:
            deviation = (max(rating.squares - rating.total**2 / n, 0.0) / max(n - 1, 1)) ** 0.5
            mean = f"{rating.total / n:.2f} ± {deviation:.2f}"
        steps = sorted(rating.steps.items(), key=lambda step: (len(step[0]), step[0]))
        shares = [f"{_inline(step)}: {100 * count / rating.given:.1f}%" for step, count in steps]
        answers = ", ".join(shares) if len(steps) <= _STEPS else "-"
        yield _inline(name), _KINDS_OF[kind], _language(tag), f"{rating.given:,}", mean, answers


def _limits(card: Card) -> Iterator[str]:
    levels = {finding.check: finding.level for finding in card.checks.findings}
    if {labels.kind for labels in card.checks.labels} == {"model"}:
        yield "Labels are by models or rules (silver), not by people: figures on them do not measure real errors."
    if "no_clean_rows" in levels:
        yield "Hardly a labelled response is clean: false alarms cannot be measured."
    if "dense_marks" in levels:
        yield "More is marked than in most answers of models: figures at one prevalence do not carry over to another."
    if levels.get("glued_span") == "error":
        yield "Old and new words are glued together: a detector can learn the seam."
    if any(name.startswith("leaked_") and checks()[name].level == "error" for name in levels):
        yield "Splits share texts or references: figures on one split after training on another are too good."
    if "repeated_text" in levels:
        yield "Texts occur more than once: split by text, never by row."
    if card.contents.totals["with_evidence"] < card.contents.totals["rows"]:
        yield "Some rows have no evidence to compare the response with."

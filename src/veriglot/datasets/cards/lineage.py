"""The lineage of a file from what lies beside it: manifests, accounts of steps, rejected and failed rows."""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from veriglot.errors import UsageError
from veriglot.storage.checkpoint import InputFile, Manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["Source", "Step", "trace"]


# Accounts of whole folders, and whether they are a file's own: they name it, or it lies where such a run puts files.
#
# Files called `manifest.json` or `report.json` are common, and so are folders that hold several data sets: an account
# that says nothing of a file is not told of it.


_UP = 3  # folders above a file in which the account of its whole folder may lie
_FIRST = 100  # rows of a file among which one says that it was checked
_FACTUAL = frozenset({"people.jsonl", "articles.jsonl", "prompts.jsonl", "candidates.jsonl"})  # beside those it names
REJECTED = "rejected.jsonl"


class Accounted(NamedTuple):
    """The folder whose account tells of a file.

    Attributes:
        path: of the folder.
        accounts: by file name, as they stand.
        rejected: whether the rows that it sets aside belong to it.
        damaged: accounts in it that cannot be read, so that nobody knows what they are of.
        before: files of single steps that its data were made from.
    """

    path: Path
    accounts: dict[str, Any]
    rejected: bool = False
    damaged: tuple[str, ...] = ()
    before: tuple[Path, ...] = ()


class _Kind(NamedTuple):
    keys: frozenset[str]  # by which an account of ours is known
    owns: Callable[[dict[str, Any], PurePath], bool]


def folder_of(path: Path) -> Accounted | None:
    """The nearest folder above a file whose account tells of it; None where there is none.

    Of damaged accounts those beside the file are named.
    """
    file = path.resolve()
    for folder in list(file.parents)[:_UP]:
        accounts: dict[str, Any] = {}
        damaged: list[str] = []
        for name, kind in _KINDS.items():
            account = account_in(folder / name, damaged)
            if account is not None and kind.keys <= account.keys() and kind.owns(account, file.relative_to(folder)):
                accounts[name] = account
        if accounts:
            rejected = REJECTED in _names(accounts.get("manifest.json", {}).get("files"))
            return Accounted(folder, accounts, rejected, tuple(damaged), _before(folder, accounts))
        if (folder / REJECTED).is_file() and _is_cleaned(file):
            return Accounted(folder, {}, rejected=True)
        if damaged and folder == file.parent:
            return Accounted(folder, {}, damaged=tuple(damaged))
    return None


def account_in(path: Path, damaged: list[str]) -> dict[str, Any] | None:
    """The mapping that a JSON file holds; None where there is none, `damaged` told where it cannot be read."""
    if not path.is_file():
        return None
    try:
        account = msgspec.json.decode(path.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError, OSError):
        account = None
    if not isinstance(account, dict):
        damaged.append(path.name)
        return None
    return account


def _of_factual(account: dict[str, Any], path: PurePath) -> bool:
    return path.as_posix() in _names(account.get("files")) | _FACTUAL or path.parent.as_posix() == "responses"


def _of_sample(account: dict[str, Any], path: PurePath) -> bool:
    sample = account.get("sample")
    parts = _names(sample.get("parts")) if isinstance(sample, dict) else set()
    return path.as_posix() in {"clean.jsonl", *(f"{part}{kind}" for part in parts for kind in (".jsonl", ".hat.json"))}


def _of_study(_: dict[str, Any], path: PurePath) -> bool:
    return path.parts[0] in {"responses", "predictions"}


_KINDS = {
    "manifest.json": _Kind(frozenset({"made_by", "made_from"}), _of_factual),
    "report.json": _Kind(frozenset({"signature", "cleaned"}), _of_sample),
    "plan.json": _Kind(frozenset({"models", "detectors", "asked"}), _of_study),
}


def _names(value: Any) -> set[str]:
    return set(value) if isinstance(value, dict) else set()


def _before(folder: Path, accounts: dict[str, Any]) -> tuple[Path, ...]:
    """The steps of a set that keep a manifest of their own: its prompts and responses."""
    if "manifest.json" not in accounts:
        return ()
    manifests = sorted([*folder.glob("prompts.jsonl.progress"), *folder.glob("responses/*.progress")])
    return tuple(manifest.with_suffix("") for manifest in manifests)


def _is_cleaned(path: Path) -> bool:
    """Whether rows of a file say that `build check` wrote them."""
    if path.suffix != ".jsonl" or not path.is_file():
        return False
    with path.open("rb") as lines:
        for line in islice(lines, _FIRST):
            try:
                row = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            meta = row.get("meta") if isinstance(row, dict) else None
            if isinstance(meta, dict) and isinstance(meta.get("check"), dict):
                return True
    return False


# What a file of rejections says: rows that were set aside, and replies or tries that were not taken.
#
# One row may have several lines in it: translations say of each line what it was of (`what`), silver data and pairs
# which row it would have been part of (`seed` is theirs alone). A line of any other step is a row, query or response.


_ROW = "row"
_NOT_SAID = "not said"
_OF_SEED = re.compile(r"/s\d+$")  # of a row that is one sentence of its seed, which has tries too


class RejectionCounts(NamedTuple):
    """What stands in a file of rejections.

    Attributes:
        rows: rows that were set aside; None where there is no such file.
        reasons: of these, by reason; a row may have several.
        tries: lines that are no row of their own, by what they were of and reason, such as `response: loop`.
    """

    rows: int | None = None
    reasons: dict[str, int] = {}  # noqa: RUF012  nobody writes into it
    tries: dict[str, int] = {}  # noqa: RUF012


def rejected_in(path: Path, output: Path | None = None) -> RejectionCounts:
    """Count what was rejected, line by line; of rows that had several tries memory holds the ids.

    Args:
        path: the file of rejections.
        output: the file of the rows that were taken: a row that stands there was not set aside, whatever its tries.
    """
    if not path.is_file():
        return RejectionCounts()
    reasons, tries = Counter[str](), Counter[str]()
    rows = 0
    of_row: dict[str, list[tuple[str, str]]] = {}  # what and reason of every try, by row
    for line in _lines(path):
        own_reasons = _reasons(line)
        what, name = line.get("what"), line.get("id")
        if "seed" in line and isinstance(name, str):
            of_row.setdefault(name, []).append((str(line.get("type", "")), own_reasons[0]))
        elif isinstance(what, str) and what != _ROW:
            tries[f"{what}: {own_reasons[0]}"] += 1
        else:
            rows += 1
            reasons.update(own_reasons)
    taken = _taken(output, of_row) if output is not None and of_row else set()
    for name, tried in of_row.items():
        if name not in taken:
            rows += 1
            tried, last = _parted(tried)
            reasons[last] += 1
        tries.update(f"{of}: {reason}" for of, reason in tried)
    return RejectionCounts(rows, dict(reasons.most_common()), dict(tries.most_common()))


def _parted(tried: list[tuple[str, str]]) -> tuple[list[tuple[str, str]], str]:
    """The tries of a row that was set aside, and why it was: what is said of the row itself, else of its last try."""
    at = max((n for n, (of, _) in enumerate(tried) if of == _ROW), default=len(tried) - 1)
    return tried[:at] + tried[at + 1 :], tried[at][1]


def _reasons(line: dict[str, Any]) -> list[str]:
    stated = line.get("reasons", line.get("reason"))
    if isinstance(stated, list):
        return list(map(str, stated)) or [_NOT_SAID]
    return [stated] if isinstance(stated, str) else [_NOT_SAID]


def _taken(output: Path, wanted: dict[str, Any]) -> set[str]:
    if not output.is_file():
        return set()
    names = (str(line.get("id")) for line in _lines(output))
    return {id_ for name in names for id_ in (name, _OF_SEED.sub("", name)) if id_ in wanted}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Every line; an empty mapping for one that cannot be read."""
    with path.open("rb") as file:
        for line in file:
            try:
                row = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                row = None
            yield row if isinstance(row, dict) else {}


_ACCOUNTS = (".account.json", ".summary.json")


class Source(msgspec.Struct, frozen=True):
    """What a step read.

    Attributes:
        name: of the file, without its folder.
        sha256: of its content when the step began; empty for standard input.
        state: `unchanged`, `changed`, or `absent` now.
    """

    name: str
    sha256: str
    state: str


class Step(msgspec.Struct, frozen=True):
    """A file that a run made, by what lies beside it.

    Attributes:
        output: name of the file, or of the folder for an account of all that is in it.
        signature: one line on what made the rows: model or rules, versions of prompts; None where nothing says.
        settings: every other option of the run, as it was recorded.
        sources: what it was made from.
        rows, failed: rows that the step took up (seeds, or rows that were planned), and those of them that failed; None
            where nothing says. How many were written, the files and accounts say.
        finished: whether the run came to its end; None where nothing says.
        seconds: how long it worked, all calls that had a part in it together; None where nothing says.
        rejected: rows set aside, by reason; a row may have several.
        rejected_rows: how many they are; None where no file of them is there.
        tries: replies and tries that were not taken, by what they were of and reason; their rows may have come to
            something in the end.
        accounts: the accounts beside it, by file name, as they stand.
        damaged: files beside it that could not be read.
    """

    output: str
    signature: str | None = None
    settings: dict[str, Any] = {}
    sources: tuple[Source, ...] = ()
    rows: int | None = None
    failed: int | None = None
    finished: bool | None = None
    seconds: float | None = None
    rejected: dict[str, int] = {}
    rejected_rows: int | None = None
    tries: dict[str, int] = {}
    accounts: dict[str, Any] = {}
    damaged: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        """Whether anything was found."""
        return self != Step(self.output)


def trace(paths: Iterable[str]) -> tuple[Step, ...]:
    """The steps that made files, and those that made what these were made from, as far as the files are still there.

    Args:
        paths: of data files; `-` was made by nothing that is known.
    """
    steps: dict[Path, Step] = {}
    waiting = [Path(path) for path in paths if path != "-"]
    while waiting:
        path = waiting.pop(0)
        if path.resolve() in steps:
            continue
        step, before = _of_file(path)
        steps[path.resolve()] = step
        waiting += [source for source in before if source.exists()]
        folder = folder_of(path)
        if folder is not None and folder.path not in steps:
            steps[folder.path] = _of_folder(folder)
            waiting += folder.before
    return tuple(step for step in steps.values() if step.known)


def _of_file(path: Path) -> tuple[Step, list[Path]]:
    damaged: list[str] = []
    manifest = None
    try:
        manifest = Manifest.load(path.with_name(path.name + ".progress"))
    except UsageError:
        damaged.append(path.name + ".progress")
    accounts: dict[str, Any] = {}
    for suffix in _ACCOUNTS:
        account = account_in(path.with_name(path.name + suffix), damaged)
        if account is not None:
            accounts[path.name + suffix] = account
    rejected = rejected_in(path.with_name(path.name + ".rejected.jsonl"), path)
    step = Step(
        path.name, rejected=rejected.reasons, rejected_rows=rejected.rows, tries=rejected.tries, accounts=accounts,
        damaged=tuple(damaged),
    )  # fmt: skip
    if manifest is None:
        return step, []
    step = msgspec.structs.replace(
        step, signature=manifest.signature, settings=dict(manifest.options), rows=manifest.rows,
        failed=manifest.failed, finished=manifest.finished, seconds=manifest.seconds,
        sources=tuple(map(_source, manifest.inputs)),
    )  # fmt: skip
    return step, [Path(source.path) for source in manifest.inputs if source.path != "-"]


def _source(known: InputFile) -> Source:
    name = "standard input" if known.path == "-" else PurePath(known.path).name
    if known.path == "-":
        return Source(name, "", "absent")
    try:
        same = InputFile.of(known.path, known).sha256 == known.sha256
    except OSError:
        return Source(name, known.sha256, "absent")
    return Source(name, known.sha256, "unchanged" if same else "changed")


def _of_folder(folder: Accounted) -> Step:
    accounts = list(folder.accounts.values())
    signature = next((account["signature"] for account in accounts if isinstance(account.get("signature"), str)), None)
    settings: dict[str, Any] = next(
        (account["made_by"] for account in accounts if isinstance(account.get("made_by"), dict)), {}
    )
    rejected = rejected_in(folder.path / REJECTED) if folder.rejected else RejectionCounts()
    return Step(
        f"{folder.path.name}/", signature, settings, rejected=rejected.reasons, rejected_rows=rejected.rows,
        tries=rejected.tries, accounts=folder.accounts, damaged=folder.damaged,
    )  # fmt: skip

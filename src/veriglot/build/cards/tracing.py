"""How a file was made, as far as what lies beside it says: manifests, accounts, rejected and failed rows."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.build.cards.folders import REJECTED, account_in, folder_of
from veriglot.build.cards.rejections import Rejected, rejected_in
from veriglot.errors import UsageError
from veriglot.run.manifest import InputFile, Manifest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from veriglot.build.cards.folders import Accounted

__all__ = ["Source", "Step", "trace"]

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
    found: dict[Path, Step] = {}
    waiting = [Path(path) for path in paths if path != "-"]
    while waiting:
        path = waiting.pop(0)
        if path.resolve() in found:
            continue
        step, before = _of_file(path)
        found[path.resolve()] = step
        waiting += [one for one in before if one.exists()]
        folder = folder_of(path)
        if folder is not None and folder.path not in found:
            found[folder.path] = _of_folder(folder)
            waiting += folder.before
    return tuple(step for step in found.values() if step.known)


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
    return step, [Path(one.path) for one in manifest.inputs if one.path != "-"]


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
    signature = next((one["signature"] for one in accounts if isinstance(one.get("signature"), str)), None)
    settings: dict[str, Any] = next((one["made_by"] for one in accounts if isinstance(one.get("made_by"), dict)), {})
    rejected = rejected_in(folder.path / REJECTED) if folder.rejected else Rejected()
    return Step(
        f"{folder.path.name}/", signature, settings, rejected=rejected.reasons, rejected_rows=rejected.rows,
        tries=rejected.tries, accounts=folder.accounts, damaged=folder.damaged,
    )  # fmt: skip

"""What a set was made from and what came of it: `manifest.json`, the same bytes whenever the same set is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.build.factual.account import FactualCell, totals_of
from veriglot.provenance import digest, file_sha256
from veriglot.run.manifest import write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from veriglot.build.factual.sets import FactualSets

__all__ = ["FactualManifest", "Written", "load_manifest", "made_from", "save_manifest"]

_VERSION = 1


class Written(msgspec.Struct, frozen=True):
    """A file of the set: its rows, size in bytes, and SHA-256."""

    rows: int
    size: int
    sha256: str


class FactualManifest(msgspec.Struct, frozen=True):
    """The account of a set.

    Attributes:
        veriglot: version that made it.
        made_by: every setting that changes the set, with the versions of the prompts and of what judges languages.
        made_from: SHA-256 of the responses, articles and labels that the sets were made from.
        people: how many were found, looked up, chosen, and set aside.
        articles: language -> reason -> how many of those looked up lack a usable article.
        cells: counts by model and language.
        total: the sum of their counts.
        labels: labels given and used.
        without_cross: kept responses without an article in the other language.
        money: what all calls cost at the prices given; None without prices.
        files: name -> what it holds.
        version: of this format.
    """

    veriglot: str
    made_by: dict[str, Any]
    made_from: str
    people: dict[str, Any]
    articles: dict[str, dict[str, int]]
    cells: tuple[FactualCell, ...]
    total: dict[str, int]
    labels: dict[str, int]
    without_cross: int
    money: float | None
    files: dict[str, Written]
    version: int = _VERSION

    @classmethod
    def of(
        cls,
        sets: FactualSets,
        files: Sequence[Path],
        *,
        made_by: dict[str, Any],
        made_from: str,
        people: dict[str, Any],
        articles: dict[str, dict[str, int]],
        prices: tuple[float, float] | None,
    ) -> FactualManifest:
        """The manifest of sets that were just written.

        Args:
            sets: their account.
            files: where they are.
            made_by, made_from, people, articles: see above.
            prices: of a million tokens of prompts and of replies, in one currency.
        """
        from veriglot import __version__

        total = totals_of(sets.cells)
        money = None
        if prices is not None:
            money = round((total["tokens_in"] * prices[0] + total["tokens_out"] * prices[1]) / 1e6, 6)
        written = {
            path.name: Written(sets.rows[path.name], path.stat().st_size, file_sha256(str(path))) for path in files
        }
        return cls(
            __version__,
            made_by,
            made_from,
            people,
            articles,
            sets.cells,
            total,
            sets.labels,
            sets.without_cross,
            money,
            written,
        )

    def describes(self, folder: Path) -> bool:
        """Whether its files lie in a folder, as large as they were."""
        paths = {folder / name: one.size for name, one in self.files.items()}
        return all(path.is_file() and path.stat().st_size == size for path, size in paths.items())


def made_from(paths: Sequence[Path], settings: Mapping[str, Any]) -> str:
    """A hash of the content of files, in order (one that is not there counts as such), and of settings."""
    hashes = [file_sha256(str(path)) if path.exists() else "-" for path in paths]
    return digest([*hashes, msgspec.json.encode(dict(settings), order="deterministic")])


def load_manifest(path: Path) -> FactualManifest | None:
    """The manifest at `path`; None where there is none of this version."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=FactualManifest)
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found if found.version == _VERSION else None


def save_manifest(path: Path, manifest: FactualManifest) -> None:
    """Write it, whole or not at all."""
    write_whole(path, msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")

"""`veriglot merge`: merges the outputs of a run's shards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from veriglot.cli.command import command
from veriglot.cli.console import Account
from veriglot.cli.inputs import kind_of, require_files
from veriglot.formats.reader import read_predictions
from veriglot.records import Prediction, decode_json, encode, from_mapping
from veriglot.storage.checkpoint import JsonLines
from veriglot.storage.shards import merge as merge_shards

if TYPE_CHECKING:
    from collections.abc import Iterator

_KINDS = {".jsonl": "jsonl", ".parquet": "parquet"}


@command
def merge(shards: list[str], *, output: str, overwrite: bool = False, quiet: bool = False) -> int:
    """Join the outputs of all shards of a run into the output of the same run without shards.

    veriglot detect answers.jsonl --shard 1/2 -o parts/1.jsonl

    veriglot detect answers.jsonl --shard 2/2 -o parts/2.jsonl

    veriglot merge parts/*.jsonl -o marked.jsonl

    The rows are in the order of the input. Missing shards and shards of another run are refused. Rows that could not
    be read are in OUTPUT.failed.jsonl.
    """
    target = Path(output)
    parquet = kind_of(target, _KINDS) == "parquet"
    paths = [path for path in map(Path, shards) if not path.name.endswith(".failed.jsonl")]  # of parts/*.jsonl
    require_files(str(path) for path in paths if not path.is_dir())
    account = Account(quiet=quiet)
    account.take(
        merge_shards(paths, target, lines=_lines, finish=_write_parquet if parquet else None, overwrite=overwrite), []
    )
    return account.close()


def _lines(path: Path) -> Iterator[bytes]:
    """The rows of an output, as JSON."""
    rows = path.is_dir() or path.suffix.lower() == ".parquet"
    return map(encode, read_predictions(path)) if rows else JsonLines(path).lines()


def _write_parquet(done: Path, target: Path) -> None:
    from veriglot.formats.writer import Writer

    with Writer(target, format="parquet", kind="predictions") as writer:
        for line in JsonLines(done).lines():
            writer.write(from_mapping(decode_json(line), Prediction))

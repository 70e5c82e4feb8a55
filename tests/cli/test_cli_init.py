"""`bench init` and `study init`: the files that they write name every key that may stand in one, with true defaults."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any, get_args

import msgspec
import pytest

from veriglot.bench.config import Entries as BenchEntries
from veriglot.bench.config import load
from veriglot.cli import main
from veriglot.records.settings import read_toml_records
from veriglot.study.config import Entries as StudyEntries

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = {  # keys whose default is none: the file shows an example
    "title", "measures", "baseline", "dev", "format", "language", "languages", "annotator", "limit", "dev_limit",
    "license", "seen", "note", "label", "predictions", "detector", "scorer", "options", "price_in", "price_out", "data",
    "path", "levels", "design", "seeds", "settings", "model", "revision", "key", "script", "preset", "family",
    "parameters", "base_url", "profile", "labelled", "calls", "tokens", "name",
    "threshold", "compare_profile", "drop_flags", "rank_by",
}  # fmt: skip


def written(command: str, folder: Path) -> Path:
    path = folder / f"{command}.toml"
    assert main([command, "init", str(path)]) == 0
    return path


def tables(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Every table of the file with all its keys, those in comments too."""
    lines = [re.sub(r"^# (?=\w+ = |\[)", "", line) for line in path.read_text("utf-8").splitlines()]
    data = tomllib.loads("\n".join(lines))
    return {name: value if isinstance(value, list) else [value] for name, value in data.items()}


def record_of(kind: Any) -> Any:
    """The record of a table: of one, of none or one, or of several."""
    return next((part for part in (kind, *get_args(kind)) if hasattr(part, "__struct_fields__")), None)


@pytest.mark.parametrize(("command", "kind"), [("bench", BenchEntries), ("study", StudyEntries)])
def test_the_file_names_every_key_with_its_default(command: str, kind: type[msgspec.Struct], tmp_path: Path) -> None:
    shown = tables(written(command, tmp_path))
    read_toml_records(tmp_path / f"{command}.toml", kind, command)
    for field in msgspec.structs.fields(kind):
        record = record_of(field.type)
        if record is None:
            assert shown[field.name], field.name
            continue
        entries = {
            entry.name: entry.default_factory() if callable(entry.default_factory) else entry.default
            for entry in msgspec.structs.fields(record)
        }
        keys = {key: value for table in shown[field.name] for key, value in table.items()}
        assert set(keys) == set(entries), field.name
        defaults = msgspec.json.decode(msgspec.json.encode({key: entries[key] for key in keys if key not in EXAMPLES}))
        assert {key: keys[key] for key in defaults} == defaults, field.name


def test_a_file_that_is_there_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written("bench", tmp_path)
    path.write_text("mine", "utf-8")
    assert main(["bench", "init", str(path)]) == 2
    assert "Name another file" in capsys.readouterr().err
    assert path.read_text("utf-8") == "mine"


def test_the_bench_of_the_file_is_read_once_its_data_are_there(tmp_path: Path) -> None:
    path = written("bench", tmp_path)
    (tmp_path / "answers.jsonl").write_text("", "utf-8")
    assert [system.name for system in load(path).systems] == ["grounding", "rouge-l"]

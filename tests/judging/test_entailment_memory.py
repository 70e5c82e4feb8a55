"""What was judged is remembered by content and model: in memory up to a bound, and in a file across processes."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tiny_nli import TEXTS

from veriglot.errors import UsageError
from veriglot.judging.nli import load_entailment

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("transformers")

from veriglot.judging.nli_classifier import PairCache

pytestmark = pytest.mark.slow

ROW = np.array([0.1, 0.2, 0.7], np.float32)


def test_pairs_are_told_apart() -> None:
    memory, other = PairCache("one", 10), PairCache("other", 10)
    pairs = [("a", "b"), ("b", "a"), ("ab", ""), ("", "ab"), ("a", "b\ud800")]
    keys = {memory.key(*pair) for pair in pairs} | {other.key(*pair) for pair in pairs}
    assert len(keys) == 2 * len(pairs)
    assert memory.key("a", "b") == PairCache("one", 3).key("a", "b")


def test_the_least_recently_used_are_forgotten_first() -> None:
    memory = PairCache("m", 2)
    keys = [memory.key(text, "") for text in "abc"]
    memory.put({keys[0]: ROW})
    memory.put({keys[1]: ROW})
    assert set(memory.known(keys)) == set(keys[:2])
    memory.known([keys[0]])
    memory.put({keys[2]: ROW})
    assert set(memory.known(keys)) == {keys[0], keys[2]}
    none = PairCache("m", 0)
    none.put({keys[0]: ROW})
    assert none.known(keys) == {}


def test_a_file_remembers_more_than_fits_and_keeps_exact_numbers(tmp_path: Path) -> None:
    memory = PairCache("m", 5, tmp_path / "new" / "cache")
    rows = {memory.key(str(number), ""): np.random.default_rng(number).random(3, np.float32) for number in range(2_000)}
    memory.put(rows)
    assert len(memory) == 5
    again = PairCache("m", 5, tmp_path / "new" / "cache")
    found = again.known([*rows, memory.key("unknown", "")])
    assert set(found) == set(rows)
    assert all((found[key] == row).all() for key, row in rows.items())


def test_another_process_judges_nothing_twice(bert: Path, tmp_path: Path) -> None:
    model = load_entailment(bert, device="cpu", cache=str(tmp_path))
    pairs = [(text, TEXTS[0]) for text in TEXTS]
    expected = model.judge(pairs)
    code = (
        "import sys, json\n"
        "from veriglot.judging.nli import load_entailment\n"
        "model = load_entailment(sys.argv[1], device='cpu', cache=sys.argv[2])\n"
        "model._network = None\n"  # whatever is judged anew fails
        "print(json.dumps(model.judge([tuple(pair) for pair in json.loads(sys.argv[3])]).tolist()))\n"
    )
    import json

    done = subprocess.run(
        [sys.executable, "-c", code, str(bert), str(tmp_path), json.dumps(pairs)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == expected.tolist()


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(UsageError, match="cache"):
        PairCache("m", 1, tmp_path / "file")
    (tmp_path / "entailment.sqlite").write_bytes(b"no database at all, but some other file" * 50)
    with pytest.raises(UsageError, match="cache"):
        PairCache("m", 1, tmp_path)

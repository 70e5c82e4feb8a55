"""The same data give the same report in every process: nothing depends on the order of a Python set."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

CHECK = (
    "import sys, msgspec; from veriglot.datasets.checks.checker import check;"
    " print(msgspec.json.encode(check([sys.argv[1]]).findings).decode())"
)


def test_layers_stand_in_the_order_of_the_file_whatever_the_hashes_of_strings(tmp_path: Path) -> None:
    text = "The mill was built in 1731 by the widow Anna Kroll, and it burnt down in 1902."
    tagged = text.replace("1731", "<entity>1731</entity>").replace(", and", ",  and")
    row = {"references": text, "generated_text": text, "gold_annotations": tagged, "silver_annotations": tagged}
    data = tmp_path / "gold_english.json"
    data.write_text(json.dumps([row]), "utf-8")
    told = {}
    for seed in ("11", "12", "13", "14"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        run = subprocess.run(
            [sys.executable, "-c", CHECK, str(data)], env=environment, capture_output=True, text=True, check=True
        )
        told[seed] = run.stdout
    (moved,) = (one for one in json.loads(told["11"]) if one["check"] == "moved_text")
    assert list(moved["layers"]) == ["gold", "silver"]
    assert len(set(told.values())) == 1

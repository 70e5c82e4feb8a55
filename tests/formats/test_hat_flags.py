"""Source-level labels of HAT rows: one that is set to false is not set."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from veriglot.formats.reader import read

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("value", "flags"), [(True, ("source_noise",)), (False, ()), ("", ())])
def test_a_label_that_is_false_sets_no_flag(value: object, flags: tuple[str, ...], tmp_path: Path) -> None:
    row = {"srcLocale": "de", "tgtLocale": "en", "id": "1", "source": "Ja.", "target": "Yes.", "source_noise": value}
    path = tmp_path / "hat.json"
    path.write_text(json.dumps([row]), encoding="utf-8")
    (sample,) = read(path, format="hat")
    assert sample.annotations[0].flags == flags

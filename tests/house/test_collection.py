"""Every test is run: pytest looks into no folder whose name it is told to leave out, and by default that is `build`."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


TESTS = Path(__file__).resolve().parents[1]


def test_every_folder_of_tests_is_looked_into(request: pytest.FixtureRequest) -> None:
    left_out = request.config.getini("norecursedirs")
    folders = {folder for path in TESTS.rglob("test_*.py") for folder in path.relative_to(TESTS).parents}
    assert len(folders) > 15
    assert not [str(folder) for folder in folders if any(fnmatch(folder.name, pattern) for pattern in left_out)]

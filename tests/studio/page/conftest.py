"""A studio that a browser visits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("fastapi", reason="needs the extra studio: pip install 'veriglot[studio]'")

from page_studio import Place, served, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser


@pytest.fixture
def place(browser: Browser, database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A studio with a project of each form, on each kind of database."""
    folder = tmp_path_factory.mktemp("page")
    rating = '[[ratings]]\nname = "fools_reader"\nof = "span"\n'
    paths = [
        write(folder, "spans", tables=rating),
        write(folder, "reviewed", reviews=1),
        write(folder, "facts", "facts", more='units = "sentence"'),
        write(folder, "translation", "translation"),
        write(folder, "pairs", "pairs"),
    ]
    with served(paths, database, browser) as found:
        yield found

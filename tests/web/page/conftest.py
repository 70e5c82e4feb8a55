"""A headless Chromium and a studio that it visits. Without either, these tests say so and step aside."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("fastapi", reason="needs the extra annotate: pip install 'veriglot[annotate]'")
pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")

from page_studio import Place, served, write
from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"needs a Chromium browser on the path (one of {', '.join(NAMES)})")
    with sync_playwright() as running:
        opened = running.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def place(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A studio with a project of each form."""
    folder = tmp_path_factory.mktemp("page")
    rating = '[[ratings]]\nname = "fools_reader"\nof = "span"\n'
    paths = [
        write(folder, "spans", tables=rating),
        write(folder, "reviewed", reviews=1),
        write(folder, "facts", "facts", more='units = "sentence"'),
        write(folder, "translation", "translation"),
        write(folder, "pairs", "pairs"),
    ]
    with served(paths, folder / "studio.sqlite", browser) as found:
        yield found

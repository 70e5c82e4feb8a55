"""A studio with a lead in it, and the browser that all visitors have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("fastapi", reason="needs the extra studio: pip install 'veriglot[studio]'")

from lead_studio import House, served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser


@pytest.fixture
def house(browser: Browser, database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A running studio with one project, on each kind of database."""
    with served(tmp_path_factory.mktemp("lead"), database, browser) as found:
        yield found

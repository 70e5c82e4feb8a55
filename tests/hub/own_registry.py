"""A registry file that a test writes, small models for it, and wheels that carry them."""

from __future__ import annotations

import hashlib
import io
import json
import random
import zipfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

MIT = {"name": "MIT", "url": "https://example.org/mit"}


def content(size: int = 300_000, seed: int = 0) -> bytes:
    """Bytes that do not compress, so that a wheel's member is as long as they are."""
    return random.Random(seed).randbytes(size)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class OwnRegistry:
    """A registry that is written anew whenever a model is added."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.models: dict[str, Any] = {}
        self.mirrors: dict[str, Any] = {}
        self.write()

    def add(self, name: str, files: dict[str, bytes], *places: dict[str, Any], **more: Any) -> None:
        """Name a model that consists of `files` and can be had at `places`."""
        self.models[name] = {
            "title": f"The model {name} of a test",
            "licence": MIT,
            "files": [{"name": one, "bytes": len(data), "sha256": sha256(data)} for one, data in files.items()],
            "places": list(places),
            **more,
        }
        self.write()

    def write(self) -> None:
        self.path.write_text(json.dumps({"models": self.models, "mirrors": self.mirrors}), "utf-8")


def wheel(package: str, version: str, members: dict[str, bytes]) -> bytes:
    """A wheel that pip takes for one, with these members."""
    info = f"{package}-{version}.dist-info"
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return made.getvalue()


def carrier(package: str, version: str, data: bytes, members: dict[str, str]) -> dict[str, Any]:
    """The place of a package whose wheel is `data`."""
    return {
        "kind": "package",
        "package": package,
        "version": version,
        "sha256": sha256(data),
        "bytes": len(data),
        "members": members,
        "licence": MIT,
    }

"""Which model it is that lies in a folder: a hash of what would change its replies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from veriglot.provenance import digest, file_sha256

__all__ = ["revision_of"]

_LEFT_OUT = {".md", ".png", ".jpg", ".lock"}


def revision_of(model: str, config: Any) -> str:
    """A model's revision: the commit of one from the hub, otherwise a hash of the files in its folder.

    The whole of the weights is read for it, which takes about as long as loading them: a hash of less could take a
    fine-tuned model for its parent.

    Args:
        model: a folder or a name on the hub.
        config: the model's configuration, which holds the commit where there is one.

    Returns:
        16 hexadecimal digits or a commit; `unknown` where there is neither.
    """
    folder = Path(model)
    if not folder.is_dir():
        return str(getattr(config, "_commit_hash", None) or "unknown")
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.suffix not in _LEFT_OUT)
    return digest(part for path in files for part in (path.name, file_sha256(path)))[:16]

"""Getting a model from a model hub: through `huggingface_hub` where it is installed, else over plain HTTP."""

from __future__ import annotations

import errno
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from veriglot.weights.download import AGAIN, fetch_urls
from veriglot.weights.errors import PlaceError
from veriglot.weights.watch import Watch

if TYPE_CHECKING:
    from veriglot.weights.arrival import Arrivals
    from veriglot.weights.registry import Hub, ModelFile

__all__ = ["fetch_hub", "fetch_hub_plainly", "fetch_hub_with_its_client"]

_HUB = "https://huggingface.co"


def fetch_hub(arrivals: Arrivals, place: Hub) -> None:
    """Download every missing file from a hub's repository at its revision.

    Raises:
        PlaceError: the hub does not have it, does not let us, gives something else, or cannot be reached.
    """
    if find_spec("huggingface_hub") is None:
        fetch_hub_plainly(arrivals, place)
    else:
        fetch_hub_with_its_client(arrivals, place)


def fetch_hub_plainly(arrivals: Arrivals, place: Hub) -> None:
    """As `fetch_hub`, over plain HTTP. `HF_ENDPOINT` and `HF_TOKEN` hold."""
    base = os.environ.get("HF_ENDPOINT", _HUB).rstrip("/")
    token = os.environ.get("HF_TOKEN", "").strip()

    def address(file: ModelFile) -> str:
        return f"{base}/{place.repo}/resolve/{place.revision}/{place.paths.get(file.name, file.name)}"

    fetch_urls(arrivals, address, headers={"Authorization": f"Bearer {token}"} if token else {})


def fetch_hub_with_its_client(arrivals: Arrivals, place: Hub) -> None:
    """As `fetch_hub`, through the hub's own client, which knows its keys, its mirrors and its faster ways."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    kept = arrivals.parts / "hub"  # where the client finds the beginning of a file again
    for file in arrivals.missing():
        inside = place.paths.get(file.name, file.name)
        try:
            with Watch(kept, lambda held, file=file: arrivals.progress(held, file.bytes)):  # type: ignore[misc]
                found = hf_hub_download(
                    place.repo, inside, revision=place.revision, local_dir=kept, endpoint=os.environ.get("HF_ENDPOINT")
                )
        except Exception as error:
            if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}:
                raise
            first = _first(error)
            said = f"{type(first).__name__}: {str(first).strip().partition(chr(10))[0]}"
            raise PlaceError(f"the hub's client says: {said}", retryable=not _refused(first)) from error
        Path(found).replace(arrivals.part(file))
        arrivals.accept(file, place.repo)


def _first(error: BaseException) -> BaseException:
    """What began it all: the client wraps a server's answer in a guess at what it means."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _refused(error: BaseException) -> bool:
    """Whether the hub answered, and would answer the same again."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return status is not None and status not in AGAIN

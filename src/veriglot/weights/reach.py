"""Whether the model hub can be reached from here: asked before a library asks for minutes."""

from __future__ import annotations

import time
from functools import lru_cache

__all__ = ["hub_answers"]

_BELIEVED = 60  # seconds for which one answer holds: a model of several parts asks a few times while it loads


def hub_answers() -> bool:
    """Whether the hub's server answers one request, whatever it says. Mirrors, proxies and offline switches hold.

    The hub's own client asks an absent server six times, with pauses, for each of two files: three quarters of a
    minute before anybody is told.
    """
    from huggingface_hub import constants

    return _answers(constants.ENDPOINT, int(time.monotonic() // _BELIEVED))


@lru_cache(maxsize=4)
def _answers(endpoint: str, _: int) -> bool:
    from huggingface_hub import constants, get_session

    try:
        get_session().head(endpoint, timeout=constants.HF_HUB_ETAG_TIMEOUT)
    except Exception:  # each version of the client has another library of HTTP beneath it, with errors of its own
        return False
    return True

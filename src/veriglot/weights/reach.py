"""Whether the model hub can be reached from here: asked once, before a library asks for minutes."""

from __future__ import annotations

__all__ = ["hub_answers"]


def hub_answers() -> bool:
    """Whether the hub's server answers one request, whatever it says. Mirrors, proxies and offline switches hold.

    The hub's own client asks an absent server six times, with pauses, for each of two files: three quarters of a
    minute before anybody is told.
    """
    from huggingface_hub import constants, get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=constants.HF_HUB_ETAG_TIMEOUT)
    except Exception:  # each version of the client has another library of HTTP beneath it, with errors of its own
        return False
    return True

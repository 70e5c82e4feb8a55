"""What may be the address of a server: nothing that holds a secret, since addresses are written down."""

from __future__ import annotations

from urllib.parse import urlsplit

from veriglot.errors import UsageError

__all__ = ["checked_address"]


def checked_address(base_url: str) -> str:
    """The address of a server, without a slash at its end.

    Raises:
        UsageError: it is none, or holds a user name, a password or a query, which manifests would keep.
    """
    holds_password = "@" in base_url  # of an address that cannot be read, any may stand before a secret's end
    try:
        parts = urlsplit(base_url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        if usable:
            holds_password = "@" in parts.netloc
    except ValueError:
        usable = False
    if holds_password:  # the address is not shown: it holds a secret
        raise UsageError(
            "The address of the server holds a user name or a password.",
            remedy="Leave them out, and name the environment variable that holds the key.",
        )
    if not usable or parts.query or parts.fragment:
        shown = base_url.partition("?")[0]  # keys are sometimes put behind it
        raise UsageError(
            f"{shown!r} is not the address of a server.",
            remedy="Give one such as http://127.0.0.1:8000/v1, without a query.",
        )
    return base_url.rstrip("/")

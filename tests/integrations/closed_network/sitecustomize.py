"""Python imports this by itself. It refuses connections and look-ups beyond loopback, and writes down attempts."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

_LOOPBACK = {"127.0.0.1", "::1", "localhost", None, ""}
_TRIED = Path(os.environ["CLOSED_NETWORK_LOG"])


def _refuse(host: Any) -> None:
    name = host.decode() if isinstance(host, bytes) else host
    if name not in _LOOPBACK:
        with _TRIED.open("a", encoding="utf-8") as log:
            log.write(f"{name}\n")
        raise PermissionError(f"the network is closed, but {name} was asked for")


def _guard(owner: Any, name: str, position: int) -> None:
    original = getattr(owner, name)

    def guarded(*arguments: Any, **named: Any) -> Any:
        target = arguments[position] if len(arguments) > position else named.get("host")
        if not isinstance(target, str | bytes) or owner is socket:  # a path is a socket of this machine
            _refuse(target[0] if isinstance(target, tuple) else target)
        return original(*arguments, **named)

    setattr(owner, name, guarded)


for _name in ("connect", "connect_ex"):
    _guard(socket.socket, _name, 1)
for _name in ("getaddrinfo", "gethostbyname"):
    _guard(socket, _name, 0)

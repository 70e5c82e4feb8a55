"""`veriglot serve`: detection over HTTP, and a page to try it."""

from __future__ import annotations

import os
import stat
import sys
from functools import partial
from pathlib import Path

from veriglot.cli.command import Options, command
from veriglot.cli.console import say
from veriglot.cli.inputs import parts, read_text
from veriglot.errors import UsageError, requires_extra

_KEYS = "VERIGLOT_API_KEYS"
_SHORTEST_KEY = 16


class ServeOptions(Options):
    """The options of `veriglot serve`."""

    host: str = "127.0.0.1"
    port: int = 8322
    detectors: str = "auto"
    processes: int = 0
    keys: Path | None = None
    batch_size: int = 32
    batch_wait: float = 0.0
    queue: int = 0
    streams: int = 0
    memory: int = 256
    max_body: float = 8.0
    body_seconds: float = 30.0
    stop_seconds: int = 30
    public_url: str | None = None
    hosts: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    access_log: bool = False


@command
def serve(options: ServeOptions) -> None:
    """Serve detection over HTTP, with a page to try it.

    POST /v1/detect takes one row, a list, or JSON lines; /openapi.json describes all calls. Ctrl+C stops the server
    after it has answered accepted calls. It fetches nothing from other servers, and logs no text.

    \b
    Here:            veriglot serve
    For a network:   veriglot serve --host 0.0.0.0 --keys keys.txt
    """
    with requires_extra("The server", "serve"):
        from veriglot.server.app import DetectionServerSettings
        from veriglot.server.app import serve as run
        from veriglot.server.batches import Batcher, Limits, Selection
    settings = DetectionServerSettings(
        host=options.host,
        port=options.port,
        base_url=options.public_url,
        hosts=options.hosts,
        trusted_proxies=options.trusted_proxies,
        origins=options.origins,
        max_body=int(options.max_body * 1e6),
        body_seconds=options.body_seconds,
        keys=_keys(options.keys),
        shutdown_seconds=options.stop_seconds,
        access_log=options.access_log,
    )
    limits = Limits(
        batch_size=options.batch_size,
        batch_wait=options.batch_wait / 1000,
        queue=options.queue,
        streams=options.streams,
        memory=options.memory * 1_000_000,
    )
    names = parts(options.detectors)
    if not names:
        raise UsageError("There is no name in --detectors.", "Type veriglot doctor to see those that are known.")

    def announce() -> None:
        print(f"Serving {', '.join(names)} at {settings.address} (Ctrl+C stops it).", file=sys.stderr, flush=True)
        if not settings.is_local and not settings.keys:
            say("everybody who reaches this server may call it; give --keys to change that.")

    run(partial(Batcher, partial(Selection, names), limits, processes=options.processes), settings, announce)


def _keys(path: Path | None) -> tuple[str, ...]:
    """The keys of a file, or of the environment."""
    if path is None:
        given = os.environ.pop(_KEYS, "")  # removed, so that workers do not inherit it
        lines = given.split(",")
    else:
        given = read_text(str(path))
        lines = given.splitlines()
        if path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
            say(f"others on this machine can read {path}; type: chmod 600 {path}")
    keys = tuple(key for key in map(str.strip, lines) if key and key[0] != "#")
    if not keys and (path or given):  # otherwise everybody could call
        raise UsageError(
            f"There is no key in {path or _KEYS}.", "Write one key on each line, or in the variable between commas."
        )
    short = [key for key in keys if len(key) < _SHORTEST_KEY]
    if short:
        raise UsageError(
            f"API keys have at least {_SHORTEST_KEY} characters; {len(short)} of yours have fewer.",
            "Make one: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    return keys

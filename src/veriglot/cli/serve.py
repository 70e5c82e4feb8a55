"""`veriglot serve`: detection over HTTP, and a page to try it."""

from __future__ import annotations

import os
import stat
import sys
from functools import partial
from pathlib import Path

from veriglot.cli.command import Help, Option, Options, Setting, command
from veriglot.cli.console import say
from veriglot.cli.inputs import parts
from veriglot.errors import InputError, MissingExtraError, UsageError

_KEYS = "VERIGLOT_API_KEYS"
_SHORTEST_KEY = 16


class ServeOptions(Options):
    """The options of `veriglot serve`."""

    host: str = "127.0.0.1"
    port: int = 8322
    detectors: str = Option(
        "grounding",
        "Detectors that calls can ask for, separated by commas; calls that name none get the first. Default:"
        " grounding.",
        "NAMES",
    )
    processes: int = Help(0, "Default: 0.")
    keys: Path | None = Option(
        None,
        f"File of API keys, one a line; calls then bring one. Default: those in {_KEYS}, separated by commas; with"
        " neither, everybody may call.",
        "FILE",
    )
    batch_size: int = Setting(32, "Most rows that a process judges at once.", 1, 1024)
    batch_wait: float = Setting(0.0, "Milliseconds that an idle process waits for a batch to fill.", 0, 1000)
    queue: int = Setting(0, "Calls of one row that are accepted at once; others get 429. 0 is two a process.", 0)
    streams: int = Setting(0, "Lists and JSON lines that are accepted at once. 0 is two a process.", 0)
    memory: int = Setting(256, "Most megabytes of requests in work, together.", 1)
    max_body: float = Setting(8.0, "Most megabytes of one request.", 0.001)
    body_seconds: float = Setting(30.0, "Seconds that a request may take to arrive.", 0.1)
    stop_seconds: int = Setting(30, "Seconds that calls in work get when the server stops.", 0)
    public_url: str | None = Setting(
        None, "Where people reach the server, such as https://veriglot.example.org, behind a proxy."
    )
    hosts: tuple[str, ...] = Setting((), "Further host names that requests may come to.")
    trusted_proxies: tuple[str, ...] = Setting((), "Proxies whose X-Forwarded headers are believed.")
    origins: tuple[str, ...] = Setting(
        (), "Pages of other origins that may call from a browser (CORS), such as https://a.b."
    )
    access_log: bool = Setting(False, "Log every request: address, path, status; never text.")


@command
def serve(options: ServeOptions) -> None:
    """Serve detection over HTTP, with a page to try it.

    POST /v1/detect takes one row, a list, or JSON lines; /openapi.json describes all calls. Ctrl+C stops it once
    accepted calls are answered. Nothing is fetched from elsewhere, and no text is logged.

    \b
    Here:            veriglot serve
    For a network:   veriglot serve --host 0.0.0.0 --keys keys.txt
    """
    try:
        from veriglot.server.app import Serving
        from veriglot.server.app import serve as run
        from veriglot.server.batches import Batcher, Limits, Selection
    except ModuleNotFoundError as error:
        raise MissingExtraError("The server", "serve") from error
    settings = Serving(
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
    batcher = Batcher(partial(Selection, names), limits, processes=options.processes)
    print(f"Serving {', '.join(names)} at {settings.address} (Ctrl+C stops it).", file=sys.stderr, flush=True)
    if not settings.is_local and not settings.keys:
        say("everybody who reaches this server may call it; give --keys to change that.")
    run(batcher, settings)


def _keys(path: Path | None) -> tuple[str, ...]:
    """The keys of a file, or of the environment."""
    if path is None:
        given = os.environ.pop(_KEYS, "")  # popped: workers inherit it otherwise
        keys = [key.strip() for key in given.split(",")]
        if given and not any(keys):  # else everybody could call
            raise UsageError(f"There is no key in {_KEYS}.", "Write some, separated by commas, or unset it.")
    else:
        try:
            lines = path.read_text("utf-8-sig").splitlines()
            others = path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"the keys cannot be read: {error}", path=str(path)) from error
        if others:
            say(f"others on this machine can read {path}; type: chmod 600 {path}")
        keys = [line.strip() for line in lines if not line.lstrip().startswith("#")]
        if not any(keys):
            raise InputError("there is no key in it", "Write one a line.", path=str(path))
    short = [key for key in keys if 0 < len(key) < _SHORTEST_KEY]
    if short:
        raise UsageError(
            f"{len(short)} API keys have fewer than {_SHORTEST_KEY} characters.",
            "Make one: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    return tuple(filter(None, keys))

"""Starting and stopping: uvicorn with settings of our own."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import uvicorn

from veriglot.errors import VeriglotError
from veriglot.web.studio.app import make_guarded

if TYPE_CHECKING:
    from veriglot.web.studio.settings import Settings
    from veriglot.web.studio.studios import Studios

__all__ = ["serve", "server_of"]

_KEEP_ALIVE = 75  # seconds; longer than the usual 60 of a proxy, which would else write into a closing connection
_LAST_WORDS = 20  # seconds that running calls get when it stops
_AT_ONCE = 1000  # connections; beyond them it answers 503 rather than slow down for all


def server_of(
    studios: Studios, settings: Settings, *, host: str, port: int, access_log: bool = False
) -> uvicorn.Server:
    """A server that is not running yet."""
    return uvicorn.Server(
        uvicorn.Config(
            make_guarded(studios, settings),
            host=host,
            port=port,
            http="h11",
            ws="none",
            lifespan="on",
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=list(settings.trusted_proxies) or None,
            server_header=False,
            access_log=access_log,
            log_level="warning" if not access_log else "info",
            limit_concurrency=_AT_ONCE,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=_LAST_WORDS,
            h11_max_incomplete_event_size=32_768,
        )
    )


def serve(studios: Studios, settings: Settings, *, host: str, port: int, access_log: bool = False) -> None:
    """Serve until it is told to stop (SIGINT or SIGTERM); calls in work are finished first.

    Raises:
        VeriglotError: the address cannot be listened at.
    """
    server = server_of(studios, settings, host=host, port=port, access_log=access_log)
    # uvicorn raises the signal again once it has stopped; without this, a clean end would look like a killed process
    signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        server.run()
    except SystemExit as error:  # how uvicorn says that it could not begin, after it logged why
        raise VeriglotError(
            f"The server could not begin at {host}:{port}.", remedy="Is the port free? Choose another with --port."
        ) from error
    finally:
        studios.close()

"""A server of detection on loopback, in a thread of the test, with processes of its own."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx2

from veriglot.server.app import DetectionServerSettings, detection_server
from veriglot.server.batches import Batcher, Limits, Selection

if TYPE_CHECKING:
    from collections.abc import Iterator

    import uvicorn

WAYWARD = "wayward:Wayward"
BRIDGE = {"evidence": "The bridge was opened in 1897.", "response": "It was opened in 1879."}


@dataclass
class Loopback:
    """A server that answers at `url`."""

    url: str
    batcher: Batcher
    server: uvicorn.Server
    client: httpx2.Client

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").partition(":")
        return host, int(port)

    def workers(self) -> list[int]:
        return [worker.process.pid for worker in self.batcher.service._workers]

    def detect(self, row: Any, **more: Any) -> httpx2.Response:
        return self.client.post("/v1/detect", json=row, **more)

    def lines(self, text: str | bytes, **more: Any) -> httpx2.Response:
        return self.client.post("/v1/detect", content=text, headers={"content-type": "application/x-ndjson"}, **more)


@contextmanager
def serving(
    *names: str, limits: Limits | None = None, processes: int = 1, settings: DetectionServerSettings | None = None
) -> Iterator[Loopback]:
    """Serve until the block ends."""
    batcher = Batcher(partial(Selection, names or ("grounding",)), limits or Limits(), processes=processes)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = detection_server(batcher, settings or DetectionServerSettings())
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    until = time.monotonic() + 30
    while not server.started:
        assert thread.is_alive()
        assert time.monotonic() < until
        time.sleep(0.01)
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with httpx2.Client(base_url=url, timeout=60, trust_env=False) as client:
        try:
            yield Loopback(url, batcher, server, client)
        finally:
            server.should_exit = True
            thread.join(60)
            listening.close()
    assert not thread.is_alive()

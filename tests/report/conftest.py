"""A browser, and a server that would notice a request."""

from __future__ import annotations

import threading
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from browser import Requests
from study_figures import study_figures
from study_page import Page, page_of

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def listener() -> Iterator[tuple[int, list[str]]]:
    asked: list[str] = []
    handler = type("Handler", (Requests,), {"asked": asked})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1], asked
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return page_of(study_figures(), tmp_path_factory.mktemp("study"))

"""A hub that does not answer is asked once, by whatever loads a model, and one that answers is left to the library."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

from veriglot.detectors.registry import load_detector
from veriglot.encoders.base import load_encoder
from veriglot.errors import VeriglotError
from veriglot.hub.checkpoints import hub_options
from veriglot.judging.nli import load_entailment
from veriglot.llm.registry import connect
from veriglot.metrics.spans import token_bounds
from veriglot.scorers.registry import load_scorer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from file_server import FileServer

NOBODY = "nobody/nothing"


class DeafHub:
    """Takes connections and hangs up, as a proxy does that lets nothing through."""

    def __init__(self) -> None:
        self.calls = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._hang_up, daemon=True).start()

    def _hang_up(self) -> None:
        while True:
            try:
                call, _ = self._listening.accept()
            except OSError:
                return
            self.calls += 1
            call.close()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@pytest.fixture
def deaf_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[DeafHub]:
    hub = DeafHub()
    _move_hub(monkeypatch, hub.url)
    yield hub
    hub.close()


def _move_hub(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """What `HF_ENDPOINT` does; the hub's client reads it only when it is imported."""
    needs = "needs the extra `local`: pip install 'veriglot[local]'"
    monkeypatch.setattr(pytest.importorskip("huggingface_hub.constants", reason=needs), "ENDPOINT", url)


LOADERS: dict[str, Callable[[], Any]] = {
    "entailment": lambda: load_entailment(NOBODY),
    "hf": lambda: load_detector(f"hf:{NOBODY}"),
    "seahorse": lambda: load_scorer("seahorse", model=NOBODY, accept_licence=True),
    "log-probability": lambda: load_scorer(f"log-probability:{NOBODY}", accept_licence=True),
    "sentence-transformers": lambda: load_encoder("sentence-transformers", model=NOBODY),
    "llm": lambda: connect("transformers", model=NOBODY),
    "units": lambda: token_bounds(NOBODY, "text"),
}


@pytest.mark.parametrize("kind", LOADERS)
def test_a_hub_that_hangs_up_is_asked_once(deaf_hub: DeafHub, kind: str) -> None:
    for package in ("transformers", "torch", "sentence_transformers", "tokenizers"):
        pytest.importorskip(package, reason="needs the extra `encoders`: pip install 'veriglot[encoders]'")
    with pytest.raises(VeriglotError, match=NOBODY):
        LOADERS[kind]()
    assert 1 <= deaf_hub.calls <= 2, "ours, and what the hub's client asks once a process; it would ask twelve times"


def test_a_hub_that_answers_is_left_to_the_library(monkeypatch: pytest.MonkeyPatch, server: FileServer) -> None:
    _move_hub(monkeypatch, server.url)
    assert hub_options(NOBODY)["local_files_only"] is False
    assert [asked.method for asked in server.asked] == ["HEAD"]

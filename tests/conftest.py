"""What every test stands on: no connection beyond loopback, the fuzz budget, and the data that may be absent."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from playwright.sync_api import Browser

settings.register_profile(
    "veriglot",
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "50")),
    deadline=None,  # the machines are shared: a time bound would test them, not us
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("veriglot")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background: every program that a test starts and interrupts would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED = Path(__file__).resolve().parents[2] / "shared"
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_connect = socket.socket.connect


def _guarded(self: socket.socket, address: object) -> None:
    if isinstance(address, tuple) and address[0] not in _LOOPBACK:
        raise PermissionError(f"tests open no connection beyond loopback, but this one asked for {address}")
    _connect(self, address)  # type: ignore[arg-type]


def _on_path(browser: str, *names: str) -> str:
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip(f"needs {browser} on the path (one of {', '.join(names)})")
    return path


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium."""
    return _on_path("Chromium", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


# Playwright drives a Firefox as it is released over WebDriver BiDi, and always sends one command that Firefox 153 does
# not know (colours of a dark system): it becomes one that changes nothing. A Firefox that knows it needs no such line.
_FIREFOX = """const { prototype } = require("module"), compile = prototype._compile;
prototype._compile = function (code, file, ...rest) {
  const known = code.replaceAll("emulation.setMediaFeaturesOverride", "session.status");
  return compile.call(this, file.endsWith("coreBundle.js") ? known : code, file, ...rest); };"""


@pytest.fixture(scope="module")
def browser(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A headless Chromium for a module's tests, or the Firefox that they ask for.

    While one is open, a process can have no other, and no asyncio.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    with pytest.MonkeyPatch.context() as patch:
        if firefox := getattr(request, "param", "chromium") == "firefox":
            options = {"executable_path": _on_path("Firefox", "firefox", "firefox-esr"), "channel": "moz-firefox"}
            known = tmp_path_factory.mktemp("firefox") / "known.cjs"
            known.write_text(_FIREFOX, "utf-8")
            patch.setenv("NODE_OPTIONS", f"--require={known}")
        else:
            options = {"executable_path": request.getfixturevalue("chromium"), "args": ["--no-sandbox"]}
        with playwright.sync_playwright() as running:
            opened = (running.firefox if firefox else running.chromium).launch(**options)
            yield opened
            opened.close()


# Files that take minutes, or their folders. One process has a file to itself, so these begin before all others.
_LONGEST = {"detectors", "training", "test_whole_project.py"}

# Whoever asks for one of these is slow: they start a browser, or load an encoder of 70 MB.
_SLOW_FIXTURES = {"browser", "use_multilingual", "universal_file"}


_ALL_SLOW = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.slow\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files of slow tests alone unread when quick ones are run: each process would load PyTorch for them."""
    quick = config.getoption("markexpr") == "not slow" and collection_path.match("test_*.py")
    return True if quick and _ALL_SLOW.search(collection_path.read_text("utf-8")) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs much as slow and property tests as fuzz; begin the files with slow tests first.

    Begun last, one of them would keep a process busy when all others are done.
    """
    for item in items:
        call = getattr(item, "callspec", None)
        on_postgres = call is not None and any(isinstance(v, str) and v == "postgresql" for v in call.params.values())
        if on_postgres or _SLOW_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
        if getattr(getattr(item, "function", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.fuzz)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path not in slow, _LONGEST.isdisjoint({item.path.name, item.path.parent.name})))


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """One process more than cores, for those that wait: for browsers, for servers, for programs that they kill."""
    cores = yield
    return cores if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else cores + 1


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", _guarded)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the project."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip(f"needs the real data sets in {folder}, which are not part of the project")
    return folder


@pytest.fixture
def no_models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without models, by the folder that would hold them: none was fetched, and none came with a package."""
    from veriglot.hub.registry import PackageSource

    monkeypatch.setenv("VERIGLOT_WEIGHTS", str(tmp_path / "models"))
    monkeypatch.setattr(PackageSource, "root", lambda *_: None)
    return tmp_path / "models"


@pytest.fixture(scope="session")
def use_multilingual() -> Path:
    """The file of the multilingual encoder, in this user's folder of models."""
    from veriglot.hub.registry import MissingWeightsError, find

    try:
        return find("use-multilingual")
    except MissingWeightsError:
        pytest.skip("needs the multilingual encoder: make encoder")


@pytest.fixture(scope="session")
def shared_facts() -> Path:
    """The folder of figures that were taken from the papers, beside the project."""
    folder = SHARED / "facts"
    if not folder.is_dir():
        pytest.skip(f"needs the papers' figures in {folder}, which are not part of the project")
    return folder

"""The site of the docs: every page is in its menu, and a copy on disk is read and searched without a network."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "out" / "site"


def pages_of(menu: Any) -> list[str]:
    if isinstance(menu, str):
        return [menu]
    return [page for entry in (menu.values() if isinstance(menu, dict) else menu) for page in pages_of(entry)]


def test_every_page_is_once_in_the_menu() -> None:
    menu = pages_of(tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]["nav"])
    found = [path for pattern in ("*.md", "docs/*.md", "benchmarks/*.md") for path in ROOT.glob(pattern)]
    assert sorted(menu) == sorted(str(path.relative_to(ROOT)) for path in found)


@pytest.fixture(scope="module")
def site() -> Path:
    builder = Path(sys.executable).parents[1] / "release" / "bin" / "zensical"
    name = str(builder) if builder.exists() else shutil.which("zensical")
    if name is None:
        pytest.skip("the site is built by `make docs`")
    done = subprocess.run([sys.executable, ROOT / "docs" / "site.py", name], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return SITE


@pytest.mark.slow
def test_a_copy_on_disk_is_searched_without_a_network(site: Path, browser: Browser) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "docs" / "bench.html").as_uri())
    page.keyboard.press("/")
    page.get_by_placeholder("Search").fill("telemetry")
    page.get_by_text("looks for no updates").wait_for(timeout=20_000)  # of the page that is found
    assert asked
    assert not [url for url in asked if not url.startswith("file:")]

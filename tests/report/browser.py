"""Opening a page in a real browser, and a server that notices who asks it."""

from __future__ import annotations

import subprocess
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-extensions", "--enable-logging=stderr",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip


class Requests(BaseHTTPRequestHandler):
    """Answers nothing and remembers who asked."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(404)
        self.end_headers()

    do_POST = do_GET

    def log_message(self, *args: object) -> None:
        """Stay silent."""


def opened(chromium: str, page: Path, *options: str, fragment: str = "") -> tuple[str, list[str]]:
    """What the browser writes with these options, and what the page's scripts write to the console."""
    profile = page.parent / "profile"
    done = subprocess.run(
        [chromium, *QUIET, f"--user-data-dir={profile}", "--virtual-time-budget=3000", *options,
         f"{page.as_uri()}{fragment}"],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def visit(chromium: str, page: Path, fragment: str = "", width: int = 1280) -> tuple[str, list[str]]:
    """The page's DOM after its scripts ran, and what they wrote to the console."""
    return opened(chromium, page, "--dump-dom", f"--window-size={width},900", fragment=fragment)

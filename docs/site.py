"""Builds the site in out/site (`make docs`): README.md, docs/ and benchmarks/ as pages; a warning ends the build.

Pages stay where they are, so links between them hold in the repository too. Nothing is loaded from elsewhere: the site
works, and its search, when `out/site/index.html` is opened as a file.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES, SITE = ROOT / "out" / "pages", ROOT / "out" / "site"
COPIED = ("*.md", "LICENSE", "NOTICE", "docs/*.md", "docs/*.jpg", "docs/offline_search.js", "benchmarks/*.md")
WORKER = re.compile(r"https://[\w.]+/iframe-worker/shim")  # what the search loads where it is opened as a file
LOADED = re.compile(
    r"""<(?:script|img|iframe)[^>]+src=["']?https?:|<link[^>]+rel=["']?stylesheet[^>]+href=["']?https?:"""
)


def stage() -> None:
    """Lay the pages out as they lie in the repository, without what is no page of its own."""
    for folder in (PAGES, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    for pattern in COPIED:
        for path in ROOT.glob(pattern):
            if path.name != "formats_head.txt":
                target = PAGES / path.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)


def take_home() -> int:
    """Let every page load our worker; returns how many pages there are.

    Raises:
        SystemExit: a page loads something from elsewhere.
    """
    pages = sorted(SITE.rglob("*.html"))
    for page in pages:
        here = "../" * (len(page.relative_to(SITE).parts) - 1)
        text = WORKER.sub(f"{here}docs/offline_search.js", page.read_text("utf-8"))
        page.write_text(text, "utf-8")
        if found := LOADED.search(text):
            sys.exit(f"{page} loads something from elsewhere: {found[0]}")
    return len(pages)


def main() -> int:
    """Build the site; returns the exit code."""
    stage()
    builder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(sys.executable).with_name("zensical")
    done = subprocess.run([builder, "build", "--strict", "--clean"], cwd=ROOT)
    if done.returncode == 0:
        print(f"{take_home()} pages: {(SITE / 'index.html').relative_to(ROOT)}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())

"""Makes the picture of the README, docs/veriglot.jpg: the page of `veriglot detect` on picked examples, in Chromium."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import veriglot
from veriglot.cli import main as veriglot_command

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "veriglot.jpg"
SHOWN = ("es-3", "ar-1", "sr-Cyrl-1", "pl-3", "fa-1", "es-2", "sv-1")  # picked; the first one is open


def main() -> None:
    """Mark the examples, open the page, point at the first mark, and take the picture."""
    samples = {sample.id: sample for sample in veriglot.read(ROOT / "examples" / "samples.jsonl")}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        answers, page_file = Path(folder) / "answers.jsonl", Path(folder) / "answers.html"
        veriglot.write([samples[name] for name in SHOWN], answers)
        if code := veriglot_command(["detect", str(answers), "-o", str(page_file), "--quiet"]):
            sys.exit(code)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1120, "height": 600}, color_scheme="light")
        page.goto(page_file.as_uri())
        page.evaluate("document.querySelector('#title').textContent = 'answers.jsonl: grounding'")  # without its folder
        page.keyboard.press("n")
        page.screenshot(path=PICTURE, type="jpeg", quality=75)
        browser.close()
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()

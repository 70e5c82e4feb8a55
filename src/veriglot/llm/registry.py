"""The clients by name; third parties join by the entry point group `veriglot.llm`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.llm.cache import Cached
from veriglot.llm.limits import Limited
from veriglot.plugins import Entry, Table

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.llm.client import Client
    from veriglot.llm.limits import Limits

__all__ = ["CLIENTS", "connect"]

CLIENTS = Table(
    "client",
    "veriglot.llm",
    {
        "openai": Entry(
            "veriglot.llm.openai:OpenAI",
            extra="llm",
            summary="any server that speaks OpenAI's API: vLLM, llama.cpp, Ollama, hosted ones",
        ),
        "transformers": Entry(
            "veriglot.llm.transformers:Local",
            extra="local",
            summary="a model in this process, by the transformers library",
        ),
        "scripted": Entry(
            "veriglot.llm.scripted:Scripted",
            summary="replies by rules from a file, for tests and dry runs",
        ),
    },
)


def connect(name: str, *, cache: str | Path | None = None, limits: Limits | None = None, **options: Any) -> Client:
    """A client by name.

    Args:
        name: a name of `CLIENTS`.
        cache: a folder for finished calls, so that none is paid for twice; None for no cache.
        limits: what may be spent; calls that are in the cache cost nothing.
        options: of the client; see its class.

    Raises:
        UnknownNameError: no such client, or no such option; the error suggests the nearest.
        MissingExtraError: its packages are not installed.
        UsageError: an option that makes no sense, or one that is missing.
    """
    client: Client = CLIENTS.make(name, **options)
    if limits is not None:
        client = Limited(client, limits)
    return client if cache is None else Cached(client, cache)

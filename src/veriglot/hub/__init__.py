"""Model files by name: what they are, under which licence, where to get them, and whether they are what they should be.

    from veriglot import hub

    hub.get("use-multilingual")  # once, with a network
    path = hub.find("use-multilingual")  # ever after, without one

`veriglot models` is the same on the command line; docs/hub.md says how it works.
"""

from __future__ import annotations

from veriglot.hub.cache import find, folder, get, listing, offline, remove
from veriglot.hub.registry import (
    MissingWeightsError,
    Model,
    model,
    models,
)

__all__ = [
    "MissingWeightsError",
    "Model",
    "find",
    "folder",
    "get",
    "listing",
    "model",
    "models",
    "offline",
    "remove",
]

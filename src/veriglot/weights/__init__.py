"""Model files by name: what they are, under which licence, where to get them, and whether they are what they should be.

    from veriglot import weights

    weights.get("use-multilingual")  # once, with a network
    path = weights.find("use-multilingual")  # ever after, without one

`veriglot models` is the same on the command line; docs/weights.md says how it works.
"""

from __future__ import annotations

from veriglot.weights.errors import DamagedWeightsError, LicenceError, MissingWeightsError
from veriglot.weights.fetching import find, get
from veriglot.weights.folder import folder, offline
from veriglot.weights.holdings import Listed, listing, remove
from veriglot.weights.registry import Licence, Model, model, models, permissive

__all__ = [
    "DamagedWeightsError",
    "Licence",
    "LicenceError",
    "Listed",
    "MissingWeightsError",
    "Model",
    "find",
    "folder",
    "get",
    "listing",
    "model",
    "models",
    "offline",
    "permissive",
    "remove",
]

"""The kinds of entailment models by name; third parties join by the entry point group `veriglot.entailment`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.lazy import Entry, Table

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.entailment.entailment import Entailment

__all__ = ["ENTAILMENTS", "load_entailment"]

ENTAILMENTS = Table(
    "entailment model",
    "veriglot.entailment",
    {
        "transformers": Entry(
            "veriglot.entailment.classifier:SequenceClassifier",
            extra="local",
            summary="any sequence classifier of the transformers library that was trained on pairs with NLI labels",
        ),
    },
)


def load_entailment(model: str | Path, *, kind: str = "transformers", **options: Any) -> Entailment:
    """An entailment model.

    Args:
        model: a folder, a name that `veriglot models` lists, or a name on the hub; with `VERIGLOT_OFFLINE`
            only what the hub's cache on this machine holds is taken.
        kind: a name of `ENTAILMENTS`.
        options: of that kind; see its class, such as `labels`, `device`, `languages`, `cache`.

    Raises:
        MissingExtraError: its packages are not installed.
        WeightsError: it cannot be loaded, or its labels do not say what they mean.
        UnknownNameError: no such kind, or no such option.
        UsageError: an option that makes no sense.
    """
    loaded: Entailment = ENTAILMENTS.make(kind, model=str(model), **options)
    return loaded

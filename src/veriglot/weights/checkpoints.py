"""Checkpoints of transformers by name: a folder, a model of our registry, or a name on the hub.

Nothing here imports transformers or PyTorch: what loads a checkpoint brings its own classes.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veriglot.errors import WeightsError
from veriglot.weights.fetching import find
from veriglot.weights.folder import OFFLINE, offline
from veriglot.weights.reach import hub_answers
from veriglot.weights.registry import models

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["checkpoint", "hub_options", "loading", "positions", "without_bars"]

_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
_TROUBLE = (OSError, ValueError, ImportError, RuntimeError, AttributeError, KeyError, TypeError)
_ANY = 1 << 30  # tokenizers that set no bound say some huge number


def checkpoint(model: str | Path) -> str:
    """What `from_pretrained` is to be given for a model: the path of its folder, or its name on the hub.

    Args:
        model: a folder; else a name of the registry (`veriglot models`), whose files have to be here; else a name on
            the hub such as `owner/name`.

    Raises:
        WeightsError: neither; or a model of the registry whose files are not here, or are damaged.
    """
    name = str(model)
    folder = Path(name).expanduser()
    if folder.is_dir():
        return str(folder)
    if name in models():
        found = find(name)
        return str(found.parent if found.is_file() else found)
    if not _may_be_on_the_hub(name):
        raise WeightsError(
            f"There is no folder {name!r}.",
            remedy="Give the folder of a checkpoint, its name on the hub, or a name that `veriglot models` lists.",
        )
    return name


def _may_be_on_the_hub(name: str) -> bool:
    return bool(_HUB_NAME.fullmatch(name)) and not name.startswith((".", os.sep)) and not Path(name).exists()


def hub_options(place: str | Path, revision: str | None = None) -> dict[str, Any]:
    """Arguments of `from_pretrained` that keep it from the network where asking there is of no use.

    That is where `VERIGLOT_OFFLINE` is set, for what is neither a folder nor can be a name on the hub, and where the
    hub does not answer: what was fetched before is loaded then, and what was not is refused at once.

    Args:
        place: what `from_pretrained` is given.
        revision: of a model on the hub.
    """
    here = Path(place).is_dir()  # its configuration may still name parts that lie on the hub
    shut = offline() or (not here and not (_may_be_on_the_hub(str(place)) and hub_answers()))
    return {"revision": revision, "local_files_only": shut}


@contextmanager
def without_bars() -> Iterator[None]:
    """Keep transformers from drawing how far it is with reading weights; downloads are shown as before."""
    if "transformers" not in sys.modules:
        yield
        return
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
    from transformers.utils import logging

    drawn, shown = logging.is_progress_bar_enabled(), not are_progress_bars_disabled()
    logging.disable_progress_bar()
    if shown:
        enable_progress_bars()  # of downloads, which the call before has put off too
    try:
        yield
    finally:
        if drawn:
            logging.enable_progress_bar()
        if not shown:
            disable_progress_bars()


@contextmanager
def loading(what: str, model: str) -> Iterator[None]:
    """Turn what the libraries raise while they load a checkpoint into one error that says what to do; draw no bars.

    Args:
        what: what it should be, such as `entailment model`.
        model: what `checkpoint` gave.

    Raises:
        WeightsError: it cannot be loaded.
    """
    try:
        with without_bars():
            yield
    except _TROUBLE as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise WeightsError(f"The {what} {model!r} cannot be loaded: {said}", remedy=_remedy(model)) from error


def _remedy(model: str) -> str:
    if Path(model).is_dir():
        return "Give a folder that `save_pretrained` wrote, with its config.json, its weights and its tokenizer."
    if offline():
        return f"{OFFLINE} is set: unset it to fetch the model once, or give the folder of a copy."
    return "Check its name on the hub and the connection, or give the folder of a copy."


def positions(tokenizer: Any, network: Any) -> int | None:
    """How many tokens a network takes at a time, special tokens included; None where neither of the two sets a bound.

    Args:
        tokenizer: of transformers.
        network: of transformers, with or without a head.
    """
    body = getattr(network, "base_model", network)
    table = getattr(getattr(body, "embeddings", None), "position_embeddings", None)
    ahead = getattr(table, "padding_idx", None)  # RoBERTa and its kin count positions from behind the padding's
    bounds = [tokenizer.model_max_length] if tokenizer.model_max_length < _ANY else []
    most = getattr(network.config, "max_position_embeddings", None)
    if most:
        bounds.append(most - (0 if ahead is None else ahead + 1))
    return min(bounds, default=None)

"""Checkpoints of transformers by name: a folder, a model of our registry, or a name on the hub.

This module does not import transformers or PyTorch: callers pass their own model classes.
"""

from __future__ import annotations

import os
import re
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from veriglot.errors import UsageError, WeightsError
from veriglot.hub.registry import OFFLINE, Licence, find, models, offline, permissive_licences
from veriglot.plugins import read_package_data
from veriglot.records.settings import Record
from veriglot.signatures import checkpoint_revision

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import torch

    from veriglot.arrays import Int64s

__all__ = [
    "HEADS",
    "batches",
    "check_licence",
    "checkpoint",
    "effective_max_length",
    "hub_options",
    "in_batches",
    "load_pretrained",
    "loading",
    "max_positions",
    "onnx_session",
    "pad",
    "without_bars",
]


# Batches of inputs with similar lengths, for little padding.


T = TypeVar("T")

TOKENS_A_BATCH = 8192  # padding included


def batches(lengths: Sequence[int], most: int = TOKENS_A_BATCH) -> Iterator[list[int]]:
    """Indices of inputs with similar lengths, shortest first, together at most `most` tokens with their padding.

    A longer input is a batch of its own.

    Args:
        lengths: tokens of each input.
        most: maximum tokens of a batch.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[index] > most:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def in_batches(lengths: Sequence[int], run: Callable[[list[int]], Iterable[T]], most: int = TOKENS_A_BATCH) -> list[T]:
    """A result for each input, in order; `run` gets the indices of a batch from `batches`."""
    results: dict[int, T] = {}
    for batch in batches(lengths, most):
        results.update(zip(batch, run(batch), strict=True))
    return [results[index] for index in range(len(lengths))]


def pad(rows: Sequence[Sequence[int]], fill: int = 0) -> tuple[Int64s, Int64s]:
    """Token ids padded on the right with `fill`, and the attention mask (1 or 0): both of shape (b, longest)."""
    ids = np.full((len(rows), max(len(row) for row in rows)), fill, np.int64)
    mask = np.zeros_like(ids)
    for nth, row in enumerate(rows):
        ids[nth, : len(row)] = row
        mask[nth, : len(row)] = 1
    return ids, mask


def device_for(wanted: str | None = None) -> torch.device:
    """The device for a name such as `cpu` or `cuda:0`; None for the first accelerator, otherwise the CPU.

    Raises:
        UsageError: PyTorch knows no such device.
    """
    import torch

    if wanted:
        try:
            return torch.device(wanted)
        except RuntimeError as error:
            raise UsageError(f"PyTorch knows no device {wanted!r}.", "Give `cpu`, `cuda`, `cuda:0`, `mps`.") from error
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return accelerator or torch.device("cpu")


# Whether the model hub can be reached: checked before a library tries for minutes.


_BELIEVED = 60  # seconds for which an answer is cached: loading a model of several parts checks a few times


def _hub_answers() -> bool:
    """Whether the hub's server answers one request, with any status. Mirrors, proxies and offline settings apply.

    The hub's own client calls an absent server six times, with pauses, for each of two files, which takes 45 seconds.
    """
    from huggingface_hub import constants

    return _answers(constants.ENDPOINT, int(time.monotonic() // _BELIEVED))


@lru_cache(4)
def _answers(endpoint: str, _: int) -> bool:
    from huggingface_hub import constants, get_session

    try:
        get_session().head(endpoint, timeout=constants.HF_HUB_ETAG_TIMEOUT)
    except Exception:  # versions of the client have different HTTP libraries, with different errors
        return False
    return True


_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
_TROUBLE = (OSError, ValueError, ImportError, RuntimeError, AttributeError, KeyError, TypeError)
_ANY = 1 << 30  # tokenizers without a limit have some huge number


def checkpoint(model: str | Path) -> str:
    """The argument of `from_pretrained` for a model: the path of its folder, or its name on the hub.

    Args:
        model: a folder; else a name in the registry (`veriglot models`), whose files must be on this machine; else a
            name on the hub such as `owner/name`.

    Raises:
        WeightsError: none of these; or a model of the registry whose files are missing or damaged.
    """
    name = str(model)
    folder = Path(name).expanduser()
    if folder.is_dir():
        return str(folder)
    if name in models():
        path = find(name)
        return str(path.parent if path.is_file() else path)
    if not _may_be_on_the_hub(name):
        raise WeightsError(
            f"There is no folder {name!r}.",
            "Give the folder of a checkpoint, its name on the hub, or a name that `veriglot models` lists.",
        )
    return name


def _may_be_on_the_hub(name: str) -> bool:
    return bool(_HUB_NAME.fullmatch(name)) and not name.startswith((".", os.sep)) and not Path(name).exists()


def hub_options(name: str | Path, revision: str | None = None) -> dict[str, Any]:
    """Arguments of `from_pretrained` that prevent useless network access.

    They apply with `VERIGLOT_OFFLINE`, for names that are neither a folder nor valid on the hub, and if the hub does
    not answer: then cached files are loaded, and others fail immediately.

    Args:
        name: the argument of `from_pretrained`.
        revision: of a model on the hub.
    """
    here = Path(name).is_dir()  # its configuration may still refer to parts on the hub
    shut = offline() or (not here and not (_may_be_on_the_hub(str(name)) and _hub_answers()))
    return {"revision": revision, "local_files_only": shut}


@contextmanager
def without_bars() -> Iterator[None]:
    """Suppress transformers' progress bars for reading weights, and its report; bars of downloads stay."""
    if "transformers" not in sys.modules:
        yield
        return
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
    from transformers.utils import logging

    drawn, shown = logging.is_progress_bar_enabled(), not are_progress_bars_disabled()
    level = logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()  # callers check for missing weights
    if shown:
        enable_progress_bars()  # of downloads, which the call before also disables
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if drawn:
            logging.enable_progress_bar()
        if not shown:
            disable_progress_bars()


@contextmanager
def loading(what: str, model: str) -> Iterator[None]:
    """Convert errors of the libraries while they load a checkpoint to one error with a remedy; without progress bars.

    Args:
        what: the expected kind of model, such as `entailment model`.
        model: the result of `checkpoint`.

    Raises:
        WeightsError: it cannot be loaded.
    """
    try:
        with without_bars():
            yield
    except _TROUBLE as error:
        message = f"The {what} {model!r} cannot be loaded: {first_line(error)}"
        raise WeightsError(message, _remedy(model, error)) from error


def first_line(error: Exception) -> str:
    """The first line of an error's message, or its class."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _remedy(model: str, error: Exception) -> str:
    if isinstance(error, ImportError):
        return "Install what it asks for, such as `pip install sentencepiece` for Marian."
    if Path(model).is_dir():
        return "Give a folder that `save_pretrained` wrote, with its config.json, its weights and its tokenizer."
    if offline():
        return f"{OFFLINE} is set: unset it to fetch the model once, or give the folder of a copy."
    return "Check its name on the hub and the connection, or give the folder of a copy."


def max_positions(tokenizer: Any, network: Any) -> int | None:
    """Maximum input tokens of a network, special tokens included; None if neither of the two has a limit.

    Args:
        tokenizer: of transformers.
        network: of transformers, with or without a head.
    """
    body = getattr(network, "base_model", network)
    table = getattr(getattr(body, "embeddings", None), "position_embeddings", None)
    ahead = getattr(table, "padding_idx", None)  # RoBERTa and similar models count positions after the padding index
    bounds = [tokenizer.model_max_length] if tokenizer.model_max_length < _ANY else []
    most = getattr(network.config, "max_position_embeddings", None)
    if most:
        bounds.append(most - (0 if ahead is None else ahead + 1))
    return min(bounds, default=None)


_OF_TOKENIZERS = ("trust_remote_code", "gguf_file")
HEADS = ("classifier", "score")  # transformers' names of the classification layer
_DEFAULT_ROOM = 512  # maximum tokens of an input if the model has no limit


def effective_max_length(model: str, takes: int | None, wanted: int | None) -> int:
    """Maximum tokens of an input: as requested, within the model's limit; 512 without both.

    Args:
        model: its name, for the error.
        takes: the limit from `max_positions`.
        wanted: the user's value; None for the model's limit.

    Raises:
        UsageError: the model's limit is lower than requested.
        UsageError: it takes fewer than wanted.
    """
    if wanted is not None and takes is not None and wanted > takes:
        raise UsageError(
            f"{model!r} takes {takes:,} tokens, and {wanted:,} were asked for.", f"Give max_length {takes} or less."
        )
    return wanted or takes or _DEFAULT_ROOM


@dataclass(frozen=True)
class Pretrained:
    """A network of transformers, ready to run.

    Attributes:
        source: path of its folder, or its name on the hub.
        tokenizer, network: of transformers.
        device: of the network.
        settings: for a signature: dtype, device, and the versions of the libraries.
    """

    source: str
    tokenizer: Any
    network: Any
    device: torch.device
    settings: dict[str, str]

    @property
    def revision(self) -> str:
        """A commit, or a hash of its files."""
        return checkpoint_revision(self.source, self.network.config)

    def effective_max_length(self, wanted: int | None) -> int:
        """Maximum tokens of an input; see `effective_max_length`."""
        return effective_max_length(self.source, max_positions(self.tokenizer, self.network), wanted)


def load_pretrained(
    kind: Any,
    model: str | Path,
    *,
    what: str,
    tokenizer: str | None = None,
    revision: str | None = None,
    device: str | None = None,
    dtype: str = "float32",
    trust_remote_code: bool = False,
    new_head: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Pretrained:
    """Load a checkpoint with its tokenizer, on a device.

    Args:
        kind: class of transformers, such as `AutoModelForTokenClassification`.
        model: as for `checkpoint`.
        what: the expected kind of model, such as `entailment model`.
        tokenizer: the checkpoint of its tokenizer; None for its own.
        revision: of a model on the hub.
        device: as for `device_for`.
        dtype: of the weights.
        trust_remote_code: run code of the model's repository.
        new_head: whether its last layer may be missing or have another size, because it will be trained or comes with
            an adapter. It is initialised with zeros: random values are bad for some decoders with large hidden states.
        options: further arguments of `from_pretrained`.

    Raises:
        WeightsError: it cannot be loaded, or was trained for another task.
        UsageError: PyTorch knows no such device.
    """
    import torch
    import transformers

    source, words = checkpoint(model), checkpoint(tokenizer or model)
    given = {"trust_remote_code": trust_remote_code, **hub_options(source, revision), **(options or {})}
    with loading(f"tokenizer of the {what}", words):
        own = {name: given[name] for name in _OF_TOKENIZERS if name in given}
        own |= hub_options(words, revision if words == source else None)
        loaded = transformers.AutoTokenizer.from_pretrained(words, **own)
    with loading(what, source):
        network, report = kind.from_pretrained(
            source, dtype=dtype, output_loading_info=True, ignore_mismatched_sizes=new_head, **given
        )
    missing = {*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])}
    absent = sorted(key for key in missing if not (new_head and key.split(".")[0] in HEADS))
    for key in missing.difference(absent):
        torch.nn.init.zeros_(network.get_parameter(key))
    if absent:
        raise WeightsError(
            f"The {what} {source!r} lacks weights: {', '.join(absent[:3])}{' ...' if len(absent) > 3 else ''}.",
            f"They would be random. Take a checkpoint that was trained as such a {what}.",
        )
    target = device_for(device)
    settings = {
        "dtype": str(network.dtype).removeprefix("torch."),
        "device": target.type,
        "transformers": transformers.__version__,
        "torch": torch.__version__,
    }
    return Pretrained(source, loaded, network.to(target).eval(), target, settings)


_ONNX_CUDA = "VERIGLOT_ONNX_CUDA"


def onnx_session(network: str | bytes, *, operators: str | None = None) -> Any:
    """A session of ONNX Runtime for a file or a network in memory, on one CPU thread.

    In a cluster worker with a GPU (`VERIGLOT_ONNX_CUDA`) it runs there, if ONNX Runtime can.

    Args:
        network: the file, or its content.
        operators: a library of additional operators.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read on import; otherwise it reports the process and stores an id
    import onnxruntime

    onnxruntime.disable_telemetry_events()  # for Windows, where the variable is not read
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if operators is not None:
        options.register_custom_ops_library(operators)
    wanted = ["CPUExecutionProvider"]
    if os.environ.get(_ONNX_CUDA) and "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        wanted.insert(0, "CUDAExecutionProvider")
    # Fused with the preceding sum, layer normalisation takes five times as long on a CPU.
    return onnxruntime.InferenceSession(network, options, providers=wanted, disabled_optimizers=["SkipLayerNormFusion"])


# Licences of third-party checkpoints, shown before they are used.


_ACCEPTED = "VERIGLOT_ACCEPT_LICENCES"
_CACHED = re.compile(r"models--(?P<owner>[^/\\]+?)--(?P<name>[^/\\]+)")  # a folder of the hub's cache
_STATED = re.compile(r"^license(_name)?:[ \t]*['\"]?(?P<name>[\w.+-]+)", re.MULTILINE)
_LONGEST_CARD = 1 << 20
_shown = set[str]()


class _Card(Record):
    names: tuple[str, ...] = ()
    licence: Licence | None = None


@cache
def _known() -> dict[str, _Card]:
    return {name: card for card in read_package_data(__package__, "cards.json", list[_Card]) for name in card.names}


def card_of(checkpoint: str | Path) -> _Card | None:
    """Known licence of a checkpoint; None for a folder without a card, and for unknown names."""
    name = str(checkpoint)
    path = Path(name).expanduser()
    cached = _CACHED.search(str(path.absolute())) if path.exists() else None
    card = _known().get(name) or (_known().get(f"{cached['owner']}/{cached['name']}") if cached else None)
    if card is not None or path.is_dir():
        return card or _own_card(path)
    entry = models().get(name)
    return _Card((name,), entry.licence) if entry is not None else None


def check_licence(checkpoint: str | Path, *, accepted: bool = False) -> None:
    """Show the licence of a checkpoint, once per process; require acceptance of one that is not permissive.

    It is accepted by `accepted`, or by the variable `VERIGLOT_ACCEPT_LICENCES`, a comma-separated list of names. An
    unknown licence is reported as such; a folder without a card is the user's responsibility.

    Raises:
        WeightsError: the licence has restrictions and was not accepted.
    """
    card = card_of(checkpoint)
    if card is None:
        return
    if card.licence is None:
        _once(f"{checkpoint}: we do not know its licence; read its card before you use it.")
        return
    _once(f"{checkpoint}: licence {card.licence}")
    named = {part.strip().casefold() for part in os.environ.get(_ACCEPTED, "").split(",")}
    if accepted or card.licence.permissive or card.licence.name.casefold() in named:
        return
    raise WeightsError(
        f"The licence of {str(checkpoint)!r}, {card.licence}, has to be accepted before it is used.",
        f"Read it, then give accept_licence=true, or set {_ACCEPTED}={card.licence.name}.",
    )


def _once(line: str) -> None:
    if line not in _shown:
        _shown.add(line)
        print(line, file=sys.stderr)


def _own_card(folder: Path) -> _Card | None:
    """The licence in the header of a folder's own model card, as on the hub."""
    file = folder / "README.md"
    if not file.is_file() or file.stat().st_size > _LONGEST_CARD:
        return None
    text = file.read_text(encoding="utf-8", errors="replace")
    head = text.split("\n---", 1)[0] if text.startswith("---") else ""
    names = {match[1] or "": match["name"] for match in _STATED.finditer(head)}
    name = names.get("_name") or names.get("")
    if not name:
        return None
    spelled = next((licence for licence in permissive_licences() if licence.casefold() == name.casefold()), name)
    # The hub writes licence names in lower case.
    return _Card(licence=Licence(spelled, file.absolute().as_uri(), "by the card in its folder"))

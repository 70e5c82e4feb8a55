"""Networks that classify tokens: any encoder or decoder of transformers, whole or as an adapter, in 4 bits or more.

A checkpoint states what it was trained as in its `config.json`: `is_causal` says which way a decoder looks, and the
table `veriglot` how its inputs are written. What it states is done, or the checkpoint is refused.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
import transformers
from transformers.modeling_layers import GenericForTokenClassification

from veriglot.errors import MissingExtraError, WeightsError
from veriglot.hub.checkpoints import HEADS, Pretrained, checkpoint, hub_options, load_pretrained, loading
from veriglot.records.settings import Record, read_json_record
from veriglot.signatures import checkpoint_revision

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Attention", "Written", "config_of", "load_network", "looks_ahead", "quantised", "set_attention", "unheeded"]

Attention = Literal["bidirectional", "causal"]
_ADAPTER = "adapter_config.json"


class Written(Record):
    """How the inputs of a checkpoint are written: the table `veriglot` of its configuration.

    Attributes:
        prompt: a format of prompts.
        max_length: tokens of an input, special tokens included.
        languages: tags of the languages that it was trained in; empty where it takes any.
        four_bit: whether its adapter was trained on weights of 4 bits (NF4).
    """

    prompt: str | None = None
    max_length: int | None = None
    languages: tuple[str, ...] = ()
    four_bit: bool = False


class _Adapter(Record):
    base_model_name_or_path: str
    modules_to_save: tuple[str, ...] | None = None


def config_of(source: str, **options: Any) -> Any:
    """The configuration of a checkpoint. Its family has a token classifier from then on, decoders included.

    Raises:
        WeightsError: it cannot be read, or transformers has no network of its family.
    """
    with loading("configuration", source):
        config = transformers.AutoConfig.from_pretrained(source, **options)
        family = type(config)
        if family not in transformers.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING:
            body = transformers.MODEL_MAPPING[family]
            base = next(kind for kind in body.__mro__ if kind.__name__.endswith("PreTrainedModel"))
            name = body.__name__.removesuffix("Model") + "ForTokenClassification"  # by it, transformers picks the loss
            network = type(name, (GenericForTokenClassification, base), {"config_class": family})
            transformers.AutoModelForTokenClassification.register(family, network, exist_ok=True)
    return config


def set_attention(config: Any, attention: Attention) -> None:
    """Write into a configuration which way its network is to look.

    The flag of EmbeddingGemma (`use_bidirectional_attention`) would halve the window at each load.
    """
    config.is_causal = attention == "causal"


def looks_ahead(network: Any) -> bool:
    """Whether the last token of an input can change how a network sees the first."""
    ids = torch.arange(1, 9, device=network.device).expand(2, -1).clone()
    ids[1, -1] = 9
    training = network.training
    network.eval()
    with torch.inference_mode():
        first, second = network(input_ids=ids, output_hidden_states=True).hidden_states[-1][:, 0]
    network.train(training)
    return not torch.equal(first, second)


@contextmanager
def unheeded() -> Iterator[None]:
    """Keep quiet what libraries say of each other's future."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def quantised() -> Any:
    """How weights are held in 4 bits: NF4 with double quantisation, computed in bfloat16 (Dettmers et al. 2023).

    Raises:
        MissingExtraError: bitsandbytes is not installed.
    """
    try:
        import bitsandbytes  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("Weights of 4 bits", "train") from error
    return transformers.BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16, llm_int8_skip_modules=list(HEADS),
    )  # fmt: skip


def load_network(
    model: str,
    *,
    attention: Attention | None,
    four_bit: bool | None,
    revision: str | None,
    trust_remote_code: bool,
    **options: Any,
) -> tuple[Pretrained, Written]:
    """A token classifier that is ready to run, and how its inputs are written.

    Args:
        model: a folder, a name of the registry, or a name on the hub; whole, or an adapter beside its `config.json`.
        attention: which way it looks; None as its configuration says.
        four_bit: whether its weights are held in 4 bits; None for as an adapter was trained.
        revision: of a model on the hub.
        trust_remote_code: run code that comes with the model.
        options: `device` and `dtype`, as `load_pretrained` takes them.

    Raises:
        WeightsError: it cannot be loaded, lacks a head, or cannot look the way that it says.
        MissingExtraError: an adapter needs peft, or 4 bits need bitsandbytes.
    """
    source = checkpoint(model)
    config = config_of(source, trust_remote_code=trust_remote_code, **hub_options(source, revision))
    if attention is not None:
        set_attention(config, attention)
    written = Written(**{key: value for key, value in getattr(config, "veriglot", {}).items() if key in _FIELDS})
    more = {"config": config}
    if written.four_bit if four_bit is None else four_bit:
        more["quantization_config"] = quantised()
    adapter = Path(source) / _ADAPTER
    what = "token classifier"
    kind = transformers.AutoModelForTokenClassification
    if not adapter.is_file():
        loaded = load_pretrained(
            kind, model, what=what, revision=revision, trust_remote_code=trust_remote_code, options=more, **options
        )
    else:
        loaded = _with_adapter(source, adapter, more, trust_remote_code=trust_remote_code, **options)
    if "quantization_config" in more:
        loaded.settings["weights"] = "nf4"
    if attention is not None:
        loaded.settings["attention"] = attention
    causal = getattr(loaded.network.config, "is_causal", None)
    if causal is not None and causal == looks_ahead(loaded.network):
        stated, run = ("causal", "bidirectional") if causal else ("bidirectional", "causal")
        raise WeightsError(
            f"{model!r} is to look at its input with {stated} attention, and transformers"
            f" {transformers.__version__} runs it with {run} attention.",
            remedy="Use another version of transformers, or state the other attention.",
        )
    return loaded, written


_FIELDS = frozenset(Written.__struct_fields__)


def _with_adapter(source: str, path: Path, more: dict[str, Any], **options: Any) -> Pretrained:
    """The network that an adapter was trained on, with the adapter; merged into it unless it is held in 4 bits."""
    try:
        import peft
    except ImportError as error:
        raise MissingExtraError("An adapter", "train") from error
    stated = read_json_record(path, _Adapter, "Give a folder that peft's save_pretrained wrote.")
    if not set(stated.modules_to_save or ()) & set(HEADS):
        raise WeightsError(
            f"The adapter {source!r} holds no head that labels tokens.",
            remedy="Take one that was trained for token classification (peft's TOKEN_CLS).",
        )
    loaded = load_pretrained(
        transformers.AutoModelForTokenClassification, stated.base_model_name_or_path, what="token classifier",
        tokenizer=source, options=more, new_head=True, **options,
    )  # fmt: skip
    with loading("adapter", source), unheeded():
        network = peft.PeftModel.from_pretrained(loaded.network, source)
        if "quantization_config" not in more:
            network = network.merge_and_unload()
    base = checkpoint_revision(loaded.source, loaded.network.config)[:12]
    return Pretrained(source, loaded.tokenizer, network.eval(), loaded.device, {**loaded.settings, "base": base})

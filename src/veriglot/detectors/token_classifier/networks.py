"""Networks for token classification: any encoder or decoder of transformers, full or as an adapter, also in 4 bits.

The `config.json` of a checkpoint states how it was trained: `is_causal` the attention of a decoder, and the table
`veriglot` the format of its inputs. A checkpoint that cannot run as stated is refused.
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

__all__ = [
    "Attention", "InputFormat", "config_of", "ignore_future_warnings", "is_bidirectional", "load_network", "nf4_config",
    "set_attention"
]  # fmt: skip

Attention = Literal["bidirectional", "causal"]
_ADAPTER = "adapter_config.json"


class InputFormat(Record):
    """The format of a checkpoint's inputs: the table `veriglot` of its configuration.

    Attributes:
        prompt: name of a prompt format.
        max_length: most tokens of an input, special tokens included.
        languages: tags of the languages that it was trained in; empty for any.
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
    """The configuration of a checkpoint. Registers a token classifier for its family if transformers has none.

    Raises:
        WeightsError: the configuration cannot be read, or transformers has no network of its family.
    """
    with loading("configuration", source):
        config = transformers.AutoConfig.from_pretrained(source, **options)
        family = type(config)
        if family not in transformers.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING:
            body = transformers.MODEL_MAPPING[family]
            base = next(kind for kind in body.__mro__ if kind.__name__.endswith("PreTrainedModel"))
            name = body.__name__.removesuffix("Model") + "ForTokenClassification"  # transformers picks its loss by this
            network = type(name, (GenericForTokenClassification, base), {"config_class": family})
            transformers.AutoModelForTokenClassification.register(family, network, exist_ok=True)
    return config


def set_attention(config: Any, attention: Attention) -> None:
    """Set the attention in a configuration.

    This does not use EmbeddingGemma's flag `use_bidirectional_attention`, which would halve the window at each load.
    """
    config.is_causal = attention == "causal"


def is_bidirectional(network: Any) -> bool:
    """Whether the last token of an input changes the hidden state of the first."""
    ids = torch.arange(1, 9, device=network.device).expand(2, -1).clone()
    ids[1, -1] = 9
    training = network.training
    network.eval()
    with torch.inference_mode():
        first, second = network(input_ids=ids, output_hidden_states=True).hidden_states[-1][:, 0]
    network.train(training)
    return not torch.equal(first, second)


@contextmanager
def ignore_future_warnings() -> Iterator[None]:
    """Silence the `FutureWarning`s of libraries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def nf4_config() -> Any:
    """Quantisation to 4 bits: NF4 with double quantisation, computed in bfloat16 (Dettmers et al. 2023).

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
) -> tuple[Pretrained, InputFormat]:
    """A token classifier that is ready to run, and the format of its inputs.

    Args:
        model: a folder, a name of the registry, or a name on the hub; full, or an adapter with a `config.json`.
        attention: `bidirectional` or `causal`; None for that of its configuration.
        four_bit: whether to load weights in 4 bits; None for as the adapter was trained.
        revision: of a model on the hub.
        trust_remote_code: run code that comes with the model.
        options: `device` and `dtype`, as `load_pretrained` takes them.

    Raises:
        WeightsError: it cannot be loaded, lacks a head, or cannot run with the stated attention.
        MissingExtraError: peft (for an adapter) or bitsandbytes (for 4 bits) is not installed.
    """
    source = checkpoint(model)
    config = config_of(source, trust_remote_code=trust_remote_code, **hub_options(source, revision))
    if attention is not None:
        set_attention(config, attention)
    inputs = InputFormat(**{key: value for key, value in getattr(config, "veriglot", {}).items() if key in _FIELDS})
    more = {"config": config}
    if inputs.four_bit if four_bit is None else four_bit:
        more["quantization_config"] = nf4_config()
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
    if causal is not None and causal == is_bidirectional(loaded.network):
        stated, run = ("causal", "bidirectional") if causal else ("bidirectional", "causal")
        raise WeightsError(
            f"{model!r} is to look at its input with {stated} attention, and transformers"
            f" {transformers.__version__} runs it with {run} attention.",
            remedy="Use another version of transformers, or state the other attention.",
        )
    return loaded, inputs


_FIELDS = frozenset(InputFormat.__struct_fields__)


def _with_adapter(source: str, path: Path, more: dict[str, Any], **options: Any) -> Pretrained:
    """The base network of an adapter, with the adapter; merged into it unless the network is in 4 bits."""
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
    with loading("adapter", source), ignore_future_warnings():
        network = peft.PeftModel.from_pretrained(loaded.network, source)
        if "quantization_config" not in more:
            network = network.merge_and_unload()
    base = checkpoint_revision(loaded.source, loaded.network.config)[:12]
    return Pretrained(source, loaded.tokenizer, network.eval(), loaded.device, {**loaded.settings, "base": base})

"""Trains token classifiers: fine-tunes any encoder of transformers, or a decoder with bidirectional attention.

mFAVA's detector is such a model (section 3.1): a decoder with bidirectional attention, fine-tuned with LoRA adapters on
4-bit weights, on one language or many. It predicts for each token of a response whether it is unsupported, or its type.
The training uses transformers' `Trainer`, peft for adapters, and bitsandbytes for 4-bit weights.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import logging
import math
import os
import re
import shutil
import statistics
import tempfile
import time
from collections import Counter
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import numpy as np
import psutil
import torch
import transformers

from veriglot.datasets.near_duplicates import text_keys, texts_of
from veriglot.datasets.token_labels import labels_at
from veriglot.detectors.token_classifier.detector import FORMATS, PairTokenizer, prompt_for
from veriglot.detectors.token_classifier.networks import (
    Attention,
    InputFormat,
    config_of,
    ignore_future_warnings,
    is_bidirectional,
    nf4_config,
    set_attention,
)
from veriglot.encoders.base import fast_tokenizer
from veriglot.errors import InputError, MissingExtraError, UnknownNameError, UsageError
from veriglot.formats.base import Report
from veriglot.formats.reader import read_rows
from veriglot.hub.checkpoints import (
    HEADS,
    check_licence,
    checkpoint,
    first_line,
    hub_options,
    load_pretrained,
    loading,
    onnx_session,
    without_bars,
)
from veriglot.judging.base import resolve_language
from veriglot.metrics.reference import reference
from veriglot.plugins import read_package_data
from veriglot.records import Sample, Span
from veriglot.records.languages import base_tag
from veriglot.records.settings import (
    Record,
    StrictRecord,
    errors_of,
    paths_in,
    read_json_record,
    read_toml_records,
    require,
    require_files,
)
from veriglot.records.taxonomy import taxonomies
from veriglot.signatures import __version__, checkpoint_revision, digest
from veriglot.storage.checkpoint import FailedRow, differing_settings
from veriglot.storage.files import whole_folder, write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Say = Callable[[str], None]

__all__ = ["LogCallback", "TokensConfig", "last_checkpoint", "plan", "read_config", "train"]

_FIGURES = ("loss", "precision", "recall", "f1", "macro_f1")
_IGNORED = -100  # the label that the loss of transformers ignores
_BINARY = ("supported", "hallucination")  # the names in LettuceDetect
_DEFAULT_LENGTH = 4096  # as mFAVA (Table 5), if the model allows it
_DEFAULTS = read_package_data(__package__, "defaults.toml", dict[str, dict[str, Any]])
_OURS = ("output_dir", "seed", "data_seed")  # set by this module, not by the file


class TokensConfig(StrictRecord):
    """The file of `veriglot train tokens`.

    Attributes:
        model: a folder, a name in the registry, or a name on the hub.
        output: folder for the checkpoints, relative to the file as all paths are.
        data: labelled files and folders.
        validation: the same for validation; if empty, `validation_share` of the texts of `data`.
        validation_share: over 0, under 1.
        languages: tags of the languages to use; empty for all.
        monolingual: one checkpoint for each language (mFAVA's MONO), or one for all (MULTI).
        types: whether it predicts types, or only what is unsupported.
        scheme: `io`, or `bio` for separate labels of the first token of a span.
        annotator: whose labels; None as in `veriglot evaluate`.
        attention: direction of a decoder's attention; encoders are bidirectional.
        prompt: template of evidence and question before the response.
        max_length: tokens of an input; longer evidence is truncated, and such rows are counted.
        adapter: `none` trains all weights, `lora` adapters, `qlora` adapters on 4-bit weights.
        save: `merged` writes whole checkpoints, `adapter` only the adapters and the head.
        onnx: whether a merged checkpoint is also exported as `model.onnx`, if PyTorch can do it.
        patience: for early stopping: epochs without a lower validation loss; 0 for never.
        seeds: one checkpoint each.
        device: `cpu`, `cuda`; None for the first accelerator.
        dtype: of the weights.
        accept_licence: you have read the model's licence, and it allows what you do.
        training: further arguments of transformers.TrainingArguments.
        lora: arguments of peft.LoraConfig.
    """

    model: str
    output: str
    data: tuple[str, ...]
    validation: tuple[str, ...] = ()
    validation_share: float = 0.3
    languages: tuple[str, ...] = ()
    monolingual: bool = False
    types: bool = False
    scheme: Literal["io", "bio"] = "io"
    annotator: str | None = None
    attention: Attention | None = None
    prompt: str = "plain"
    max_length: int | None = None
    adapter: Literal["none", "lora", "qlora"] = "none"
    save: Literal["merged", "adapter"] = "merged"
    onnx: bool = False
    patience: int = 0
    seeds: tuple[int, ...] = (42, 47, 49)
    device: str | None = None
    dtype: Literal["float32", "bfloat16"] = "float32"
    accept_licence: bool = False
    training: dict[str, Any] = {}
    lora: dict[str, Any] = {}


def read_config(path: Path) -> TokensConfig:
    """Read the settings from a file.

    Raises:
        InputError: the file cannot be read, or a setting is invalid; the error names it.
    """
    with errors_of(path):
        config = read_toml_records(path, TokensConfig, "training")
        for field in ("data", "validation"):
            require_files(path.parent, getattr(config, field), field)
        require(config.data, "there is no data", "data")
        require(0 < config.validation_share < 1, "it lies between 0 and 1", "validation_share")
        require(config.seeds, "there is no seed", "seeds")
        require(config.save == "merged" or config.adapter != "none", "there is no adapter to save", "save")
        require(not config.onnx or config.save == "merged", "only merged checkpoints become ONNX", "onnx")
        require(config.types or config.scheme == "io", "without types there is only io", "scheme")
        if config.prompt not in FORMATS:
            raise UnknownNameError("prompt", config.prompt, FORMATS)
        known = {field.name for field in dataclasses.fields(transformers.TrainingArguments)}
        for name in config.training:
            require(name not in _OURS, f"{name} follows from the other settings", "training")
            if name not in known:
                raise UnknownNameError("training argument", name, known)
    return config


class _Row(Record):
    """An input with the label of each token; -100 for tokens outside the response."""

    language: str
    input_ids: tuple[int, ...]
    labels: tuple[int, ...]
    token_type_ids: tuple[int, ...] | None


class _Rows(NamedTuple):
    """Training and validation inputs."""

    training: list[_Row]
    validation: list[_Row]

    def of(self, language: str | None) -> _Rows:
        """The inputs of one language; all for None."""
        return (
            self if language is None else _Rows(*([row for row in rows if row.language == language] for rows in self))
        )


class Plan(Record):
    """Cost of a training, estimated from one step on the longest inputs.

    Attributes:
        rows, validation: number of inputs.
        tokens: of the inputs of an epoch.
        cut: inputs with truncated evidence.
        left_out: number of rows that were not used, by reason.
        steps: optimiser steps of all checkpoints.
        checkpoints: number of trained checkpoints.
        parameters, trained: number of parameters, and of trained ones.
        seconds: for all checkpoints, from the time of that step.
        memory: bytes of the process after it, or peak bytes of the accelerator.
    """

    rows: int
    validation: int
    tokens: int
    cut: int
    left_out: dict[str, int]
    steps: int
    checkpoints: int
    parameters: int
    trained: int
    seconds: float
    memory: int


class Run(Record):
    """A trained checkpoint.

    Attributes:
        folder: its path.
        language: of a monolingual checkpoint; None for all.
        seed: of the training.
        steps: optimiser steps.
        loss: of the last logged step.
        validation: loss; precision, recall and F1 of unsupported tokens of responses; mean F1 over types, if any.
        memory: as in `Plan`.
    """

    folder: str
    language: str | None
    seed: int
    steps: int
    loss: float
    validation: dict[str, float]
    memory: int


_Labelled = tuple[Sample, tuple[Span, ...], str]  # sample, spans, language


class TrainingData:
    """Training and validation data as model inputs.

    Attributes:
        labels: names of the outputs, in order.
        rows: inputs.
        cut: inputs with truncated evidence.
        left_out: number of rows that were not used, by reason.
        hash: of the rows, split into training and validation.
        languages: tags, in order.
        parts: languages of the checkpoints of a seed: each language if monolingual, else one None for all.
    """

    def __init__(self, config: TokensConfig, folder: Path, tokenizer: Any, room: int) -> None:
        self._config, self._room = config, room
        self._typed = "token_type_ids" in tokenizer.model_input_names
        self._tokens = PairTokenizer(fast_tokenizer(tokenizer, config.model))
        self._special = tokenizer.num_special_tokens_to_add(pair=True)
        self.cut = 0
        self.left_out = Counter[str]()
        training = self._labelled(paths_in(folder, config.data))
        validation = self._labelled(paths_in(folder, config.validation)) if config.validation else None
        if not training:
            raise InputError(f"no row of the data can be trained on ({dict(self.left_out)})", field="data")
        if validation is None:
            training, validation = _split(training, config.validation_share)
        self.labels = self._names([spans for _, spans, _ in (*training, *validation)])
        numbers = {name: number for number, name in enumerate(self.labels)}
        self.rows = _Rows(*([self._row(*item, numbers) for item in part] for part in (training, validation)))
        self.hash = digest([digest(map(repr, part)) for part in self.rows])
        self.languages = sorted({row.language for row in self.rows.training})
        self.parts: list[str | None] = [*self.languages] if config.monolingual else [None]
        for part in self.parts if config.patience else ():
            what = "nothing is left to stop early by" if part is None else f"no row in {part} is left to stop early by"
            remedy = "Give `validation`, more texts, or `patience = 0`."
            require(self.rows.of(part).validation, what, "patience", remedy)

    def _labelled(self, paths: Sequence[Path]) -> list[_Labelled]:
        """The labelled samples with spans and languages."""
        wanted = {base_tag(tag).lower() for tag in self._config.languages}
        result = []
        for path in paths:
            for sample in read_rows(path, report=Report()):
                if isinstance(sample, FailedRow):
                    self.left_out["unreadable"] += 1
                    continue
                resolved = resolve_language(sample)
                language = base_tag(resolved.tag).lower() if resolved else "und"
                labels = reference(sample, self._config.annotator)
                reason = (
                    "another language" if wanted and language not in wanted
                    else "no labels" if labels is None
                    else "no evidence" if not any(passage.strip() for passage in sample.passages)
                    else None
                )  # fmt: skip
                if reason is None and labels is not None:
                    places = zip(labels.marks.spans.tolist(), labels.marks.types, strict=True)
                    result.append((sample, tuple(Span(start, end, type_) for (start, end), type_ in places), language))
                else:
                    self.left_out[reason or ""] += 1
        return result

    def _names(self, spans: Sequence[Sequence[Span]]) -> list[str]:
        """Names of the outputs."""
        if not self._config.types:
            return list(_BINARY)
        types = {span.type for own in spans for span in own}
        if None in types or not types:
            raise InputError("spans without a type", "Train without types.", field="types")
        names = next((list(t.types) for t in taxonomies().values() if types <= t.types.keys()), sorted(map(str, types)))
        letters = ("B", "I") if self._config.scheme == "bio" else ("I",)
        return ["O", *(f"{letter}-{name}" for name in names if name in types for letter in letters)]

    def _row(self, sample: Sample, spans: Sequence[Span], language: str, numbers: Mapping[str, int]) -> _Row:
        """The input of a sample; evidence that is too long is truncated at its end."""
        prompt = prompt_for(self._config.prompt, sample, language)
        text = prompt.over([passage for passage in sample.passages if passage.strip()])
        encoding = self._tokens.pair(text, sample.response)
        if len(encoding.ids) > self._room:
            self.cut += 1
            encoding = self._fitting(text, sample.response)
        if not self._config.types:
            spans = [Span(span.start, span.end, None) for span in spans]
        own = [part == 1 for part in encoding.sequence_ids]
        places = [tuple(offsets) if mine else None for offsets, mine in zip(encoding.offsets, own, strict=True)]
        labels = labels_at(sample.response, spans, places, self._config.scheme)
        if not self._config.types:
            labels = [label and _BINARY[label != "O"] for label in labels]
        return _Row(
            language,
            tuple(encoding.ids),
            tuple(_IGNORED if label is None else numbers[label] for label in labels),
            tuple(encoding.type_ids) if self._typed else None,
        )

    def _fitting(self, prompt: str, response: str) -> Any:
        """Prompt and response; too long ones lose the prompt's end, or the end of a response over half the length."""
        free = self._room - self._special
        response = self._head(response, max(free - self._tokens.count(prompt), free // 2))
        room = free - self._tokens.count(response)
        while True:
            encoding = self._tokens.pair(self._head(prompt, room), response)
            beyond = len(encoding.ids) - self._room
            if beyond <= 0 or room <= 0:
                return encoding
            room -= beyond  # the joined texts may have more tokens than the two apart

    def _head(self, text: str, room: int) -> str:
        """The beginning of a text, up to `room` tokens."""
        bounds = self._tokens.bounds(text)
        return text if len(bounds) <= room else text[: int(bounds[room - 1, 1])] if room > 0 else ""


def _split(items: list[_Labelled], share: float) -> tuple[list[_Labelled], ...]:
    """Split into training and validation; rows with a common response or evidence stay together."""
    texts = texts_of([text_keys(sample) for sample, *_ in items])
    order = sorted(set(texts), key=lambda text: digest(["validation", text]))
    held_out = set(order[: max(1, round(share * len(order)))]) if len(order) > 1 else set()
    parts: tuple[list[Any], list[Any]] = ([], [])
    for item, text in zip(items, texts, strict=True):
        parts[text in held_out].append(item)
    return parts


class _Trainee(NamedTuple):
    """A network before training, with its tokenizer."""

    network: Any
    tokenizer: Any
    source: str
    trained: int


def _trainee(config: TokensConfig, labels: Sequence[str], written: InputFormat) -> _Trainee:
    """The network with a new head, and with adapters if requested.

    Raises:
        UsageError: causal attention of an encoder.
        MissingExtraError: peft or bitsandbytes is not installed.
        WeightsError: the model cannot be loaded, or does not support bidirectional attention.
    """
    settings = config_of(checkpoint(config.model), **hub_options(checkpoint(config.model)))
    settings.id2label = dict(enumerate(labels))
    settings.label2id = {name: number for number, name in enumerate(labels)}
    settings.veriglot = {key: value for key, value in msgspec.to_builtins(written).items() if value}
    if config.attention is not None:
        set_attention(settings, config.attention)
    options = {"config": settings}
    if config.adapter == "qlora":
        options["quantization_config"] = nf4_config()
    loaded = load_pretrained(
        transformers.AutoModelForTokenClassification, config.model, what="model", device=config.device,
        dtype=config.dtype, new_head=True, options=options,
    )  # fmt: skip
    network = loaded.network
    for module in network.modules():
        # On some CPUs bitsandbytes packs weights at the first evaluation, and then no gradient flows through them.
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False
    loaded.effective_max_length(written.max_length)
    if config.attention is not None and (config.attention == "causal") == is_bidirectional(network):
        raise UsageError(
            f"transformers cannot run {config.model!r} with {config.attention} attention.",
            "Leave out `attention`: encoders look both ways.",
        )
    if config.adapter != "none":
        network = _with_adapters(config, network)
    trained = sum(weights.numel() for weights in network.parameters() if weights.requires_grad)
    return _Trainee(network, loaded.tokenizer, loaded.source, trained)


def _with_adapters(config: TokensConfig, network: Any) -> Any:
    """The network with adapters; only these and the head are trained."""
    try:
        import peft
    except ImportError as error:
        raise MissingExtraError("Training adapters", "train") from error
    known = {field.name for field in dataclasses.fields(peft.LoraConfig)}
    for name in config.lora:
        if name not in known:
            raise UnknownNameError("argument of LoRA", name, known)
    if config.adapter == "qlora":
        recompute = bool(config.training.get("gradient_checkpointing", False))
        network = peft.prepare_model_for_kbit_training(  # type: ignore[no-untyped-call]
            network, use_gradient_checkpointing=recompute
        )
    settings = {**_DEFAULTS["lora"], "exclude_modules": list(HEADS), **config.lora}
    with ignore_future_warnings():
        return peft.get_peft_model(network, peft.LoraConfig(task_type=peft.TaskType.TOKEN_CLS, **settings))


def _arguments(config: TokensConfig, folder: Path, seed: int) -> Any:
    """Arguments of transformers' trainer."""
    settings = _DEFAULTS["tokens"] | config.training
    if config.patience:
        settings |= {"load_best_model_at_end": True, "metric_for_best_model": "eval_loss"}
        settings |= {"save_strategy": "epoch", "eval_strategy": "epoch"}
    if config.device == "cpu":
        settings["use_cpu"] = True
    try:
        return transformers.TrainingArguments(output_dir=str(folder), seed=seed, data_seed=seed, **settings)
    except (TypeError, ValueError) as error:
        raise UsageError(f"transformers refuses the settings of [training]: {error}") from error


def _trainer(config: TokensConfig, trainee: _Trainee, rows: _Rows, labels: Sequence[str], arguments: Any) -> Any:
    """transformers' trainer for these rows."""
    stop = [transformers.EarlyStoppingCallback(config.patience)] if config.patience else []
    trainer = transformers.Trainer(
        model=trainee.network,
        args=arguments,
        train_dataset=[_features(row) for row in rows.training],
        eval_dataset=[_features(row) for row in rows.validation],
        data_collator=transformers.DataCollatorForTokenClassification(trainee.tokenizer),
        compute_metrics=lambda result: token_figures(result.predictions, result.label_ids, labels),
        preprocess_logits_for_metrics=lambda logits, _: logits.argmax(-1),
        callbacks=stop,
    )
    trainer.remove_callback(transformers.PrinterCallback)  # it prints to standard output
    return trainer


def _features(row: _Row) -> dict[str, list[int]]:
    """The inputs of the network for a row."""
    features = {
        "input_ids": list(row.input_ids),
        "attention_mask": [1] * len(row.input_ids),
        "labels": list(row.labels),
    }
    if row.token_type_ids is not None:
        features["token_type_ids"] = list(row.token_type_ids)
    return features


def token_figures(outputs: Any, labels: Any, names: Sequence[str]) -> dict[str, float]:
    """Precision, recall and F1 of unsupported tokens over all responses (mFAVA, Table 3), and the mean F1 over types.

    Args:
        outputs: the most probable output of each token, shape (rows, tokens).
        labels: the label of each token, -100 outside the response, same shape.
        names: of the outputs; the first means "supported".
    """
    labelled = labels != _IGNORED
    types = np.array([re.sub("^[BI]-", "", name) for name in names])
    marked, right = types[outputs[labelled]], types[labels[labelled]]

    def figures(marks: Any, truth: Any) -> dict[str, float]:
        hits = int((marks & truth).sum())
        precision, recall = hits / max(int(marks.sum()), 1), hits / max(int(truth.sum()), 1)
        return {"precision": precision, "recall": recall, "f1": 2 * hits / max(int(marks.sum() + truth.sum()), 1)}

    result = figures(marked != types[0], right != types[0])
    present = sorted(set(right.tolist()) - {types[0]})
    if len(names) > len(_BINARY):
        by_type = [figures(marked == type_, right == type_)["f1"] for type_ in present]
        result["macro_f1"] = float(np.mean(by_type)) if by_type else 0.0
    return result


def plan(config: TokensConfig, folder: Path) -> Plan:
    """Estimate the cost of a training from one step on the longest inputs; writes nothing.

    Args:
        config: the settings.
        folder: base folder of relative paths.

    Raises:
        InputError: there are no training rows.
        WeightsError: the model cannot be loaded.
    """
    material, written = _material(config, folder)
    trainee = _trainee(config, material.labels, written)
    arguments = _arguments(config, folder, config.seeds[0])
    size = arguments.per_device_train_batch_size
    longest = sorted(material.rows.training, key=lambda row: len(row.input_ids))[-size:]
    batch = transformers.DataCollatorForTokenClassification(trainee.tokenizer)(list(map(_features, longest)))
    trainee.network.train()
    started = time.perf_counter()
    trainee.network(**{name: value.to(trainee.network.device) for name, value in batch.items()}).loss.backward()
    a_token = (time.perf_counter() - started) / int(batch["input_ids"].numel())
    tokens = sum(len(row.input_ids) for row in material.rows.training)
    a_step = size * arguments.gradient_accumulation_steps
    sizes = [len(material.rows.of(language).training) for language in material.parts]
    epochs = [math.ceil(arguments.num_train_epochs * math.ceil(rows / a_step)) for rows in sizes]
    steps = len(config.seeds) * sum(arguments.max_steps if arguments.max_steps > 0 else own for own in epochs)
    return Plan(
        rows=len(material.rows.training),
        validation=len(material.rows.validation),
        tokens=tokens,
        cut=material.cut,
        left_out=dict(material.left_out),
        steps=steps,
        checkpoints=len(config.seeds) * len(sizes),
        parameters=sum(weights.numel() for weights in trainee.network.parameters()),
        trained=trainee.trained,
        seconds=a_token * tokens / max(len(material.rows.training), 1) * steps * a_step,
        memory=_memory(),
    )


def _memory() -> int:
    """Peak bytes of the accelerator, or bytes of the process."""
    if torch.cuda.is_available():
        return int(torch.cuda.max_memory_allocated())
    return int(psutil.Process().memory_info().rss)


def _material(config: TokensConfig, folder: Path) -> tuple[TrainingData, InputFormat]:
    """The rows, and the input format that the checkpoint records."""
    check_licence(config.model, accepted=config.accept_licence)
    source = checkpoint(config.model)
    options = hub_options(source)
    with loading("tokenizer", source):
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, **options)
    bounds = [tokenizer.model_max_length, getattr(config_of(source, **options), "max_position_embeddings", None)]
    room = config.max_length or min(_DEFAULT_LENGTH, *filter(None, bounds))
    four_bit = config.adapter == "qlora" and config.save == "adapter"
    return TrainingData(config, folder, tokenizer, room), InputFormat(config.prompt, room, config.languages, four_bit)


def train(config: TokensConfig, folder: Path, *, say: Say = lambda _: None) -> list[Run]:
    """Train a checkpoint for each seed, and for each language if monolingual. Finished checkpoints are skipped.

    Args:
        config: the settings.
        folder: base folder of relative paths.
        say: callback for progress, one line at a time.

    Returns:
        All checkpoints, including earlier calls; `results.json` has them with means and standard deviations.

    Raises:
        InputError: there are no training rows.
        UsageError: the output folder belongs to other settings or other data.
        WeightsError: the model cannot be loaded.
        MissingExtraError: peft or bitsandbytes is not installed.
    """
    output = folder / Path(config.output).expanduser()
    output.mkdir(parents=True, exist_ok=True)
    material, written = _material(config, folder)
    _bind(output, config, material)
    runs = []
    for language in material.parts:
        for seed in config.seeds:
            target = output / (language or "") / f"seed-{seed}"
            done = target / _RUN
            if done.is_file():
                runs.append(read_json_record(done, Run, f"Remove {target} to train it again."))
                continue
            say(f"{target.relative_to(output)}: {len(material.rows.of(language).training):,} rows")
            transformers.set_seed(seed)  # initialises the head below
            own = msgspec.structs.replace(written, languages=(language,)) if language else written
            trainee = _trainee(config, material.labels, own)
            with without_bars():
                runs.append(_fit(config, trainee, material, language, seed, target, say))
    if _IS_FIRST:
        write_json(output / "results.json", {"runs": runs, "summary": summary(runs)})
    return runs


_IS_FIRST = os.environ.get("RANK", "0") == "0"  # main process of `accelerate launch`
_RUN = "run.json"  # marks a finished checkpoint folder


def _bind(output: Path, config: TokensConfig, material: TrainingData) -> None:
    """Write the settings into the output folder; refuse a folder of other settings or data.

    Raises:
        UsageError: the folder belongs to other settings or data.
    """
    now = {
        "model": checkpoint_revision(checkpoint(config.model)),
        "data": material.hash,
        **{
            key: json.dumps(value, sort_keys=True)
            for key, value in msgspec.to_builtins(config).items()
            if key not in _FREE
        },
    }
    path = output / "settings.json"
    if path.is_file():
        before = json.loads(path.read_bytes())
        if before != now:
            raise UsageError(
                f"{output} was started with other settings: {'; '.join(differing_settings(before, now))}.",
                "Give another output, or remove the folder to start over.",
            )
    elif _IS_FIRST:
        write_json(path, now)


_FREE = ("output", "seeds", "model", "data", "validation", "device", "accept_licence")  # may change between calls


def _fit(
    config: TokensConfig,
    trainee: _Trainee,
    material: TrainingData,
    language: str | None,
    seed: int,
    target: Path,
    say: Say,
) -> Run:
    """Train one checkpoint, resume if it was interrupted, and write its folder."""
    saved = target.with_name(f"{target.name}.checkpoints")
    rows = material.rows.of(language)
    trainer = _trainer(config, trainee, rows, material.labels, _arguments(config, saved, seed))
    trainer.add_callback(LogCallback(say))
    trainer.train(resume_from_checkpoint=last_checkpoint(saved))
    measured = trainer.evaluate() if rows.validation else {}
    if not _IS_FIRST:
        return Run(str(target), language, seed, trainer.state.global_step, 0.0, {}, 0)
    losses = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    figures = {name: float(measured[f"eval_{name}"]) for name in _FIGURES if f"eval_{name}" in measured}
    loss = losses[-1] if losses else float("nan")
    result = Run(str(target), language, seed, trainer.state.global_step, loss, figures, _memory())
    with whole_folder(target) as part:
        _save(config, trainee, part, say)
        write_json(part / "losses.json", trainer.state.log_history)
        (part / "README.md").write_text(_card(config, material, result), "utf-8")
        write_json(part / _RUN, result)
    shutil.rmtree(saved)
    say(f"{target.name}: " + ", ".join(f"{name} {value:.3f}" for name, value in figures.items()))
    return result


def last_checkpoint(saved: Path) -> str | None:
    """The newest complete checkpoint of transformers: the trainer's state is the last file of each."""
    whole = [path.parent for path in saved.glob("checkpoint-*/trainer_state.json") if path.stat().st_size]
    return str(max(whole, key=lambda path: int(path.name.split("-")[1]))) if whole else None


class LogCallback(transformers.TrainerCallback):  # type: ignore[misc]  # transformers is not typed
    """Prints a line for each logged step."""

    def __init__(self, say: Say) -> None:
        self._say = say

    def on_log(self, *settings: Any, logs: Mapping[str, float] | None = None, **_: Any) -> None:
        """Print step and loss."""
        state = settings[1]  # the arguments are: TrainingArguments, TrainerState, TrainerControl
        if state.is_world_process_zero and logs and "loss" in logs:
            self._say(f"step {state.global_step:,} of {state.max_steps:,}, loss {logs['loss']:.4f}")


def _save(config: TokensConfig, trainee: _Trainee, part: Path, say: Say) -> None:
    """Write what `hf:` loads: a whole checkpoint, or adapter and configuration; and the notices of the base model."""
    network = trainee.network
    if config.adapter != "none" and config.save == "merged":
        network = _merged(config, trainee) if config.adapter == "qlora" else network.merge_and_unload()
    network.config.__dict__.pop("quantization_config", None)
    network.save_pretrained(part)
    if config.save == "adapter":
        trainee.network.config.save_pretrained(part)
    trainee.tokenizer.save_pretrained(part)
    source = Path(trainee.source)
    for path in source.iterdir() if source.is_dir() else ():
        if re.match(r"(notice|licen[cs]e|.*terms)", path.name, re.IGNORECASE) and path.is_file():
            shutil.copy(path, part)
    if config.onnx and (trouble := _export(network, part / "model.onnx")):
        say(f"No ONNX: {trouble}")


def _merged(config: TokensConfig, trainee: _Trainee) -> Any:
    """The whole network with the adapter merged into the dequantised weights of its training.

    peft would round each sum to 4 bits again.
    """
    import peft

    settings = copy.deepcopy(trainee.network.config)
    settings.__dict__.pop("quantization_config", None)
    with tempfile.TemporaryDirectory() as folder, ignore_future_warnings():
        trainee.network.save_pretrained(folder)
        base = load_pretrained(
            transformers.AutoModelForTokenClassification, config.model, what="model", device=config.device,
            dtype=config.dtype, new_head=True,
            options={"config": settings, "quantization_config": nf4_config()},
        )  # fmt: skip
        return peft.PeftModel.from_pretrained(base.network.dequantize(), folder).merge_and_unload()


def _export(network: Any, path: Path) -> str:
    """Export a network as ONNX, and compare its outputs with those of PyTorch.

    Returns:
        The error, and then there is no file; empty on success.
    """
    network = network.float().cpu().eval()
    ids = torch.arange(1, 17).reshape(2, 8)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    axes = {name: {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC} for name in inputs}
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it logs that torchvision is missing
    try:
        with ignore_future_warnings():
            torch.onnx.export(
                network, kwargs=inputs, f=str(path), input_names=list(inputs), output_names=["logits"], dynamo=True,
                dynamic_shapes=axes, verbose=False,
            )  # fmt: skip
        given = {name: value[:1, :5] for name, value in inputs.items()}
        (exported,) = onnx_session(str(path)).run(None, {name: value.numpy() for name, value in given.items()})
        with torch.inference_mode():
            expected = network(**given).logits.numpy()
        trouble = "" if np.allclose(exported, expected, atol=1e-3) else "the exported network gives other figures"
    except Exception as error:  # each version of the exporter raises its own errors
        trouble = first_line(error)
    if trouble:
        path.unlink(missing_ok=True)
    return trouble


def summary(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Means and standard deviations over the seeds, for each language; with one seed the deviation is None.

    Args:
        runs: all checkpoints.
    """
    rows = []
    for language in dict.fromkeys(run.language for run in runs):
        own = [run for run in runs if run.language == language]
        for figure in own[0].validation:
            values = [run.validation[figure] for run in own]
            deviation = statistics.stdev(values) if len(values) > 1 else None
            rows.append(
                {"language": language, "figure": figure, "mean": statistics.mean(values), "deviation": deviation,
                 "seeds": len(values)}
            )  # fmt: skip
    return rows


def _card(config: TokensConfig, material: TrainingData, run: Run) -> str:
    """The model card in the hub's format."""
    rows = material.rows.of(run.language)
    settings = {key: value for key, value in msgspec.to_builtins(config).items() if value or value == 0}
    return Template(files(__package__).joinpath("token_card.md").read_text("utf-8")).substitute(
        title=Path(run.folder).name,
        model=config.model,
        languages=run.language or ", ".join(material.languages),
        counts=", ".join(f"{tag} {count:,}" for tag, count in Counter(row.language for row in rows.training).items()),
        held_out=f"{len(rows.validation):,}",
        cut=f"{material.cut:,}",
        data=material.hash,
        figures="\n".join(f"| {name} | {value:.4f} |" for name, value in run.validation.items()),
        settings="\n".join(f"| `{name}` | {value} |" for name, value in settings.items()),
        labels=", ".join(material.labels),
        version=__version__,
    )

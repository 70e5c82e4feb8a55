"""Trains NLI models: fine-tunes an encoder of transformers as a classifier of (premise, hypothesis) pairs.

The rows are samples in any readable format: the evidence is the premise, the response the hypothesis. Labels are NLI
labels, or say whether the response is supported, as after `veriglot dataset translate` (mFACT: Qiu et al. 2023,
section 3: English faithfulness labels, translated, train a classifier in other languages).
"""

from __future__ import annotations

import math
import shutil
from collections import Counter, defaultdict
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
import transformers
from msgspec.structs import replace
from torch.nn import ModuleList

from veriglot.datasets.near_duplicates import text_keys, texts_of
from veriglot.encoders.e5 import NAME, E5File, transformers_folder
from veriglot.errors import UsageError
from veriglot.formats.reader import read_rows, readable_files
from veriglot.hub.checkpoints import (
    check_licence,
    checkpoint,
    device_for,
    effective_max_length,
    hub_options,
    loading,
    max_positions,
    without_bars,
)
from veriglot.hub.registry import find
from veriglot.judging.classifiers import label_aliases, normalised_label
from veriglot.judging.nli import load_entailment
from veriglot.metrics.estimate import Resampling, estimated
from veriglot.metrics.reference import reference, response_label
from veriglot.plugins import read_package_data
from veriglot.records import Sample
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
from veriglot.signatures import digest, file_sha256
from veriglot.storage.files import whole_folder, write_json
from veriglot.training.grounding.examples import share_of
from veriglot.training.reader.pipeline import load_trained
from veriglot.training.tokens import LogCallback, last_checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Encoded = list[dict[str, Any]]  # outputs of the tokenizer

__all__ = ["plan", "read_config", "train"]

Label = Literal["entailment", "neutral", "contradiction", "not_entailment"]
LABELS = {3: ("entailment", "neutral", "contradiction"), 2: ("entailment", "not_entailment")}
_TRAINING = read_package_data(__package__, "defaults.toml", dict[str, dict[str, Any]])["nli"]
_RESAMPLES = 1000
_SORTED = 50  # batches whose rows are sorted by length together


class DataEntry(StrictRecord):
    """`[[data]]`: one data set of labelled pairs.

    Attributes:
        name: in tables and in the model card.
        path: its files or folders, relative to the TOML file.
        licence: of the data set, for the model card.
        columns: column for each part of a sample, as in --map; empty to detect the format.
        label: the column with the NLI label; None for the labels that the format has (unsupported or not).
        labels: label for each value of that column; empty for the usual names. Rows with other values are left out.
        annotator: whose labels of responses; None as in `veriglot evaluate`.
        language: BCP 47 tag of rows without a language.
        use: `training` or `validation` for all of its rows; None splits them by text.
        limit: maximum number of rows, chosen by a hash of their texts.
    """

    name: str
    path: str | tuple[str, ...]
    licence: str
    columns: dict[str, str] = {}
    label: str | None = None
    labels: dict[str, Label] = {}
    annotator: str | None = None
    language: str | None = None
    use: Literal["training", "validation"] | None = None
    limit: int | None = None


class NLIConfig(StrictRecord):
    """The file of `veriglot train nli`.

    Attributes:
        model: an encoder: a folder or a name on the hub; `e5-multilingual`; or `reader`, which is the same with the
            fine-tuned layers of that detector.
        output: folder for the classifier, relative to the file.
        data: the data sets.
        labels: 3, or 2 for entailment and not_entailment.
        max_length: tokens of a pair. Longer rows are left out and counted: a truncated premise makes labels wrong.
        frozen_layers: 0 freezes the embeddings, N also the lowest N layers; None trains everything.
        validation_share: share of held-out texts, for data sets without `use`; from 0, under 1.
        seed: for the head and the order.
        device: `cpu`, `cuda`; None for the first accelerator.
        licence: of the result, for its model card.
        accept_licence: you have read the model's licence, and it allows what you do.
        training: further arguments of transformers.TrainingArguments.
    """

    model: str
    output: str
    data: tuple[DataEntry, ...]
    labels: Literal[2, 3] = 3
    max_length: int = 128
    frozen_layers: int | None = None
    validation_share: float = 0.1
    seed: int = 0
    device: str | None = None
    licence: str | None = None
    accept_licence: bool = False
    training: dict[str, Any] = {}


class Pair(NamedTuple):
    """A row: `label` is one of `LABELS[3]`, or `not_entailment` if neutral or contradiction is not known."""

    source: str
    language: str
    premise: str
    hypothesis: str
    label: str
    id: str
    keys: tuple[str, ...]
    use: str | None


class Rows(Record):
    """Number of rows of one data set, language and split, their labels, and their tokens."""

    data: str
    language: str
    part: str
    rows: int
    labels: str
    tokens: int


class Accuracy(Record):
    """Accuracy on held-out pairs, 0 to 1, with its interval over texts (95%).

    `majority` is the accuracy of always choosing the most frequent label. If a data set does not separate neutral from
    contradiction, the two are one label.
    """

    data: str
    language: str
    rows: int
    accuracy: float | None
    low: float | None
    high: float | None
    majority: float


class Result(Record):
    """Cost of a training, and the accuracy of its classifier (empty for a plan).

    Attributes:
        rows: rows of each data set.
        left_out: number of rows that were not used, by reason.
        steps: of the optimiser.
        tokens: in all epochs.
        parameters, trained: number of parameters, and of trained ones.
        memory: estimated bytes.
        fingerprint: hash of the settings and the training rows.
        accuracy: by data set and language, as `nli:FOLDER` predicts.
    """

    rows: list[Rows]
    left_out: dict[str, int]
    steps: int
    tokens: int
    parameters: int
    trained: int
    memory: int
    fingerprint: str = ""
    accuracy: list[Accuracy] = []


def read_config(path: Path) -> NLIConfig:
    """Read the settings from a file.

    Raises:
        InputError: the file cannot be read, a setting is invalid, or a file is missing; the error names it.
    """
    with errors_of(path):
        config = read_toml_records(path, NLIConfig, "training")
        require(config.data, "there is no table [[data]]", "data", "Add one for each set.")
        require(0 <= config.validation_share < 1, "it is at least 0 and under 1", "validation_share")
        for entry in config.data:
            require_files(path.parent, entry.path, f"data.{entry.name}.path")
        return config


# Rows.


def _files(path: Path, columns: Mapping[str, str]) -> list[str | Path]:
    """A file, or the readable files of a folder, each read by itself: parts of one data set may repeat ids."""
    if not path.is_dir():
        return [path]
    return [source.path for source, _ in readable_files(path, {}, "columns" if columns else None)]


def _pairs(folder: Path, entry: DataEntry, left_out: Counter[str]) -> Iterator[Pair]:
    columns = {**entry.columns, "label": ""} if entry.label else entry.columns
    for file in (file for path in paths_in(folder, entry.path) for file in _files(path, columns)):
        for sample in read_rows(file, columns=columns, language=entry.language):
            if not isinstance(sample, Sample):
                left_out["unreadable"] += 1
                continue
            label = _label(sample, entry)
            premise, hypothesis = sample.evidence_text.strip(), sample.response.strip()
            if label is None or not premise or not hypothesis:
                left_out["no label" if label is None else "no premise or hypothesis"] += 1
                continue
            yield Pair(
                entry.name, sample.language or "und", premise, hypothesis, label, sample.id, (*text_keys(sample),),
                entry.use,
            )  # fmt: skip


def _label(sample: Sample, entry: DataEntry) -> str | None:
    """The label in the column; else from spans and response labels. If all spans are contradicted, a contradiction."""
    if entry.label is not None:
        value = str(sample.meta.get(entry.label, "")).strip()
        usual = label_aliases("veriglot.judging", "nli_labels.json")
        return entry.labels.get(value) if entry.labels else usual.get(normalised_label(value))
    rated, marked = response_label(sample, entry.annotator), reference(sample, entry.annotator)
    if marked is not None and len(marked.marks.spans):
        return "contradiction" if set(marked.marks.types) == {"contradicted"} else "not_entailment"
    if rated is None:
        return None if marked is None else "entailment"
    return "not_entailment" if rated[1] else "entailment"


def read_pairs(config: NLIConfig, folder: Path) -> tuple[list[Pair], list[Pair], Counter[str]]:
    """Training rows, held-out rows, and the number of rows that were left out, by reason.

    Rows of one text (equal premise or hypothesis, or translations of each other) are in the same split. Rows that
    share a text with a validation set are not in the training.
    """
    left_out = Counter[str]()
    pairs = []
    for entry in config.data:
        own = list({(pair.premise, pair.hypothesis): pair for pair in _pairs(folder, entry, left_out)}.values())
        own.sort(key=lambda pair: share_of(f"{pair.premise}\n{pair.hypothesis}"))
        pairs += own[: entry.limit]
    groups = {key for pair in pairs for key in pair.keys if key.startswith("group:")}
    # the group of a translation is the id of its original
    texts = texts_of([(*pair.keys, *({f"group:{pair.id}"} & groups)) for pair in pairs])
    held_out = [
        pair.use == "validation" or (pair.use is None and share_of(text) < config.validation_share)
        for text, pair in zip(texts, pairs, strict=True)
    ]
    test_texts = {text for text, out in zip(texts, held_out, strict=True) if out}
    train = [pair for pair, text in zip(pairs, texts, strict=True) if text not in test_texts]
    test = [pair for pair, out in zip(pairs, held_out, strict=True) if out]
    left_out["shares a text with the validation"] += len(pairs) - len(train) - len(test)
    return train, test, +left_out


# The network.


def _source(model: str) -> str:
    if model == NAME:
        return str(transformers_folder())
    if model != "reader":
        return checkpoint(model)
    weights = Path(str(files("veriglot.detectors.reader"))) / "weights" / "network.npz"
    learned = load_trained(weights, E5File(find(NAME)))
    return str(transformers_folder(f"reader-{file_sha256(weights)[:8]}", learned))


def _network(config: NLIConfig) -> tuple[Any, Any]:
    """The classifier before training, with frozen layers, and its tokenizer."""
    check_licence(NAME if config.model == "reader" else config.model, accepted=config.accept_licence)
    labels = LABELS[config.labels]
    names = {"id2label": dict(enumerate(labels)), "label2id": {name: number for number, name in enumerate(labels)}}
    source = _source(config.model)
    options = hub_options(source)
    transformers.logging.set_verbosity_error()  # it warns that the head is newly initialised
    with loading("encoder", source):
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, **options)
        network = transformers.AutoModelForSequenceClassification.from_pretrained(
            source, dtype=torch.float32, ignore_mismatched_sizes=True, **names, **options
        )
    effective_max_length(config.model, max_positions(tokenizer, network), config.max_length)
    if config.frozen_layers is not None:
        body = network.base_model
        stack = max((part for part in body.modules() if isinstance(part, ModuleList)), key=len, default=ModuleList())
        if config.frozen_layers > len(stack):
            raise UsageError(f"The encoder has {len(stack)} layers, and frozen_layers is {config.frozen_layers}.")
        for part in [getattr(body, "embeddings", body.get_input_embeddings()), *stack[: config.frozen_layers]]:
            part.requires_grad_(requires_grad=False)
    return network, tokenizer


def _encoded(tokenizer: Any, pairs: Sequence[Pair], config: NLIConfig) -> tuple[list[Pair], Encoded]:
    """The pairs that are short enough, and their inputs for the trainer.

    A label is a vector of 0 and 1 for the outputs that may be right: for `not_entailment` two of three.
    """
    names = LABELS[config.labels]
    fitting, rows = [], []
    for pair in pairs:
        encoded = tokenizer(pair.premise, pair.hypothesis, verbose=False)
        if len(encoded["input_ids"]) <= config.max_length:
            right = {pair.label} if pair.label in names else set(names[1:])
            rows.append({**encoded, "labels": [float(name in right) for name in names]})
            fitting.append(pair)
    return fitting, rows


def _batched(rows: Encoded, arguments: Any) -> Encoded:
    """Rows of all epochs, batched by similar length; the trainer's own grouping changes the order when it resumes."""
    generator = np.random.default_rng(arguments.seed)
    size, result = arguments.train_batch_size, []
    for _ in range(math.ceil(arguments.num_train_epochs)):
        order = generator.permutation(len(rows))
        for start in range(0, len(order), _SORTED * size):
            near = sorted(order[start : start + _SORTED * size], key=lambda index: len(rows[index]["input_ids"]))
            starts = range(0, len(near), size)
            result += [near[first : first + size] for first in generator.permutation(starts)]
    batches = [rows[index] for batch in result for index in batch]
    return batches[: round(len(rows) * arguments.num_train_epochs)]


def loss_of(outputs: Any, labels: torch.Tensor, num_items_in_batch: Any = None) -> torch.Tensor:
    """Minus the mean log probability of the labels that may be right; with one such label, cross-entropy.

    Args:
        outputs: with `logits`, shape (b, k).
        labels: 1 for an output that may be right, otherwise 0, shape (b, k).
        num_items_in_batch: number of labels in all batches of a step, as the trainer counts them: k for each row.
    """
    shares = torch.log_softmax(outputs.logits.float(), -1).masked_fill(labels == 0, -torch.inf)
    total = -torch.logsumexp(shares, -1).sum()
    rows = len(labels) if num_items_in_batch is None else num_items_in_batch / labels.shape[1]
    return total / rows


class _Job(NamedTuple):
    """A network with its training and validation data."""

    network: Any
    tokenizer: Any
    rows: Encoded
    validation: list[Pair]
    result: Result


def plan(config: NLIConfig, folder: Path) -> Result:
    """Estimate the cost of a training; writes nothing.

    Args:
        config: the settings.
        folder: base folder of relative paths.

    Raises:
        InputError: a data set cannot be read.
        UsageError: there are no training rows, or the settings are invalid.
        WeightsError: the encoder cannot be loaded.
    """
    return _job(config, folder).result


def _job(config: NLIConfig, folder: Path) -> _Job:
    transformers.set_seed(config.seed)  # the head is initialised here
    *parts, left_out = read_pairs(config, folder)
    network, tokenizer = _network(config)
    counts = []
    encoded = [_encoded(tokenizer, part, config) for part in parts]
    for name, (pairs, rows) in zip(("training", "validation"), encoded, strict=True):
        groups = defaultdict[tuple[str, str], Counter[str]](Counter)
        for pair, row in zip(pairs, rows, strict=True):
            groups[pair.source, pair.language].update({pair.label: 1, "": len(row["input_ids"])})
        for (source, language), own in sorted(groups.items()):
            tokens = own.pop("")
            labels = ", ".join(f"{label} {count:,}" for label, count in sorted(own.items()))
            counts.append(Rows(source, language, name, own.total(), labels, tokens))
    (training, rows), (validation, _) = encoded
    left_out["longer than max_length"] = sum(map(len, parts)) - len(training) - len(validation)
    if len({pair.label == "entailment" for pair in training}) < 2:
        raise UsageError(
            "There are no rows of entailment to train on, or none of anything else.",
            "Look at `label` and `labels` of the sets, and at max_length.",
        )
    result = _planned(config, network, rows, counts, +left_out)
    result = replace(result, fingerprint=digest([repr(config), *map(repr, rows)])[:16])
    return _Job(network, tokenizer, rows, validation, result)


def _planned(config: NLIConfig, network: Any, rows: Encoded, counts: list[Rows], left_out: Counter[str]) -> Result:
    given = _arguments(config, folder=Path())
    steps = math.ceil(len(rows) / given.train_batch_size / given.gradient_accumulation_steps) * given.num_train_epochs
    parameters, trained = network.num_parameters(), network.num_parameters(only_trainable=True)
    # Weights, gradients and two moments of AdamW have 4 bytes; for the backward pass a layer stores about 16 vectors
    # for each token and two attention matrices, with 2 bytes in bf16.
    longest = max(len(row["input_ids"]) for row in rows)
    shape = network.config
    numbers = 16 * shape.hidden_size + 2 * longest * shape.num_attention_heads
    activations = given.train_batch_size * longest * shape.num_hidden_layers * numbers * (2 if given.bf16 else 4)
    tokens = round(sum(len(row["input_ids"]) for row in rows) * given.num_train_epochs)
    memory = 4 * parameters + 12 * trained + activations
    return Result(counts, dict(left_out), round(steps), tokens, parameters, trained, memory)


def _arguments(config: NLIConfig, folder: Path, **changes: Any) -> Any:
    """Arguments of transformers' trainer."""
    settings = {**_TRAINING, **config.training, "use_cpu": device_for(config.device).type == "cpu", **changes}
    try:
        return transformers.TrainingArguments(output_dir=str(folder), seed=config.seed, **settings)
    except (TypeError, ValueError) as error:
        raise UsageError(f"transformers refuses the settings of [training]: {error}") from error


def train(config: NLIConfig, folder: Path, *, say: Callable[[str], None] = lambda _: None) -> Result:
    """Train a classifier, and write a folder that `nli:FOLDER` loads. Resumes, and skips what is finished.

    Args:
        config: the settings.
        folder: base folder of relative paths.
        say: callback for progress, one line at a time.

    Raises:
        InputError: a data set cannot be read.
        UsageError: there are no training rows, or the output folder belongs to other settings or other data.
        WeightsError: the encoder cannot be loaded.
    """
    output = folder / Path(config.output).expanduser()
    job = _job(config, folder)
    finished = output / "training.json"
    if finished.is_file():
        result = read_json_record(finished, Result, f"Remove {output} to train it again.")
        if result.fingerprint == job.result.fingerprint:
            return result
        remedy = "Give another output, or remove the folder to start over."
        raise UsageError(f"{output} was trained with other settings or other data.", remedy)
    saved = output.with_name(f"{output.name}.checkpoints")
    begun = saved / "run.txt"
    if begun.exists() and begun.read_text("utf-8") != job.result.fingerprint:
        remedy = "Remove the folder, or give another output."
        raise UsageError(f"{saved} holds checkpoints of other settings or other data.", remedy)
    saved.mkdir(parents=True, exist_ok=True)
    begun.write_text(job.result.fingerprint, "utf-8")
    settings = _arguments(config, saved, num_train_epochs=1, train_sampling_strategy="sequential")
    trainer = transformers.Trainer(
        job.network, settings, transformers.DataCollatorWithPadding(job.tokenizer),
        _batched(job.rows, _arguments(config, saved)), compute_loss_func=loss_of, callbacks=[LogCallback(say)],
    )  # fmt: skip
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train(resume_from_checkpoint=last_checkpoint(saved))
    if not trainer.is_world_process_zero():
        return job.result
    with whole_folder(output) as part, without_bars():
        job.network.save_pretrained(part)
        job.tokenizer.save_pretrained(part)
        result = replace(job.result, accuracy=measure(part, job.validation, config))
        write_json(part / "training.json", result)
        (part / "README.md").write_text(_card(config, result), "utf-8")
    shutil.rmtree(saved)
    return result


def measure(folder: Path, pairs: Sequence[Pair], config: NLIConfig) -> list[Accuracy]:
    """Accuracy of a model on labelled pairs, by data set and language.

    With three labels the prediction is the most probable one; else whether that is entailment.
    """
    model = load_entailment(folder, device=config.device)
    shares = model.judge([(pair.premise, pair.hypothesis) for pair in pairs])
    groups = defaultdict[tuple[str, str], list[int]](list)
    for index, pair in enumerate(pairs):
        groups[pair.source, pair.language].append(index)
    results = []
    for (source, language), own in sorted(groups.items()):
        labels = [pairs[index].label for index in own]
        binary = config.labels == 2 or "not_entailment" in labels
        columns = ("entailment", "not_entailment") if binary else LABELS[3]
        gold = [columns.index(label) if label in columns else 1 for label in labels]
        likeliest = shares[own].argmax(1)
        right = (np.minimum(likeliest, 1) if binary else likeliest) == gold
        draws = Resampling.of([pairs[index].premise for index in own], resamples=_RESAMPLES, seed=config.seed)
        values = np.concatenate([block @ right / block.sum(1) for block in draws.blocks()])
        clusters = draws.clusters()
        figure = estimated(values, items=len(own), positives=int(right.sum()), clusters=clusters, why="no pairs")
        majority = max(Counter(gold).values()) / len(own)
        results.append(Accuracy(source, language, len(own), figure.value, figure.low, figure.high, majority))
    return results


def _card(config: NLIConfig, result: Result) -> str:
    """The model card: training data with licences, and accuracy."""
    rows = defaultdict[str, Counter[str]](Counter)
    for count in result.rows:
        rows[count.data][count.part] += count.rows
    return Template((files(__package__) / "nli_card.md").read_text("utf-8")).substitute(
        licence=f"license: {config.licence}\n" if config.licence else "",
        languages=", ".join(sorted({count.language for count in result.rows if count.part == "training"})),
        model=config.model,
        labels=", ".join(LABELS[config.labels]),
        settings=f"{result.steps:,} steps, {result.tokens:,} tokens, seed {config.seed}, {result.trained:,} of"
        f" {result.parameters:,} numbers trained; {_TRAINING | config.training}",
        max_length=config.max_length,
        data="\n".join(
            f"| {name} | {rows[name]['training']:,} | {rows[name]['validation']:,} | {licence} |"
            for name, licence in dict.fromkeys((entry.name, entry.licence) for entry in config.data)
        ),
        left_out=", ".join(f"{why} {count:,}" for why, count in sorted(result.left_out.items())) or "none",
        accuracy="\n".join(
            f"| {row.data} | {row.language} | {row.rows:,} | {row.accuracy:.3f} |"
            f" {'none' if row.low is None else f'{row.low:.3f} to {row.high:.3f}'} | {row.majority:.3f} |"
            for row in result.accuracy
        ),
        fingerprint=result.fingerprint,
    )

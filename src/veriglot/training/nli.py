"""Training NLI models: an encoder of transformers becomes a classifier of premise and hypothesis.

The rows are samples in any readable format: the evidence is the premise, the response the hypothesis. Labels are those
of natural language inference, or say whether the response is supported, as after `veriglot dataset translate` (mFACT:
Qiu et al. 2023, section 3: English faithfulness labels, translated, train a classifier in other languages).
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
from veriglot.plugins import packaged
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
from veriglot.training.reader.pipeline import learned_of
from veriglot.training.tokens import Lines, last_checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Encoded = list[dict[str, Any]]  # pairs as the tokenizer makes them

__all__ = ["plan", "read_config", "train"]

Label = Literal["entailment", "neutral", "contradiction", "not_entailment"]
LABELS = {3: ("entailment", "neutral", "contradiction"), 2: ("entailment", "not_entailment")}
_TRAINING = packaged(__package__, "defaults.toml", dict[str, dict[str, Any]])["nli"]
_RESAMPLES = 1000
_SORTED = 50  # batches whose rows are sorted by length together


class DataEntry(StrictRecord):
    """`[[data]]`: one set of labelled pairs.

    Attributes:
        name: in tables and in the model card.
        path: files or folders of it, relative to the TOML file.
        licence: of the set, for the model card.
        columns: part of a sample to the column that holds it, as --map has it; empty to recognise the format.
        label: the column with the NLI label; None for the labels that the format reads (unsupported or not).
        labels: value of that column to a label; empty for the usual names. Rows with other values are left out.
        annotator: whose labels of responses; None as `veriglot evaluate` takes them.
        language: BCP 47 tag of rows that state none.
        use: `training` or `validation` for all of its rows; None parts them by text.
        limit: most rows, chosen by a hash of their texts.
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
        model: a folder or a name on the hub, of an encoder; `e5-multilingual`; or `reader`, the same with the layers of
            that detector, which has learned to compare texts.
        output: folder for the classifier, relative to the file.
        data: the sets.
        labels: 3, or 2 for entailment and not_entailment.
        max_length: tokens of a pair. Longer rows are left out, and counted: a cut premise would make labels wrong.
        frozen_layers: 0 leaves the embeddings as they are, N the lowest N layers too; None trains everything.
        validation_share: share of the texts that trains nothing, of sets without `use`; from 0, under 1.
        seed: of the head and of the order.
        device: `cpu`, `cuda`; None for the first accelerator.
        licence: of the result, at the head of its card.
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
    """A row: `label` is one of `LABELS[3]`, or `not_entailment` where nobody says which of the other two."""

    source: str
    language: str
    premise: str
    hypothesis: str
    label: str
    id: str
    keys: tuple[str, ...]
    use: str | None


class Rows(Record):
    """The rows of one set, language and part: how many of each label, and their tokens."""

    data: str
    language: str
    part: str
    rows: int
    labels: str
    tokens: int


class Accuracy(Record):
    """Share of held-out pairs whose likeliest label is right, 0 to 1, with its interval over texts (95%).

    `majority` is what the commonest label of the same pairs gets. Where a set does not tell neutral from contradiction,
    the two are one label.
    """

    data: str
    language: str
    rows: int
    accuracy: float | None
    low: float | None
    high: float | None
    majority: float


class Result(Record):
    """What a training takes, and how right its classifier is: `accuracy` is empty of a plan.

    Attributes:
        rows: what there is of each set.
        left_out: rows that were not taken, by reason.
        steps: of the optimiser.
        tokens: in all epochs.
        parameters, trained: numbers of the network, and how many of them are trained.
        memory: bytes, by estimate.
        fingerprint: of the settings and of the rows that train.
        accuracy: by set and language, as `nli:FOLDER` judges.
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
    """The settings in a file.

    Raises:
        InputError: it cannot be read, a setting makes no sense, or a file is missing; the error names it.
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
    """A file, or the readable ones of a folder: each by itself, since published parts have ids in common."""
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
    """The label in the column; else what marks and labels of the response say. What is all contradicted contradicts."""
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
    """The rows to train on, those held out, and how many were left out, by reason.

    Rows of one text (equal premise or hypothesis, or translations of each other) never part; what shares a text with a
    set that is for the test alone does not train.
    """
    left_out = Counter[str]()
    pairs = []
    for entry in config.data:
        own = list({(pair.premise, pair.hypothesis): pair for pair in _pairs(folder, entry, left_out)}.values())
        own.sort(key=lambda pair: share_of(f"{pair.premise}\n{pair.hypothesis}"))
        pairs += own[: entry.limit]
    groups = {key for pair in pairs for key in pair.keys if key.startswith("group:")}
    # a translation names its original as its group
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
    learned = learned_of(weights, E5File(find(NAME)))
    return str(transformers_folder(f"reader-{file_sha256(weights)[:8]}", learned))


def _network(config: NLIConfig) -> tuple[Any, Any]:
    """The classifier to begin with, and its tokenizer; frozen as asked."""
    check_licence(NAME if config.model == "reader" else config.model, accepted=config.accept_licence)
    labels = LABELS[config.labels]
    names = {"id2label": dict(enumerate(labels)), "label2id": {name: number for number, name in enumerate(labels)}}
    source = _source(config.model)
    options = hub_options(source)
    transformers.logging.set_verbosity_error()  # it lists the layers of the head, which are to be new
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
    """The pairs that fit, and their rows for the trainer.

    A label is a row of 0 and 1, the outputs that may be right: of `not_entailment` two of three.
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
    """The rows of all epochs, of about one length in a batch: the trainer's own grouping does not resume the same."""
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
    """Minus the mean log probability of the labels that may be right; cross-entropy where that is one.

    Args:
        outputs: with `logits`, shape (b, k).
        labels: 1 for an output that may be right, otherwise 0, shape (b, k).
        num_items_in_batch: numbers of labels in all batches of a step, as the trainer counts them: k a row.
    """
    shares = torch.log_softmax(outputs.logits.float(), -1).masked_fill(labels == 0, -torch.inf)
    total = -torch.logsumexp(shares, -1).sum()
    rows = len(labels) if num_items_in_batch is None else num_items_in_batch / labels.shape[1]
    return total / rows


class _Job(NamedTuple):
    """What is trained on what."""

    network: Any
    tokenizer: Any
    rows: Encoded
    validation: list[Pair]
    result: Result


def plan(config: NLIConfig, folder: Path) -> Result:
    """What training takes; writes nothing.

    Args:
        config: the settings.
        folder: what their paths are relative to.

    Raises:
        InputError: a set cannot be read.
        UsageError: there is nothing to train on, or the settings make no sense.
        WeightsError: the encoder cannot be loaded.
    """
    return _job(config, folder).result


def _job(config: NLIConfig, folder: Path) -> _Job:
    transformers.set_seed(config.seed)  # the head is drawn here
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
    # Weights, gradients and two moments of AdamW are of 4 bytes; for the way back a layer keeps about 16 vectors of a
    # token and two tables of attention, of 2 bytes in bf16.
    longest = max(len(row["input_ids"]) for row in rows)
    shape = network.config
    numbers = 16 * shape.hidden_size + 2 * longest * shape.num_attention_heads
    activations = given.train_batch_size * longest * shape.num_hidden_layers * numbers * (2 if given.bf16 else 4)
    tokens = round(sum(len(row["input_ids"]) for row in rows) * given.num_train_epochs)
    memory = 4 * parameters + 12 * trained + activations
    return Result(counts, dict(left_out), round(steps), tokens, parameters, trained, memory)


def _arguments(config: NLIConfig, folder: Path, **more: Any) -> Any:
    """The settings of transformers' trainer."""
    settings = {**_TRAINING, **config.training, "use_cpu": device_for(config.device).type == "cpu", **more}
    try:
        return transformers.TrainingArguments(output_dir=str(folder), seed=config.seed, **settings)
    except (TypeError, ValueError) as error:
        raise UsageError(f"transformers refuses the settings of [training]: {error}") from error


def train(config: NLIConfig, folder: Path, *, say: Callable[[str], None] = lambda _: None) -> Result:
    """Train a classifier, and write a folder that `nli:FOLDER` loads. It resumes, and redoes nothing that is finished.

    Args:
        config: the settings.
        folder: what their paths are relative to.
        say: told of progress, a line at a time.

    Raises:
        InputError: a set cannot be read.
        UsageError: there is nothing to train on, or the output was begun with other settings or other data.
        WeightsError: the encoder cannot be loaded.
    """
    output = folder / Path(config.output).expanduser()
    job = _job(config, folder)
    finished = output / "training.json"
    if finished.is_file():
        result = read_json_record(finished, Result, f"Remove {output} to train it again.")
        if result.fingerprint == job.result.fingerprint:
            return result
        remedy = "Give another output, or remove the folder to begin anew."
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
        _batched(job.rows, _arguments(config, saved)), compute_loss_func=loss_of, callbacks=[Lines(say)],
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
    """How often a model is right on labelled pairs, by set and language.

    Where three labels are known the likeliest of them counts, else whether that is entailment.
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
    """The model card: what trained it under which licence, and what it got right."""
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
            f"| {row.data} | {row.language} | {row.rows:,} | {row.accuracy:.3f} | {row.low or 0:.3f} to"
            f" {row.high or 1:.3f} | {row.majority:.3f} |"
            for row in result.accuracy
        ),
        fingerprint=result.fingerprint,
    )

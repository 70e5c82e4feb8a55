"""Trains the reader: `train` reads the data, fits both networks, combines them with grounding, writes the weights.

Word vectors and the lower layers are frozen. On a CPU each thread computes a batch of its own, because two threads on
the small matrix products of one batch are slower than one thread.
"""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from random import Random
from string import Template
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch.nn.utils import clip_grad_norm_

from veriglot.detectors.grounding.detector import Grounding
from veriglot.detectors.reader.detector import (
    ANSWERS_FILE,
    ENCODER,
    FILES,
    Manifest,
    Network,
    read_network,
    read_scaled,
    save_network,
)
from veriglot.encoders.e5 import E5File, Pair, Tokeniser, quantise, trained_matrix
from veriglot.errors import UsageError
from veriglot.hub.registry import find
from veriglot.signatures import file_sha256
from veriglot.storage.files import open_whole, whole_folder, write_json
from veriglot.training.grounding.examples import TYPES
from veriglot.training.reader.data import FIRST_PART, SHARES, Chunks, TrainingData, read_training_data, training_inputs
from veriglot.training.reader.fusion import JudgedRow, calibration_rows, fit_fusion, judge
from veriglot.training.reader.network import AnswerNetwork, ReaderNetwork, TrainingInput

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    from veriglot.arrays import Float32s, Numbers

__all__ = []

REVISION = "2.2"
_RATE = 2.5e-4
_HEADS = 3.0  # factor of the heads' learning rate
_DECAY = 0.01
# For the network of `AnswerFinder`: its tokens as a share of the reader's, the highest learning rate, and the share of
# each source: those that have questions, many of them across languages.
_ANSWER_TOKENS, _ANSWER_RATE = 0.4, 6e-4
_ANSWER_SHARES = {"written": 0.35, "across": 0.4, "answers": 0.25}
_WARM_UP, _LAST = 0.05, 0.02  # share of the tokens for the warm-up, and final share of the learning rate
_CHUNK = 400_000  # tokens of a chunk
_BATCH, _BATCH_GPU = 2000, 64_000  # tokens of a batch including padding
# By the look part of `benchmarks/answer_set.py`.
_STRICTNESS: dict[Literal["low", "high"], float] = {"low": 0.55, "high": 0.35}
_MINUTES = 10.0  # between checkpoints
_OF_OUTLIERS = 100  # held-out rows for finding outliers
_STEPS_A_LINE = 50  # between lines of progress


def train(
    paths: Sequence[Path],
    out: Path,
    *,
    seed: int = 0,
    tokens: float = 40,
    threads: int = 2,
    device: str = "cpu",
    start: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Train a reader, and write a folder of weights.

    Args:
        paths: files and folders in any readable format, and data sets that `sources.toml` names.
        out: the folder for the weights; until they are written, a checkpoint is next to it.
        seed: for all random draws. Equal data, seed and versions give equal weights on one kind of processor with one
            number of threads.
        tokens: millions of tokens to train on; the network of `AnswerFinder` trains on two fifths as many.
        threads: number of threads on a CPU.
        device: `cpu` or `cuda`.
        start: a folder of weights to continue from; None starts from the encoder's own.
        say: callback for progress, one line at a time.

    Raises:
        InputError: a file cannot be read, or there are no rows for calibration.
        MissingExtraError: PyTorch, or a package that the encoder needs, is not installed.
        UsageError: there is a checkpoint of other settings or other data.
        WeightsError: the encoder's file is missing.
    """
    out.resolve().parent.mkdir(parents=True, exist_ok=True)
    encoder = find(ENCODER)
    material = read_training_data(paths, seed)
    say(", ".join(f"{name} {len(source.rows)}" for name, source in material.sources.items()))
    torch.set_num_threads(1)
    torch.manual_seed(seed)  # the initial heads are drawn here
    on_gpu = device == "cuda"
    file = E5File(encoder)
    network = ReaderNetwork(file, torch.device(device))
    if start is not None:
        network.start_from(load_trained(start / FILES[0], file))
    finder = AnswerNetwork(file, torch.device(device))
    adapters = start / ANSWERS_FILE if start is not None and (start / ANSWERS_FILE).is_file() else None
    if adapters is not None:
        finder.start_from(read_scaled(adapters))
    batch = _BATCH_GPU if on_gpu else _BATCH
    tokeniser = Tokeniser(encoder)
    chunks = Chunks(material, tokeniser, seed=seed, tokens=_CHUNK, batch=batch)
    checkpoint = out.with_name(f"{out.name}.checkpoint")
    million = round(tokens * 1_000_000)
    threads = 1 if on_gpu else threads
    rows = {name: len(source.rows) for name, source in material.sources.items()}
    begun_from = None if start is None else file_sha256(start / FILES[0])
    run = repr((seed, million, threads, device, begun_from, rows, SHARES, FIRST_PART))
    fit(network, chunks, tokens=million, threads=threads, checkpoint=checkpoint, run=run, say=say)
    of_answers = checkpoint.with_suffix(".answers")
    asked = Chunks(material, tokeniser, seed=seed, tokens=_CHUNK, batch=batch, shares=_ANSWER_SHARES)
    run += repr((_ANSWER_SHARES, _ANSWER_TOKENS, None if adapters is None else file_sha256(adapters)))
    some = round(_ANSWER_TOKENS * million)
    fit(finder, asked, tokens=some, threads=threads, checkpoint=of_answers, run=run, rate=_ANSWER_RATE, say=say)
    write_weights(network, finder, material, encoder, out, seed=seed, say=say)
    checkpoint.unlink()
    of_answers.unlink()


def load_trained(path: Path, file: E5File) -> dict[str, Float32s]:
    """The arrays of a file of weights, with matrices as after training."""
    arrays = read_network(path)
    names = [name.removesuffix(".scales") for name in arrays if name.endswith(".scales")]
    return arrays | {f"{name}.w": trained_matrix(file, arrays, name) for name in names}


def write_weights(
    network: ReaderNetwork,
    finder: AnswerNetwork,
    material: TrainingData,
    encoder: Path,
    out: Path,
    *,
    seed: int,
    say: Callable[[str], None],
) -> None:
    """Write the folder: both networks, and weights to fuse them with grounding."""
    rng = Random(f"outliers {seed}")  # noqa: S311  a seeded draw, not a secret
    some = rng.sample(material.held_out, min(len(material.held_out), _OF_OUTLIERS))
    tokeniser = Tokeniser(encoder)
    pairs = [item.pair for row in some for item in training_inputs(row, tokeniser, rng)]
    with whole_folder(out) as part:
        save_network(part / FILES[0], arrays_of(network, E5File(encoder), pairs))
        save_network(part / ANSWERS_FILE, _in_bytes(finder.learned()))
        reader = Network(part, encoder)
        judged = judge(calibration_rows(material.held_out, seed), reader, say)
        write_json(part / FILES[1], fit_fusion(judged))
        (part / "MODEL_CARD.md").write_text(_card(material, judged, seed), "utf-8")
        manifest = Manifest(
            revision=REVISION,
            types=TYPES,
            threshold=0.5,
            thresholds=_STRICTNESS,
            sha256={name: file_sha256(part / name) for name in FILES},
            encoder_sha256=file_sha256(encoder)[:16],
            grounding=file_sha256(Grounding().network)[:16],
        )
        write_json(part / "weights.json", manifest)
    say(f"wrote {out}")


def _in_bytes(learned: Mapping[str, Float32s]) -> dict[str, Numbers]:
    """Matrices in 8 bits with a scale for each row, as `AnswerFinder` loads them; the rest as it is."""
    arrays: dict[str, Numbers] = {}
    for name, values in learned.items():
        if values.ndim < 2:
            arrays[name] = values
            continue
        scales = np.maximum(np.abs(values).max(axis=1, keepdims=True) / 127, 1e-12)
        arrays |= {name: np.rint(values / scales).astype(np.int8), f"{name}.scales": scales}
    return arrays


def _card(material: TrainingData, judged: Sequence[JudgedRow], seed: int) -> str:
    """The model card."""
    fitted = Counter(row.relation for row in judged)
    return Template((files(__package__) / "model_card.md").read_text("utf-8")).substitute(
        revision=REVISION,
        seed=seed,
        sources="\n".join(
            f"| {name} | {len(source.rows)} | {SHARES[name]:.2f} |" for name, source in material.sources.items()
        ),
        **{f"of_{name}": f"{share:.2f}" for name, share in _ANSWER_SHARES.items()},
        twins=f"{SHARES['twins']:.2f}",
        written=f"{SHARES['written']:.2f}",
        left_out=", ".join(f"{why} {count}" for why, count in sorted(material.left_out.items())) or "nothing",
        fitted="\n".join(f"| {relation} | {count} |" for relation, count in sorted(fitted.items())),
    )


def arrays_of(network: ReaderNetwork, file: E5File, pairs: Sequence[Pair]) -> dict[str, Numbers]:
    """The trained weights in their stored form: changes of matrices in 4-bit blocks, the rest in 16 bits.

    `pairs` are sequences for finding the outliers among the inputs of a matrix.
    """
    arrays: dict[str, Any] = {"outliers": network.outliers(pairs).astype("uint16")}
    for name, values in network.learned().items():
        if name.startswith("l") and values.ndim == 2:
            added = values - file.dense(name, values.shape[1])
            arrays[name], arrays[name.removesuffix("w") + "scales"] = quantise(added)
        else:
            arrays[name] = values.astype("float16")
    return arrays


def fit(
    network: ReaderNetwork,
    chunks: Chunks,
    *,
    tokens: int,
    threads: int,
    checkpoint: Path,
    run: str = "",
    rate: float = _RATE,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Train in place; resumes from the checkpoint if there is one.

    A run that was interrupted ends with the same numbers as one that was not, with the same number of threads.

    Args:
        network: the network.
        chunks: the training inputs.
        tokens: total number to train on.
        threads: number of batches in a step, each in its own thread.
        checkpoint: file that is written every ten minutes.
        run: fingerprint of the run that the checkpoint belongs to.
        rate: the highest learning rate.
        say: callback for progress, one line at a time.

    Raises:
        UsageError: the checkpoint belongs to another run.
    """
    trainable = [(name, values) for name, values in network.named_parameters() if values.requires_grad]
    body = [values for name, values in trainable if name.startswith("layers.")]
    heads = [values for name, values in trainable if not name.startswith("layers.")]
    groups = [{"params": body, "factor": 1.0}, {"params": heads, "factor": _HEADS}]
    optimizer = torch.optim.AdamW(groups, rate, betas=(0.9, 0.98), weight_decay=_DECAY, fused=True)
    chunk, first, done = _resume(checkpoint, network, optimizer, run)
    begun = saved = time.monotonic()
    start, sums, steps = done, dict[str, float](), 0
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    network.train()
    while done < tokens:
        # by the number of the chunk: a run that resumes inside a chunk must draw the same
        batches = chunks.batches(chunk, first=chunk * _CHUNK < FIRST_PART * tokens)
        for number in range(first, len(batches), threads):
            share = done / tokens
            falling = rate * min(1.0, share / _WARM_UP + 0.01) * max(_LAST, 1.0 - share)
            for group in optimizer.param_groups:
                group["lr"] = falling * group["factor"]
            together = batches[number : number + threads]
            losses = _step(network, optimizer, together, pool)
            done += sum(len(item.pair.ids) for batch in together for item in batch)
            steps += 1
            sums = {name: sums.get(name, 0.0) + losses.get(name, 0.0) for name in {*sums, *losses}}
            if not steps % _STEPS_A_LINE:
                means = " ".join(f"{name} {value / _STEPS_A_LINE:.3f}" for name, value in sorted(sums.items()))
                speed = (done - start) / (time.monotonic() - begun)
                say(f"{done / 1e6:.2f}M of {tokens / 1e6:.0f}M tokens, {speed:.0f} a second: {means}")
                sums = {}
            if time.monotonic() - saved > 60 * _MINUTES:
                _save(checkpoint, network, optimizer, run, (chunk, number + threads, done))
                saved = time.monotonic()
            if done >= tokens:
                break
        chunk, first = chunk + 1, 0
    _save(checkpoint, network, optimizer, run, (chunk, first, done))
    network.eval()


def _step(
    network: ReaderNetwork, optimizer: torch.optim.Optimizer, batches: Sequence[Sequence[TrainingInput]], pool: Executor
) -> dict[str, float]:
    """One step on the mean gradient of the batches; two threads on small products are slower than two batches."""
    parameters = [values for group in optimizer.param_groups for values in group["params"]]

    def gradients(batch: Sequence[TrainingInput]) -> tuple[Sequence[torch.Tensor | None], dict[str, float]]:
        loss, losses = network.loss(batch)
        return torch.autograd.grad(loss, parameters, allow_unused=True), losses

    results = list(pool.map(gradients, batches))
    for index, values in enumerate(parameters):
        given = [gradient for grads, _ in results if (gradient := grads[index]) is not None]
        values.grad = torch.stack(given).sum(0) / len(batches) if given else None
    clip_grad_norm_(parameters, 1.0)
    optimizer.step()
    return {
        name: sum(losses.get(name, 0.0) for _, losses in results) / len(results)
        for name in {name for _, losses in results for name in losses}
    }


def _save(
    path: Path, network: ReaderNetwork, optimizer: torch.optim.Optimizer, run: str, at: tuple[int, int, int]
) -> None:
    state = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "run": run, "at": at}
    with open_whole(path) as file:
        torch.save(state, file)


def _resume(path: Path, network: ReaderNetwork, optimizer: torch.optim.Optimizer, run: str) -> tuple[int, int, int]:
    """Chunk, batch and tokens of a checkpoint."""
    if not path.is_file():
        return 0, 0, 0
    state = torch.load(path, map_location=network.part.device, weights_only=True)
    if state["run"] != run:
        raise UsageError(
            f"{path} belongs to a training with other data or settings.",
            remedy="Give the same ones to resume, or remove it to start again.",
        )
    network.load_state_dict(state["network"])
    optimizer.load_state_dict(state["optimizer"])
    chunk, batch, tokens = state["at"]
    return chunk, batch, tokens

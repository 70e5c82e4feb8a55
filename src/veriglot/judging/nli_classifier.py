"""Entailment by any sequence classifier of transformers that was trained on pairs with NLI labels."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
import transformers

from veriglot.errors import UsageError, WeightsError
from veriglot.hub.checkpoints import batches, load_pretrained
from veriglot.hub.registry import models
from veriglot.judging.classifiers import LockedTokenizer, label_aliases, label_names, normalised_label
from veriglot.plugins import PickledByArguments
from veriglot.records.languages import get_language
from veriglot.signatures import signature
from veriglot.storage.cache import Cache, LRUCache

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from veriglot.arrays import Float32s, Float64s

__all__ = []


COLUMNS = ("entailment", "neutral", "contradiction")  # of the array that `judge` returns
_LABELS = (set(COLUMNS), {"entailment", "not_entailment"})


def labels_of(names: Mapping[int, str] | Sequence[str] | str, model: str) -> tuple[str, ...]:
    """The meaning of each output, in order: all of `COLUMNS`, or `entailment` and `not_entailment` in either order."""
    given = label_names(names)
    aliases = label_aliases("veriglot.judging", "nli_labels.json")
    labels = tuple(aliases.get(normalised_label(name), "") for name in given)
    if len(set(labels)) == len(labels) and set(labels) in _LABELS:
        return labels
    raise WeightsError(
        f"The labels of {model!r} do not show which outputs mean entailment, neutral and contradiction:"
        f" {', '.join(map(repr, given)) or 'none'}.",
        remedy="Use a model trained on natural language inference. If you know the order, give it, such as"
        " labels='entailment,neutral,contradiction'.",
    )


_KEYS_PER_QUERY = 500
_TABLE = "CREATE TABLE IF NOT EXISTS judged (key BLOB PRIMARY KEY, row BLOB NOT NULL) WITHOUT ROWID"


class PairCache:
    """Cache of probabilities by model and pair, in memory and in a file; threads and processes may share it."""

    def __init__(self, signature: str, pairs: int, folder: str | Path | None = None) -> None:
        if pairs < 0:
            raise UsageError(f"The memory is to keep {pairs} pairs.", remedy="Give memory 0 or more.")
        self._salt = hashlib.blake2b(signature.encode(), digest_size=16).digest()
        self._rows: LRUCache[Float32s] = LRUCache(pairs)
        self._lock = threading.Lock()

        def error(what: str) -> UsageError:
            return UsageError(
                f"The cache of judged pairs in {folder} cannot be used: {what}.",
                remedy="Give another folder as `cache`.",
            )

        self._file = None if folder is None else Cache(Path(folder) / "entailment.sqlite", _TABLE, error=error)

    def key(self, premise: str, hypothesis: str) -> bytes:
        """The key of a pair: a hash of the model and both texts."""
        data = premise.encode("utf-8", "surrogatepass")
        hasher = hashlib.blake2b(self._salt, digest_size=16)
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
        hasher.update(hypothesis.encode("utf-8", "surrogatepass"))
        return hasher.digest()

    def known(self, keys: Sequence[bytes]) -> dict[bytes, Float32s]:
        """The cached rows, by key."""
        with self._lock:
            rows = {key: row for key in keys if (row := self._rows.get(key)) is not None}
            if self._file is not None:
                missing = [key for key in dict.fromkeys(keys) if key not in rows]
                for start in range(0, len(missing), _KEYS_PER_QUERY):
                    part = missing[start : start + _KEYS_PER_QUERY]
                    marks = ",".join("?" * len(part))
                    read = self._file.read(f"SELECT key, row FROM judged WHERE key IN ({marks})", part)  # noqa: S608
                    stored = {key: np.frombuffer(row, "<f4").astype(np.float32) for key, row in read}
                    self._keep(stored)
                    rows.update(stored)
        return rows

    def put(self, rows: Mapping[bytes, Float32s]) -> None:
        """Store rows; with a file, they are on disk when this returns."""
        with self._lock:
            self._keep(rows)
            if self._file is not None:
                values = [(key, row.astype("<f4").tobytes()) for key, row in rows.items()]
                self._file.write("INSERT OR REPLACE INTO judged VALUES (?, ?)", values)

    def _keep(self, rows: Mapping[bytes, Float32s]) -> None:
        for key, row in rows.items():
            self._rows.put(key, row.copy())  # a view would keep its whole batch in memory

    def __len__(self) -> int:
        return len(self._rows)


@dataclass(frozen=True)
class Job:
    """One input of the network."""

    row: int  # index of its pair
    piece: int  # index of the piece of that pair's hypothesis
    premise: str  # a window of the premise
    hypothesis: str  # the piece
    tokens: int  # number of tokens of both, special tokens included


def merge_jobs(jobs: Sequence[Job], rows: Float32s, pairs: int) -> Float32s:
    """One row per pair from one row per job; `Entailment.judge` states the rule."""
    result = np.zeros((pairs, len(COLUMNS)), np.float32)
    for row, indices in groupby(range(len(jobs)), lambda index: jobs[index].row):
        first, *others = indices
        result[row] = rows[first]
        if others:
            part = rows[first : others[-1] + 1]
            pieces = np.array([job.piece for job in jobs[first : others[-1] + 1]])
            entailed = min(float(part[pieces == piece, 0].max()) for piece in np.unique(pieces))
            contradicted = float(part[:, 2].max())
            result[row] = entailed, 1.0 - max(entailed, contradicted), contradicted
    return result


_MIN_TOKENS = 8  # of premise and hypothesis together


class SequenceClassifier(PickledByArguments):
    """An entailment model of transformers. Threads may share it; it pickles as its options.

    Args:
        model: a folder, a name that `veriglot models` lists, or a name on the hub.
        revision: of a model on the hub.
        labels: meanings of its outputs, in order, if its configuration does not state them, such as
            `entailment,neutral,contradiction`.
        max_length: most tokens of a pair; None for the model's own limit.
        languages: BCP 47 tags of the languages that it supports; None for those of the registry, if it names any.
        device: such as `cpu` or `cuda:0`; None for the first accelerator, otherwise the CPU.
        dtype: of the weights. Below `float32`, the last digits of probabilities depend on the batch.
        batch_tokens: most tokens of a batch, padding included.
        memory: how many pairs to cache in memory (least recently used ones are dropped first).
        cache: a folder with a file that caches every pair, for other runs and processes too; None for no file.
        trust_remote_code: run code that comes with the model.

    Raises:
        WeightsError: the model cannot be loaded, has no trained classifier, or its labels are not known.
        UsageError: an invalid option, or a tokenizer that does not give the offsets of its tokens.
        UnknownNameError: no such language.
    """

    name = "transformers"

    def __init__(
        self,
        model: str | Path,
        *,
        revision: str | None = None,
        labels: Sequence[str] | str | None = None,
        max_length: int | None = None,
        languages: Sequence[str] | None = None,
        device: str | None = None,
        dtype: str = "float32",
        batch_tokens: int = 16384,
        memory: int = 200_000,
        cache: str | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        if languages is None:
            known = models().get(str(model))
            languages = known.languages if known else ()
        self.languages = frozenset(get_language(tag).base for tag in languages)
        loaded = load_pretrained(
            transformers.AutoModelForSequenceClassification, model, what="entailment model", revision=revision,
            device=device, dtype=dtype, trust_remote_code=trust_remote_code,
        )  # fmt: skip
        network, tokenizer = loaded.network, loaded.tokenizer
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        if network.config.pad_token_id is None:
            network.config.pad_token_id = tokenizer.pad_token_id
        self.labels = labels_of(labels if labels is not None else network.config.id2label, loaded.source)
        if len(self.labels) != network.config.num_labels:
            raise UsageError(
                f"{loaded.source!r} has {network.config.num_labels} outputs, and {len(self.labels)} labels."
            )
        self._device, self._network = loaded.device, network
        self._lock = threading.Lock()
        room = loaded.effective_max_length(max_length)
        if room < _MIN_TOKENS + 4:
            raise UsageError(
                f"{room} tokens are too few for a pair.", remedy=f"Give max_length {_MIN_TOKENS + 4} or more."
            )
        self._tokens = LockedTokenizer(tokenizer, loaded.source)
        self._free = room - self._tokens.special  # for premise and hypothesis
        self._batch_tokens = batch_tokens
        self.revision = loaded.revision
        self.signature = signature(
            entailment=self.name,
            model=model,
            revision=self.revision,
            labels=",".join(self.labels),
            window=room,
            **loaded.settings,
        )
        self._memory = PairCache(self.signature, memory, cache)

    def judge(self, pairs: Sequence[tuple[str, str]]) -> Float64s:
        """See `Entailment`. Repeated and cached pairs are judged only once."""
        keys = [self._memory.key(*pair) for pair in pairs]
        known = self._memory.known(keys)
        new = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in known}
        if new:
            rows = self._judged(list(new.values()))
            judged = dict(zip(new, rows, strict=True))
            self._memory.put(judged)
            known.update(judged)
        return np.array([known[key] for key in keys], np.float64).reshape(-1, len(COLUMNS))

    def pieces(self, hypothesis: str) -> list[tuple[int, int]]:
        """See `Entailment`. A hypothesis takes at most half of the tokens, so that the premise gets the other half."""
        return self._tokens.split_chunks(hypothesis, self._free // 2, overlap=False)

    def _judged(self, pairs: list[tuple[str, str]]) -> Float32s:
        self._tokens.count_all([text for pair in pairs for text in pair])
        jobs = [job for row, pair in enumerate(pairs) for job in self._jobs(row, *pair)]
        rows = np.zeros((len(jobs), len(COLUMNS)), np.float32)
        for batch in batches([job.tokens for job in jobs], self._batch_tokens):
            rows[batch] = self._run([jobs[index] for index in batch])
        return merge_jobs(jobs, rows, len(pairs))

    def _jobs(self, row: int, premise: str, hypothesis: str) -> list[Job]:
        jobs = []
        for piece, (start, end) in enumerate(self.pieces(hypothesis)):
            part = hypothesis[start:end]
            length = self._tokens.count(part)
            for first, last in self._windows(premise, length):
                window = premise[first:last]
                jobs.append(Job(row, piece, window, part, self._tokens.count(window) + length + self._tokens.special))
        return jobs

    def _windows(self, premise: str, length: int) -> list[tuple[int, int]]:
        """The windows of a premise, for a hypothesis of `length` tokens.

        If there are several, `length` is rounded up, so that hypotheses of similar length share the cached windows.
        """
        if self._tokens.count(premise) <= self._free - length:
            return [(0, len(premise))]
        step = max(self._free // 32, 1)
        return self._tokens.split_chunks(premise, self._free - length - -length % step, overlap=True)

    def _run(self, jobs: list[Job]) -> Float32s:
        try:
            return self._probabilities(jobs)
        except torch.OutOfMemoryError:
            if len(jobs) == 1:
                raise
            half = len(jobs) // 2
            return np.concatenate([self._run(jobs[:half]), self._run(jobs[half:])])

    def _probabilities(self, jobs: list[Job]) -> Float32s:
        encoded = self._tokens.pairs([job.premise for job in jobs], [job.hypothesis for job in jobs])
        with self._lock, torch.inference_mode():
            logits = self._network(**encoded.to(self._device)).logits
            shares = torch.softmax(logits.float(), -1).cpu().numpy()
        rows = np.zeros((len(jobs), len(COLUMNS)), np.float32)
        for output, label in enumerate(self.labels):
            rows[:, COLUMNS.index("neutral" if label == "not_entailment" else label)] = shares[:, output]
        return rows

"""Any sequence classifier of the transformers library that was trained on pairs with NLI labels."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import transformers

from veriglot.entailment.jobs import Job, joined
from veriglot.entailment.labels import COLUMNS, labels_of
from veriglot.entailment.memory import Memory
from veriglot.entailment.tokens import Tokens
from veriglot.errors import UsageError, WeightsError
from veriglot.provenance import checkpoint_revision, signature
from veriglot.records.languages import language
from veriglot.weights import models
from veriglot.weights.batches import batches
from veriglot.weights.checkpoints import checkpoint, hub_options, loading, positions
from veriglot.weights.device import device_for

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["SequenceClassifier"]

_ANY_LENGTH = 512  # tokens of a pair where the model sets no bound
_FEWEST = 8  # tokens of premise and hypothesis together


class SequenceClassifier:
    """An entailment model of transformers. Threads may share it; it pickles as its options.

    Args:
        model: a folder, a name that `veriglot models` lists, or a name on the hub.
        revision: of a model on the hub.
        labels: what its outputs mean, in order, where its configuration does not say, such as
            `entailment,neutral,contradiction`.
        max_length: tokens of a pair; None for as many as the model takes.
        languages: BCP 47 tags that it is declared to be for; None for those of the registry, where it names any.
        device: where it runs, such as `cpu` or `cuda:0`; None for the first accelerator, otherwise the CPU.
        dtype: of the weights. Of less than `float32`, judgements vary with the batch in their last digits.
        batch_tokens: tokens that are judged at a time, padding included.
        memory: how many pairs to remember, the least recently used forgotten first.
        cache: a folder whose file remembers every pair, for other runs and processes too; None for none.
        trust_remote_code: run code that comes with the model.

    Raises:
        WeightsError: the model cannot be loaded, has no trained classifier, or its labels do not say what they mean.
        UsageError: an option that makes no sense, or a tokenizer that does not say where its tokens stand.
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
        given = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        self._options = {**given, "model": str(model)}
        place = checkpoint(model)
        if languages is None:
            known = models().get(str(model))
            languages = known.languages if known else ()
        self.languages = frozenset(language(tag).base for tag in languages)
        tokenizer, network = _loaded(place, dtype, trust_remote_code=trust_remote_code, **hub_options(place, revision))
        self.labels = labels_of(labels if labels is not None else network.config.id2label, place)
        if len(self.labels) != network.config.num_labels:
            raise UsageError(f"{place!r} has {network.config.num_labels} outputs, and {len(self.labels)} labels.")
        self._device = device_for(device)
        self._network: Any = network.to(self._device).eval()
        self._lock = threading.Lock()
        self._room = _room(place, positions(tokenizer, network), max_length)
        self._tokens = Tokens(tokenizer, place)
        self._batch_tokens = batch_tokens
        self.revision = checkpoint_revision(place, network.config)
        self.signature = signature(
            entailment=self.name,
            model=model,
            revision=self.revision,
            labels=",".join(self.labels),
            window=self._room,
            dtype=dtype,
            device=self._device.type,
            transformers=transformers.__version__,
            torch=torch.__version__,
        )
        self._memory = Memory(self.signature, memory, cache)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._options,)

    def judge(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """See `Entailment`. A pair that is asked twice, or was asked before, is judged once."""
        keys = [self._memory.key(*pair) for pair in pairs]
        known = self._memory.known(keys)
        new = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in known}
        if new:
            rows = self._judged(list(new.values()))
            judged = dict(zip(new, rows, strict=True))
            self._memory.put(judged)
            known.update(judged)
        found = np.zeros((len(keys), len(COLUMNS)), np.float64)
        for place, key in enumerate(keys):
            found[place] = known[key]
        return found

    def pieces(self, hypothesis: str) -> list[tuple[int, int]]:
        """See `Entailment`. A hypothesis may take half of the room, so that there is as much for the premise."""
        return self._tokens.stretches(hypothesis, self._free // 2, overlap=False)

    @property
    def _free(self) -> int:
        """Tokens that premise and hypothesis may have together."""
        return self._room - self._tokens.special

    def _judged(self, pairs: list[tuple[str, str]]) -> NDArray[np.float32]:
        self._tokens.count_all([text for pair in pairs for text in pair])
        jobs = [job for row, pair in enumerate(pairs) for job in self._jobs(row, *pair)]
        rows = np.zeros((len(jobs), len(COLUMNS)), np.float32)
        for batch in batches([job.tokens for job in jobs], self._batch_tokens):
            rows[batch] = self._run([jobs[place] for place in batch])
        return joined(jobs, rows, len(pairs))

    def _jobs(self, row: int, premise: str, hypothesis: str) -> list[Job]:
        found = []
        for piece, (start, end) in enumerate(self.pieces(hypothesis)):
            part = hypothesis[start:end]
            length = self._tokens.count(part)
            for first, last in self._windows(premise, length):
                window = premise[first:last]
                found.append(Job(row, piece, window, part, self._tokens.count(window) + length + self._tokens.special))
        return found

    def _windows(self, premise: str, length: int) -> list[tuple[int, int]]:
        """The windows of a premise beside a hypothesis of so many tokens.

        Where there are several, the length is rounded up, so that few hypotheses need windows of their own.
        """
        if self._tokens.count(premise) <= self._free - length:
            return [(0, len(premise))]
        return self._tokens.stretches(premise, self._free - length - -length % self._step, overlap=True)

    @property
    def _step(self) -> int:
        return max(self._free // 32, 1)

    def _run(self, jobs: list[Job]) -> NDArray[np.float32]:
        try:
            return self._probabilities(jobs)
        except torch.OutOfMemoryError:
            if len(jobs) == 1:
                raise
            half = len(jobs) // 2
            return np.concatenate([self._run(jobs[:half]), self._run(jobs[half:])])

    def _probabilities(self, jobs: list[Job]) -> NDArray[np.float32]:
        encoded = self._tokens.pairs([job.premise for job in jobs], [job.hypothesis for job in jobs])
        with self._lock, torch.inference_mode():
            logits = self._network(**encoded.to(self._device)).logits
            shares = torch.softmax(logits.float(), -1).cpu().numpy()
        rows = np.zeros((len(jobs), len(COLUMNS)), np.float32)
        for place, label in enumerate(self.labels):
            rows[:, COLUMNS.index("neutral" if label == "not_entailment" else label)] = shares[:, place]
        return rows


def _again(options: dict[str, Any]) -> SequenceClassifier:
    return SequenceClassifier(**options)


def _loaded(model: str, dtype: str, **given: Any) -> tuple[Any, Any]:
    with loading("entailment model", model):
        tokenizer = transformers.AutoTokenizer.from_pretrained(model, **given)
        network, told = transformers.AutoModelForSequenceClassification.from_pretrained(
            model, dtype=dtype, output_loading_info=True, **given
        )
    untrained = sorted(told["missing_keys"])
    if untrained:  # the library fills them with random numbers
        raise WeightsError(
            f"{model!r} is no classifier of pairs: it has no weights for {', '.join(untrained[:3])}.",
            remedy="Take a checkpoint that was trained on natural language inference.",
        )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if network.config.pad_token_id is None:
        network.config.pad_token_id = tokenizer.pad_token_id
    return tokenizer, network


def _room(model: str, most: int | None, wanted: int | None) -> int:
    """Tokens of a pair: as wanted, and no more than the model has positions for."""
    if wanted is not None and most is not None and wanted > most:
        raise UsageError(
            f"{model!r} takes {most:,} tokens, and {wanted:,} were asked for.",
            remedy=f"Give max_length {most} or less.",
        )
    room = wanted or most or _ANY_LENGTH
    if room < _FEWEST + 4:
        raise UsageError(f"{room} tokens are too few for a pair.", remedy=f"Give max_length {_FEWEST + 4} or more.")
    return room

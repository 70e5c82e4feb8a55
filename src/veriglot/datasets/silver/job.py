"""The job of silver data: each seed passage is made, checked, edited and checked again; with counts.

This module makes no calls: the work yields its next requests, so that many rows can run at the same time. A rejected
error is removed and the row continues; each rejection is written.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, TypeVar, Unpack

from msgspec.structs import asdict, replace

from veriglot.datasets.generation import (
    Account,
    LanguageModel,
    RunOptions,
    UsageFields,
    generate,
    ranked,
    read_account,
    run_conversations,
)
from veriglot.datasets.prompts import filled, prompt_version
from veriglot.datasets.quality import refusals_version
from veriglot.datasets.silver.check import Change, Edited, Violation, check
from veriglot.datasets.silver.injection import REPLACING, Injector, Order, Task, read_reply, seed_fault, tasks
from veriglot.errors import UnknownNameError, UsageError
from veriglot.llm.client import AnswerError, Client, Reply, Request, Settings
from veriglot.records import Annotation, Detector, Evidence, Generator, Kind, Sample, Status, Unit
from veriglot.records.settings import Record, check_ranges
from veriglot.records.taxonomy import taxonomy
from veriglot.signatures import signature
from veriglot.storage.checkpoint import FailedRow, Tally, Usage
from veriglot.text.segmentation import sentences

if TYPE_CHECKING:
    from collections.abc import Generator as Asking
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    _T = TypeVar("_T")
    _Working = Asking[tuple[Request, ...], list[Reply], _T]

__all__ = [
    "CHECK_VERSION",
    "LanguageAccount",
    "SeedResult",
    "SilverCounts",
    "SilverJob",
    "SilverRejection",
    "Support",
    "TypeAccount",
    "load_account",
    "silver",
]


# Whether the evidence supports an inserted error: checked by a detector, or by a model.


_MARKED = 0.2  # share of a passage's code points that a detector may mark as false positives


class _SupportAnswer(Record):
    supported: bool


class Support:
    """Checks whether the evidence supports a text, with a detector or a model.

    Args:
        judge: the detector, which must mark errors, at least in part; errors that it misses are rejected, so a weak one
            makes the data easier than real data. Or a model, by its name on the server, preferably another one than the
            injector; it gets the sentences with an error.
        seed: of the model's calls.
    """

    def __init__(self, judge: Detector | str, *, seed: int | None = None) -> None:
        self._judge: Detector | LanguageModel
        if isinstance(judge, str):
            self._judge = LanguageModel(judge, Settings(temperature=0.0), seed)
            self.signature = signature(support="model", model=judge, seed=seed, prompt=prompt_version("injection"))
        else:
            self._judge = judge
            self.signature = signature(support="detector", marked=_MARKED, detector=judge.signature)

    def verdicts(self, sample: Sample, changes: Sequence[Change] | None) -> _Working[list[Violation | None]]:
        """Verdicts on each error of a sample's response, or on the response; one call each.

        Args:
            sample: with evidence.
            changes: the errors, which should not be supported; None judges the whole response, which should be, apart
                from a fifth of it that a detector may mark.

        Returns:
            None if the result is as it should be; otherwise `supported`, `unsupported` or `unchecked` (no clear
            result).
        """
        if not isinstance(self._judge, LanguageModel):
            return _marked(sample, changes, self._judge)
        model, tag = self._judge, sample.language or ""
        statements = [sample.response] if changes is None else [_sentences_around(sample, change) for change in changes]
        texts = {"passage": sample.response, "reference": sample.evidence_text}
        prompts = [filled("injection", "support", tag, statement=statement, **texts) for statement in statements]
        replies = yield tuple(model.asked(prompt, answer=_SupportAnswer) for prompt in prompts)
        return [_verdict(reply, wanted=changes is None) for reply in replies]


def _marked(sample: Sample, changes: Sequence[Change] | None, detector: Detector) -> list[Violation | None]:
    (prediction,) = detector.predict([sample])
    if prediction.status != Status.SCORED:
        unchecked = Violation("unchecked", f"the detector did not judge it ({prediction.status})")
        return [unchecked] * (1 if changes is None else len(changes))
    marked = [(span.start, span.end) for span in prediction.spans or ()]
    if changes is None:
        share = sum(end - start for start, end in marked) / len(sample.response)
        return [Violation("unsupported", f"the detector marks {share:.0%} of it") if share > _MARKED else None]
    supported = Violation("supported", "the detector finds it supported")
    return [
        None if any(start < change.end and change.start < end for start, end in marked) else supported
        for change in changes
    ]


def _verdict(reply: Reply, *, wanted: bool) -> Violation | None:
    try:
        supported = reply.decode(_SupportAnswer).supported
    except AnswerError as error:
        return Violation("unchecked", f"the check cannot be read: {error.message}")
    if supported is wanted:
        return None
    if supported:
        return Violation("supported", "the checking model says that the reference supports it")
    return Violation("unsupported", "the checking model says that the reference does not support it")


def _sentences_around(sample: Sample, change: Change) -> str:
    """The sentences of the response that contain an error."""
    bounds = sentences(sample.response, sample.language)
    touched = [(start, end) for start, end in bounds if start < change.end and change.start < end]
    start, end = (touched[0][0], touched[-1][1]) if touched else (change.start, change.end)
    return sample.response[start:end].strip()


# Results for a seed: its silver rows, rejections, and cost.


class SilverRejection(Record, omit_defaults=True):
    """A rejected passage or error.

    Attributes:
        id: of the row that it was made for.
        seed: id of the seed.
        language: of the seed.
        type: of the error; `passage` for a seed passage.
        reason: see `Violation`.
        detail: the reason as a sentence.
        attempt: number of the attempt, from 1.
        text: the rejected text: the model's reply, or the error.
    """

    id: str
    seed: str
    language: str
    type: str
    reason: str
    detail: str
    attempt: int = 1
    text: str = ""


class SeedResult(UsageFields):
    """The result for one seed with its cost; a row of the stage.

    Attributes:
        id: of the seed.
        language: of the seed.
        samples: the silver rows.
        rejections: what was rejected.
        asked: for each type, number of rows for which it was requested.
        taken: for each type, number of these that have one.
    """

    id: str
    language: str
    samples: tuple[Sample, ...]
    rejections: tuple[SilverRejection, ...]
    asked: dict[str, int]
    taken: dict[str, int]


_MOST_REPLACED = 0.5  # maximum share of a passage, for types that exchange one to three words


class SilverJob:
    """The work on one seed; `run` makes its silver rows.

    Args:
        injector: the model that inserts errors, with its settings.
        task: the seed, and the types of its errors.
        support: checks the support by the evidence; None skips it.
    """

    def __init__(self, injector: Injector, task: Task, support: Support | None) -> None:
        self.injector = injector
        self.task = task
        self.support = support
        self.language = task.seed.language or ""
        self.evidence = [passage.text for passage in task.seed.evidence]
        self.rejections: list[SilverRejection] = []
        self.asked = Counter[str]()
        self.taken = Counter[str]()

    def run(self) -> _Working[SeedResult]:
        """Make the rows."""
        passage = yield from self._passage()
        samples = []
        types, alone = self.task.types, self.injector.per_sentence
        for number, text in enumerate(self._rows(passage)):
            id_ = f"{self.task.id}/s{number + 1}" if alone else self.task.id
            own_types = (types[number % len(types)],) if types and alone else types
            sample = yield from self._row(id_, text, own_types)
            if sample is not None:
                samples.append(sample)
        return SeedResult(
            self.task.id, self.language, tuple(samples), tuple(self.rejections), dict(self.asked), dict(self.taken)
        )

    def _rows(self, passage: str) -> list[str]:
        """The texts that get errors: the passage, or its sentences."""
        if not passage or not self.injector.per_sentence:
            return [passage] if passage else []
        cut = (passage[start:end].strip() for start, end in sentences(passage, self.language))
        return [text for text in cut if any(c.isalnum() for c in text)]

    def _passage(self) -> _Working[str]:
        """An accepted passage; empty if there is none."""
        self.asked["passage"] += 1
        seed = self.task.seed
        given = seed.response.strip()
        for attempt in range(1, 2 if given else self.injector.attempts + 1):
            text, finish = given, str(seed.meta.get("finish", "stop"))
            if not given:
                (reply,) = yield (self.injector.passage_request(seed, attempt),)
                text, finish = reply.answer.strip(), reply.finish
            fault = seed_fault(text, seed, finish)
            if fault is None and self.support is not None and seed.evidence:
                (fault,) = yield from self.support.verdicts(replace(seed, response=text, annotations=()), None)
            if fault is None:
                self.taken["passage"] += 1
                return text
            self._reject(self.task.id, "passage", fault, text, attempt)
        return ""

    def _row(self, id_: str, text: str, types: tuple[str, ...]) -> _Working[Sample | None]:
        """A silver row; None if none of its errors was accepted."""
        edited = Edited(text, text)
        if not types:
            return self._sample(id_, edited)
        for type_ in types:
            self.asked[type_] += 1
            edited = yield from self._round(id_, edited, type_)
        faults = check(edited, language=self.language, evidence=self.evidence, types=types)
        if faults:
            for fault in faults:
                self._reject(id_, "row", fault, edited.text)
            return None
        self.taken.update({change.type for change in edited.changes})
        return self._sample(id_, edited)

    def _round(self, id_: str, edited: Edited, type_: str) -> _Working[Edited]:
        """The text with errors of one more type, or unchanged if none was accepted."""
        injector = self.injector
        for attempt in range(1, injector.attempts + 1):
            (reply,) = yield (injector.request(self.task, edited, type_, attempt),)
            result = read_reply(
                edited.text, reply, type_, form=injector.form, taxonomy=injector.taxonomy, language=self.language
            )
            if not isinstance(result, Edited):
                self._reject(id_, type_, result, reply.text, attempt)
                continue
            sound = yield from self._sound(id_, edited, result, type_, attempt)
            if sound is not None:
                return sound
        return edited

    def _sound(self, id_: str, before: Edited, read: Edited, type_: str, attempt: int) -> _Working[Edited | None]:
        """The text with the errors of a reply that pass every check; None if there are none."""
        sound = read.without(self._faulty(id_, read, type_, attempt))
        if not sound.changes:
            return None
        after = before.then(sound.text, sound.changes)
        if after is None:
            overlap = Violation("overlap", "it touches an earlier error")
            self._reject(id_, type_, overlap, sound.text, attempt)
            return None
        if self.support is None:
            return after
        put = {(change.start, change.end) for change in sound.changes}
        new = {number: change for number, change in enumerate(after.changes) if (change.start, change.end) in put}
        sample = replace(self.task.seed, response=after.text, annotations=())
        verdicts = yield from self.support.verdicts(sample, list(new.values()))
        dropped = {number: fault for number, fault in zip(new, verdicts, strict=True) if fault is not None}
        for number, fault in dropped.items():
            self._reject(id_, type_, fault, after.text[new[number].start : new[number].end], attempt)
        return after.without(dropped) if len(dropped) < len(new) else None

    def _faulty(self, id_: str, read: Edited, type_: str, attempt: int) -> set[int]:
        """The indices of the errors of a reply that the check rejects; all of them if the problem is the whole text."""
        faults = check(
            read,
            language=self.language,
            evidence=self.evidence,
            types=(type_,),
            most_changed=_MOST_REPLACED if type_ in REPLACING else 1.0,
        )
        bad = set[int]()
        for fault in faults:
            self._reject(id_, type_, fault, read.text[fault.start : fault.end] or read.text, attempt)
            places = {n for n, c in enumerate(read.changes) if c.start < fault.end and fault.start < c.end}
            bad |= places or set(range(len(read.changes)))
        return bad

    def _reject(self, id_: str, type_: str, fault: Violation, text: str, attempt: int = 1) -> None:
        self.rejections.append(
            SilverRejection(id_, self.task.id, self.language, type_, fault.reason, fault.detail, attempt, text)
        )

    def _sample(self, id_: str, edited: Edited) -> Sample:
        """The row, with its annotation and metadata about how it was made."""
        seed, injector = self.task.seed, self.injector
        units = None
        if injector.per_sentence and edited.changes:
            units = (Unit(0, len(edited.text), edited.changes[0].type),)
        silver = {
            "seed": seed.id,
            "passage": edited.original,
            "given": bool(seed.response.strip()),
            "changes": [asdict(change) for change in edited.changes],
            "prompt": prompt_version("injection"),
            "form": injector.form,
            "support": self.support.signature if self.support is not None else "not checked",
        }
        settings = injector.settings.given() | injector.settings.extra
        return replace(
            seed,
            id=id_,
            response=edited.text,
            evidence=seed.evidence or (Evidence(edited.original, language=seed.language),),
            generator=Generator(injector.model, None, injector.seed, settings),
            annotations=(Annotation("silver", Kind.MODEL, injector.taxonomy, edited.spans, units),),
            meta={**seed.meta, "silver": silver},
        )


class TypeAccount(Record):
    """One type of error in one language, or the seed passages.

    Attributes:
        asked: rows for which it was requested (passages: requested seeds).
        taken: rows that have one.
        errors: errors of it in the rows; passages have none.
        reasons: rejections by reason, the most frequent first. A row with several attempts may have several, and a row
            that succeeded in the end may have some.
    """

    asked: int
    taken: int
    errors: int
    reasons: dict[str, int]

    @property
    def share(self) -> float | None:
        """The yield: accepted share of the requests; None if there were none."""
        return self.taken / self.asked if self.asked else None


class LanguageAccount(UsageFields):
    """One language with its cost.

    Attributes:
        seeds: processed seeds.
        rows: silver rows.
        clean: those of them without an error.
        passages: the seed passages.
        types: by type.
        row_reasons: completely rejected rows, by reason.
    """

    seeds: int
    rows: int
    clean: int
    passages: TypeAccount
    types: dict[str, TypeAccount]
    row_reasons: dict[str, int]


class SilverCounts:
    """Counts, seed by seed; `types` are those of the errors, in the order of the account."""

    def __init__(self, types: Sequence[str]) -> None:
        self.usage = Usage()
        self._types = types
        self._rows = Counter[str]()
        self._asked = Counter[str]()
        self._taken = Counter[str]()
        self._errors = Counter[str]()
        self._reasons = defaultdict[str, Counter[str]](Counter)

    def add(self, result: SeedResult) -> None:
        """Count one seed."""
        self._rows.update(seeds=1, rows=len(result.samples))
        self._asked.update(result.asked)
        self._taken.update(result.taken)
        for sample in result.samples:
            spans = sample.annotations[-1].spans or ()
            self._rows["clean"] += not spans
            self._errors.update(span.type or "" for span in spans)
        for rejection in result.rejections:
            self._reasons[rejection.type][rejection.reason] += 1

    def account(self) -> LanguageAccount:
        """The counts so far."""
        return LanguageAccount(
            self._rows["seeds"],
            self._rows["rows"],
            self._rows["clean"],
            self._of("passage"),
            {type_: self._of(type_) for type_ in self._types},
            ranked(self._reasons["row"]),
            **asdict(self.usage),
        )

    def _of(self, type_: str) -> TypeAccount:
        return TypeAccount(self._asked[type_], self._taken[type_], self._errors[type_], ranked(self._reasons[type_]))


def load_account(output: Path) -> Account[LanguageAccount]:
    """Read the account of an output."""
    return read_account(output, Account[LanguageAccount])


# Silver data by injection: seed passages, errors of each type inserted by a model, and the check of every row.
#
# mFAVA's silver data sets (mFAVA, section 3.1) and HalluVerse25 (section 3.2) were made in this way, but without the
# check: here a row is written only if the marked parts are the only changes, and every rejection is written.


CHECK_VERSION = "2"  # raise it when other rows are accepted


def silver(
    output: Path,
    seeds: Iterable[Sample | FailedRow],
    injector: Injector,
    client: Client,
    *,
    support: Support | None = None,
    order: Order = "given",
    clean: float = 0.0,
    jobs: int = 8,
    **run: Unpack[RunOptions],
) -> Tally:
    """Make silver rows of every seed.

    Args:
        output: JSON lines of samples, annotated by `silver`. Rejections go to `rejected_path(output)`, the account to
            `account_path(output)`. All are made at the end from `OUT.rows.jsonl`, from which an interrupted run
            continues.
        seeds: samples, the same ones in the same order at each call. If a sample has a response, it is the seed
            passage; otherwise the model answers the question, or retells the text, from the evidence.
        injector: the model that does both, with its settings.
        client: for all calls, including those of a check by a model.
        support: checks the support by the evidence; None skips it, with a note in each row's `meta`.
        order: of the rounds of a passage: as in `injector.types`, or random for each passage.
        clean: the share of the seeds, 0 to 1, that become rows without errors.
        jobs: calls at the same time.
        run: see `RunOptions`.

    Returns:
        Counts of the seeds. A seed whose calls failed is a failed row; one without an accepted error is not.

    Raises:
        UsageError: a share outside 0 to 1, no attempt, or the output was begun with other settings.
        UnknownNameError: no such taxonomy or type.
        ModelError: an error that every further call would have too; finished rows are kept.
    """
    _validate(injector, clean)
    types = injector.all_types
    return generate(
        output,
        tasks(seeds, types, turns=injector.per_sentence, order=order, clean=clean, seed=injector.seed),
        lambda rows: run_conversations(client, rows, lambda task: SilverJob(injector, task, support).run(), jobs=jobs),
        record_type=SeedResult,
        counts=lambda: SilverCounts(types),
        signature=client.signature,
        settings={
            **injector.described,
            "taxonomy": injector.taxonomy,
            "types": ",".join(types),
            "order": order,
            "form": injector.form,
            "clean": str(clean),
            "attempts": injector.attempts,
            "prompt": prompt_version("injection"),
            "check": f"check@{CHECK_VERSION},{refusals_version()}",
            "support": support.signature if support is not None else None,
        },
        **run,
    )


def _validate(injector: Injector, clean: float) -> None:
    known = ("fava", "halluverse")
    if injector.taxonomy not in known:
        raise UnknownNameError("taxonomy of injection", injector.taxonomy, known)
    for type_ in injector.types:
        if type_ not in taxonomy(injector.taxonomy).types:
            raise UnknownNameError("type of error", type_, taxonomy(injector.taxonomy).types)
    if len(set(injector.types)) < len(injector.types):
        raise UsageError("A type of error is named twice.")
    if injector.per_sentence and injector.form != "plain":
        raise UsageError("The types of halluverse are read from the edited sentence.", "Use the form `plain`.")
    if not 0.0 <= clean <= 1.0:
        raise UsageError(f"The share of clean rows is {clean}; it lies between 0 and 1.")
    check_ranges(injector, attempts=(1, math.inf))

"""One seed passage on its way to silver rows: made, checked, given its errors, checked again.

Nothing here asks anybody: the work yields the requests that it needs answered next, so that many rows can be at it at
once (`waves.py`). An error that a check rejects is taken out again and the row goes on; each rejection is kept.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.build.injection.check import check
from veriglot.build.injection.edited import Edited
from veriglot.build.injection.made import PASSAGE, ROW, Made, SilverRejection
from veriglot.build.injection.reading import REPLACING, Fault, read_reply
from veriglot.build.injection.seeds import passage_of, seed_fault
from veriglot.build.injection.support import NoReplyError, failed_row, replies_of
from veriglot.build.injection.wording import injection_version
from veriglot.llm import Spent
from veriglot.records import Annotation, Evidence, Generator, Kind, Sample, Unit
from veriglot.text import sentences

if TYPE_CHECKING:
    from collections.abc import Generator as Working

    from veriglot.build.injection.changes import Change
    from veriglot.build.injection.injector import Injector
    from veriglot.build.injection.seeds import Task
    from veriglot.build.injection.support import Support
    from veriglot.llm import Answer, Reply, Request
    from veriglot.run import FailedRow

__all__ = ["silver_rows"]

_MOST_REPLACED = 0.5  # of a passage, by errors that exchange one to three words


def silver_rows(
    task: Task, injector: Injector, support: Support | None
) -> Working[tuple[Request, ...], list[Answer], Made | FailedRow]:
    """Make the silver rows of one seed.

    Args:
        task: the seed, and the types of its errors.
        injector: who puts them in, and how.
        support: whether the evidence supports what is made; None does not look.

    Returns:
        What was made, or a failed row where a call gave nothing.
    """
    job = _Job(injector, task, support)
    try:
        return (yield from job.run())
    except NoReplyError as failure:
        return failed_row(failure, task.id, job.spent)


@dataclass
class _Job:
    """The work on one seed."""

    injector: Injector
    task: Task
    support: Support | None
    spent: Spent = field(default_factory=Spent)
    rejections: list[SilverRejection] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    taken: Counter[str] = field(default_factory=Counter)

    def run(self) -> Working[tuple[Request, ...], list[Answer], Made]:
        passage = yield from self._passage()
        samples: list[Sample] = []
        for number, text in enumerate(self._rows(passage)):
            id_ = f"{self.task.id}/s{number + 1}" if self.injector.per_sentence else self.task.id
            sample = yield from self._row(id_, text, self._types(number))
            if sample is not None:
                samples.append(sample)
        return Made(
            self.task.id,
            self.task.seed.language or "",
            tuple(samples),
            tuple(self.rejections),
            dict(self.asked),
            dict(self.taken),
            self.spent.calls,
            self.spent.tokens_in,
            self.spent.tokens_out,
        )

    def _types(self, number: int) -> tuple[str, ...]:
        types = self.task.types
        if not types or not self.injector.per_sentence:
            return types
        return (types[number % len(types)],)

    def _rows(self, passage: str) -> list[str]:
        """The texts that get errors: the passage, or its sentences."""
        if not passage or not self.injector.per_sentence:
            return [passage] if passage else []
        cut = (passage[start:end].strip() for start, end in sentences(passage, self.task.seed.language))
        return [text for text in cut if any(c.isalnum() for c in text)]

    def _ask(self, *requests: Request) -> Working[tuple[Request, ...], list[Answer], list[Reply]]:
        answers = yield requests
        self._pay(answers)
        return replies_of(answers)

    def _pay(self, answers: list[Answer]) -> None:
        for answer in answers:
            if answer.reply is not None:
                self.spent = self.spent.plus(answer.request, answer.reply)

    def _passage(self) -> Working[tuple[Request, ...], list[Answer], str]:
        """A passage that nothing speaks against; empty where there is none."""
        self.asked[PASSAGE] += 1
        seed = self.task.seed
        given = seed.response.strip()
        for attempt in range(1, 2 if given else self.injector.attempts + 1):
            text, finish = given, str(seed.meta.get("finish", "stop"))
            if not given:
                (reply,) = yield from self._ask(self.injector.passage_request(seed, attempt))
                text, finish = passage_of(reply), reply.finish
            fault: tuple[str, str] | None = seed_fault(text, seed, finish)
            if fault is None:
                fault = yield from self._unsupported(text)
            if fault is None:
                self.taken[PASSAGE] += 1
                return text
            self._reject(self.task.id, PASSAGE, *fault, attempt=attempt, text=text)
        return ""

    def _unsupported(self, text: str) -> Working[tuple[Request, ...], list[Answer], tuple[str, str] | None]:
        if self.support is None or not self.task.seed.evidence:
            return None
        sample = msgspec.structs.replace(self.task.seed, response=text, annotations=())
        (verdict,) = yield from self._judged(self.support.passage(sample))
        return None if verdict.reason is None else (verdict.reason, verdict.detail)

    def _judged(self, asking: Any) -> Working[tuple[Request, ...], list[Answer], Any]:
        """A check's conversation, with what it costs."""
        answers: list[Answer] | None = None
        while True:
            try:
                requests = next(asking) if answers is None else asking.send(answers)
            except StopIteration as stop:
                return stop.value
            answers = yield requests
            self._pay(answers)

    def _row(
        self, id_: str, text: str, types: tuple[str, ...]
    ) -> Working[tuple[Request, ...], list[Answer], Sample | None]:
        """A silver row; None where none of its errors passed."""
        if not types:
            return self._sample(id_, Edited.of(text))
        edited = Edited.of(text)
        for type_ in types:
            self.asked[type_] += 1
            edited = yield from self._round(id_, edited, type_)
        faults = check(
            edited.original,
            edited.text,
            edited.changes,
            language=self.task.seed.language or "",
            evidence=self._evidence(),
            types=types,
        )
        if faults:
            for fault in faults:
                self._reject(id_, ROW, fault.reason, fault.detail, text=edited.text)
            return None
        self.taken.update({change.type for change in edited.changes})
        return self._sample(id_, edited)

    def _round(self, id_: str, edited: Edited, type_: str) -> Working[tuple[Request, ...], list[Answer], Edited]:
        """The text with errors of one more type, or as it was where none passed."""
        for attempt in range(1, self.injector.attempts + 1):
            (reply,) = yield from self._ask(self.injector.request(self.task, edited, type_, attempt))
            read = self._read(edited, reply, type_)
            if isinstance(read, Fault):
                self._reject(id_, type_, read.reason, read.detail, attempt=attempt, text=reply.text)
                continue
            sound = yield from self._sound(id_, edited, read, type_, attempt)
            if sound is not None:
                return sound
        return edited

    def _read(self, edited: Edited, reply: Reply, type_: str) -> Edited | Fault:
        return read_reply(
            edited.text,
            reply,
            type_,
            form=self.injector.form,
            taxonomy=self.injector.taxonomy,
            language=self.task.seed.language or "",
        )

    def _sound(
        self, id_: str, before: Edited, read: Edited, type_: str, attempt: int
    ) -> Working[tuple[Request, ...], list[Answer], Edited | None]:
        """The text with those of the errors of a reply that pass every check; None where none does."""
        bad = self._faulty(id_, read, type_, attempt)
        kept = read.without(bad)
        after = before.then(kept.text, kept.changes) if kept.changes else None
        if after is None:
            if kept.changes:
                self._reject(id_, type_, "overlap", "it touches an error that is there already", attempt, kept.text)
            return None
        if self.support is None:
            return after
        new = [number for number, change in enumerate(after.changes) if change not in _shifted(before, after)]
        sample = msgspec.structs.replace(self.task.seed, response=after.text, annotations=())
        changes = [after.changes[number] for number in new]
        verdicts = yield from self._judged(self.support.errors(sample, changes))
        dropped = set()
        for number, change, verdict in zip(new, changes, verdicts, strict=True):
            if verdict.reason is not None:
                dropped.add(number)
                self._reject(id_, type_, verdict.reason, verdict.detail, attempt, after.text[change.start : change.end])
        return after.without(dropped) if len(dropped) < len(new) else None

    def _faulty(self, id_: str, read: Edited, type_: str, attempt: int) -> set[int]:
        """The places of the errors of a reply that the check rejects; all of them where it is about the whole."""
        found = check(
            read.original,
            read.text,
            read.changes,
            language=self.task.seed.language or "",
            evidence=self._evidence(),
            types=(type_,),
            most_changed=_MOST_REPLACED if type_ in REPLACING else 1.0,
        )
        bad: set[int] = set()
        for fault in found:
            shown = read.text[fault.start : fault.end] or read.text
            self._reject(id_, type_, fault.reason, fault.detail, attempt, shown)
            places = {n for n, c in enumerate(read.changes) if c.start < fault.end and fault.start < c.end}
            bad |= places or set(range(len(read.changes)))
        return bad

    def _evidence(self) -> list[str]:
        return [passage.text for passage in self.task.seed.evidence]

    def _reject(self, id_: str, type_: str, reason: str, detail: str, attempt: int = 1, text: str = "") -> None:
        self.rejections.append(
            SilverRejection(id_, self.task.id, self.task.seed.language or "", type_, reason, detail, attempt, text)
        )

    def _sample(self, id_: str, edited: Edited) -> Sample:
        """The row, with its annotation and what is known of how it was made."""
        seed, injector = self.task.seed, self.injector
        evidence = seed.evidence or (Evidence(edited.original, language=seed.language),)
        units = None
        if injector.per_sentence and edited.changes:
            units = (Unit(0, len(edited.text), edited.changes[0].type),)
        annotation = Annotation("silver", Kind.MODEL, injector.taxonomy, spans=edited.spans, units=units)
        made: dict[str, Any] = {
            "seed": seed.id,
            "passage": edited.original,
            "given": bool(seed.response.strip()),
            "changes": [msgspec.structs.asdict(change) for change in edited.changes],
            "prompt": injection_version(),
            "form": injector.form,
            "support": self.support.signature if self.support is not None else "not checked",
        }
        generator = Generator(
            injector.model, None, injector.seed, {**injector.settings.given(), **injector.settings.extra}
        )
        return msgspec.structs.replace(
            seed,
            id=id_,
            response=edited.text,
            evidence=evidence,
            generator=generator,
            annotations=(annotation,),
            meta={**seed.meta, "silver": made},
        )


def _shifted(before: Edited, after: Edited) -> set[Change]:
    """Those of the errors that were there before, as they stand now."""
    held = {(c.old_start, c.old_end, c.type, before.text[c.start : c.end]) for c in before.changes}
    return {c for c in after.changes if (c.old_start, c.old_end, c.type, after.text[c.start : c.end]) in held}

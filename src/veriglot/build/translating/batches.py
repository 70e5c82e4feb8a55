"""The texts of many rows to one translator at a time, and every row's result in order."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from veriglot.errors import VeriglotError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from veriglot.build.translating.job import Working
    from veriglot.build.translating.records import Task, TranslatedRow
    from veriglot.build.translating.translator import Translated, Translator, Wanted
    from veriglot.run import FailedRow

__all__ = ["in_batches"]


def in_batches(
    translator: Translator, tasks: Iterable[Task], work: Callable[[Task], Working], *, block: int
) -> Iterator[TranslatedRow | FailedRow]:
    """Do the work for every task. Equal texts of a block are translated once; the first row pays for them.

    Args:
        translator: who translates.
        tasks: read a block at a time.
        work: yields the texts that it needs now, gets their translations, and returns the row's result.
        block: rows that are at it together, at least 1.

    Yields:
        One result per task, in order.

    Raises:
        VeriglotError: the translator did not answer every text; or whatever it raises.
    """
    source = iter(tasks)
    while rows := list(islice(source, block)):
        yield from _block(translator, [work(row) for row in rows])


def _block(translator: Translator, running: list[Working]) -> Iterator[TranslatedRow | FailedRow]:
    results: dict[int, TranslatedRow | FailedRow] = {}
    given: dict[int, Sequence[Translated] | None] = dict.fromkeys(range(len(running)))
    while given:
        asked: list[tuple[int, list[Wanted]]] = []
        for number, answers in given.items():
            try:
                asked.append((number, next(running[number]) if answers is None else running[number].send(answers)))
            except StopIteration as stop:
                results[number] = stop.value
        said = _translated(translator, [one for _, wanted in asked for one in wanted])
        at = 0
        given = {}
        for number, wanted in asked:
            given[number] = said[at : at + len(wanted)]
            at += len(wanted)
    for number in range(len(running)):
        yield results[number]


def _translated(translator: Translator, wanted: list[Wanted]) -> list[Translated]:
    import msgspec

    once = list(dict.fromkeys(wanted))
    replies = list(translator.translate(once)) if once else []
    if len(replies) != len(once):
        raise VeriglotError(f"The translator gave {len(replies)} translations of {len(once)} texts.")
    by_text = dict(zip(once, replies, strict=True))
    found, paid = [], set()
    for one in wanted:
        reply = by_text[one]
        found.append(msgspec.structs.replace(reply, calls=0, tokens_in=0, tokens_out=0) if one in paid else reply)
        paid.add(one)
    return found

"""Work that asks several times, one answer leading to the next question, for many rows at once and in order."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from veriglot.llm import ask_all

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from veriglot.llm import Answer, Client, Request

__all__ = ["in_waves"]

R = TypeVar("R")
T = TypeVar("T")

_AHEAD = 8


def in_waves(
    client: Client,
    rows: Iterable[R],
    work: Callable[[R], Generator[tuple[Request, ...], list[Answer], T]],
    *,
    jobs: int = 8,
) -> Iterator[T]:
    """Do the same work for every row.

    Rows are taken in blocks of `8 * jobs`. In each wave, all rows of a block have their next questions asked together,
    so that no more than `jobs` calls are under way, however many rounds the rows are in.

    Args:
        client: who is asked.
        rows: read a block at a time.
        work: yields the requests that it needs answered now, gets their answers, and returns the row's result.
        jobs: calls at the same time.

    Yields:
        One result per row, in order.

    Raises:
        ModelError: one that every further request would meet as well, as `ask_all`.
    """
    source = iter(rows)
    while block := list(islice(source, _AHEAD * jobs)):
        yield from _block(client, [work(row) for row in block], jobs)


def _block(
    client: Client, running: list[Generator[tuple[Request, ...], list[Answer], Any]], jobs: int
) -> Iterator[Any]:
    results: dict[int, Any] = {}
    given: dict[int, list[Answer] | None] = dict.fromkeys(range(len(running)))
    due = 0
    while given:
        asked: list[tuple[int, tuple[Request, ...]]] = []
        for number, answers in given.items():
            try:
                asked.append((number, next(running[number]) if answers is None else running[number].send(answers)))
            except StopIteration as stop:
                results[number] = stop.value
        while due in results:
            yield results.pop(due)
            due += 1
        said = ask_all(client, (request for _, requests in asked for request in requests), jobs=jobs)
        given = {number: list(islice(said, len(requests))) for number, requests in asked}
        next(said, None)  # so that its threads end now

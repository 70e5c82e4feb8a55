"""Pairs by a model: the injection of `veriglot build silver`, one error of the drawn type into each sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from veriglot.build.halluverse.pairs import make_pairs, settled
from veriglot.build.injection.job import silver_rows
from veriglot.build.injection.seeds import Task
from veriglot.build.injection.waves import in_waves
from veriglot.build.injection.wording import injection_version
from veriglot.build.refusals import refusals_version
from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from veriglot.build.halluverse.pairs import Seed
    from veriglot.build.injection.injector import Injector
    from veriglot.build.injection.made import Made
    from veriglot.build.injection.support import Support
    from veriglot.llm import Client
    from veriglot.run import FailedRow, Tally
    from veriglot.run.manifest import Option

__all__ = ["inject_pairs"]


def inject_pairs(
    output: Path,
    seeds: Sequence[Seed],
    injector: Injector,
    client: Client,
    *,
    support: Support | None = None,
    inputs: Sequence[str] = (),
    options: dict[str, Option] | None = None,
    jobs: int = 8,
    restart: bool = False,
    retry: bool = False,
    seen: Callable[[msgspec.Struct | FailedRow], None] | None = None,
) -> Tally:
    """Have a model put errors into sentences; see `make_pairs`.

    Args:
        output, seeds, inputs, options, restart, retry, seen: as there.
        injector: of the taxonomy `halluverse`, in the form `plain`.
        client: whom to ask, for a check by a model too.
        support: whether the page supports the sentence and not the error; None does not look, and each row says so.
        jobs: calls at the same time.

    Raises:
        UsageError: another taxonomy or form.
    """
    if injector.taxonomy != "halluverse" or injector.form != "plain":
        raise UsageError("Pairs have one error of halluverse's types, read from the edited sentence.")

    def make(drawn: Iterable[tuple[Seed, str]]) -> Iterator[Made | FailedRow]:
        drawn = list(drawn)
        tasks = [Task(seed.id, seed.sample, (type_,)) for seed, type_ in drawn]
        made = in_waves(client, tasks, lambda task: silver_rows(task, injector, support), jobs=jobs)
        for (seed, _), one in zip(drawn, made, strict=True):
            yield settled(one, seed)

    return make_pairs(
        output,
        seeds,
        make,
        signature=client.signature,
        maker="client",
        types=injector.all_types,
        seed=injector.seed,
        inputs=inputs,
        options={
            "model": injector.model,
            "attempts": injector.attempts,
            "settings": msgspec.json.encode(injector.settings, order="deterministic").decode(),
            "prompt": f"{injection_version()},{refusals_version()}",
            "support": support.signature if support is not None else None,
            **(options or {}),
        },
        restart=restart,
        retry=retry,
        seen=seen,
    )

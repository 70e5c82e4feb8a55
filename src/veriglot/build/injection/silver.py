"""Silver data by injection: seed passages, errors of each type put into them by a model, and the check of every row.

mFAVA's silver sets were made so (mfava, section 3.1), and HalluVerse25 (section 3.2). What they left unchecked is the
point here: a row is written only if what is marked is all that was changed, and every rejection is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from veriglot.build.injection.account import account_of, account_path
from veriglot.build.injection.job import silver_rows
from veriglot.build.injection.made import Made
from veriglot.build.injection.seeds import tasks
from veriglot.build.injection.waves import in_waves
from veriglot.build.injection.wording import injection_types, injection_version
from veriglot.build.queries import rejected_path
from veriglot.build.refusals import refusals_version
from veriglot.errors import UnknownNameError, UsageError
from veriglot.records import encode
from veriglot.run import Stage, lost_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from veriglot.build.injection.injector import Injector
    from veriglot.build.injection.seeds import Order, Task
    from veriglot.build.injection.support import Support
    from veriglot.llm import Client
    from veriglot.records import Sample
    from veriglot.run import FailedRow, Tally

__all__ = ["CHECK_VERSION", "part_rows", "silver"]

CHECK_VERSION = "2"  # raise it with any change of what the check accepts


def silver(
    output: Path,
    seeds: Iterable[Sample | FailedRow],
    injector: Injector,
    client: Client,
    *,
    support: Support | None = None,
    order: Order = "given",
    clean: float = 0.0,
    inputs: Sequence[str] = (),
    options: dict[str, str | bool | None] | None = None,
    jobs: int = 8,
    restart: bool = False,
    retry: bool = False,
    seen: Callable[[msgspec.Struct | FailedRow], None] | None = None,
) -> Tally:
    """Make silver rows of every seed.

    Args:
        output: JSON lines of samples, annotated by `silver`. What was rejected goes to `rejected_path(output)`, the
            account to `account_path(output)`. All are made at the end from `OUT.rows.jsonl`, where a run that stopped
            goes on.
        seeds: samples, the same ones in the same order at each call. The response of one that has a response is the
            seed passage; otherwise the model answers the question, or retells the text, from the evidence.
        injector: the model that does both, and how.
        client: whom to ask, for a check by a model too.
        support: whether the evidence supports what is made; None does not look, and each row's `meta` says so.
        order: of the rounds of a passage: as `injector.types` has them, or drawn for each passage.
        clean: the share of the seeds, 0 to 1, that become rows without errors.
        inputs, jobs, restart, retry, seen: as for `responses`.
        options: further settings that change the rows.

    Returns:
        What became of the seeds. A seed whose calls gave nothing is a failed row; one of which nothing passed is not.

    Raises:
        UsageError: a share outside 0 to 1, no attempt, or the output was begun otherwise.
        UnknownNameError: no such taxonomy or type.
        ModelError: what every further call would meet too; what is done is kept.
    """
    _validate(injector, clean)
    types = injector.all_types
    stage: Stage[Task] = Stage(
        output,
        signature=client.signature,
        inputs=inputs,
        options={
            "model": injector.model,
            "taxonomy": injector.taxonomy,
            "types": ",".join(types),
            "order": order,
            "form": injector.form,
            "clean": str(clean),
            "attempts": injector.attempts,
            "seed": injector.seed,
            "settings": msgspec.json.encode(injector.settings, order="deterministic").decode(),
            "prompt": injection_version(),
            "check": f"check@{CHECK_VERSION},{refusals_version()}",
            "support": support.signature if support is not None else None,
            **(options or {}),
        },
        finish=lambda rows, target: part_rows(rows, target, types),
        restart=restart,
        retry=retry,
        maker="client",
    )
    planned = tasks(seeds, types, turns=injector.per_sentence, order=order, clean=clean, seed=injector.seed)

    def work(rows: Iterator[Task]) -> Iterator[Made | FailedRow]:
        return in_waves(client, rows, lambda task: silver_rows(task, injector, support), jobs=jobs)

    return stage.run(planned, work, seen=seen)


def _validate(injector: Injector, clean: float) -> None:
    known = ("fava", "halluverse")
    if injector.taxonomy not in known:
        raise UnknownNameError("taxonomy of injection", injector.taxonomy, known)
    for type_ in injector.types:
        if type_ not in injection_types(injector.taxonomy):
            raise UnknownNameError("type of error", type_, injection_types(injector.taxonomy))
    if len(set(injector.types)) < len(injector.types):
        raise UsageError("A type of error is named twice.")
    if injector.per_sentence and injector.form != "plain":
        raise UsageError("The types of halluverse are read from the edited sentence.", remedy="Use the form `plain`.")
    if not 0.0 <= clean <= 1.0:
        raise UsageError(f"The share of clean rows is {clean}; it lies between 0 and 1.")
    if injector.attempts < 1:
        raise UsageError("At least one attempt is needed.")


def part_rows(rows: Path, target: Path, types: Sequence[str]) -> None:
    """Part what was made into samples, rejections and the account, whoever made it.

    Args:
        rows: JSON lines of `Made`.
        target: where the samples go; it stands beside the output, under the output's name with `.partial`.
        types: of the errors, in the order of the account.
    """
    output = target.with_name(target.name.removesuffix(".partial"))
    rejected, account = rejected_path(output), account_path(output)
    partial = rejected.with_name(rejected.name + ".partial")
    decoder = msgspec.json.Decoder(Made)

    def written() -> Iterator[Made]:
        with rows.open("rb") as lines, target.open("wb") as good, partial.open("wb") as bad:
            for line in lines:
                made = decoder.decode(line)
                good.writelines(encode(sample) + b"\n" for sample in made.samples)
                bad.writelines(encode(rejection) + b"\n" for rejection in made.rejections)
                yield made

    found = account_of(written(), types, failed=lost_of(output))
    account.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    partial.replace(rejected)

"""What `veriglot train stacking` does once its words are understood."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from veriglot.cli.calibrating import show_measured
from veriglot.cli.inputs import find_inputs, rows_of
from veriglot.cli.summary import Account
from veriglot.detectors.ensemble.plan import read_members
from veriglot.records import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.cli.inputs import Input

__all__ = ["carry_out"]


def carry_out(data: Sequence[str], members: str, out: str, *, annotator: str | None, seed: int) -> None:
    """Learn, write and show.

    Raises:
        VeriglotError: what went wrong; a row that cannot be read ends it.
    """
    from veriglot.run.manifest import write_whole
    from veriglot.train.confidences.stacking import train

    account = Account(quiet=False)
    inputs = find_inputs(data, format_name=None, skipped=account.warn)
    found, rows = train(_samples(inputs, account), read_members(members), annotator=annotator, seed=seed)
    write_whole(Path(out), msgspec.json.format(msgspec.json.encode(found)) + b"\n")
    left_out = ", ".join(f"{why} {number:,}" for why, number in rows.left_out.most_common())
    show_measured(
        found.quality,
        f"Weights of {len(found.members)} detectors, in {out}",
        [
            "mean: of their confidences; stack: by weights that did not see the text, fold by fold. F1: of each at its"
            " own threshold, of the mean at 0.5, of the stack at one that was chosen on the other folds. 95% intervals"
            " over whole texts; those of ECE lie high in small data.",
            f"F1 of words is best from {found.threshold:.4f} on: the threshold of the file.",
            *([f"Left out: {left_out}."] if left_out else []),
            found.signature,
        ],
    )


def _samples(inputs: Sequence[Input], account: Account) -> Iterator[Sample]:
    for one in inputs:
        for row in rows_of(one, format_name=None, language=None, report=account.report, alone=len(inputs) == 1):
            if not isinstance(row, Sample):
                raise row.as_error()
            yield row

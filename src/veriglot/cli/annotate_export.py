"""`veriglot annotate export` and `veriglot annotate settle`."""

from __future__ import annotations

import json as json_module
import sys
from pathlib import Path  # noqa: TC003  typer reads it
from typing import TYPE_CHECKING, Annotated, Literal, Optional

import typer

from veriglot.cli.annotate_options import Database, Json, ProjectFile  # noqa: TC001  typer reads them

if TYPE_CHECKING:
    from veriglot.annotate.exporting import Exported

__all__ = ["export", "settle"]


def export(
    project: ProjectFile,
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", show_default=False, help="A folder that is made, or one ZIP file where it ends in .zip."
        ),
    ],
    to: Annotated[
        Literal["native", "mfava", "hat", "inline", "label-studio"],
        typer.Option(metavar="FORMAT", help="native, mfava, hat, inline or label-studio. Default: native."),
    ] = "native",
    names: Annotated[
        bool, typer.Option("--names", help="Call annotators by the names that they chose. Default: by their ids.")
    ] = False,
    database: Database = None,
    json: Json = False,
) -> None:
    """Export what was annotated so far, while people work: every annotator's layer, gold, silver, and the history.

    What the format cannot hold is told; `native` holds everything.
    """
    from veriglot.cli.annotating import opened, project_at

    loaded = project_at(project)
    with opened(loaded, database) as store:
        from veriglot.annotate import exporting

        write = exporting.export_zip if out.suffix.lower() == ".zip" else exporting.export
        done = write(store, loaded, out, to, names=names)
    _tell(done, out, json=json)


def _tell(done: Exported, out: Path, *, json: bool) -> None:
    import msgspec

    if json:
        print(json_module.dumps(msgspec.to_builtins(done), ensure_ascii=False, indent=2))
        return
    print(out)
    for file in done.files:
        print(f"  {file.path}  {file.rows:,} rows")
    for file in done.files:
        for what, count in file.lost.items():
            print(f"{file.path} cannot hold: {what.removeprefix('row: ')} ({count:,} rows).", file=sys.stderr)
    for what, count in done.beyond.items():
        print(f"The format cannot hold: {what} ({count:,}).", file=sys.stderr)
    for note in done.notes:
        print(note, file=sys.stderr)


def settle(
    project: ProjectFile,
    rule: Annotated[
        Literal["agreed", "majority", "best-with-silver"],
        typer.Option(
            metavar="RULE",
            help="agreed: where all layers say the same. majority: what more than half mark; ties are left."
            " best-with-silver: from whoever agrees most with the silver layer, by language (mfava). Default: agreed.",
        ),
    ] = "agreed",
    language: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="TAG", show_default=False, help="Only items in this language. Default: all."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also gold that a rule set or the data had. A lead's stays.")
    ] = False,
    database: Database = None,
    json: Json = False,
) -> None:
    """Settle by a rule what two people or more annotated; what it cannot decide is left to a lead."""
    from veriglot.cli.annotating import opened, project_at
    from veriglot.records.languages import language as known_language

    loaded = project_at(project)
    tag = None if language is None else known_language(language).tag
    with opened(loaded, database) as store:
        from veriglot.annotate import adjudicating

        rules: dict[str, adjudicating.Rule] = {
            "agreed": "agreed",
            "majority": "majority",
            "best-with-silver": "best_with_silver",
        }
        done = adjudicating.settle(store, loaded, rules[rule], language=tag, again=again)
        with store.reading() as tx:
            names = {one.public_id: one.name for one in tx.people(tx.project(loaded.slug).id)}
    if json:
        print(json_module.dumps(done._asdict(), ensure_ascii=False, indent=2))
        return
    print(
        f"{done.settled:,} settled ({done.replaced:,} had a gold layer before), {done.left:,} left to a lead,"
        f" {done.kept:,} kept their gold layer ({done.by_hand:,} settled by hand)."
    )
    for tag, who in sorted(done.best.items()):
        print(f"  {tag}: from {names.get(who) or who}")

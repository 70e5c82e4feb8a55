"""`veriglot annotate agreement`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from veriglot.cli.build_options import FormatName, Json, LanguageTag, Quiet  # noqa: TC001  typer reads them
from veriglot.errors import EXIT_ROWS_FAILED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.annotate.agreement import AgreementReport
    from veriglot.records import Sample

__all__ = ["agreement"]


def agreement(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            show_default=False,
            help="Annotated samples in any readable format: files or folders, of one annotator each or of several.",
        ),
    ],
    unit: Annotated[
        str,
        typer.Option(
            metavar="UNIT",
            help="What is counted: char, word, or hf:TOKENIZER (a tokenizer.json or a hub name). Default: word.",
            show_default=False,
        ),
    ] = "word",
    gamma: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Random annotations a text that gamma is held against; 0 leaves gamma out, which is most of the work."
            " Default: 30.",
            show_default=False,
        ),
    ] = 30,
    seed: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Seed of the bootstrap and of gamma. Default: 1.", show_default=False),
    ] = 1,
    resamples: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Bootstrap resamples of whole texts; 0 gives no intervals. Default: 1000.",
            show_default=False,
        ),
    ] = 1000,
    format_name: FormatName = None,
    language: LanguageTag = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure how far annotators agree: with each other, and with a model's silver labels.

    Cohen's kappa and the F1 of spans, averaged over pairs of annotators and for each pair; Krippendorff's alpha; gamma,
    which holds place and type at once. Marked or not, and by type; by language; with 95% intervals over whole texts.

    Rows with the same response are one text, so that each annotator may have a file. Where one name annotated a text
    several times it stands for several people: pairs are pooled, Scott's pi stands in for kappa, and a warning names
    the rows.

    \b
    People:  veriglot annotate agreement anna.jsonl ben.jsonl
    mFAVA:   veriglot annotate agreement mfava/gold/ --json > agreement.json
    """
    import msgspec

    from veriglot.annotate.agreement import agreement as measured
    from veriglot.cli.inputs import known_tag

    bad: list[str] = []
    places: list[tuple[str, int, str]] = []
    found = measured(
        _samples(data, format_name, known_tag(language), bad, places, quiet=quiet),
        unit=unit,
        resamples=resamples,
        seed=seed,
        gamma=gamma,
        where=lambda number: "{}, row {} (id {!r})".format(*places[number]),
    )
    _warn(found)
    if json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n")
    else:
        from veriglot.cli.agreement_tables import show

        show(found)
    if bad:
        print(
            f"veriglot: {len(bad):,} rows could not be read and are in no figure; the first: {bad[0]}", file=sys.stderr
        )
        raise typer.Exit(EXIT_ROWS_FAILED)


_MOST_REPEATS = 5  # that are named on standard error; the report has all


def _warn(found: AgreementReport) -> None:
    """Name the rows in which a name annotates a text again: one slip of a copy changes every figure."""
    for one in found.repeated[:_MOST_REPEATS]:
        print(
            f"veriglot: {one.annotator!r} annotated one text twice: {one.first}, and {one.again}. Names are set aside,"
            " and kappa gives way to pi. If this is a slip, delete one of the rows.",
            file=sys.stderr,
        )
    more = len(found.repeated) - _MOST_REPEATS
    if more > 0:
        print(f"veriglot: {more:,} more texts stand twice under one name; --json lists all.", file=sys.stderr)


def _samples(
    data: Sequence[str],
    format_name: str | None,
    language: str | None,
    bad: list[str],
    places: list[tuple[str, int, str]],
    *,
    quiet: bool,
) -> Iterator[Sample]:
    """The samples of all files; annotators of one text have the same ids in files of their own, so ids may recur.

    `places` is filled with the file, row (from 1, unreadable ones counted) and id of each sample.
    """
    from veriglot.cli.inputs import find_inputs
    from veriglot.formats import BadRow, read_rows

    def skipped(line: str) -> None:
        if not quiet:
            print(f"veriglot: {line}", file=sys.stderr)

    for source in find_inputs(data, format_name=format_name, skipped=skipped):
        rows = read_rows(source.path, format=format_name, language=language)
        for number, row in enumerate(rows, start=1):
            if isinstance(row, BadRow):
                bad.append(str(row.error))
            else:
                places.append((source.path, number, row.id))
                yield row

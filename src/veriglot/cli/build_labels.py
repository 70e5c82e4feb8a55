"""`veriglot build labels`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from veriglot.cli.build_options import (  # noqa: TC001  # typer reads them at run time
    FormatName,
    Json,
    LanguageTag,
    Quiet,
    Restart,
    Retry,
)

if TYPE_CHECKING:
    from veriglot.build.translating import LabelAccount

__all__ = ["labels"]


def labels(
    data: Annotated[
        list[str],
        typer.Argument(metavar="DATA...", show_default=False, help="Annotated samples in any readable format."),
    ],
    tokenizer: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="A tokenizer.json, the folder of a checkpoint, a model of the registry, or a name on the hub.",
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="OUT", show_default=False, help="Where the rows go: .parquet, or JSON lines."
        ),
    ],
    scheme: Annotated[
        Literal["io", "bio"],
        typer.Option(show_default=False, help="io, or bio, whose first token of each span is B. Default: io."),
    ] = "io",
    max_length: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=3,
            show_default=False,
            help="The most tokens of a row, special ones included; what is left out is counted. Default: nothing is.",
        ),
    ] = None,
    annotator: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose spans count. Default: the only annotator's.")
    ] = None,
    format_name: FormatName = None,
    language: LanguageTag = None,
    restart: Restart = False,
    retry_failed: Retry = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Label the tokens of annotated responses, for training a token classifier.

    A row has the token ids, their offsets in code points, and a label each: O, I-type, B-type, none for special tokens.
    OUT.account.json counts tokens by label, gives each label a number, and says how many spans the labels give back
    exactly, and why the others are not: cut off, wider than the span by part of a token, or merged with another span.

    \b
    For mBERT:  veriglot build labels train.jsonl --tokenizer bert-base-multilingual-cased -o train.parquet
    Here:       veriglot build labels train.jsonl --tokenizer tokenizer.json --scheme bio --max-length 512 -o out.jsonl
    """
    from veriglot.build.translating import label_samples, load_label_account
    from veriglot.cli.building import Queries, print_json, tell
    from veriglot.cli.inputs import count_rows
    from veriglot.cli.progress import Bar

    source = Queries(data, format_name=format_name, language=language)
    path = Path(output)
    with Bar(shown=not quiet, total=lambda: count_rows(source.inputs)) as bar:
        tally = label_samples(
            path,
            source.rows(),
            tokenizer,
            scheme=scheme,
            max_length=max_length,
            annotator=annotator,
            inputs=source.paths,
            options={**source.options},
            restart=restart,
            retry=retry_failed,
            seen=lambda _: bar.advance(),
        )
    account = load_label_account(path)
    if json:
        print_json(account)
    elif not quiet:
        _show(account)
    code = tell(path, tally, what="rows")
    if code:
        raise typer.Exit(code)


def _show(account: LabelAccount) -> None:
    """The account on standard output: tokens by label, then what became of spans."""
    import sys

    total = sum(account.tokens.values())
    for name, count in account.tokens.items():
        sys.stdout.write(f"{name:24} {account.label_ids[name]:>3} {count:>12,} tokens {count / max(1, total):>7.2%}\n")
    spans = ", ".join(f"{number:,} {what}" for what, number in account.spans.items()) or "none"
    sys.stdout.write(f"spans: {spans}\n")
    if account.unchecked:
        names = ", ".join(f"{name!r} ({account.taxonomies[name]:,} rows)" for name in account.unchecked)
        sys.stdout.write(f"taxonomies that are not known here, so that types could not be looked up: {names}\n")
    sys.stdout.write(f"rows: {account.rows:,}, without a span {account.clean:,}, cut {account.cut:,}\n")

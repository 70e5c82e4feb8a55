"""The options that the commands of `veriglot build` share: models, what is read and written, how a run goes on."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

__all__ = [
    "MFAVA_SEEDS",
    "Design",
    "DryRun",
    "FormatName",
    "Json",
    "LanguageTag",
    "Model",
    "Out",
    "PartOption",
    "Quiet",
    "Restart",
    "Retry",
    "Revision",
    "Seeds",
]

MFAVA_SEEDS = "42,43,44,47,49"

Model = Annotated[
    list[str],
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        show_default=False,
        help="The model as its server names it, or NAME=MODEL to give it another name in tables and ids; repeat it for"
        " several.",
    ),
]
Out = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        show_default=False,
        help="A file (OUT.jsonl), or a folder that gets one file a model.",
    ),
]
Design = Annotated[
    Literal["subsets", "runs"],
    typer.Option(
        show_default=False,
        help="subsets: disjoint subsets of each language's queries, one a seed, every query asked once. runs: every"
        " query asked with every seed. Default: subsets.",
    ),
]
Seeds = Annotated[
    str,
    typer.Option(
        metavar="LIST",
        show_default=False,
        help="Seeds, as 1,2,3 or 1-5; none leaves them to the server. Default: those of mfava, 42,43,44,47,49.",
    ),
]
Restart = Annotated[bool, typer.Option("--restart", help="Make the output anew; finished calls are not repeated.")]
Retry = Annotated[
    bool, typer.Option("--retry-failed", help="Go back to the first failed row and make all from there anew.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Ask nothing: print how many calls and tokens it would take (roughly).")
]
Json = Annotated[bool, typer.Option("--json", help="Print the account as JSON. Default: a table.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no account. Default: off.")]
FormatName = Annotated[
    str | None, typer.Option("--format", metavar="NAME", help="Format of the input. Default: guessed from the content.")
]
LanguageTag = Annotated[
    str | None,
    typer.Option(
        "--language",
        metavar="TAG",
        help="Language of rows that state none, as a BCP 47 tag or name. Default: told from the question.",
    ),
]
Revision = Annotated[
    str | None, typer.Option("--revision", metavar="TEXT", help="Revision of the model, to stand with its responses.")
]
PartOption = Annotated[
    Literal["lead", "text"],
    typer.Option(
        "--part",
        show_default=False,
        help="What of an article is the reference: its lead section, as in mfava, or the whole text. Default: lead.",
    ),
]

"""The options that `veriglot build articles` and `people` share."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["CacheFolder", "Contact", "Rate", "Seed", "parts", "print_account"]

Contact = Annotated[
    str | None,
    typer.Option(
        "--contact",
        metavar="ADDRESS",
        envvar="VERIGLOT_CONTACT",
        show_default=False,
        help="An e-mail or web address of yours; Wikimedia's servers ask for one, and it is sent to them.",
    ),
]
CacheFolder = Annotated[
    str | None,
    typer.Option("--cache", metavar="FOLDER", help="Where fetched answers are kept. Default: OUT.fetched."),
]
Rate = Annotated[
    float | None,
    typer.Option(
        metavar="N", help="Requests a second, at most. Default: 5 (Wikipedia), 1 (Wikidata), 10 (page views)."
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", show_default=False, help="Another seed, another draw. Default: 0.")
]


def parts(text: str) -> list[str]:
    """The parts of a list that is written with commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def print_account(account: object) -> None:
    """An account as JSON, on standard output."""
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(account), indent=2).decode())

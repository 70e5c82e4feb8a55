"""What the commands of `veriglot annotate` have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

__all__ = ["Database", "Json", "ProjectFile"]

ProjectFile = Annotated[
    Path, typer.Argument(metavar="PROJECT", show_default=False, help="The project file, as TOML, or its folder.")
]
Database = Annotated[
    Optional[str],  # noqa: UP045  # typer reads it
    typer.Option(
        "--database",
        metavar="URL",
        envvar="VERIGLOT_STUDIO_DATABASE",
        show_default=False,
        help="A file of SQLite, or postgresql://HOST/NAME. Default: as the project file says.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON. Default: text.")]

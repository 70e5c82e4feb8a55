"""`veriglot dataset`: make and check data."""

from __future__ import annotations

from pkgutil import resolve_name

from veriglot.cli.command import new_app
from veriglot.plugins import read_package_data

app = new_app()


@app.callback()
def _dataset() -> None:
    """Make and check data: silver, translated, sampled and factual sets; articles, queries, responses; checks, cards.

    A TOML file holds the less common settings of a command: --write-config prints one with comments, --config reads it.
    """


for _name, _target in read_package_data(__package__, "dataset.toml", dict[str, str]).items():
    app.command(_name)(resolve_name(_target))

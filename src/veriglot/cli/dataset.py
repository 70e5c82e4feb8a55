"""`veriglot dataset`: make and check data."""

from __future__ import annotations

from pkgutil import resolve_name

from veriglot.cli.command import new_app

app = new_app()


@app.callback()
def _dataset() -> None:
    """Make and check data: silver, translated, sampled and factual sets; articles, queries, responses; checks, cards.

    A TOML file holds the less common settings of a command: --write-config prints one with comments, --config reads it.
    """


for _name, _target in {
    "silver": "veriglot.cli.dataset_silver:silver",
    "rules": "veriglot.cli.dataset_silver:rules",
    "translate": "veriglot.cli.dataset_translate:translate",
    "labels": "veriglot.cli.dataset_translate:labels",
    "sample": "veriglot.cli.dataset_sample:sample",
    "biographies": "veriglot.cli.dataset_biographies:biographies",
    "halluverse": "veriglot.cli.dataset_halluverse:halluverse",
    "articles": "veriglot.cli.dataset_articles:articles",
    "people": "veriglot.cli.dataset_articles:people",
    "queries": "veriglot.cli.dataset_queries:queries",
    "responses": "veriglot.cli.dataset_responses:responses",
    "check": "veriglot.cli.dataset_check:check",
    "card": "veriglot.cli.dataset_check:card",
}.items():
    app.command(_name)(resolve_name(_target))

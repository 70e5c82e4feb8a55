"""`veriglot dataset`: make and check data."""

from __future__ import annotations

from veriglot.cli.command import new_app
from veriglot.cli.dataset_articles import articles, people
from veriglot.cli.dataset_biographies import biographies
from veriglot.cli.dataset_check import card, check
from veriglot.cli.dataset_halluverse import halluverse
from veriglot.cli.dataset_queries import queries
from veriglot.cli.dataset_responses import responses
from veriglot.cli.dataset_sample import sample
from veriglot.cli.dataset_silver import rules, silver
from veriglot.cli.dataset_translate import labels, translate

__all__ = ["app"]

app = new_app()


@app.callback()
def _dataset() -> None:
    """Make and check data: silver, translated, sampled and factual sets; articles, queries, responses; checks, cards.

    Rarer settings of a command stand in a TOML file: --write-config prints one with comments, --config reads it.
    """


for _function in (
    silver, rules, translate, labels, sample, biographies, halluverse, articles, people, queries, responses, check,
    card,
):  # fmt: skip
    app.command(_function.__name__)(_function)

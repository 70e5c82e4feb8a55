"""`veriglot build`: make the data of a study."""

from __future__ import annotations

import typer

from veriglot.cli.build_articles import articles
from veriglot.cli.build_biographies import biographies
from veriglot.cli.build_card import card
from veriglot.cli.build_check import check
from veriglot.cli.build_factual import factual
from veriglot.cli.build_halluverse import halluverse
from veriglot.cli.build_labels import labels
from veriglot.cli.build_mt_sample import mt_sample
from veriglot.cli.build_people import people
from veriglot.cli.build_queries import queries
from veriglot.cli.build_responses import quality, responses
from veriglot.cli.build_silver import silver
from veriglot.cli.build_translate import translate

__all__ = ["app"]

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def _build() -> None:
    """Make and check data: articles, queries and responses; silver, sampled, translated and factual sets; cards."""


app.command("articles")(articles)
app.command("people")(people)
app.command("queries")(queries)
app.command("biographies")(biographies)
app.command("responses")(responses)
app.command("quality")(quality)
app.command("check")(check)
app.command("card")(card)
app.command("factual")(factual)
app.command("mt-sample")(mt_sample)
app.command("silver")(silver)
app.command("halluverse")(halluverse)
app.command("translate")(translate)
app.command("labels")(labels)

"""Kang's set: people with an article in every language, sampled biographies, and what each is held against."""

from veriglot.datasets.factual.people import (
    Candidate,
    ChoiceAccount,
    RejectedPerson,
    WikiArticles,
    candidate_from,
    choose,
    given_articles,
    in_order,
)
from veriglot.datasets.factual.sets import (
    ArticleStore,
    FactualCell,
    Labels,
    SetFiles,
    cells_table,
    totals_of,
    verdict_on,
    write_sets,
)

__all__ = [
    "ArticleStore",
    "Candidate",
    "ChoiceAccount",
    "FactualCell",
    "Labels",
    "RejectedPerson",
    "SetFiles",
    "WikiArticles",
    "candidate_from",
    "cells_table",
    "choose",
    "given_articles",
    "in_order",
    "totals_of",
    "verdict_on",
    "write_sets",
]

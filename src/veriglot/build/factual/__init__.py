"""Kang's set: people with an article in every language, sampled biographies, and what each is held against."""

from veriglot.build.factual.account import FactualCell, cells_table, totals_of
from veriglot.build.factual.articles import WikiArticles, given_articles
from veriglot.build.factual.candidates import Candidate, candidate_from, in_order
from veriglot.build.factual.choosing import Choice, Choosing, SetAside, choose
from veriglot.build.factual.languages import RejectReason, Verdict, verdict_on
from veriglot.build.factual.sets import FactualSets, Labels, RejectedResponse, SetFiles, write_sets
from veriglot.build.factual.shelf import Shelf

__all__ = [
    "Candidate",
    "Choice",
    "Choosing",
    "FactualCell",
    "FactualSets",
    "Labels",
    "RejectReason",
    "RejectedResponse",
    "SetAside",
    "SetFiles",
    "Shelf",
    "Verdict",
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

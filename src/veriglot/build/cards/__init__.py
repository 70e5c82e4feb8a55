"""Data cards: what a data set is, how it was made, what is wrong with it and what it is for, written from the run."""

from veriglot.build.cards.card import Card, card
from veriglot.build.cards.contents import Contents, Generated, contents_of
from veriglot.build.cards.given import Given, blank, read_given
from veriglot.build.cards.page import card_page
from veriglot.build.cards.tracing import Source, Step, trace

__all__ = [
    "Card",
    "Contents",
    "Generated",
    "Given",
    "Source",
    "Step",
    "blank",
    "card",
    "card_page",
    "contents_of",
    "read_given",
    "trace",
]

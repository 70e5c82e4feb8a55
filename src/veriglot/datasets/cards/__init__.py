"""Data cards: what a data set is, how it was made, what is wrong with it and what it is for, written from the run."""

from veriglot.datasets.cards.card import card, read_given
from veriglot.datasets.cards.page import card_page

__all__ = ["card", "card_page", "read_given"]

"""How diverse the people of a data set are: professions, countries of citizenship, years of birth."""

from veriglot.build.diversity.births import Births, Years, births_of
from veriglot.build.diversity.people import Diversity, diversity_of
from veriglot.build.diversity.spread import Category, Spread, spread_of

__all__ = [
    "Births",
    "Category",
    "Diversity",
    "Spread",
    "Years",
    "births_of",
    "diversity_of",
    "spread_of",
]

"""Entailment: whether one text says what another says; models of natural language inference, by name."""

from veriglot.entailment.entailment import Entailment
from veriglot.entailment.reading import Claim, Premise, claims_of, premises_of
from veriglot.entailment.support import Support, hold, support_of
from veriglot.entailment.table import ENTAILMENTS, load_entailment

__all__ = [
    "ENTAILMENTS",
    "Claim",
    "Entailment",
    "Premise",
    "Support",
    "claims_of",
    "hold",
    "load_entailment",
    "premises_of",
    "support_of",
]

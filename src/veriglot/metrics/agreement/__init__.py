"""How far annotators agree: chance-corrected coefficients on units, matched spans, and gamma on both at once."""

from __future__ import annotations

from veriglot.metrics.agreement.coefficients import alpha, coincidences, kappa, pi
from veriglot.metrics.agreement.figures import ALL, FEWEST_TEXTS, MEASURES, AgreementFigure, agreement_figures
from veriglot.metrics.agreement.gamma import SAMPLES, Disorder, Placed, disorder, expected_disorder
from veriglot.metrics.agreement.texts import Layered, gamma_of, labels_of

__all__ = [
    "ALL",
    "FEWEST_TEXTS",
    "MEASURES",
    "SAMPLES",
    "AgreementFigure",
    "Disorder",
    "Layered",
    "Placed",
    "agreement_figures",
    "alpha",
    "coincidences",
    "disorder",
    "expected_disorder",
    "gamma_of",
    "kappa",
    "labels_of",
    "pi",
]

"""Agreement of annotators, from any annotated samples."""

from __future__ import annotations

from veriglot.annotate.agreement.report import AgreementReport, AgreementRow, agreement

__all__ = ["AgreementReport", "AgreementRow", "agreement"]

"""Language models as judges: of spans, of translations, of atomic facts, of pairs. See `docs/judges.md`."""

from veriglot.detectors.judge.asking import Asking
from veriglot.detectors.judge.pairs import Confusion, confusion, gold_label, pair_label
from veriglot.detectors.judge.table import JUDGES, judge

__all__ = ["JUDGES", "Asking", "Confusion", "confusion", "gold_label", "judge", "pair_label"]

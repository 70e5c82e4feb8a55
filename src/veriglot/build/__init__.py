"""Makes the data of a study: queries, biographies, responses, and the account of their quality."""

from veriglot.build.planning import DESIGNS, MFAVA_SEEDS, Design, Planned, plan
from veriglot.build.prompts import STYLES, Style, answer_messages, biography_prompt, prompt_version
from veriglot.build.quality import Quality, QualityTally, quality, same_language
from veriglot.build.refusals import refusals_version, refuses
from veriglot.build.repetition import is_repetitive, repeated_share
from veriglot.build.responses import Budget, Respondent, budget, responses

__all__ = [
    "DESIGNS",
    "MFAVA_SEEDS",
    "STYLES",
    "Budget",
    "Design",
    "Planned",
    "Quality",
    "QualityTally",
    "Respondent",
    "Style",
    "answer_messages",
    "biography_prompt",
    "budget",
    "is_repetitive",
    "plan",
    "prompt_version",
    "quality",
    "refusals_version",
    "refuses",
    "repeated_share",
    "responses",
    "same_language",
]

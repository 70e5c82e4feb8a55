"""Makes the data of a study: queries, biographies, responses, and the account of their quality."""

from veriglot.build.planning import DESIGNS, MFAVA_SEEDS, Design, Planned, plan
from veriglot.build.prompts import STYLES, Style, answer_messages, biography_prompt, prompt_version
from veriglot.build.responses import Budget, Respondent, budget, responses

__all__ = [
    "DESIGNS",
    "MFAVA_SEEDS",
    "STYLES",
    "Budget",
    "Design",
    "Planned",
    "Respondent",
    "Style",
    "answer_messages",
    "biography_prompt",
    "budget",
    "plan",
    "prompt_version",
    "responses",
]

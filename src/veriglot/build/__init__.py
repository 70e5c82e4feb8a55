"""Makes the data of a study: queries, biographies, responses, and the account of their quality."""

from veriglot.build.answerability import AnswerabilityCheck, DetectorCheck, ModelCheck, Verdict
from veriglot.build.biographies import KANG_SAMPLES, Named, biographies, named_from
from veriglot.build.planning import DESIGNS, MFAVA_SEEDS, Design, Planned, plan
from veriglot.build.prompts import STYLES, Style, answer_messages, biography_languages, biography_prompt, prompt_version
from veriglot.build.quality import Quality, QualityTally, quality, same_language
from veriglot.build.queries import Author, Drafts, queries, rejected_path
from veriglot.build.references import Part, Reference, reference_from
from veriglot.build.refusals import refusals_version, refuses
from veriglot.build.repetition import is_repetitive, repeated_share
from veriglot.build.responses import Budget, Respondent, budget, responses
from veriglot.build.sifting import Rejection

__all__ = [
    "DESIGNS",
    "KANG_SAMPLES",
    "MFAVA_SEEDS",
    "STYLES",
    "AnswerabilityCheck",
    "Author",
    "Budget",
    "Design",
    "DetectorCheck",
    "Drafts",
    "ModelCheck",
    "Named",
    "Part",
    "Planned",
    "Quality",
    "QualityTally",
    "Reference",
    "Rejection",
    "Respondent",
    "Style",
    "Verdict",
    "answer_messages",
    "biographies",
    "biography_languages",
    "biography_prompt",
    "budget",
    "is_repetitive",
    "named_from",
    "plan",
    "prompt_version",
    "quality",
    "queries",
    "reference_from",
    "refusals_version",
    "refuses",
    "rejected_path",
    "repeated_share",
    "responses",
    "same_language",
]

"""Makes the data of a study: queries, biographies, responses, and the account of their quality."""

from veriglot.datasets.generation import rejected_path
from veriglot.datasets.prompts import (
    STYLES,
    Style,
    answer_messages,
    biography_languages,
    biography_prompt,
    prompt_version,
)
from veriglot.datasets.quality import (
    Quality,
    QualityTally,
    is_repetitive,
    quality,
    refusals_version,
    refuses,
    repeated_share,
)
from veriglot.datasets.queries import (
    KANG_SAMPLES,
    AnswerabilityCheck,
    Author,
    DetectorCheck,
    ModelCheck,
    NamedPerson,
    Rejection,
    biographies,
    person_from,
    queries,
)
from veriglot.datasets.references import Part, Reference, reference_from
from veriglot.datasets.responses import MFAVA_SEEDS, Budget, Design, Planned, Respondent, budget, plan, responses

__all__ = [
    "KANG_SAMPLES",
    "MFAVA_SEEDS",
    "STYLES",
    "AnswerabilityCheck",
    "Author",
    "Budget",
    "Design",
    "DetectorCheck",
    "ModelCheck",
    "NamedPerson",
    "Part",
    "Planned",
    "Quality",
    "QualityTally",
    "Reference",
    "Rejection",
    "Respondent",
    "Style",
    "answer_messages",
    "biographies",
    "biography_languages",
    "biography_prompt",
    "budget",
    "is_repetitive",
    "person_from",
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
]

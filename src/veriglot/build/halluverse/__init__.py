"""HalluVerse's set in any language: people's pages, factual sentences of them, an error in each, all of it checked."""

from veriglot.build.halluverse.choosing import Fact, FactReason, FactRejection, PageText, read_sentences
from veriglot.build.halluverse.drawing import BalancedDraw, block_sizes
from veriglot.build.halluverse.facts import Chooser, FactSettings, PageFacts, choose_facts, facts_path
from veriglot.build.halluverse.injecting import inject_pairs
from veriglot.build.halluverse.naming import names_person
from veriglot.build.halluverse.pages import LEAST_SENTENCES, Page, page_sentences, pages_of, unfit
from veriglot.build.halluverse.pairs import TYPES, Seed, make_pairs, read_facts, seeds_of
from veriglot.build.halluverse.ruled import RuledSet
from veriglot.build.halluverse.summary import (
    Example,
    LanguageSummary,
    Summary,
    load_summary,
    samples_of,
    summary_of,
    summary_path,
)
from veriglot.build.halluverse.wording import choose_prompt, facts_version

__all__ = [
    "LEAST_SENTENCES",
    "TYPES",
    "BalancedDraw",
    "Chooser",
    "Example",
    "Fact",
    "FactReason",
    "FactRejection",
    "FactSettings",
    "LanguageSummary",
    "Page",
    "PageFacts",
    "PageText",
    "RuledSet",
    "Seed",
    "Summary",
    "block_sizes",
    "choose_facts",
    "choose_prompt",
    "facts_path",
    "facts_version",
    "inject_pairs",
    "load_summary",
    "make_pairs",
    "names_person",
    "page_sentences",
    "pages_of",
    "read_facts",
    "read_sentences",
    "samples_of",
    "seeds_of",
    "summary_of",
    "summary_path",
    "unfit",
]

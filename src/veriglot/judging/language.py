"""The language of a sample: as given, or identified from the response, the question or the evidence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from veriglot.records import Task
from veriglot.records.languages import base_tag, find_language
from veriglot.text.facts import fact_languages
from veriglot.text.identification import identify
from veriglot.text.unicode import SCRIPT_SAMPLE, main_script, script_of, script_sample_of

if TYPE_CHECKING:
    from veriglot.records import Sample

__all__ = ["ResolvedLanguage", "evidence_notes", "has_fact_rules", "resolve_language", "text_language"]

_TAG = re.compile(r"[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*|[A-Za-z ()]+")
_EAST_ASIAN = frozenset({"Hani", "Hira", "Kana", "Hang", "Bopo"})  # parts of Hans, Hant, Jpan and Kore


@dataclass(frozen=True)
class ResolvedLanguage:
    """The language of a response.

    Attributes:
        tag: BCP 47 tag.
        script: ISO 15924 code, or None where the text has no letters.
        notes: how the language was identified, where it was not given.
    """

    tag: str
    script: str | None
    notes: tuple[str, ...] = ()


def resolve_language(sample: Sample) -> ResolvedLanguage | None:
    """The language of a sample's response; None where it is neither given nor identified.

    A tag that the language table does not hold is kept as it is: the script of the text is what counts.
    """
    if sample.language is not None:
        return _given_language(sample.language, sample.response)
    evidence = next((p.text for p in sample.evidence if p.text.strip()), "")
    script = script_of(sample.response)
    sources = [("response", sample.response), ("question", sample.question or ""), ("evidence", evidence)]
    if sample.task is Task.TRANSLATION:  # question and evidence are in the source's language there
        del sources[1:]
    for source, text in sources:
        identified = identify(text)
        # A bare number or name has the language of what surrounds it; a text in another script has not.
        if identified is not None and script in {None, script_of(text)}:
            return ResolvedLanguage(identified.tag, identified.script, (f"language:from_{source}",))
    return None


def _given_language(tag: str, response: str) -> ResolvedLanguage | None:
    """A given language in the script of the response, with a note where that is not the language's own."""
    if not _TAG.fullmatch(tag):
        return None
    known = find_language(tag)
    if known is None:
        return ResolvedLanguage(tag, script_of(response), ("language:unknown_tag",))
    script = main_script(response[:SCRIPT_SAMPLE])
    if script is None or script in _EAST_ASIAN or script == known.script:
        return ResolvedLanguage(known.tag, known.script)
    return ResolvedLanguage(known.tag, script, ("language:other_script",))


def text_language(text: str, given: str | None = None) -> str | None:
    """The BCP 47 tag of a text: `given` if there is one, else identified; None where it cannot be identified."""
    if given:
        return given
    identified = identify(text)
    return identified.tag if identified else None


def has_fact_rules(tag: str | None) -> bool:
    """Whether there are rules that part sentences of a language into facts."""
    return tag is not None and tag.partition("-")[0].lower() in fact_languages()


def evidence_notes(sample: Sample, resolved: ResolvedLanguage) -> tuple[str, ...]:
    """The note that evidence in another language gets: only names, numbers and similar words can be compared then.

    The evidence's language counts where it is given, and else its script.
    """
    given = {base_tag(passage.language).lower() for passage in sample.evidence if passage.language is not None}
    if given and base_tag(resolved.tag).lower() not in given:
        return ("evidence:other_language",)
    response_script = _mixed_script(sample.response[:SCRIPT_SAMPLE])
    evidence_script = _mixed_script(script_sample_of([passage.text for passage in sample.evidence]))
    if not given and None not in {response_script, evidence_script} and response_script != evidence_script:
        return ("evidence:other_script",)
    return ()


def _mixed_script(text: str) -> str | None:
    """The script of a text; those of Chinese and Japanese, which mix, as one."""
    script = main_script(text)
    return "Hani" if script in {"Hira", "Kana"} else script

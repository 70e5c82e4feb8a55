"""Which language a response is in: as given, or detected from the response, the question, or the evidence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from veriglot.detectors.grounding.transliteration import SAMPLE, beginning_of, main_script
from veriglot.errors import UnknownNameError
from veriglot.records import Task
from veriglot.records.languages import language
from veriglot.text import identify, script_of

if TYPE_CHECKING:
    from veriglot.records import Sample
    from veriglot.records.languages import Language

__all__ = ["Spoken", "evidence_notes", "spoken_in"]

_TAG = re.compile(r"[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*|[A-Za-z ()]+")
_EAST_ASIAN = frozenset({"Hani", "Hira", "Kana", "Hang", "Bopo"})  # parts of Hans, Hant, Jpan and Kore


@dataclass(frozen=True)
class Spoken:
    """A language as it counts here.

    Attributes:
        tag: BCP 47 tag.
        script: ISO 15924 code, or None where the text has no letters.
        notes: how it was found, where it was not given.
    """

    tag: str
    script: str | None
    notes: tuple[str, ...] = ()


def _as_written(known: Language, response: str) -> Spoken:
    """A given language in the script that the text is really in, with a note where it is not the language's own."""
    found = main_script(response[:SAMPLE])
    if found is None or found in _EAST_ASIAN or found == known.script:
        return Spoken(known.tag, known.script)
    return Spoken(known.tag, found, ("language:other_script",))


def evidence_notes(sample: Sample, spoken: Spoken) -> tuple[str, ...]:
    """What to say where the evidence is in another language: only names, numbers and close words can be compared then.

    The evidence's language counts where it is given, and else its script.
    """
    given = {_base(passage.language) for passage in sample.evidence if passage.language is not None}
    if given and _base(spoken.tag) not in given:
        return ("evidence:other_language",)
    ours = _letters(sample.response[:SAMPLE])
    theirs = _letters(beginning_of([passage.text for passage in sample.evidence]))
    if not given and None not in {ours, theirs} and ours != theirs:
        return ("evidence:other_script",)
    return ()


def _base(tag: str) -> str:
    try:
        return language(tag).base
    except UnknownNameError:
        return tag.split("-")[0].lower()


def _letters(text: str) -> str | None:
    """The script of a text; those of Chinese and Japanese, which mix, as one."""
    script = main_script(text)
    return "Hani" if script in {"Hira", "Kana"} else script


def spoken_in(sample: Sample) -> Spoken | None:
    """The language of a sample's response; None where it is not given and cannot be told.

    A tag that the language table does not hold is kept as it is: the script of the text is what counts.
    """
    if sample.language is not None:
        if not _TAG.fullmatch(sample.language):
            return None
        try:
            known = language(sample.language)
        except UnknownNameError:
            return Spoken(sample.language, script_of(sample.response), ("language:unknown_tag",))
        return _as_written(known, sample.response)
    evidence = next((p.text for p in sample.evidence if p.text.strip()), "")
    script = script_of(sample.response)
    sources = [("response", sample.response), ("question", sample.question or ""), ("evidence", evidence)]
    if sample.task is Task.TRANSLATION:  # question and evidence are in the source's language there
        del sources[1:]
    for source, text in sources:
        found = identify(text)
        # A bare number or name has the language of what surrounds it; a text in another script has not.
        if found is not None and script in {None, script_of(text)}:
            return Spoken(found.tag, found.script, (f"language:from_{source}",))
    return None

"""Named entity overlap: which entities of the response the evidence has too, by spaCy (Nan et al. 2021; kang, 2.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.provenance import signature
from veriglot.records import Status
from veriglot.scorers.against_evidence import AgainstEvidence, Unmeasured, language_of
from veriglot.scorers.agreement import agreement, checked_empty
from veriglot.scorers.overlap import Overlap, Value, checked_value
from veriglot.scorers.pipelines import Pipeline, entities, installed_pipelines, pipeline_for, pipeline_named
from veriglot.scorers.tokens import tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.records import Sample
    from veriglot.scorers.against_evidence import Measured

__all__ = ["EntityOverlap"]


class EntityOverlap(AgainstEvidence):
    """The share of the response's named entities that are entities of the evidence too, 0 to 1 (NEO in kang).

    Entities are compared as sets of texts, in the form of `veriglot.scorers.tokens.tokens`. They are found by a
    pipeline of spaCy that is installed for the language; where there is none, the status is `unsupported_language`. A
    response without entities has no precision: it is not scored, unless `empty` says what it is worth.

    Args:
        value: which of precision, recall and F1 is the number.
        pipeline: the name of an installed package or a folder, to be used whatever the language.
        labels: the kinds of entities that count, in the pipeline's own words; all where None.
        empty: the value of a response that has no entities, 0 to 1.

    Raises:
        UsageError: no such pipeline, or it recognises no entities; a setting that makes no sense.
    """

    name = "entity-overlap@2"

    def __init__(
        self,
        value: Value = "precision",
        pipeline: str | None = None,
        labels: Sequence[str] | None = None,
        empty: float | None = None,
    ) -> None:
        self.value, self.empty = checked_value(value), checked_empty(empty)
        self.pipeline = pipeline_named(pipeline) if pipeline is not None else None
        self.labels = None if labels is None else frozenset([labels] if isinstance(labels, str) else labels)

    @property
    def signature(self) -> str:
        """Name, settings, and every pipeline that may be asked."""
        asked = installed_pipelines() if self.pipeline is None else (self.pipeline,)
        return signature(
            scorer=self.name,
            value=self.value,
            labels=",".join(sorted(self.labels)) if self.labels is not None else None,
            empty=self.empty,
            pipelines=",".join(one.revision for one in asked) or "none",
        )

    def measure(self, sample: Sample) -> Measured | Unmeasured:
        """P, R and F1 of the sets of entities, with their sizes."""
        tag = language_of(sample)
        asked = [tag, *(passage.language or tag for passage in sample.evidence)]
        ours, *theirs = found = [self._pipeline(one) for one in asked]
        if ours is None or None in found:
            lacking = sorted(
                {one or "an unknown language" for one, has in zip(asked, found, strict=True) if has is None}
            )
            reason = f"no spaCy pipeline that recognises entities is installed for {', '.join(lacking)}"
            return Unmeasured(Status.UNSUPPORTED_LANGUAGE, reason)
        try:
            overlap = self._overlap(sample, ours, theirs, tag)
        except Exception as error:  # whatever a third party's component makes of a text
            return Unmeasured(Status.FAILED, f"the spaCy pipeline failed: {type(error).__name__}: {error}")
        return agreement(overlap, self.value, self.empty, "named entity", tag)

    def _overlap(self, sample: Sample, ours: Pipeline, theirs: Sequence[Pipeline | None], tag: str | None) -> Overlap:
        response = self._entities(ours, sample.response, tag)
        evidence: set[str] = set()
        for passage, pipeline in zip(sample.evidence, theirs, strict=True):
            evidence |= self._entities(pipeline, passage.text, passage.language or tag) if pipeline else set()
        return Overlap(len(response & evidence), len(response), len(evidence))

    def _pipeline(self, tag: str | None) -> Pipeline | None:
        return self.pipeline or (pipeline_for(tag) if tag else None)

    def _entities(self, pipeline: Pipeline, text: str, tag: str | None) -> set[str]:
        found = entities(pipeline, text)
        texts = {
            tokens(text[start:end], tag) for start, end, label in found if self.labels is None or label in self.labels
        }
        return {" ".join(words) for words in texts if words}

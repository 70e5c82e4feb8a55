"""What a sample holds, part by part: the measure of what a format can and cannot keep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.records import Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.records import Annotation, Sample

__all__ = ["features", "lost_between", "reads_as_clean"]


def features(sample: Sample) -> dict[str, Any]:
    """The parts that a sample has, by name; what it does not have is absent.

    Two samples that agree in a part have equal values for its name.
    """
    return {name: value for name, value in _parts(sample) if value not in (None, (), {}, "")}


def lost_between(sample: Sample, back: Sample) -> list[str]:
    """The parts of `sample` that `back` does not have alike."""
    there = features(back)
    return [name for name, value in features(sample).items() if there.get(name) != value]


def reads_as_clean(sample: Sample, back: Sample) -> bool:
    """Whether `back` says that an annotator found nothing where no annotator of `sample` says so.

    Formats that always have a list of spans make this of samples without labels, and of labels that they drop.
    """
    return _clean(back) > _clean(sample)


def _clean(sample: Sample) -> int:
    return sum(annotation.spans == () for annotation in sample.annotations)


def _parts(sample: Sample) -> Iterator[tuple[str, Any]]:
    generator, passages, annotations = sample.generator, sample.evidence, sample.annotations
    yield "id", sample.id
    yield "response", sample.response
    yield "task", None if sample.task is Task.OPEN else sample.task
    yield "language", sample.language
    yield "question", sample.question
    yield "evidence", "\n\n".join(passage.text for passage in passages)
    yield "boundaries between passages", tuple(p.text for p in passages) if len(passages) > 1 else None
    yield "ids of passages", tuple(p.id for i, p in enumerate(passages) if p.id != f"p{i}")
    yield "titles of passages", tuple(p.title for p in passages if p.title is not None)
    yield "addresses of passages", tuple(p.url for p in passages if p.url is not None)
    yield "languages of passages", tuple(p.language for p in passages if p.language is not None)
    yield "generator", generator and generator.name
    yield "settings of the generator", generator and _settings(generator)
    yield "meta", sample.meta
    if not annotations:
        return
    yield "annotators", tuple(a.annotator for a in annotations)
    yield "kinds of annotators", tuple(a.kind for a in annotations)
    yield "number of annotations", len(annotations) if len(annotations) > 1 else None
    yield "taxonomies", tuple(a.taxonomy for a in annotations)
    yield from _marks(annotations)


def _settings(generator: Any) -> tuple[Any, ...] | None:
    settings = (generator.revision, generator.seed, generator.settings or None)
    return settings if any(part is not None for part in settings) else None


def _marks(annotations: tuple[Annotation, ...]) -> Iterator[tuple[str, Any]]:
    spans = [span for a in annotations for span in a.spans or ()]
    units = [unit for a in annotations for unit in a.units or ()]
    yield "spans", tuple(tuple(sorted({(s.start, s.end) for s in a.spans})) for a in annotations if a.spans)
    yield "order and repeats of spans", _order(annotations)
    yield "types of spans", tuple((s.start, s.end, s.type) for s in spans if s.type is not None)
    yield "spans without a type", tuple((s.start, s.end) for s in spans if s.type is None)
    yield "annotations without spans", tuple(i for i, a in enumerate(annotations) if a.spans is None)
    yield "annotations with no span", tuple(i for i, a in enumerate(annotations) if a.spans == ())
    yield "confidences of spans", tuple(s.confidence for s in spans if s.confidence is not None)
    yield "texts of spans", tuple(s.text for s in spans if s.text is not None)
    yield "pointers of spans", tuple(s.evidence for s in spans if s.evidence)
    yield "units", tuple((u.start, u.end, u.label) for u in units)
    yield "probabilities of units", tuple(u.probability for u in units if u.probability is not None)
    yield "annotations with no unit", tuple(i for i, a in enumerate(annotations) if a.units == ())
    yield "ratings", tuple(sorted(((k, v) for a in annotations for k, v in a.ratings.items()), key=str))
    yield "flags", tuple(flag for a in annotations for flag in a.flags)


def _order(annotations: tuple[Annotation, ...]) -> tuple[Any, ...] | None:
    """The spans in their order, where it is not the sorted one, or where one occurs twice."""
    kept = []
    for annotation in annotations:
        spans = [(s.start, s.end, s.type) for s in annotation.spans or ()]
        if spans != sorted({(s[0], s[1]): s for s in spans}.values(), key=lambda s: s[:2]):
            kept.append(tuple(spans))
    return tuple(kept) or None

"""What the page needs of a sample, as JSON that can stand inside a `<script>` element.

Offsets stay code points here; the page converts them to its own UTF-16 units.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.errors import UsageError
from veriglot.records import taxonomies
from veriglot.report.direction import direction, language_name
from veriglot.report.excerpt import fits, misfits
from veriglot.report.palette import UNTYPED, slot_of
from veriglot.report.units import unit_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from veriglot.records import Pointer, Prediction, Sample, Span

__all__ = ["meanings", "sample_blocks", "script_safe"]

_SURROGATE = re.compile("[\ud800-\udfff]")
_encoder = msgspec.json.Encoder()


def sample_blocks(sample: Sample, prediction: Prediction) -> tuple[str, str]:
    """The two blocks of one sample: what the list shows and searches, and the rest.

    Raises:
        UsageError: the prediction is for another sample.
    """
    if sample.id != prediction.id:
        raise UsageError(
            f"The prediction for {prediction.id!r} was paired with the sample {sample.id!r}.",
            remedy="Give samples and predictions in the same order.",
        )
    return script_safe(_listed(sample, prediction)), script_safe(_shown(sample, prediction))


def script_safe(value: Any) -> str:
    """JSON without `<`, `>` and `&`, so that no text in it can end the element or open a comment.

    A lone surrogate, which no encoding can carry, becomes U+FFFD; offsets hold.
    """
    try:
        data = _encoder.encode(value)
    except UnicodeEncodeError:
        data = _encoder.encode(_encodable(value))
    data = data.replace(b"<", b"\\u003c").replace(b">", b"\\u003e").replace(b"&", b"\\u0026")
    return data.decode("utf-8")


def meanings() -> dict[str, str]:
    """What each known span type means, in words; where two taxonomies share a name, the first one's."""
    found: dict[str, str] = {}
    for table in taxonomies().values():
        for type_, meaning in table.types.items():
            found.setdefault(type_, meaning)
    return found


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return value


def _listed(sample: Sample, prediction: Prediction) -> dict[str, Any]:
    tag = prediction.language or sample.language
    types = Counter(span.type for span in prediction.spans or ())
    return {
        "id": sample.id,
        "tag": tag,
        "language": language_name(tag),
        "dir": direction(sample.response, tag),
        "task": sample.task.value,
        "status": prediction.status.value,
        "score": prediction.score,
        "types": [[type_ or UNTYPED, slot_of(type_), count] for type_, count in types.items()],
        "question": sample.question,
        "response": sample.response,
        "generator": sample.generator.name if sample.generator else None,
    }


def _shown(sample: Sample, prediction: Prediction) -> dict[str, Any]:
    passages = {passage.id or "": (index, len(passage.text)) for index, passage in enumerate(sample.evidence)}
    return {
        "detector": prediction.detector,
        "signature": prediction.signature,
        "reason": prediction.reason,
        "notes": list(prediction.notes),
        "problems": misfits(sample, prediction),
        "questionDir": direction(sample.question or "", sample.language),
        "evidence": [
            {
                "id": passage.id,
                "title": passage.title,
                "url": passage.url,
                "tag": passage.language,
                "dir": direction(passage.text, passage.language),
                "text": passage.text,
            }
            for passage in sample.evidence
        ],
        "layers": _layers(sample, prediction, passages),
        "words": [
            [word.start, word.end, word.confidence, _places(word.evidence, passages)] for word in prediction.words or ()
        ],
        "units": [[row.kind, row.score, row.text] for row in unit_rows(sample, prediction)],
    }


def _layers(sample: Sample, prediction: Prediction, passages: dict[str, tuple[int, int]]) -> list[dict[str, Any]]:
    """Whose marks can be shown: the detector's first, then those of each annotator who marked spans."""
    layers = [{"name": prediction.detector, "kind": "detector", "spans": _marks(prediction.spans or (), passages)}]
    layers += [
        {"name": note.annotator, "kind": note.kind.value, "spans": _marks(note.spans, passages)}
        for note in sample.annotations
        if note.spans is not None
    ]
    return layers


def _marks(spans: Sequence[Span], passages: dict[str, tuple[int, int]]) -> list[list[Any]]:
    return [
        [s.start, s.end, s.type or UNTYPED, slot_of(s.type), s.confidence, _places(s.evidence, passages)] for s in spans
    ]


def _places(pointers: Iterable[Pointer], passages: dict[str, tuple[int, int]]) -> list[list[int]]:
    """Pointers as passage index, start, end; those that lead nowhere are left to `misfits` to name."""
    found = []
    for pointer in pointers:
        index, length = passages.get(pointer.id, (0, None))
        if fits(pointer, length):
            found.append([index, pointer.start, pointer.end])
    return found

"""SQuAD and XQuAD JSON: questions on a paragraph with their answers (Rajpurkar et al. 2016, Artetxe et al. 2020).

Every answer stands in its paragraph, so it is right by construction: the sample carries an annotation with no spans.
The language is the one that the file's name says (`xquad.de.json`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError
from veriglot.formats.base import Format, Reading, Sniff, need, optional
from veriglot.formats.containers import BadRow, Record
from veriglot.formats.language import language_of_file
from veriglot.records import Annotation, Evidence, Kind, Sample, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.formats.containers import Head, Records

__all__ = []

_CLEAN = (Annotation(annotator="gold", kind=Kind.HUMAN, taxonomy="support", spans=()),)


class Squad(Format):
    """SQuAD and XQuAD JSON."""

    name = "squad"
    summary = "SQuAD and XQuAD: right answers with their paragraph"
    containers = ("json", "jsonl")
    writable = False

    def sniff(self, head: Head) -> Sniff | None:
        """By `data` with `paragraphs` inside."""
        if "data" in head.keys and '"paragraphs"' in head.text[:65536]:
            return Sniff(0.95, "the key `data` with `paragraphs` in it")
        return None

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:
        """The samples of a whole file, which is one JSON object."""
        for item in self._articles(data, line, reading):
            if isinstance(item, BadRow):
                raise item.error
            yield item

    def rows(self, records: Records, reading: Reading) -> Iterator[Sample | BadRow]:
        """One sample a question; a bad question does not end the file."""
        for record in records:
            if isinstance(record, BadRow):
                yield record
                continue
            try:
                yield from self._articles(record.data, record.line, reading)
            except InputError as error:
                yield reading.bad(record, error)

    def _articles(self, data: Any, line: int, reading: Reading) -> Iterator[Sample | BadRow]:
        language = language_of_file(reading)
        for a, article in enumerate(need(data, "data", list)):
            for p, paragraph in enumerate(need(article, "paragraphs", list, within=f"data[{a}]")):
                path = f"data[{a}].paragraphs[{p}]"
                for q, item in enumerate(need(paragraph, "qas", list, within=path)):
                    try:
                        sample = _sample(item, f"{path}.qas[{q}]", paragraph, article.get("title"), language, reading)
                    except InputError as error:
                        yield reading.bad(Record(line, item), error)
                        continue
                    if sample is not None:
                        yield sample


def _sample(item: Any, path: str, paragraph: Any, title: Any, language: str | None, reading: Reading) -> Sample | None:
    context = need(paragraph, "context", str)
    answers = need(item, "answers", list, within=path)
    if not answers:
        reading.report.notes["questions_without_answer"] += 1
        return None
    answer = need(answers[0], "text", str, within=f"{path}.answers[0]")
    start = optional(answers[0], "answer_start", int)
    id_ = need(item, "id", str, within=path)
    meta: dict[str, Any] = {"question_id": id_}
    if start is not None and context[start : start + len(answer)] == answer:
        meta["answer_in_evidence"] = [start, start + len(answer)]
    elif answer not in context:
        reading.repaired("answer_not_in_paragraph", "the answer does not stand in the paragraph", where=path)
        meta["answer_in_evidence"] = None
    others = [a["text"] for a in answers[1:] if isinstance(a, dict) and isinstance(a.get("text"), str)]
    if others:
        meta["other_answers"] = others
    return Sample(
        id=f"{language}:{id_}" if language else id_,
        response=answer,
        task=Task.QA,
        language=language,
        question=need(item, "question", str, within=path),
        evidence=(Evidence(context, title=title if isinstance(title, str) else None, language=language),),
        annotations=_CLEAN,
        meta=meta,
    )

"""Queries and references for the tests of `build`, made up."""

from __future__ import annotations

from veriglot.datasets.queries import Reference
from veriglot.records import Evidence, Sample

QUESTIONS = {
    "de": "Wann wurde die Mühle von Oberfeld gebaut?",
    "zh-Hans": "上田的磨坊是什么时候建的？",
    "ar": "متى بُنيت طاحونة الحقل الأعلى؟",
    "en": "When was the mill of Upper Field built?",
}
TEXTS = {
    "de": "Die Mühle von Oberfeld wurde 1731 von der Witwe Anna Kroll gebaut und brannte 1902 ab.",
    "zh-Hans": "上田的磨坊由寡妇安娜·克罗尔于1731年建造，1902年被烧毁。",
    "ar": "بُنيت طاحونة الحقل الأعلى عام 1731 على يد الأرملة آنا كرول واحترقت عام 1902.",
    "en": "The mill of Upper Field was built in 1731 by the widow Anna Kroll and burnt down in 1902.",
}


def queries(count: int, languages: tuple[str, ...] = ("de", "zh-Hans", "ar")) -> list[Sample]:
    """`count` queries in each language, in alternating languages."""
    return [
        Sample(
            f"{tag}-{number}",
            "",
            language=tag,
            question=f"{QUESTIONS[tag]} ({number})",
            evidence=(Evidence(TEXTS[tag], title="Mill"),),
            meta={"category": "mills"},
        )
        for number in range(count)
        for tag in languages
    ]


def reference(tag: str, number: int = 0) -> Reference:
    return Reference(f"{tag}-{number}", tag, TEXTS[tag], title=f"Mill {number}", url="https://example.org/mill")

"""Seeds: passages of clean text by article, read from any readable format in bounded memory.

Samples that share their passages (two queries on one reference) are one article. Of each language the articles with
the smallest hash of seed and text are kept, so that the choice depends on the texts alone, and not on their order.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from veriglot.build.prompts import known_language
from veriglot.formats.garbled import garbled
from veriglot.records import Task

if TYPE_CHECKING:
    from collections.abc import Iterable

    from veriglot.build.references import Reference
    from veriglot.records import Evidence, Sample

__all__ = ["Article", "Articles"]


@dataclass
class Article:
    """Clean passages in one language, with the questions that were asked about them.

    Attributes:
        id: of the first sample that has them.
        language: BCP 47 tag.
        passages: the evidence of every response that is made of it.
        questions: each once.
        task: of the first sample.
    """

    id: str
    language: str
    passages: tuple[Evidence, ...]
    task: Task
    questions: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """What it is about, as far as its heading says so: without an addition in brackets."""
        return (self.passages[0].title or "").partition(" (")[0].strip()

    @property
    def texts(self) -> tuple[str, ...]:
        """The passages as texts."""
        return tuple(passage.text for passage in self.passages)


class Articles:
    """Collects articles by language.

    Args:
        most: articles that are kept of a language.
        seed: of the choice between them.

    Attributes:
        read: articles that could be used, by language, those included that were not kept.
        left_out: samples that give no article, by reason.
    """

    def __init__(self, most: int, seed: int) -> None:
        self._most = most
        self._seed = seed
        self._kept: dict[str, dict[str, Article]] = defaultdict(dict)
        self._order: dict[str, list[tuple[int, str]]] = defaultdict(list)  # a heap; the largest hash is on top
        self._seen: dict[str, set[bytes]] = defaultdict(set)
        self._garbled: set[bytes] = set()
        self.read: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()

    def languages(self) -> list[str]:
        """The languages that have articles, sorted."""
        return sorted(self._order)

    def of(self, language: str) -> list[Article]:
        """The articles of a language, in an order that depends on the seed and their texts alone."""
        return [self._kept[language][key] for _, key in sorted(self._order[language], reverse=True)]

    def add_all(self, rows: Iterable[Sample]) -> None:
        """Add the passages of samples."""
        for row in rows:
            self.add(row)

    def add(self, sample: Sample) -> None:
        """Add the passages of one sample; its response, if it has one, is not looked at."""
        passages = tuple(p for p in sample.evidence if p.text.strip())
        reason = _unusable(sample, passages)
        if reason:
            self.left_out[reason] += 1
            return
        spoken = passages[0].language or sample.language or ""
        known = known_language(spoken)
        self._keep(
            Article(sample.id, known.tag if known else spoken, passages, sample.task), question=sample.question or ""
        )

    def add_reference(self, reference: Reference) -> None:
        """Add one article as `veriglot build articles` writes them."""
        known = known_language(reference.language)
        language = known.tag if known else reference.language
        self._keep(Article(reference.id, language, (reference.evidence,), Task.QA))

    def _keep(self, article: Article, question: str = "") -> None:
        digest = hashlib.sha256("\0".join([str(self._seed), article.language, *article.texts]).encode()).digest()
        key, language = digest.hex(), article.language
        if digest[:8] not in self._seen[language]:
            self._seen[language].add(digest[:8])
            if any(garbled(text) for text in article.texts):
                self._garbled.add(digest[:8])
            else:
                self._insert(article, digest, key)
        if digest[:8] in self._garbled:
            self.left_out["garbled evidence"] += 1
        elif question and key in self._kept[language] and question not in self._kept[language][key].questions:
            self._kept[language][key].questions.append(question)

    def _insert(self, article: Article, digest: bytes, key: str) -> None:
        order, kept = self._order[article.language], self._kept[article.language]
        self.read[article.language] += 1
        kept[key] = article
        heappush(order, (-int.from_bytes(digest[:8]), key))
        if len(order) > self._most:
            del kept[heappop(order)[1]]


def _unusable(sample: Sample, passages: tuple[Evidence, ...]) -> str:
    """Why a sample gives no article; empty where it does."""
    if not passages:
        return "no evidence"
    if "reference_garbled" in sample.meta:
        return "garbled evidence"
    spoken = {passage.language or sample.language for passage in passages}
    if None in spoken:
        return "no language"
    return "evidence in several languages" if len(spoken) > 1 else ""

"""Quality of responses, as kang measures it (Table 1), and what it leaves out: refusals, repetition, truncation.

Nothing is filtered here. Kang drops responses in the wrong language before it compares; this account says how many
there are, and they stay.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from veriglot.build.prompts import known_language
from veriglot.build.refusals import refuses
from veriglot.build.repetition import is_repetitive

if TYPE_CHECKING:
    from collections.abc import Iterable

    from veriglot.records import Sample

__all__ = ["Quality", "QualityTally", "quality"]


class Quality(msgspec.Struct, frozen=True):
    """Quality of the responses of one model in one language. Shares are 0 to 1, of all responses unless said otherwise.

    Attributes:
        responses: how many there are.
        words: mean words per response, in our segmentation (kang: tokens).
        sentences: mean sentences per response.
        detectable: share whose language could be identified (kang: Valid %).
        most_frequent_language: the tag that most of the detectable ones are in (kang: FLang.); None where none is.
        right_language: share of the detectable ones in the language that was asked for (kang: Acc.), in whatever
            script; None where none is detectable.
        refused: share that declines to answer, or that the provider held back.
        repetitive: share that repeats itself.
        truncated: share of those whose end is known (`ended`) that were cut at the token limit; None where none is.
        empty: share without a word.
        ended: responses of which it is known why they ended.
    """

    responses: int
    words: float
    sentences: float
    detectable: float
    most_frequent_language: str | None
    right_language: float | None
    refused: float
    repetitive: float
    truncated: float | None
    empty: float
    ended: int


class QualityTally:
    """Counts, response by response; memory does not grow with them."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._languages: Counter[str] = Counter()

    def add(self, sample: Sample) -> None:
        """Count one response. `language` is what was asked for; `meta.finish`, where it is there, why it ended."""
        counts = self._counts
        counts["responses"] += 1
        finish = sample.meta.get("finish")
        if isinstance(finish, str) and finish != "unknown":
            counts["ended"] += 1
            counts["truncated"] += finish == "length"
        words = _folded_words(sample.response, sample.language)
        counts["refused"] += finish == "filter" or refuses(sample.response, sample.language)
        if not words:
            counts["empty"] += 1
            return
        counts["words"] += len(words)
        counts["repetitive"] += is_repetitive(words, sample.response)
        self._add_language(sample)

    def _add_language(self, sample: Sample) -> None:
        from veriglot.text import identify, sentences

        self._counts["sentences"] += len(sentences(sample.response, sample.language))
        found = identify(sample.response)
        if found is not None:
            self._counts["detectable"] += 1
            self._languages[found.tag] += 1
            self._counts["right"] += sample.language is not None and same_language(found.tag, sample.language)

    def quality(self) -> Quality | None:
        """The account so far; None for no responses."""
        counts = self._counts
        total = counts["responses"]
        if not total:
            return None
        detectable, ended = counts["detectable"], counts["ended"]
        most = min(self._languages.items(), key=lambda item: (-item[1], item[0]), default=(None, 0))[0]
        return Quality(
            responses=total,
            words=counts["words"] / total,
            sentences=counts["sentences"] / total,
            detectable=detectable / total,
            most_frequent_language=most,
            right_language=counts["right"] / detectable if detectable else None,
            refused=counts["refused"] / total,
            repetitive=counts["repetitive"] / total,
            truncated=counts["truncated"] / ended if ended else None,
            empty=counts["empty"] / total,
            ended=ended,
        )


def quality(samples: Iterable[Sample]) -> dict[tuple[str, str], Quality]:
    """Quality by model and language asked for (`""` and `und` where a sample states none), as they first appear."""
    tallies: dict[tuple[str, str], QualityTally] = {}
    for sample in samples:
        model = sample.generator.name if sample.generator is not None else ""
        tallies.setdefault((model, sample.language or "und"), QualityTally()).add(sample)
    return {key: found for key, tally in tallies.items() if (found := tally.quality()) is not None}


def same_language(first: str, second: str) -> bool:
    """Whether two tags are one language, in whatever script: `zh-Hans` and `zh-Hant` are, `zh` and `yue` are not."""
    return _base(first) == _base(second)


def _base(tag: str) -> str:
    entry = known_language(tag)
    return entry.base if entry is not None else tag.partition("-")[0]


def _folded_words(text: str, language: str | None) -> list[str]:
    from veriglot.text import fold, words

    folded = fold(text)
    return [folded[start:end] for start, end in words(text, language)]

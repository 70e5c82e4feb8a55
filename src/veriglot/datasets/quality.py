"""Quality of responses, as Kang et al. measure it (Table 1), and what it leaves out: refusals, repetition, truncation.

Nothing is filtered here. Kang drops responses in the wrong language before it compares; this account says how many
there are, and they stay.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

from veriglot.plugins import packaged
from veriglot.records.languages import same_language, tag_of
from veriglot.records.settings import Record
from veriglot.text.identification import identify
from veriglot.text.normalization import fold, normalise
from veriglot.text.segmentation import folded_words, sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from veriglot.records import Sample

__all__ = ["Quality", "QualityTally", "is_repetitive", "quality", "refusals_version", "refuses"]


# Whether a response declines to answer: phrases per language, looked for near its beginning.


_LOOKED_AT = 240  # code points: who declines says so at once, and an answer may hold such words further on
_CLAUSE = r"(?:^|[^\w\s]|\n)\s*"  # before a clause stand punctuation, a quotation mark, a new line, or nothing
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


@cache
def _refusals() -> dict[str, Any]:
    return packaged(__package__, "refusals.toml", dict[str, Any])


def refusals_version() -> str:
    """Name and version of the phrases, such as `refusals@1`."""
    return f"refusals@{_refusals()['version']}"


def refuses(text: str, tag: str | None) -> bool:
    """Whether a response begins by declining or by saying that it does not know.

    A rule of thumb over phrases in the response's language and in English, in the first 240 code points; languages
    without phrases of their own (those of `refusals.toml` have them) are checked for the English ones only.

    Args:
        text: the response.
        tag: BCP 47 tag of the language that was asked in, or None.
    """
    return _pattern(tag_of(tag) or "en").search(_plain(text[:_LOOKED_AT])) is not None


@cache
def _pattern(tag: str) -> re.Pattern[str]:
    phrases = _refusals()["phrases"]
    return re.compile("|".join(map(_expression, dict.fromkeys((*phrases.get(tag, ()), *phrases["en"])))))


def _expression(phrase: str) -> str:
    stem, clause = phrase.endswith("*"), phrase.startswith("^")
    plain = _plain(phrase.removesuffix("*").removeprefix("^"))
    before = _CLAUSE if clause else "" if _UNSPACED.match(plain[0]) else r"(?<!\w)"
    after = "" if stem or _UNSPACED.match(plain[-1]) or not plain[-1].isalnum() else r"(?!\w)"
    return before + re.escape(plain) + after


def _plain(text: str) -> str:
    return fold(normalise(text).text)


# Whether a response goes round in circles.


_N = 4
_FEWEST = 8  # word 4-grams: in less text, one phrase that is said twice would decide
_MOST = 0.2  # share of repeated 4-grams from which a response counts as repetitive
_TIMES = 5  # how often in a row the same one to four words make a loop, however short the text
_LETTER_RUN = re.compile(r"(\w)\1{19}|(\S{1,4})\2{24}")


def repeated_share(words: Sequence[str]) -> float:
    """Share of the word 4-grams that stood in the text before, 0 to 1 (Welleck et al. 2020, `seq-rep-4`)."""
    total = len(words) - _N + 1
    return 1 - len({tuple(words[start : start + _N]) for start in range(total)}) / total if total > 0 else 0.0


def is_repetitive(words: Sequence[str], text: str) -> bool:
    """Whether a response repeats itself: a fifth of its 4-grams, one to four words five times in a row, or a letter.

    Args:
        words: the words of the response, folded.
        text: the response itself, for loops that no word boundary parts.
    """
    if len(words) - _N + 1 >= _FEWEST and repeated_share(words) >= _MOST:
        return True
    return any(_loops(words, period) for period in range(1, _N + 1)) or _LETTER_RUN.search(text) is not None


def _loops(words: Sequence[str], period: int) -> bool:
    """Whether `period` words stand `_TIMES` times in a row."""
    same = 0
    for first, second in zip(words, words[period:], strict=False):
        same = same + 1 if first == second else 0
        if same >= period * (_TIMES - 1):
            return True
    return False


class Quality(Record):
    """Quality of the responses of one model in one language. Shares are 0 to 1, of all responses unless said otherwise.

    Attributes:
        responses: how many there are.
        words: mean words per response, in our segmentation (Kang et al.: tokens).
        sentences: mean sentences per response.
        detectable: share whose language could be identified (Kang et al.: Valid %).
        most_frequent_language: the tag of most of the detectable ones (Kang et al.: FLang.); None where none is.
        right_language: share of the detectable ones that state which language was asked for, in that one (Kang et al.:
            Acc.), in whatever script; None where there are none.
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
        self._counts = Counter[str]()
        self._languages = Counter[str]()

    def add(self, sample: Sample) -> None:
        """Count one response. `language` is what was asked for; `meta.finish`, where it is there, why it ended."""
        counts = self._counts
        counts["responses"] += 1
        finish = sample.meta.get("finish")
        if isinstance(finish, str) and finish != "unknown":
            counts["ended"] += 1
            counts["truncated"] += finish == "length"
        words = folded_words(sample.response, sample.language)
        counts["refused"] += finish == "filter" or refuses(sample.response, sample.language)
        if not words:
            counts["empty"] += 1
            return
        counts["words"] += len(words)
        counts["repetitive"] += is_repetitive(words, sample.response)
        counts["sentences"] += len(sentences(sample.response, sample.language))
        language = identify(sample.response)
        if language is not None:
            counts["detectable"] += 1
            self._languages[language.tag] += 1
            if sample.language is not None:
                counts["asked"] += 1
                counts["right"] += same_language(language.tag, sample.language)

    def quality(self) -> Quality | None:
        """The account so far; None for no responses."""
        counts = self._counts
        total = counts["responses"]
        if not total:
            return None
        asked, ended = counts["asked"], counts["ended"]
        most = min(self._languages.items(), key=lambda item: (-item[1], item[0]), default=(None, 0))[0]
        means = ("words", "sentences", "detectable", "refused", "repetitive", "empty")
        return Quality(
            responses=total,
            most_frequent_language=most,
            right_language=counts["right"] / asked if asked else None,
            truncated=counts["truncated"] / ended if ended else None,
            ended=ended,
            **{name: counts[name] / total for name in means},
        )


def quality(samples: Iterable[Sample]) -> dict[tuple[str, str], Quality]:
    """Quality by model and language asked for (`""` and `und` where a sample states none), as they first appear."""
    tallies: dict[tuple[str, str], QualityTally] = {}
    for sample in samples:
        model = sample.generator.name if sample.generator is not None else ""
        tallies.setdefault((model, sample.language or "und"), QualityTally()).add(sample)
    return {key: result for key, tally in tallies.items() if (result := tally.quality()) is not None}

"""Quality of responses as in Kang et al. (Table 1); also refusals, repetition and truncation.

Nothing is filtered here. Kang et al. remove responses in the wrong language before the comparison; here they are
counted and stay.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

from veriglot.plugins import read_package_data
from veriglot.records.languages import same_language, tag_of
from veriglot.records.settings import Record
from veriglot.text.identification import identify
from veriglot.text.normalization import fold, normalise
from veriglot.text.segmentation import folded_words, sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from veriglot.records import Sample

__all__ = ["Quality", "QualityTally", "is_repetitive", "quality", "refusals_version", "refuses"]


# Whether a response is a refusal: phrases per language near its beginning.


_LOOKED_AT = 240  # code points: a refusal is at the beginning, and an answer may contain such words later
_CLAUSE = r"(?:^|[^\w\s]|\n)\s*"  # a clause begins after punctuation, a quotation mark, a new line, or nothing
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


@cache
def _refusals() -> dict[str, Any]:
    return read_package_data(__package__, "refusals.toml", dict[str, Any])


def refusals_version() -> str:
    """Name and version of the phrases, such as `refusals@1`."""
    return f"refusals@{_refusals()['version']}"


def refuses(text: str, tag: str | None) -> bool:
    """Whether a response begins with a refusal, or says that it does not know.

    A heuristic: phrases in the response's language and in English, in the first 240 code points. Languages without
    phrases in `refusals.toml` are checked only for the English ones.

    Args:
        text: the response.
        tag: BCP 47 tag of the requested language, or None.
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


# Whether a response is repetitive.


_N = 4
_FEWEST = 8  # minimum number of word 4-grams: in a shorter text one repeated phrase would decide
_MOST = 0.2  # share of repeated 4-grams from which a response counts as repetitive
_TIMES = 5  # number of repetitions of one to four words that make a loop, in texts of any length
_LETTER_RUN = re.compile(r"(\w)\1{19}|(\S{1,4})\2{24}")


def repeated_share(words: Sequence[str]) -> float:
    """Share of the word 4-grams that occurred before in the text, 0 to 1 (Welleck et al. 2020, `seq-rep-4`)."""
    total = len(words) - _N + 1
    return 1 - len({tuple(words[start : start + _N]) for start in range(total)}) / total if total > 0 else 0.0


def is_repetitive(words: Sequence[str], text: str) -> bool:
    """Whether a response repeats a fifth of its 4-grams, or one to four words or a letter five times in a row.

    Args:
        words: the words of the response, case-folded.
        text: the response, for loops without word boundaries.
    """
    if len(words) - _N + 1 >= _FEWEST and repeated_share(words) >= _MOST:
        return True
    return any(_loops(words, period) for period in range(1, _N + 1)) or _LETTER_RUN.search(text) is not None


def _loops(words: Sequence[str], period: int) -> bool:
    """Whether `period` words are repeated `_TIMES` times in a row."""
    same = 0
    for first, second in zip(words, words[period:], strict=False):
        same = same + 1 if first == second else 0
        if same >= period * (_TIMES - 1):
            return True
    return False


class Quality(Record):
    """Quality of the responses of one model in one language. Shares are 0 to 1, by default of all responses.

    Attributes:
        responses: number of responses.
        words: mean number of words per response, in our segmentation (Kang et al.: tokens).
        sentences: mean number of sentences per response.
        detectable: share with a detectable language (Kang et al.: Valid %).
        most_frequent_language: the most frequent tag of the detectable ones (Kang et al.: FLang.); None without any.
        right_language: of the detectable ones with a requested language, the share in that language (Kang et al.:
            Acc.), in any script; None without any.
        refused: share of refusals, by the model or by its provider.
        repetitive: share of repetitive responses.
        truncated: share cut at the token limit, of the responses with a known end (`ended`); None without any.
        empty: share without a word.
        ended: responses with a known reason for their end.
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
    """Counts, response by response, in constant memory."""

    def __init__(self) -> None:
        self._counts = Counter[str]()
        self._languages = Counter[str]()

    def add(self, sample: Sample) -> None:
        """Count one response. `language` is the requested one; `meta.finish` is the reason for its end, if known."""
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
        """The measures so far; None without responses."""
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
    """Quality by model and requested language (`""` and `und` if a sample has none), in order of appearance."""
    tallies: dict[tuple[str, str], QualityTally] = {}
    for sample in samples:
        model = sample.generator.name if sample.generator is not None else ""
        tallies.setdefault((model, sample.language or "und"), QualityTally()).add(sample)
    return {key: result for key, tally in tallies.items() if (result := tally.quality()) is not None}

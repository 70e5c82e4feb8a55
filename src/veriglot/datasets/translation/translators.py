"""Translators and aligners by name, the protocol of translators, markers in texts, and checks of translations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from veriglot.datasets.generation import LanguageModel
from veriglot.datasets.prompts import load_prompts, prompt_version
from veriglot.datasets.quality import is_repetitive, refusals_version, refuses
from veriglot.datasets.silver.check import reply_fault
from veriglot.datasets.silver.injection import bare
from veriglot.formats.tags import with_tags
from veriglot.llm.client import Answer, Client, Request, Settings, ask_all
from veriglot.plugins import Entry, Registry, read_package_data
from veriglot.records.languages import find_language, same_language
from veriglot.records.settings import Record
from veriglot.signatures import digest, signature
from veriglot.storage.checkpoint import Usage
from veriglot.text.identification import identify
from veriglot.text.noise import garbled
from veriglot.text.normalization import fold
from veriglot.text.segmentation import folded_words, words
from veriglot.text.unicode import script_shares, trimmed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from veriglot.datasets.translation.projection import Aligner, Range

__all__ = [
    "FunctionTranslator",
    "ModelTranslator",
    "Translation",
    "TranslationRequest",
    "Translator",
    "Unfit",
    "add_markers",
    "load_aligner",
    "load_translator",
    "read_translation",
]


# Translators and aligners by name; entry points `veriglot.translators` and `.aligners` add those of other packages.


_TRANSLATORS = Registry(
    "translator", "veriglot.translators", read_package_data(__package__, "translators.toml", dict[str, Entry])
)

_ALIGNERS = Registry("aligner", "veriglot.aligners", read_package_data(__package__, "aligners.toml", dict[str, Entry]))


def load_translator(name: str, **options: Any) -> Translator:
    """A translator by name, such as `hf:FOLDER`; `ModelTranslator` is the one for models over `llm`.

    Raises:
        UnknownNameError: no such translator, or no such option.
        MissingExtraError: its packages are not installed.
        WeightsError: the model cannot be loaded.
        UsageError: an option is invalid or missing.
    """
    translator: Translator = _TRANSLATORS.make(name, **options)
    return translator


def load_aligner(name: str, **options: Any) -> Aligner:
    """An aligner by name: `auto`, `lexical` or `vectors`.

    Raises:
        UnknownNameError: no such aligner, or no such option.
        MissingExtraError: its packages are not installed.
        WeightsError: the encoder's weights are missing.
    """
    aligner: Aligner = _ALIGNERS.make(name, **options)
    return aligner


# The protocol of translators: texts in, translations out, each with its problem if any.


class TranslationRequest(Record):
    """A text to translate.

    Attributes:
        text: never empty.
        source, target: BCP 47 tags.
        marked: whether it has markers such as `<1>` and `</1>` that must come back.
        attempt: number of the attempt, from 1; a translator with random draws gives another translation for each.
    """

    text: str
    source: str
    target: str
    marked: bool = False
    attempt: int = 1


class Translation(Record, omit_defaults=True):
    """The result for a text.

    Attributes:
        text: the translation; the unusable reply otherwise.
        unfit: why it is unusable, or None: `no_text` (empty reply), `refused` (the model declines), `held_back` (by its
            provider), `cut` (at the token limit), `unsupported_language`, `no_reply` (the call failed; a later run may
            try again).
        detail: the reason as a sentence.
        usage: its cost, if any.
    """

    text: str
    unfit: str | None = None
    detail: str = ""
    usage: Usage = Usage()


class Unfit(Record):
    """Why a reply is unusable.

    Attributes:
        reason: that of the `Translation`; about markers `markers_lost` (one is missing), `markers_added` (one is
            repeated or new), `markers_unpaired` (closed before it is opened), `markers_empty` (around no word),
            `markers_in_text` (the original has text like a marker); about the text `no_text`, `untranslated`,
            `wrong_script`, `wrong_language`, `loops`, `garbled`, `too_short`, `too_long`.
        detail: the reason as a sentence.
    """

    reason: str
    detail: str


class Translator(Protocol):
    """Translates texts. A user's class with these four members is a translator too.

    Attributes:
        signature: one line that identifies the translator, without secrets. An interrupted run continues only with the
            same one.
        by_sentence: whether it needs sentences; others get whole texts. It must split longer texts itself, or return
            `cut`.
        varies: whether another attempt may give another translation.
    """

    signature: str
    by_sentence: bool
    varies: bool

    def translate(self, wanted: Sequence[TranslationRequest]) -> Sequence[Translation]:
        """One translation per text, in order.

        Args:
            wanted: any number, of any pairs of languages.

        Raises:
            VeriglotError: an error that every further text would have too, such as a spending limit.
        """
        ...


class FunctionTranslator:
    """A function of text, source and target as a translator.

    Args:
        function: gives the translation of one text; the tags are BCP 47. An empty text means that there is none.
        name: identifies the function; change its version with every change.
        by_sentence: as `Translator`.
    """

    varies = False

    def __init__(self, function: Callable[[str, str, str], str], name: str, *, by_sentence: bool = True) -> None:
        self._function = function
        self.by_sentence = by_sentence
        self.signature = signature(translator="function", name=name)

    def translate(self, wanted: Sequence[TranslationRequest]) -> list[Translation]:
        """As `Translator`."""
        results = []
        for item in wanted:
            text = self._function(item.text, item.source, item.target)
            results.append(Translation(text, None if text.strip() else "no_text"))
        return results


_TAG = re.compile(r"</?\d{1,3}>")
_HEADED = re.compile(
    r"\A\s*\**[^\n:：]{0,60}(?:translat|traduc|übersetz|перевод|翻译|翻譯|ترجمة)[^\n:：]{0,60}\**[:：]\**\s*\n",
    re.IGNORECASE,
)


class ModelTranslator:
    """Asks a language model for translations of whole texts.

    Args:
        client: for the calls.
        model: its name on the server.
        settings: generation settings; greedy by default.
        seed: of the calls; another attempt has the next one.
        jobs: calls at the same time.
        by_sentence: ask sentence by sentence, without context; more reliable with small models.
    """

    varies = True

    def __init__(
        self,
        client: Client,
        model: str,
        *,
        settings: Settings | None = None,
        seed: int | None = 0,
        jobs: int = 8,
        by_sentence: bool = False,
    ) -> None:
        self._client = client
        self._model = LanguageModel(model, settings or Settings(temperature=0.0), seed)
        self._jobs = jobs
        self.by_sentence = by_sentence
        self.signature = signature(
            translator="llm",
            model=model,
            prompt=prompt_version("translation"),
            refusals=refusals_version(),
            settings=digest([msgspec.json.encode(self._model.settings, order="deterministic")])[:16],
            seed=seed,
            client=client.signature,
        )

    def translate(self, wanted: Sequence[TranslationRequest]) -> list[Translation]:
        """As `Translator`; many at a time.

        Raises:
            ModelError: an error that every further call would have too.
        """
        answers = ask_all(self._client, (self.request(item) for item in wanted), jobs=self._jobs)
        return [_read(item, answer) for item, answer in zip(wanted, answers, strict=True)]

    def request(self, wanted: TranslationRequest) -> Request:
        """The request for a text."""
        prompt = load_prompts("translation")["marked" if wanted.marked else "plain"].format(
            source=_named(wanted.source),
            target=_named(wanted.target),
            text=wanted.text,
            count=len(_TAG.findall(wanted.text)) // 2,
        )
        return self._model.asked(prompt.strip(), attempt=wanted.attempt)


def _read(wanted: TranslationRequest, answer: Answer) -> Translation:
    if answer.reply is None:
        assert answer.error is not None
        return Translation("", "no_reply", answer.error.message)
    cost, answer_text = answer.reply.usage(answer.request), answer.reply.answer.strip()
    text = answer_text if wanted.text[:1] in "\"“„«「'" else bare(_HEADED.sub("", answer_text, count=1))
    fault = reply_fault(text, answer.reply.finish)
    if fault is not None:
        return Translation(answer_text, fault.reason, fault.detail, cost)
    declines = any(refuses(_TAG.sub("", text), tag) for tag in (wanted.target, wanted.source))
    if declines and not any(refuses(_TAG.sub("", wanted.text), tag) for tag in (wanted.source, "en")):
        return Translation(answer_text, "refused", f"the model declines: {answer_text[:120]!r}", cost)
    return Translation(text, None, "", cost)


def _named(tag: str) -> str:
    entry = find_language(tag)
    return f"{entry.name} ({entry.tag})" if entry else tag


# Plausibility of a translation: right language and script, complete, of a plausible length, no loop.


_MOST_FOREIGN = 0.5  # share of letters in other scripts: names and formulas are in every text
_LONG = 60  # letters from which a language can be detected
_LONG_DENSE = 25
_DENSE = {"Jpan", "Kore", "Hans", "Hant", "Thai", "Laoo", "Khmr", "Mymr"}  # more content per code point, or few spaces
_WEIGHT = {"Jpan": 2.2, "Hans": 3.0, "Hant": 3.0, "Kore": 2.0}  # equivalent code points of an alphabet
_SURE = 0.9
_RATIO = 3.5  # maximum ratio of lengths, in equivalent code points of an alphabet
_SLACK = 24
_FEW = 4  # words: a name may be the same in both languages


def read_translation(
    reply: Translation, plain: str, marks: int, source: str, target: str
) -> tuple[str, tuple[Range, ...]] | Unfit:
    """The translation in a reply with the ranges of its marks, or why it is unusable.

    Args:
        reply: of a translator.
        plain: the text, without markers.
        marks: number of markers in the sent text.
        source, target: BCP 47 tags.
    """
    if reply.unfit is not None:
        return Unfit(reply.unfit, reply.detail)
    text = reply.text.strip()
    result = remove_markers(text, marks) if marks else (text, ())
    if isinstance(result, Unfit):
        return result
    return implausibility(plain, result[0], source, target) or result


def implausibility(source: str, translation: str, source_tag: str, target_tag: str) -> Unfit | None:
    """The problem of a translation; None if there is none.

    A heuristic, tolerant on purpose: it rejects what cannot be a translation, not bad translations.
    """
    if not any(char.isalnum() for char in translation):
        return Unfit("no_text", "there is no word in it")
    if fold(source).split() == fold(translation).split() and len(words(source, source_tag)) > _FEW:
        if not same_language(source_tag, target_tag):
            return Unfit("untranslated", "it is the text itself")
        return None
    broken = garbled(translation)
    if broken is not None and garbled(source) is None:
        return Unfit("loops" if broken == "looping" else "garbled", broken.replace("_", " "))
    if _repeats(translation, target_tag) and not _repeats(source, source_tag):
        return Unfit("loops", "it repeats itself")
    return _wrong_tongue(translation, target_tag, source) or _wrong_length(source, translation, source_tag, target_tag)


def _repeats(text: str, tag: str) -> bool:
    return is_repetitive(folded_words(text, tag), text)


def _wrong_tongue(text: str, tag: str, source: str) -> Unfit | None:
    entry = find_language(tag)
    if entry is None:
        return None
    shares = script_shares(text)
    letters = sum(char.isalpha() for char in text)
    foreign = sum(share for script, share in shares.items() if script not in entry.scripts)
    of_source = sum(share for script, share in script_shares(source).items() if script not in entry.scripts)
    if shares and foreign > _MOST_FOREIGN and (letters >= _SLACK or of_source <= _MOST_FOREIGN):
        return Unfit("wrong_script", f"{foreign:.0%} of its letters are not in the script of {entry.name}")
    if letters < (_LONG_DENSE if entry.script in _DENSE else _LONG):
        return None
    identified = identify(text)
    if identified is None or identified.confidence < _SURE or same_language(identified.tag, tag, similar=True):
        return None
    return Unfit("wrong_language", f"it is in {identified.tag}, not in {entry.tag}")


def _wrong_length(source: str, text: str, source_tag: str, target_tag: str) -> Unfit | None:
    before, after = _size(source, source_tag), _size(text, target_tag)
    if after > _RATIO * before + _SLACK:
        return Unfit("too_long", f"{len(text)} code points for {len(source)}")
    if before > _RATIO * after + _SLACK:
        return Unfit("too_short", f"{len(text)} code points for {len(source)}")
    return None


def _size(text: str, tag: str) -> float:
    entry = find_language(tag)
    return len(text.strip()) * (_WEIGHT.get(entry.script, 1.0) if entry is not None else 1.0)


# Marks as markers in the text that a translator preserves: `<1>...</1>`, and parsing of those that come back.
#
# The names are numbers, because letters are transliterated into other scripts and words are translated. Changed
# brackets, digits and spaces are tolerated; missing or repeated markers are not.


_ESCAPED = re.compile(r"&(lt|gt|#60|#62);", re.IGNORECASE)
_MARKER = re.compile(r"[<＜‹〈]\s*([/／\\]?)\s*(\d{1,3})\s*[>＞›〉]")
_LIKE = re.compile(r"[<＜‹〈]\s*[/／\\]?\s*\d{1,3}\s*[>＞›〉]|&lt;\s*/?\s*\d{1,3}\s*&gt;", re.IGNORECASE)
_OPEN_ENDED = re.compile(r"[<＜]\s*[/／]?\s*\d{0,3}\s*\Z")


def add_markers(text: str, marks: Sequence[Range]) -> str | Unfit:
    """A text with markers around ranges of it, which may be nested or cross each other.

    Args:
        text: any text.
        marks: half-open code point ranges; the first is number 1.
    """
    if _LIKE.search(text):
        return Unfit("markers_in_text", "the text holds what looks like a marker")
    return with_tags(text, ((*mark, f"<{number}>", f"</{number}>") for number, mark in enumerate(marks, 1)))


def remove_markers(text: str, count: int) -> tuple[str, tuple[Range, ...]] | Unfit:
    """A translation of a text with `count` marks without its markers, and the ranges of the marks.

    It is unfit unless each marker came back once, in pairs, around a word.
    """
    text = _ESCAPED.sub(lambda match: "<" if match[1].lower() in {"lt", "#60"} else ">", text)
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    parts = []
    length = at = 0
    for match in _MARKER.finditer(text):
        piece = text[at : match.start()]
        parts.append(piece)
        length += len(piece)
        at = match.end()
        number = int(match[2]) - 1
        edges = ends if match[1] else starts
        if number in edges or not 0 <= number < count:
            return Unfit("markers_added", f"{match[0]!r} was added or repeated")
        edges[number] = length
    parts.append(text[at:])
    whole = "".join(parts)
    if _OPEN_ENDED.search(whole):
        return Unfit("markers_lost", "it ends inside a marker")
    missing = [number + 1 for number in range(count) if number not in starts or number not in ends]
    if missing:
        lost = f"markers that did not come back in pairs: {len(missing)} of {count}, the first is {missing[0]}"
        return Unfit("markers_lost", lost)
    return _tidied(whole, [(starts[number], ends[number]) for number in range(count)])


def _tidied(text: str, spans: Sequence[Range]) -> tuple[str, tuple[Range, ...]] | Unfit:
    """Without the double spaces that markers leave, and with spans that neither begin nor end with a space."""
    chars: list[str] = []
    positions = []  # of each code point in the remaining text
    for char in text:
        positions.append(len(chars))
        if char == " " and (not chars or chars[-1].isspace()):
            continue
        chars.append(char)
    positions.append(len(chars))
    tidy = "".join(chars).rstrip()
    ranges = []
    for start, end in spans:
        if end < start:
            return Unfit("markers_unpaired", "a marker is closed before it is opened")
        first, last = trimmed(tidy, min(positions[start], len(tidy)), min(positions[end], len(tidy)))
        if not any(char.isalnum() for char in tidy[first:last]):
            return Unfit("markers_empty", "a marker encloses no word")
        ranges.append((first, last))
    return tidy, tuple(ranges)

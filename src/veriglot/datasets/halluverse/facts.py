"""Pages, their sentences, and the factual ones among them, chosen by a model or by rule (HalluVerse25, 3.1)."""

from __future__ import annotations

import ast
import re
from contextlib import suppress
from difflib import SequenceMatcher
from itertools import chain
from typing import TYPE_CHECKING, Unpack

import msgspec

from veriglot.datasets.generation import LanguageModel, RunOptions, UsageFields, generate, run_conversations
from veriglot.datasets.prompts import filled, prompt_version
from veriglot.datasets.quality import refusals_version, refuses
from veriglot.datasets.queries import LIST_MARK, Reference, listed
from veriglot.datasets.silver.injection import seed_fault
from veriglot.records import Sample
from veriglot.records.settings import Record, StrictRecord
from veriglot.storage.checkpoint import FailedRow, Tally
from veriglot.text.noise import garbled
from veriglot.text.normalization import fold
from veriglot.text.segmentation import folded_words, sentences, words
from veriglot.wikipedia.wikidata import Person, without_parentheses

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from veriglot.llm.client import Client, Reply, Request

__all__ = [
    "CHOICE_VERSION",
    "Chooser",
    "FactSettings",
    "Page",
    "PageFacts",
    "PageText",
    "choose_facts",
    "facts_path",
    "pages_of",
]


# Whether a sentence names the person of its page, also in languages that inflect names or write without spaces.


_WITHOUT_SPACES = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]+")  # in such names the family name or the given name can be used alone
_SHORTEST = 3  # letters of a part of a name: shorter ones are initials and particles
_PREFIX = 4  # common letters of an inflected form and the name
_ENDING = 2  # letters that an inflection removes: Толстой, Толстого
_PAIR = 2


def names_person(sentence: str, names: Iterable[str], language: str) -> bool:
    """Whether a sentence has one of the names, or a part of one, such as the family name, with any inflection."""
    folded, word_list = fold(sentence), folded_words(sentence, language)
    return any(_stands(part, folded, word_list) for name in names for part in _parts(name))


def _parts(name: str) -> Iterator[str]:
    """The parts of a name that can be used alone; if the script has case, not `von` or `de la`."""
    cased = any(char.isupper() for char in name)
    for part in re.split(r"[\W\d_]+", name):
        min_length = _PAIR if _WITHOUT_SPACES.search(part) else _SHORTEST
        if len(part) >= min_length and (not cased or not part[0].islower()):
            yield fold(part)


def _stands(part: str, folded: str, word_list: list[str]) -> bool:
    if _WITHOUT_SPACES.search(part):
        pairs = (part[at : at + _PAIR] for at in range(len(part) - 1)) if _HAN.fullmatch(part) else ()
        return part in folded or any(pair in folded for pair in pairs)
    shared = max(_PREFIX, len(part) - _ENDING)
    return part in word_list or (
        len(part) >= _PREFIX and any(part in word or word[:shared] == part[:shared] for word in word_list)
    )


# Pages about people, and their sentences; which pages are too short for facts (HalluVerse25, 3.1).


_FEWEST_WORDS_OF_A_SENTENCE = 4
_ENDS = frozenset(".!?…。！？؟۔।॥։።๚")
_CLOSERS = "\"'”’»」』）)]›"
_NOTE = re.compile(r"\[(?:\d{1,3}|[a-z]|\w{1,8} \d{1,3})\]")
_WITHOUT_MARKS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]$")  # Thai, Lao, Burmese, Khmer


class Page(Record):
    """A page about a person.

    Attributes:
        reference: the page.
        person: the person; None if unknown.
    """

    reference: Reference
    person: Person | None = None

    @property
    def id(self) -> str:
        """The id of the page."""
        return self.reference.id

    @property
    def language(self) -> str:
        """BCP 47 tag."""
        return self.reference.language

    @property
    def sentences(self) -> list[str]:
        """Sentences of at least four words with a proper end, in order; no headings, lists or note marks."""
        result = []
        for line in _NOTE.sub("", self.reference.text).splitlines():
            for start, end in sentences(line, self.language):
                sentence = line[start:end].strip()
                bare = sentence.rstrip(_CLOSERS)
                ends = bare[-1:] in _ENDS or _WITHOUT_MARKS.search(bare) is not None
                if ends and len(words(sentence, self.language)) >= _FEWEST_WORDS_OF_A_SENTENCE:
                    result.append(sentence)
        return result

    @property
    def group(self) -> str:
        """Common id of pages about one person: the person's item, or else the page's own id."""
        return self.person.id if self.person is not None else str(self.reference.meta.get("item") or self.id)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the person on the page, the best first."""
        known = self.person.names.get(self.language, "") if self.person is not None else ""
        return tuple(dict.fromkeys(filter(None, (known, without_parentheses(self.reference.title)))))


def pages_of(rows: Iterable[Reference | FailedRow], people: Mapping[str, Person] | None) -> Iterator[Page | FailedRow]:
    """The pages with their people, matched by Wikidata's item, or by language and title.

    Args:
        rows: pages as `veriglot dataset articles` writes them, read with `part="text"`.
        people: by item; None if there are none.
    """
    titled = {(tag, title): person for person in (people or {}).values() for tag, title in person.titles.items()}
    for row in rows:
        if isinstance(row, FailedRow):
            yield row
            continue
        item = str(row.meta.get("item") or "")
        yield Page(row, (people or {}).get(item) or titled.get((row.language, row.title)))


# Checks of chosen sentences: on the page, whole, distinct, in its language, with the name of a person.


_FEWEST_WORDS_OF_A_FACT = 5
_MOST_CODE_POINTS = 500
_NEAR = 0.9  # minimum share of common words, in order: a model may omit or correct some
_SAME = 0.85  # minimum share of common words of two sentences with the same content

_AROUND = ' \t,"“”„«»「」『』*'


class _Fact(Record):
    """A factual sentence of a page."""

    id: str
    text: str
    index: int = msgspec.field(name="place")
    exact: bool = True


class _FactRejection(Record, omit_defaults=True):
    """A rejected sentence, or one that is missing."""

    reason: str
    detail: str
    text: str = ""
    attempt: int = 1


class _Listed(Record):
    """Schema of the model's answer."""

    sentences: tuple[str, ...]


def read_sentences(reply: Reply) -> list[str]:
    """The sentences of a reply: JSON as requested, a bare list, a list of Python, or one a line; empty for none."""
    texts = listed(reply, _Listed)
    if texts is not None:
        return _clean(texts)
    answer = reply.answer.strip()
    with suppress(ValueError, SyntaxError):
        literal = ast.literal_eval(answer)
        if isinstance(literal, list) and all(isinstance(sentence, str) for sentence in literal):
            return _clean(literal)

    return _clean([LIST_MARK.sub("", line) for line in answer.splitlines() if LIST_MARK.match(line)])


def _clean(texts: list[str]) -> list[str]:
    return [sentence for sentence in (" ".join(text.split()).strip(_AROUND) for text in texts) if sentence]


class PageText:
    """A page split into sentences, for matching the chosen ones; with the facts so far.

    Args:
        page: the page.
        named: whether a sentence must name the person of the page.
    """

    def __init__(self, page: Page, *, named: bool = True) -> None:
        self._page = page
        self._named = named and bool(page.names)
        self.sentences = page.sentences
        self._words = [folded_words(sentence, page.language) for sentence in self.sentences]
        self.facts: list[_Fact] = []
        self.rejections: list[_FactRejection] = []

    def take(self, sentence: str, attempt: int = 1) -> None:
        """Put a chosen sentence into `facts`, or into `rejections`."""
        location = self._place(sentence)
        if isinstance(location, str):
            self.reject(location, _DETAILS[location], sentence, attempt)
        elif fault := self._fault(location[0]):
            self.reject(*fault, sentence, attempt)
        else:
            self.facts.append(_Fact(f"{self._page.id}/{len(self.facts) + 1}", self.sentences[location[0]], *location))

    def reject(self, reason: str, detail: str, text: str, attempt: int, times: int = 1) -> None:
        """Record why sentences are not facts; `times` is their number."""
        self.rejections += [_FactRejection(reason, detail, text, attempt)] * times

    def chosen(self, asked: int) -> PageFacts:
        """The page with its facts, the number of requested ones, and rejections."""
        page = self._page
        return PageFacts(
            page.id, page.language, page.group, page.reference.title, len(self.sentences), None, asked,
            tuple(self.facts), tuple(self.rejections),
        )  # fmt: skip

    def _place(self, sentence: str) -> tuple[int, bool] | str:
        """Index of the sentence on the page, and whether it is literal; or the reason why it is not on the page."""
        wanted = folded_words(sentence, self._page.language)
        if wanted in self._words:
            return self._words.index(wanted), True
        best, nearest = 0.0, 0
        matcher = SequenceMatcher(None, autojunk=False)
        matcher.set_seq2(wanted)
        for index, own in enumerate(self._words):
            matcher.set_seq1(own)
            if matcher.real_quick_ratio() >= _NEAR and matcher.quick_ratio() >= _NEAR and matcher.ratio() > best:
                best, nearest = matcher.ratio(), index
        if best >= _NEAR:
            return nearest, False
        line = f" {' '.join(wanted)} "
        if wanted and any(line in f" {' '.join(own)} " for own in self._words):
            return "part"
        return "several" if wanted and line in f" {' '.join(chain.from_iterable(self._words))} " else "unsupported"

    def _fault(self, index: int) -> tuple[str, str] | None:
        language, text = self._page.language, self.sentences[index]
        if any(index == fact.index or self._alike(index, fact.index) for fact in self.facts):
            return "duplicate", "it was chosen before"
        if len(self._words[index]) < _FEWEST_WORDS_OF_A_FACT or len(text) > _MOST_CODE_POINTS:
            fewest, most = _FEWEST_WORDS_OF_A_FACT, _MOST_CODE_POINTS
            return "length", f"it has fewer than {fewest} words, or more than {most} code points"
        if len(sentences(text, language)) > 1:
            return "several", _DETAILS["several"]
        if self._named and not names_person(text, self._page.names, language):
            return "subject", f"it does not name {self._page.names[0]}"
        fault = seed_fault(text, Sample(self._page.id, text, language=language))
        return None if fault is None else (fault.reason, fault.detail)

    def _alike(self, first: int, other: int) -> bool:
        matcher = SequenceMatcher(None, self._words[first], self._words[other], autojunk=False)
        return matcher.quick_ratio() >= _SAME and matcher.ratio() >= _SAME


_DETAILS = {
    "unsupported": "the page does not say it in these words",
    "part": "it is a part of a sentence of the page",
    "several": "it is more than one sentence",
}


CHOICE_VERSION = "1"  # raise it when other sentences are taken


class FactSettings(StrictRecord):
    """Which pages are used, and how many of their sentences.

    Attributes:
        count: facts for each page (HalluVerse25: five).
        min_sentences: minimum number of sentences of a page (HalluVerse25: 20).
        known: whether a page must be about one of the given people.
        named: whether a sentence must name the person of its page.
    """

    count: int = 5
    min_sentences: int = msgspec.field(name="least", default=20)
    known: bool = False
    named: bool = True

    def unfit(self, page: Page) -> PageFacts | None:
        """The row of a page that is not used for facts; None for a page that is."""
        count = len(page.sentences)
        reasons = {
            "nobody": self.known and page.person is None,
            "garbled": garbled(page.reference.text) is not None,
            "short": count < self.min_sentences,
        }
        reason = next((reason for reason, applies in reasons.items() if applies), None)
        row = PageFacts(page.id, page.language, page.group, page.reference.title, count, reason)
        return None if reason is None else row


class Chooser(LanguageModel):
    """The model that chooses sentences.

    Attributes:
        attempts: maximum number of calls for a page until there are enough facts; at least 1.
    """

    attempts: int = 2

    def request(self, page: Page, count: int, taken: Sequence[str] = (), attempt: int = 1) -> Request:
        """The request for sentences of a page, as JSON."""
        shown = "\n".join(f"- {sentence}" for sentence in taken)
        prompt = filled(
            "facts",
            "choose",
            page.language,
            count=count,
            name=page.names[0] if page.names else "somebody",
            page=page.reference.text,
            taken="\n\n" + filled("facts", "taken", page.language, sentences=shown) if taken else "",
        )
        return self.asked(prompt, attempt=attempt, answer=_Listed)


class PageFacts(UsageFields):
    """The result for one page with its cost; a row of the step.

    Attributes:
        id: of the page.
        language: BCP 47 tag.
        group: the person's item, or the page's id.
        title: of the page.
        sentences: number of its sentences.
        unfit: why the page was not used (`nobody`, `short`, `garbled`); None if it was.
        asked: number of requested facts.
        facts: accepted facts.
        rejections: rejected sentences.
    """

    id: str
    language: str
    group: str
    title: str
    sentences: int
    unfit: str | None = None
    asked: int = 0
    facts: tuple[_Fact, ...] = ()
    rejections: tuple[_FactRejection, ...] = ()


def facts_path(output: Path) -> Path:
    """Path of the facts of a data set."""
    return output.with_name(output.name + ".facts.jsonl")


def choose_facts(
    output: Path,
    pages: Iterable[Page | FailedRow],
    chooser: Chooser,
    client: Client,
    settings: FactSettings,
    *,
    jobs: int = 8,
    **run: Unpack[RunOptions],
) -> Tally:
    """Let a model choose factual sentences of every page, and check them.

    Args:
        output: JSON lines of `PageFacts`.
        pages: the same ones in the same order at each call.
        chooser: the model.
        client: for the calls.
        settings: which pages, and how many sentences.
        jobs: calls at the same time.
        run: see `RunOptions`.

    Returns:
        Counts of the pages. A page whose calls failed is a failed row; a page without facts is not.

    Raises:
        UsageError: the output was begun with other settings.
        ModelError: an error that every further call would have too.
    """
    return generate(
        output,
        pages,
        lambda rows: run_conversations(client, rows, lambda page: _chosen(page, chooser, settings), jobs=jobs),
        signature=client.signature,
        settings={
            **chooser.described,
            "attempts": chooser.attempts,
            "facts": settings,
            "prompt": prompt_version("facts"),
            "check": f"choice@{CHOICE_VERSION},{refusals_version()}",
        },
        **run,
    )


def _chosen(
    page: Page, chooser: Chooser, settings: FactSettings
) -> Generator[tuple[Request, ...], list[Reply], PageFacts]:
    """The dialogue about one page; see `run_conversations`."""
    unfit = settings.unfit(page)
    if unfit is not None:
        return unfit
    text = PageText(page, named=settings.named)
    for attempt in range(1, chooser.attempts + 1):
        wanted = settings.count - len(text.facts)
        (reply,) = yield (chooser.request(page, wanted, [fact.text for fact in text.facts], attempt),)
        _take(text, reply, wanted, attempt)
        if len(text.facts) == settings.count:
            break
    return text.chosen(settings.count)


def _take(text: PageText, reply: Reply, wanted: int, attempt: int) -> None:
    """Add the sentences of a reply, and record rejected and missing ones."""
    chosen = read_sentences(reply)
    if reply.finish == "filter":
        text.reject("held_back", "the provider withheld the reply", "", attempt, wanted)
    elif not chosen:
        reason, detail = "unreadable", "the reply has no sentences"
        if reply.finish == "length":
            reason, detail = "cut", "the reply was cut at its length; raise max_tokens"
        elif refuses(reply.answer, "en"):
            reason, detail = "refused", "the model declines"
        text.reject(reason, detail, reply.answer, attempt, wanted)
    else:
        for sentence in chosen[:wanted]:
            text.take(sentence, attempt)
        for sentence in chosen[wanted:]:
            text.reject("number", f"only {wanted} sentences were asked for", sentence, attempt)
        fewer = f"{wanted} sentences were asked for, but the reply has {len(chosen)}"
        text.reject("number", fewer, "", attempt, wanted - len(chosen))

"""Error injection by a model: prompts and tasks, replies parsed as edits of the passage, and named violations."""

from __future__ import annotations

import re
from collections import Counter
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Literal

from veriglot.datasets.generation import LanguageModel, with_language
from veriglot.datasets.prompts import filled, load_prompts
from veriglot.datasets.quality import is_repetitive, refuses
from veriglot.datasets.silver.check import Change, Edited, Violation, changes_of, reply_fault
from veriglot.formats.tags import parse_tags
from veriglot.llm.client import Reply, Request, split_thoughts
from veriglot.records import Sample, Span
from veriglot.records.languages import same_language
from veriglot.records.settings import Record
from veriglot.records.taxonomy import taxonomy
from veriglot.signatures import digest
from veriglot.storage.checkpoint import FailedRow
from veriglot.text.identification import identify
from veriglot.text.noise import garbled
from veriglot.text.normalization import fold
from veriglot.text.segmentation import folded_words, sentences, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


__all__ = ["Injector", "Order", "Task", "bare", "read_reply", "seed_fault", "tasks"]


# Word-level differences between an edited text and the original.


_BRIDGE = 2  # tokens between a deletion and the insertion that replaces it


def differing(original: str, text: str, type_: str, language: str) -> list[Span] | None:
    """The spans of `text` whose words or signs differ from the original; None if a deletion has no new text."""
    before, after = _tokens(original, language), _tokens(text, language)
    matcher = SequenceMatcher(None, [original[s:e] for s, e in before], [text[s:e] for s, e in after], autojunk=False)
    spans = []
    for start, end in _joined(matcher):
        if start == end:
            return None
        spans.append(Span(after[start][0], after[end - 1][1], type_))
    return spans


def _joined(matcher: SequenceMatcher[str]) -> Iterator[tuple[int, int]]:
    """The differing ranges of tokens of the edited text; a deletion is joined with the insertion next to it."""
    pending: tuple[int, int] | None = None
    for operation, _, _, start, end in matcher.get_opcodes():
        if operation == "equal":
            continue
        gone = start == end or (pending is not None and pending[0] == pending[1])
        if pending is not None and gone and start - pending[1] <= _BRIDGE:
            pending = (pending[0], end)
        else:
            if pending is not None:
                yield pending
            pending = (start, end)
    if pending is not None:
        yield pending


def _tokens(text: str, language: str) -> list[tuple[int, int]]:
    """Words, and every other single character that is not white space."""
    tokens = []
    read = 0
    for start, end in [*words(text, language), (len(text), len(text))]:
        tokens += [(offset, offset + 1) for offset in range(read, start) if not text[offset].isspace()]
        if start < end:
            tokens.append((start, end))
        read = end
    return tokens


def trim_unchanged_words(original: str, text: str, change: Change, language: str) -> Change:
    """The change without unchanged words at its edges, so that it marks only the error."""
    old = [
        (change.old_start + s, change.old_start + e)
        for s, e in words(original[change.old_start : change.old_end], language)
    ]
    new = [(change.start + s, change.start + e) for s, e in words(text[change.start : change.end], language)]
    if not old or not new:
        return change

    def same(nth: int) -> bool:
        return fold(text[slice(*new[nth])]) == fold(original[slice(*old[nth])])

    most = min(len(new), len(old)) - 1
    head = next((nth for nth in range(most) if not same(nth)), most)
    tail = next((nth for nth in range(most - head) if not same(-nth - 1)), most - head)
    start, old_start = (new[head][0], old[head][0]) if head else (change.start, change.old_start)
    end, old_end = (new[-tail - 1][1], old[-tail - 1][1]) if tail else (change.end, change.old_end)
    between = (original[change.old_start : old_start], original[old_end : change.old_end])
    if between != (text[change.start : start], text[end : change.end]):
        return change  # the text outside would differ from the original
    return Change(start, end, old_start, old_end, change.type)


REPLACING = frozenset({"entity", "relation"})
_HARMLESS = frozenset({"capitalised", "misspelt", "malformed"})  # faults of a tag with a clear position
_FENCE = re.compile(r"\A```[a-z]*\s*\n(.*?)\n?```\s*\Z", re.DOTALL)
_LABEL = re.compile(
    r"\A\s*(?:\**(?:edited(?: (?:text|passage|sentence))?|passage|output|answer)\**\s*[:：]\**)\s*", re.I
)
_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»", "「": "」", "'": "'"}
_TYPED = re.compile(r"</?(?:entity|relation|sentence)_error>", re.IGNORECASE)


def read_reply(
    passage: str, reply: Reply, type_: str, *, form: Form, taxonomy: str, language: str
) -> Edited | Violation:
    """The passage with the errors of a reply.

    Outside errors the text is exactly that of the passage: letters in another case or form are restored; any other
    difference is a violation: `no_text` (nothing, or no word), `refused` (the model declines), `held_back` (by its
    provider), `cut` (at the token limit), `tags` (broken tags, so that the marked text is unclear), `type` (another
    type than requested), `overlap` (nested or crossing tags), `deleted` (an unmarked deletion), `nothing` (no error was
    inserted), `outside` (unmarked text differs from the passage).

    Args:
        passage: the text that the model got.
        reply: its reply.
        type_: the requested type of error.
        form: the requested form of the reply.
        taxonomy: of the type.
        language: BCP 47 tag of the passage.
    """
    answer = reply.answer.strip()
    fault = reply_fault(answer, reply.finish)
    if fault is not None:
        return fault
    if form == "plain" and refuses(answer, language):  # everything else is compared with the passage
        return Violation("refused", f"the model declines: {answer[:120]!r}")
    faults = []
    for candidate in _candidates(answer, passage):
        read = _tagged if form == "tags" else _plain
        result = read(passage, candidate, type_, taxonomy, language)
        if isinstance(result, Edited):
            return result
        faults.append(result)
    first = faults[0]
    if first.reason in {"outside", "nothing", "deleted"} and refuses(answer, language):
        return Violation("refused", f"the model declines: {answer[:120]!r}")
    return first


def bare(text: str) -> str:
    """A reply without typical additions of models: reasoning, code fences, a label, quotation marks."""
    text = split_thoughts(text)[1].strip()
    fenced = _FENCE.match(text)
    text = fenced[1].strip() if fenced else text
    text = _LABEL.sub("", text, count=1).strip()
    if len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and text[0] not in text[1:-1] and text[-1] not in text[1:-1]:
        text = text[1:-1].strip()
    return text


def _candidates(answer: str, passage: str) -> Iterator[str]:
    """The reply, and variants without a sentence of the model's own before or after the passage."""
    quoted = passage[:1] in _QUOTES and answer[:1] == passage[:1]
    whole = answer if quoted else bare(answer)
    yield whole
    first, _, rest = whole.partition("\n")
    headed = first.rstrip().endswith((":", "：")) and rest.strip()
    if headed:
        yield bare(rest)
    body = bare(rest) if headed else whole
    most = passage.count("\n\n") + 1
    parts = body.split("\n\n")
    if len(parts) > most:
        yield "\n\n".join(parts[:most]).strip()


def _tagged(passage: str, answer: str, type_: str, taxonomy_name: str, language: str) -> Edited | Violation:
    parsed = parse_tags(answer, tuple(taxonomy(taxonomy_name).types), edits="mark")
    bad = next((tag for tag in parsed.faults if tag.fault not in _HARMLESS), None)
    if bad is not None and bad.fault == "empty":
        return Violation("deleted", f"the tag {bad.raw!r} encloses nothing")
    if bad is not None:
        return Violation("tags", f"the tag {bad.raw!r} is invalid: {bad.fault}")
    if not parsed.spans:
        return Violation("nothing", f"nothing is marked in {answer[:120]!r}")
    wrong = next((span for span in parsed.spans if span.type != type_), None)
    if wrong is not None:
        return Violation("type", f"{wrong.type!r} is marked where {type_!r} was asked for")
    if any(span.end > other.start for span, other in zip(parsed.spans, parsed.spans[1:], strict=False)):
        return Violation("overlap", "tags are inside each other, or cross")
    return _put(passage, parsed.text, parsed.spans, language)


def _plain(passage: str, answer: str, type_: str, taxonomy_name: str, language: str) -> Edited | Violation:
    text = _TYPED.sub("", answer).strip()
    exchanging = taxonomy_name == "halluverse"  # none of its types adds a sentence; some of FAVA's do
    more = len(sentences(text, language)) > max(1, len(sentences(passage, language)))
    if text.count("\n") > passage.count("\n") or (exchanging and more):
        return Violation("outside", f"the reply says more than the edited text: {text[:120]!r}")
    if fold(text) == fold(passage):
        return Violation("nothing", "the reply does not change the passage")
    spans = differing(passage, text, type_, language)
    if spans is None:
        return Violation("deleted", "something was removed, and nothing replaces it")
    if not spans:
        return Violation("nothing", "the reply does not change the passage")
    if type_ == "sentence":
        return Edited.of(passage, [(Change(0, len(text), 0, len(passage), type_), text)])
    return _put(passage, text, spans, language)


def _put(passage: str, text: str, spans: Sequence[Span], language: str) -> Edited | Violation:
    """The passage with the spans of another text, if the rest of that text is the same."""
    changes = changes_of(passage, text, spans) or changes_of(fold(passage), fold(text), spans)
    if not changes:
        return Violation("outside", f"what is not marked is not the passage: {text[:120]!r}")
    exact = Edited.of(passage, [(change, text[change.start : change.end]) for change in changes])
    narrow = [
        trim_unchanged_words(passage, exact.text, change, language) if change.type in REPLACING else change
        for change in exact.changes
    ]
    return Edited(passage, exact.text, tuple(narrow))


# The prompts of injection: texts of `prompts/injection.toml` with filled slots.


Form = Literal["tags", "plain"]


def _below(text: str) -> str:
    return f"\n\n{text.strip()}"


def _examples(examples: list[tuple[str, str]], form: Form) -> str:
    if form == "tags":
        return "\n".join(f"- {before}\n  {after}" for before, after in examples)
    types = tuple(taxonomy("fava").types)
    return "\n".join(
        f"Original: {before}\nEdited: {parse_tags(after, types, edits='mark').text}\n" for before, after in examples
    ).strip()


# Seed passages: the texts for the errors, which should be correct themselves.


Order = Literal["given", "shuffled"]

_FEWEST_WORDS = 3


class Task(Record):
    """A seed with its planned errors.

    Attributes:
        id: of the seed.
        seed: has a language.
        types: the types of errors: all of them one after another (fava), or one a sentence, in turn (HalluVerse25);
            empty for a row that stays clean.
    """

    id: str
    seed: Sample
    types: tuple[str, ...]


def tasks(
    seeds: Iterable[Sample | FailedRow],
    types: Sequence[str],
    *,
    turns: bool,
    order: Order = "given",
    clean: float = 0.0,
    seed: int | None = None,
) -> Iterator[Task | FailedRow]:
    """The planned errors of each seed; memory is one counter per language.

    Args:
        seeds: samples with a response, which is the passage, or with evidence from which a passage can be made.
        types: of the errors, in the order of the rounds.
        turns: one type a sentence, random and balanced: each run of as many sentences of a language as there are types
            has each once (HalluVerse25, 3.2); otherwise every passage gets all of them (mFAVA, 3.1).
        order: `shuffled` draws the order of the rounds for each passage.
        clean: the share of the seeds, 0 to 1, that stay without errors; exact for each language, to one seed.
        seed: for all random draws.

    Yields:
        A `Task`, or a `FailedRow` for an unusable seed: without text, or with a language that is neither given nor
        detectable. There is no default of English.
    """
    counts = Counter[str]()
    dirty = Counter[str]()
    for row in seeds:
        usable = row if isinstance(row, FailedRow) else _usable(row)
        if isinstance(usable, FailedRow):
            yield usable
            continue
        tag = usable.language or ""
        number = counts[tag]
        counts[tag] += 1
        if int((number + 1) * clean + 1e-9) > int(number * clean + 1e-9):
            yield Task(usable.id, usable, ())
            continue
        drawn = _drawn(types, f"{tag} {seed}", dirty[tag]) if turns else tuple(types)
        if not turns and order == "shuffled":
            drawn = _shuffled(types, f"{usable.id} {seed}")
        dirty[tag] += 1
        yield Task(usable.id, usable, drawn)


def _drawn(types: Sequence[str], key: str, turn: int) -> tuple[str, ...]:
    """The types of the sentences of a passage, in a cycle, from draw number `turn` on."""
    block, offset = divmod(turn, len(types))
    first = _shuffled(types, f"{key} {block}")
    return (*first[offset:], *first[:offset])


def _shuffled(types: Sequence[str], key: str) -> tuple[str, ...]:
    return tuple(sorted(types, key=lambda type_: digest([key, type_])))


def _usable(seed: Sample) -> Sample | FailedRow:
    evidence = any(passage.text.strip() for passage in seed.evidence)
    if not seed.response.strip() and not evidence:
        return FailedRow("the seed has neither a response nor evidence", field="evidence", id=seed.id)
    texts = (seed.response, seed.question or "", *(passage.text for passage in seed.evidence))
    return with_language(seed, texts, "the seed states no language, and none was recognised in its text")


def seed_fault(passage: str, seed: Sample, finish: str = "stop") -> Violation | None:
    """Why a passage is not a seed; None if it is.

    Reasons: `no_text`, `refused`, `held_back`, `cut`, `language`, `repetitive`, `garbled`, `markup`.

    Args:
        passage: the text.
        seed: the sample of the passage, with its language.
        finish: why its reply ended.
    """
    tag = seed.language or ""
    passage_words = folded_words(passage, tag)
    fault = reply_fault(passage, finish)
    if fault is not None:
        return fault
    if len(passage_words) < _FEWEST_WORDS:
        return Violation("no_text", f"the passage holds fewer than {_FEWEST_WORDS} words")
    if refuses(passage, tag):
        return Violation("refused", f"the model declines: {passage[:120]!r}")
    if "<" in passage and ">" in passage:
        return Violation("markup", "the passage holds angle brackets, which cannot be told from tags")
    if garbled(passage) is not None:
        return Violation("garbled", "the passage loops, or holds unknown characters")
    if is_repetitive(passage_words, passage):
        return Violation("repetitive", "the passage repeats itself")
    identified = identify(passage)
    if identified is not None and not same_language(identified.tag, tag, similar=True):
        return Violation("language", f"the passage is in {identified.tag}, and should be in {tag}")
    return None


class Injector(LanguageModel, kw_only=True):
    """The model that inserts errors into passages, with its settings.

    Attributes:
        taxonomy: `fava` or `halluverse`.
        types: of the errors; empty for all of the taxonomy.
        form: how the model marks its changes: with `tags`, or not at all: it writes only the edited text (`plain`), and
            the spans are the differences. HalluVerse uses `plain`.
        attempts: maximum number of calls for errors of one type until one is accepted; at least 1.
    """

    taxonomy: str = "fava"
    types: tuple[str, ...] = ()
    form: Form = "tags"
    attempts: int = 2

    @property
    def per_sentence(self) -> bool:
        """Whether each sentence is a row with one error (HalluVerse25), not each passage a row with many."""
        return self.taxonomy == "halluverse"

    @property
    def all_types(self) -> tuple[str, ...]:
        """The types of inserted errors, in the order of the rounds."""
        return self.types or tuple(taxonomy(self.taxonomy).types)

    def request(self, task: Task, edited: Edited, type_: str, attempt: int) -> Request:
        """The request for errors of one type in a passage."""
        prompts = load_prompts("injection")
        error_type = prompts[self.taxonomy][type_]
        ways = {"replace": ("replace",), "insert": ("insert",), "either": ("replace", "insert")}[error_type["how"]]
        shows = error_type.get("reference") or error_type["how"] == "insert"
        reference = task.seed.evidence_text.strip() if shows else ""
        marked = ", ".join(f'"{text}"' for text in dict.fromkeys(span.text for span in edited.spans))
        prompt = filled(
            "injection",
            self.form,
            task.seed.language or "",
            name=type_,
            what=error_type["what"],
            examples=_examples(error_type["examples"], self.form),
            how="\n".join(prompts[way] for way in ways),
            reference=_below(prompts["reference"].format(reference=reference)) if reference else "",
            marked=_below(prompts["marked"].format(parts=marked)) if marked else "",
            passage=edited.text,
        )
        return self.asked(prompt, attempt=attempt)

    def passage_request(self, seed: Sample, attempt: int) -> Request:
        """The request for a passage from the evidence: an answer to the question, or without one a retelling."""
        question, reference = seed.question or "", seed.evidence_text
        key = "answer" if question.strip() else "retell"
        prompt = filled("injection", key, seed.language or "", question=question, reference=reference)
        return self.asked(prompt, attempt=attempt)

"""Language models as judges of spans, atomic facts, whole responses, translations, and pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args

from veriglot.detectors.judge.answers import (
    Quote,
    excerpt,
    label_probabilities,
    list_probability,
    locate,
    read_answer,
    resolve_overlaps,
    vote_marks,
)
from veriglot.detectors.judge.base import Case, Judge, Outcome, load_prompt, tagged
from veriglot.errors import UnknownNameError, UsageError
from veriglot.judging.base import DIGITS, NotScored, has_fact_rules, no_words, text_language
from veriglot.judging.classifiers import group_units
from veriglot.judging.nli import Claim
from veriglot.llm.client import Answer, AnswerError, Reply, Request, estimate_tokens, schema_of
from veriglot.records import Evidence, JudgedUnit, Sample, Span, Status, Word
from veriglot.records.languages import language_name
from veriglot.records.settings import Record
from veriglot.records.taxonomy import taxonomy as find_taxonomy
from veriglot.text.facts import facts
from veriglot.text.segmentation import sentences, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    Opinion = tuple[bool, float | None, str]  # verdict, probability if known, and reason


__all__ = []


_Range = tuple[int, int]
_Passages = list[tuple[str, str]]

_MIN_WINDOW = 64  # tokens; a smaller window hardly contains a sentence
_OVERLAP = 4  # windows overlap by a quarter


class _WindowedJudge(Judge):
    """A judge that can split long evidence into windows.

    Args:
        window: most tokens of evidence in a question, as counted by `llm.estimate_tokens`; None for all evidence in one
            question (status `too_long` if the model refuses it).
        options: of `Judge`.
    """

    def __init__(self, *, window: int | None = None, **options: Any) -> None:
        if window is not None and window < _MIN_WINDOW:
            raise UsageError(f"A window of {window} tokens is too small.", remedy=f"Set it to {_MIN_WINDOW} or more.")
        self._window = window
        super().__init__(**options)

    def _parts(self) -> dict[str, object]:
        return {"window": self._window}

    def _windows(self, case: Case) -> list[_Passages]:
        return evidence_windows(case.sample.evidence, self._window)


def evidence_windows(evidence: Sequence[Evidence], size: int | None) -> list[_Passages]:
    """The passages, with their titles, in windows of at most `size` tokens.

    A passage that fits is never split; a longer one is cut between sentences, or between words if a sentence is too
    long, and neighbouring pieces overlap by a quarter.
    """
    if size is None:
        return [[(passage.title or "", passage.text) for passage in evidence]]
    windows: list[_Passages] = []
    room = 0
    for passage in evidence:
        title = passage.title or ""
        for low, high in _pieces(passage.text, max(size // 2, size - estimate_tokens(title)), passage.language):
            piece = passage.text[low:high]
            cost = estimate_tokens(title) + estimate_tokens(piece)
            if not windows or cost > room:
                windows.append([])
                room = size
            windows[-1].append((title, piece))
            room -= cost
    return windows


def _pieces(text: str, size: int, language: str | None) -> list[_Range]:
    if estimate_tokens(text) <= size:
        return [(0, len(text))]
    atoms: list[_Range] = []  # sentences, or the words of long ones, each with the text up to the next
    for low, high in _covering(sentences(text, language), 0, len(text)):
        if estimate_tokens(text[low:high]) <= max(1, size // _OVERLAP):
            atoms.append((low, high))
        else:
            inside = [(low + start, low + end) for start, end in words(text[low:high], language)]
            atoms += _covering(inside, low, high)
    ends = list(accumulate((estimate_tokens(text[low:high]) for low, high in atoms), initial=0))
    groups = group_units(list(pairwise(ends)), size, overlap=size // _OVERLAP)
    return [(atoms[first][0], atoms[last - 1][1]) for first, last in groups]


def _covering(ranges: list[_Range], start: int, end: int) -> list[_Range]:
    """The ranges, each extended to the beginning of the next; together they cover `[start, end)`."""
    starts = [start, *(low for low, _ in ranges[1:])]
    return list(zip(starts, [*starts[1:], end], strict=True))


class _Quoted(Quote, kw_only=True):
    type: str


class _SpansAnswer(Record):
    spans: tuple[_Quoted, ...]


@dataclass(frozen=True)
class _SpansOpinion:
    """One reply: located marks, the probability that there are any, and notes."""

    marks: tuple[Span, ...]
    probability: float | None
    notes: tuple[str, ...]


class SpanJudge(_WindowedJudge):
    """`judge:spans`: unsupported spans with types, quoted by the model and located in the response.

    Args:
        taxonomy: the taxonomy of the types; its descriptions of them are part of the prompt.
        options: of `_WindowedJudge` and `Judge`.
    """

    kind = "spans"
    fields = frozenset({"language", "types", "question", "evidence", "response"})

    def __init__(self, *, taxonomy: str = "fava", **options: Any) -> None:
        self.taxonomy = taxonomy
        entry = find_taxonomy(taxonomy)
        self._types = {type_: meaning for type_, meaning in entry.types.items() if type_ not in entry.clean}
        super().__init__(**options)

    def _default_threshold(self) -> float:
        """0.5 for several opinions; 0 for a single one, since low confidence in a type is not doubt about the mark."""
        return 0.0 if self._model_options.samples == 1 else super()._default_threshold()

    def _parts(self) -> dict[str, object]:
        voted = self._model_options.samples > 1 or self._window is not None
        return {**super()._parts(), "taxonomy": self.taxonomy, "unit": "word" if voted else "char"}

    def _questions(self, case: Case) -> list[Request]:
        types = {"type": "string", "enum": list(self._types)}
        schema = _list_of("spans", _object(before=_TEXT, text=_TEXT, type=types))
        meanings = "\n".join(f"- {name}: {meaning}" for name, meaning in self._types.items())
        texts = [self._filled(case, window, types=meanings) for window in self._windows(case)]
        return [self._question(text, schema) for text in texts]

    def _opinion(self, case: Case, replies: list[Reply]) -> _SpansOpinion:
        opinions = [self._reading(case, reply) for reply in replies]
        if len(opinions) == 1:
            return opinions[0]
        # What no window supports. The probabilities of single windows say little about all of them together.
        spans, _ = self._vote(case, opinions, 1.0)
        marks = tuple(Span(span.start, span.end, span.type) for span in spans)
        notes = dict.fromkeys(note for opinion in opinions for note in opinion.notes)
        return _SpansOpinion(marks, None, (f"evidence:{len(opinions)} windows", *notes))

    def _reading(self, case: Case, reply: Reply) -> _SpansOpinion:
        """Parse the reply about one window."""
        quoted = read_answer(reply, _SpansAnswer).spans
        for span in quoted:
            if span.type not in self._types:
                raise AnswerError(
                    f"The judge names the type {span.type!r}, which the taxonomy {self.taxonomy!r} lacks."
                )
        ranges, notes = locate(case.sample.response, quoted, case.resolved.tag)
        if quoted and not any(ranges):
            shown = excerpt(quoted[0].text)
            raise AnswerError(f"None of the judge's {len(quoted)} quotes is in the response; the first is {shown!r}.")
        known = label_probabilities(reply, "type", [span.type for span in quoted], list(self._types))
        sure = [None if known is None else known[n][span.type] for n, span in enumerate(quoted)]
        marks = tuple(
            Span(*range_, span.type, p)
            for range_, span, p in zip(ranges, quoted, sure, strict=True)
            if range_ is not None
        )
        return _SpansOpinion(marks, list_probability(reply, "spans"), notes)

    def _outcome(self, case: Case, opinions: list[_SpansOpinion]) -> Outcome:
        notes = tuple(dict.fromkeys(note for opinion in opinions for note in opinion.notes))
        if self._model_options.samples > 1:
            share = round(sum(bool(opinion.marks) for opinion in opinions) / len(opinions), DIGITS)
            spans, words_ = self._vote(case, opinions, self._threshold)
            return Outcome(share, spans, "samples", words_, notes=notes)
        (opinion,) = opinions
        spans, crossing = resolve_overlaps(case.sample.response, opinion.marks)
        if crossing:
            notes = (*notes, f"spans:{crossing} crossing ones parted")
        marked = tuple(span for span in spans if span.confidence is None or span.confidence >= self._threshold)
        if len(marked) < len(spans):
            notes = (*notes, f"spans:{len(spans) - len(marked)} below the threshold")
        if opinion.probability is None:
            return Outcome(float(bool(opinion.marks)), marked, "verdict", notes=notes)
        return Outcome(round(opinion.probability, DIGITS), marked, "token_probabilities", notes=notes)

    def _vote(
        self, case: Case, opinions: list[_SpansOpinion], threshold: float
    ) -> tuple[tuple[Span, ...], tuple[Word, ...]]:
        marks = [opinion.marks for opinion in opinions]
        return vote_marks(case.sample.response, case.resolved.tag, marks, threshold, list(self._types))


class _Claimed(Quote, kw_only=True):
    claim: str


class _Decomposition(Record):
    facts: tuple[_Claimed, ...]


def _object(**properties: Any) -> dict[str, Any]:
    """The JSON schema of an object with exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _list_of(name: str, item: dict[str, Any]) -> dict[str, Any]:
    return _object(**{name: {"type": "array", "items": item}})


_TEXT = {"type": "string"}


Verdict = Literal["supported", "contradicted", "unverified"]

_AT_ONCE = 20  # most claims of a question; models skip some in longer lists
_DECOMPOSING = ("rules", "model")
_DECOMPOSITION_FIELDS = frozenset({"language", "response"})


class _FactVerdict(Record):
    claim: int
    verdict: Verdict


class _FactsAnswer(Record):
    verdicts: tuple[_FactVerdict, ...]


@dataclass(frozen=True)
class _Verdicts:
    """A verdict for each claim, and the probabilities that claims are unsupported; None if unknown."""

    verdicts: tuple[Verdict, ...]
    probabilities: tuple[float, ...] | None


class FactJudge(_WindowedJudge):
    """`judge:facts`: a verdict for each atomic fact, in `units`; unsupported facts are marked.

    Args:
        decompose: `rules` for the facts of `veriglot.text.facts`, `model` to have the model split the response first.
        decompose_prompt: a TOML file with a prompt for that, which replaces the package's.
        options: of `_WindowedJudge` and `Judge`.
    """

    kind = "facts"
    taxonomy = "support"
    fields = frozenset({"language", "question", "evidence", "facts"})

    def __init__(self, *, decompose: str = "rules", decompose_prompt: str | None = None, **options: Any) -> None:
        if decompose not in _DECOMPOSING:
            raise UnknownNameError("way to decompose", decompose, _DECOMPOSING)
        super().__init__(**options)
        self._by_model = decompose == "model"
        self._decomposer = load_prompt("decompose", _DECOMPOSITION_FIELDS, decompose_prompt)

    def _parts(self) -> dict[str, object]:
        return {**super()._parts(), "facts": self._decomposer.signature if self._by_model else "rules", "unit": "fact"}

    def _prepared(self, cases: list[Case]) -> Sequence[Case | NotScored]:
        if not self._by_model:
            return [self._split_by_rules(case) for case in cases]
        schema = _list_of("facts", _object(claim=_TEXT, before=_TEXT, text=_TEXT))
        texts = [
            self._decomposer.filled(
                language=language_name(case.resolved.tag), response=tagged("response", case.sample.response)
            )
            for case in cases
        ]
        questions = [[self._question(text, schema, self._decomposer)] for text in texts]
        answers = self._asked(questions, self._model_options.seeds[:1])
        return [self._with_claims(case, answer[0][0]) for case, answer in zip(cases, answers, strict=True)]

    def _split_by_rules(self, case: Case) -> Case | NotScored:
        """The case with the atomic facts of its response, or its sentences if the language has no rules."""
        tag, response = case.resolved.tag, case.sample.response
        claims = [Claim(fact.text(response), fact.kind, fact.parts) for fact in facts(response, tag)]
        notes = () if has_fact_rules(tag) else ("facts:sentences",)
        return replace(case, state=claims, notes=(*case.notes, *notes)) if claims else no_words(case.sample)

    def _with_claims(self, case: Case, answer: Answer) -> Case | NotScored:
        """The case with the facts that a model listed, in the order of the response.

        Facts whose quotes do not occur in the response are dropped with a note. Another note gives the number of words
        of the response that are in no fact and so are not checked.
        """
        if answer.reply is None:
            return self._failed([answer.error or AnswerError("The judge gave no reply.")])
        try:
            listed = read_answer(answer.reply, _Decomposition).facts
        except AnswerError as error:
            return self._failed([error])
        response, tag = case.sample.response, case.resolved.tag
        ranges, notes = locate(response, listed, tag)
        claims = [
            Claim(fact.claim.strip() or fact.text, "claim", (range_,))
            for fact, range_ in zip(listed, ranges, strict=True)
            if range_ is not None
        ]
        if not claims:
            reason = f"none of the {len(listed)} facts that the judge found is in the response"
            return NotScored(Status.FAILED, reason)
        covered = {offset for claim in claims for start, end in claim.parts for offset in range(start, end)}
        outside = sum(start not in covered for start, _ in words(response, tag))
        if outside:
            notes = (*notes, f"facts:{outside} words in no fact")
        claims.sort(key=lambda claim: claim.parts)
        return replace(case, state=claims, notes=(*case.notes, *notes))

    def _questions(self, case: Case) -> list[Request]:
        """All lists of claims with the first window, then all with the next."""
        lists = [_numbered(case.state, first) for first in range(0, len(case.state), _AT_ONCE)]
        texts = [
            self._filled(case, window, others=[listed], facts=tagged("claims", listed, *case.sample.passages))
            for window in self._windows(case)
            for listed in lists
        ]
        return [self._question(text, schema_of(_FactsAnswer)) for text in texts]

    def _opinion(self, case: Case, replies: list[Reply]) -> _Verdicts:
        lists = -(-len(case.state) // _AT_ONCE)
        windows = [
            _fact_verdicts(replies[first : first + lists], len(case.state)) for first in range(0, len(replies), lists)
        ]
        if len(windows) == 1:
            return windows[0]
        # Support by any window is support; otherwise a contradiction counts more than missing support.
        ranks = ("supported", "contradicted", "unverified")
        by_claim = zip(*(window.verdicts for window in windows), strict=True)
        verdicts = tuple(min(of_windows, key=ranks.index) for of_windows in by_claim)
        known = [window.probabilities for window in windows if window.probabilities is not None]
        if len(known) < len(windows):
            return _Verdicts(verdicts, None)
        return _Verdicts(verdicts, tuple(map(min, zip(*known, strict=True))))

    def _outcome(self, case: Case, opinions: list[_Verdicts]) -> Outcome:
        confidence, shares = _fact_shares(opinions)
        types = []
        for verdicts in zip(*(opinion.verdicts for opinion in opinions), strict=True):
            # the majority of the verdicts other than `supported`; `unverified`, the weaker one, if equal
            contradicted = verdicts.count("contradicted") > verdicts.count("unverified")
            types.append("contradicted" if contradicted else "unverified")
        known = confidence != "verdict"
        marks = [
            Span(start, end, type_, share if known else None)
            for claim, type_, share in zip(case.state, types, shares, strict=True)
            for start, end in claim.parts
            if share >= self._threshold
        ]
        if confidence == "samples":
            score = sum(set(opinion.verdicts) != {"supported"} for opinion in opinions) / len(opinions)
        else:
            score = max(shares)
        words_ = None
        if known and not self._by_model:  # every word has the probability of its fact
            by_place = {
                offset: share
                for claim, share in zip(case.state, shares, strict=True)
                for start, end in claim.parts
                for offset in range(start, end)
            }
            bounds = words(case.sample.response, case.resolved.tag)
            words_ = tuple(Word(start, end, by_place[start]) for start, end in bounds)
        units = tuple(
            JudgedUnit(
                claim.parts[0][0], claim.parts[-1][1], claim.kind, share, claim.parts if len(claim.parts) > 1 else ()
            )
            for claim, share in zip(case.state, shares, strict=True)
        )
        windows = len(self._windows(case))
        notes = (f"evidence:{windows} windows",) if windows > 1 else ()
        return Outcome(round(score, DIGITS), marks, confidence, words_, units, notes)


def _numbered(claims: list[Claim], first: int) -> str:
    lines = (" ".join(claim.text.split()) for claim in claims[first : first + _AT_ONCE])
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, first + 1))


def _fact_verdicts(replies: list[Reply], claims: int) -> _Verdicts:
    """The verdicts on all claims for one window of the evidence."""
    verdicts: list[Verdict] = []
    supported: list[float] | None = []
    for reply in replies:
        answers = read_answer(reply, _FactsAnswer).verdicts
        numbers = [answer.claim for answer in answers]
        first, last = len(verdicts) + 1, min(len(verdicts) + _AT_ONCE, claims)
        if numbers != list(range(first, last + 1)):  # a claim without exactly one verdict was not checked
            wanted = f"{first} to {last}" if last > first else str(first)
            raise AnswerError(
                f"The judge was asked for verdicts on claims {wanted}, in order, and gave them on {numbers}."
            )
        names = [answer.verdict for answer in answers]
        known = label_probabilities(reply, "verdict", names, get_args(Verdict))
        if supported is None or known is None:
            supported = None
        else:
            for shares, name in zip(known, names, strict=True):
                # if only the probability of another verdict is known, `supported` gets the rest
                left = 1.0 - shares.get(name, 1.0) if len(shares) == 1 else 0.0
                supported.append(shares.get("supported", left))
        verdicts += names
    return _Verdicts(tuple(verdicts), None if supported is None else tuple(1.0 - share for share in supported))


def _fact_shares(opinions: list[_Verdicts]) -> tuple[str, list[float]]:
    """The source of the confidences, and for each claim the probability that it is unsupported."""
    if len(opinions) > 1:
        votes = zip(*(opinion.verdicts for opinion in opinions), strict=True)
        counts = [sum(verdict != "supported" for verdict in verdicts) for verdicts in votes]
        return "samples", [round(count / len(opinions), DIGITS) for count in counts]
    (opinion,) = opinions
    if opinion.probabilities is not None:
        return "token_probabilities", [round(p, DIGITS) for p in opinion.probabilities]
    return "verdict", [float(verdicts != "supported") for verdicts in opinion.verdicts]


class _TranslationAnswer(Record):
    reason: str
    hallucination: bool


_REASON = 300  # most code points of a judge's reason


class TranslationJudge(Judge):
    """`judge:translation`: does the translation contain a hallucination? With the simple prompt (HAT, Figure 9).

    The evidence is the source. A verdict of yes gives one span over the whole response, since the judge is not asked
    for the position.

    Args:
        options: of `Judge`.
    """

    kind = "translation"
    taxonomy = "hat"
    _type: str | None = "hallucination"
    fields = frozenset({"source_language", "language", "evidence", "response"})

    def _parts(self) -> dict[str, object]:
        return {"unit": "response"}

    def _questions(self, case: Case) -> list[Request]:
        stated = next((passage.language for passage in case.sample.evidence if passage.language), None)
        tag = text_language(" ".join(case.sample.passages), stated)
        source = "another language" if tag is None else language_name(tag)
        text = self._filled(case, _untitled(case.sample), tags=("source", "translation"), source_language=source)
        return [self._question(text, schema_of(_TranslationAnswer))]

    def _opinion(self, case: Case, replies: list[Reply]) -> Opinion:  # noqa: ARG002
        """The verdict, the probability of a hallucination if the verdict's token has one, and the reason."""
        (reply,) = replies
        answer = read_answer(reply, _TranslationAnswer)
        verdict = answer.hallucination
        sure = label_probabilities(reply, "hallucination", ["true" if verdict else "false"], ("true", "false"))
        return verdict, None if sure is None else sure[0]["true"] if verdict else 1.0 - sure[0]["false"], answer.reason

    def _outcome(self, case: Case, opinions: list[Opinion]) -> Outcome:
        verdict, probability, reason = opinions[0]
        if len(opinions) > 1:
            score, confidence = sum(hallucination for hallucination, *_ in opinions) / len(opinions), "samples"
        elif probability is not None:
            score, confidence = probability, "token_probabilities"
        else:
            score, confidence = float(verdict), "verdict"
        return self._of_response(case, score, confidence, reason if len(opinions) == 1 else "")

    def _of_response(self, case: Case, score: float, confidence: str, reason: str) -> Outcome:
        """One mark over the whole response or none, and a note with the reason if there is only one opinion."""
        score = round(score, DIGITS)
        mark = Span(0, len(case.sample.response), self._type, None if confidence == "verdict" else score)
        notes = (f"reason:{excerpt(reason, _REASON)}",) if reason.strip() else ()
        return Outcome(score, [mark] if score >= self._threshold else [], confidence, notes=notes)


class GuidedTranslationJudge(TranslationJudge):
    """`judge:translation-guided`: as `judge:translation`, with guidelines and contrasted examples (HAT, Figure 8)."""

    kind = "translation-guided"


class _ScoreAnswer(Record):
    score: float
    reason: str = ""


class ScoreJudge(TranslationJudge):
    """`judge:score`: how probable is it that the response contains anything that the evidence does not support?

    The score is a verbalised confidence: a number that the model states. The whole response is marked or nothing.

    Args:
        highest: the number for certainty, in the prompt and in the answer; 0 means certainly supported.
        options: of `Judge`.
    """

    kind = "score"
    taxonomy = "hat"
    fields = frozenset({"language", "question", "evidence", "response", "highest"})
    _type = None

    def __init__(self, *, highest: float = 100.0, **options: Any) -> None:
        if not 0 < highest < math.inf:
            raise UsageError(f"The highest score is {highest}; it is above 0.", remedy="Leave it out, or set 1.")
        self._highest = highest
        super().__init__(**options)

    def _parts(self) -> dict[str, object]:
        return {**super()._parts(), "highest": f"{self._highest:g}"}

    def _questions(self, case: Case) -> list[Request]:
        passages = [(passage.title or "", passage.text) for passage in case.sample.evidence]
        text = self._filled(case, passages, highest=f"{self._highest:g}")
        return [self._question(text, schema_of(_ScoreAnswer))]

    def _opinion(self, case: Case, replies: list[Reply]) -> Opinion:  # noqa: ARG002
        """The stated number as a probability, and the reason."""
        (reply,) = replies
        answer = read_answer(reply, _ScoreAnswer)
        if not 0 <= answer.score <= self._highest:
            raise AnswerError(f"The judge states the score {answer.score:g}; it lies from 0 to {self._highest:g}.")
        return False, answer.score / self._highest, answer.reason

    def _outcome(self, case: Case, opinions: list[Opinion]) -> Outcome:
        scores = [score or 0.0 for _, score, _ in opinions]
        reason = opinions[0][2] if len(opinions) == 1 else ""
        return self._of_response(case, sum(scores) / len(scores), "verbalised", reason)


def _untitled(sample: Sample) -> _Passages:
    return [("", passage) for passage in sample.passages]


NO_ERROR = "none"
_MEANING_OF_NONE = "the edited sentence says the same as the true one, or says nothing that can be checked"


class _PairAnswer(Record):
    type: str


class PairJudge(Judge):
    """`judge:pairs`: the type of the error in an edited sentence, as a span over the whole sentence.

    The evidence is the true sentence, the response the edited one.

    Args:
        none: whether "no error" is a choice, as for the annotators of HalluVerse25 (label `0`). It was not for the
            models of its paper: with False, every pair gets one of the three types, its score is always 1, and a note
            says `verdict:type only`.
        options: of `Judge`.
    """

    kind = "pairs"
    taxonomy = "halluverse"
    fields = frozenset({"language", "types", "evidence", "response"})

    def __init__(self, *, none: bool = True, **options: Any) -> None:
        self._meanings = dict(find_taxonomy(self.taxonomy).types) | ({NO_ERROR: _MEANING_OF_NONE} if none else {})
        super().__init__(**options)

    def _default_threshold(self) -> float:
        """0: the most probable label counts, at any probability."""
        return 0.0

    def _parts(self) -> dict[str, object]:
        return {"labels": ",".join(self._meanings), "unit": "response"}

    def _questions(self, case: Case) -> list[Request]:
        meanings = "\n".join(f"- {name}: {meaning}" for name, meaning in self._meanings.items())
        text = self._filled(case, _untitled(case.sample), tags=("true-sentence", "edited-sentence"), types=meanings)
        return [self._question(text, _object(type={"type": "string", "enum": list(self._meanings)}))]

    def _opinion(self, case: Case, replies: list[Reply]) -> tuple[str, dict[str, float] | None]:  # noqa: ARG002
        """The label, and the probabilities of all labels if known."""
        (reply,) = replies
        label = read_answer(reply, _PairAnswer).type
        if label not in self._meanings:
            raise AnswerError(f"The judge names the type {label!r}; it was asked for {', '.join(self._meanings)}.")
        sure = label_probabilities(reply, "type", [label], list(self._meanings))
        return label, None if sure is None else sure[0]

    def _outcome(self, case: Case, opinions: list[tuple[str, dict[str, float] | None]]) -> Outcome:
        labels = [label for label, _ in opinions]
        label = max(self._meanings, key=labels.count)  # the first of the taxonomy, if equal
        shares = {name: labels.count(name) / len(labels) for name in self._meanings}
        confidence = "samples"
        if len(opinions) == 1:
            shares = opinions[0][1] or {}
            confidence = "token_probabilities" if shares else "verdict"
        sure = round(shares[label], DIGITS) if shares else None
        notes = () if NO_ERROR in self._meanings else ("verdict:type only",)
        marks = [] if label == NO_ERROR else [Span(0, len(case.sample.response), label, sure)]
        if marks and sure is not None and sure < self._threshold:
            marks, notes = [], (*notes, "spans:1 below the threshold")
        # If the probability of "no error" is unknown, the verdict is the score.
        score = 1.0 - shares[NO_ERROR] if NO_ERROR in shares else float(label != NO_ERROR)
        return Outcome(round(score, DIGITS), marks, confidence, notes=notes)


JUDGES: dict[str, type[Judge]] = {
    kind.kind: kind for kind in (SpanJudge, FactJudge, ScoreJudge, TranslationJudge, GuidedTranslationJudge, PairJudge)
}


def judge(kind: str, *, threshold: float | None = None, words: bool = False, **options: Any) -> Judge:
    """A judge by name: `load_detector("judge:spans", model=..., url=...)`.

    Args:
        kind: a name of `JUDGES`.
        threshold: confidence from which something is marked, 0 to 1; None for the judge's default.
        words: whether predictions include every word, if its confidence is known.
        options: see `Judge` and `docs/judges.md`.

    Raises:
        UnknownNameError: no such judge or option; the error suggests the nearest.
        UsageError: invalid options, or no model.
        InputError: an invalid prompt or file of rules.
        MissingExtraError: the client's packages are not installed.
    """
    if kind not in JUDGES:
        raise UnknownNameError("judge", kind, JUDGES)
    return JUDGES[kind](threshold=threshold, words=words, **options)

"""Twins: minimal pairs of a right and a wrong answer, which differ in as few words as possible.

`wordings/` has one file for each language, written for Veriglot: wordings of some seventy facts as evidence and as
answers, and in sixteen languages some hundred more, most of them about who did what to whom.
A case combines them with random names, years and numbers: a few sentences of evidence, a question about one of them, a
right answer, and a wrong answer whose words are in the evidence too.

- `[[state]]`: the wrong answer has another state (accepted or refused, rose or fell, all, some or none). Answer k of
  each state is the counterpart of answer k of the others. The first state is the yes of `ask`.
- `[[role]]`: the names in brackets change places.
- `[[fact]]`: the value in brackets is that of another thing in the evidence, of the same kind or of any, or has a digit
  changed.

Slots: `{A}` and `{B}` are people, `{P}` and `{Q}` places, `{O}` and `{R}` companies, `{W}` and `{V}` books, `{y}` and
`{z}` years (the first is earlier), `{n}` and `{m}` numbers (the first is smaller); `{A:gen}` is a form of a name from
its list of forms. [Brackets] mark the wrong words of a wrong answer. A frame may be for one gender (`people`). With
`round_numbers` numbers are multiples of five, because nouns depend on them. Lists of names are parallel in all
languages, except `local_` lists, so that an answer may be in another language than its evidence.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from veriglot.plugins import read_package_data
from veriglot.records.settings import StrictRecord
from veriglot.training.grounding.examples import Example, Mark, share_of
from veriglot.training.reader.sources import Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

__all__ = ["draw_case", "draw_written", "facts", "held_out_written", "languages", "wordings"]

_KINDS = read_package_data(__package__, "twins.toml", dict[str, dict[str, str]])
LISTS, EXCHANGED, TYPES = _KINDS["lists"], _KINDS["exchanged"], _KINDS["types"]
KINDS = tuple(TYPES)
SLOT = re.compile(r"\{([A-Za-z])(?::(\w+))?\}")
STOP = re.compile(r"[.。！!।؟?۔]*$")
HELD_OUT = 0.2  # share of held-out facts, the same in all languages
ASKED, RIVALLED = 0.3, 0.5  # shares of states with a yes/no question, and of facts beside one of the same kind
CROSSED = 0.6  # share of other facts with a number whose wrong value comes from any other fact
OFTEN = {"role": 1.5, "state": 2.2, "fact": 1.0}
SHAPES = ("plain", "plain", "plain", "plain", "opened", "several", "list", "cited")
BULLETS = ("- ", "* ", "• ", "{}. ", "{}) ", "**{}.** ")


class Text(NamedTuple):
    """A text with its wrong parts: half-open code points."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()

    def after(self, before: str, *marks: tuple[int, int]) -> Text:
        """The text with a prefix, in which `marks` are wrong."""
        return Text(before + self.text, (*marks, *((s + len(before), e + len(before)) for s, e in self.marks)))


class Twin(NamedTuple):
    """A question with a right and a wrong answer; the first sentence of the evidence decides."""

    kind: str
    evidence: list[str]
    question: str
    right: Text
    wrong: Text


def languages() -> list[str]:
    """The tags of languages with wordings."""
    folder = files(__package__) / "wordings"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


@cache
def wordings(tag: str) -> dict[str, Any]:
    """A language's file; `frames` has the kind and the table of each fact by its id."""
    data = read_package_data(__package__, f"wordings/{tag}.toml", dict[str, Any])
    data["frames"] = {frame["id"]: (kind, frame) for kind in ("state", "role", "fact") for frame in data[kind]}
    return data


@cache
def facts(tag: str, held_out: bool) -> tuple[str, ...]:
    """The ids of a language's facts: held-out ones, or those for training."""
    return tuple(name for name in sorted(wordings(tag)["frames"]) if (share_of(name) < HELD_OUT) == held_out)


@dataclass
class Cast:
    """Values of the slots: numbers, and indices of names in the lists of every language."""

    gender: str
    values: dict[str, int] = field(default_factory=dict)

    def fill(self, template: str, tag: str) -> Text:
        """The sentence with its values, and the ranges of its brackets."""
        filled = SLOT.sub(lambda slot: self._name(slot[1], slot[2] or "nom", tag), template)
        text, marks = "", []
        for part in re.split(r"(\[[^\]]*\])", filled):
            inner = part[1:-1] if part.startswith("[") else part
            if part.startswith("["):
                marks.append((len(text), len(text) + len(inner)))
            text += inner
        return Text(text, tuple(marks))

    def exchanged(self, first: str) -> Cast:
        """The same with the two values of a kind exchanged."""
        second = EXCHANGED[first]
        return self.with_value(first, self.values[second]).with_value(second, self.values[first])

    def with_value(self, letter: str, value: int) -> Cast:
        """The same with another value of a slot."""
        return Cast(self.gender, self.values | {letter: value})

    def _name(self, letter: str, form: str, tag: str) -> str:
        value = self.values[letter]
        if letter not in LISTS:
            return str(value)
        data = wordings(tag)
        people = LISTS[letter] == "people"
        names = data[self.gender] + data[f"local_{self.gender}"] if people else data[LISTS[letter]]
        name = names[value]
        return str(name[form] if isinstance(name, dict) else name)


class World:
    """Draws names and numbers, each only once.

    Args:
        tag, answer_language: languages of the evidence and of the answers.
        rng: random generator.
    """

    def __init__(self, tag: str, answer_language: str, rng: Random) -> None:
        self.tag, self.answer_language, self.rng = tag, answer_language, rng
        self.gender = rng.choice(("women", "men"))
        both = [wordings(tag), wordings(answer_language)]
        counts = {name: min(len(data[name]) for data in both) for name in ("places", "companies", "works")}
        counts["people"] = min(len(data[self.gender]) for data in both)
        if tag == answer_language:
            counts["people"] += len(both[0][f"local_{self.gender}"])
        self._names = {name: rng.sample(range(count), count) for name, count in counts.items()}
        self.round = any(data.get("round_numbers") for data in both)
        self._years = rng.sample(range(1700, 2020), 60)
        self._numbers = rng.sample(range(15, 995, 5 if self.round else 1), 60)

    def cast(self, name: str) -> Cast | None:
        """Slot values for a fact; None if names have run out, or if the fact does not fit the language or gender."""
        frames = [wordings(tag)["frames"].get(name, ("", {}))[1] for tag in (self.tag, self.answer_language)]
        if any(not frame or frame.get("people", self.gender) not in (self.gender, "any") for frame in frames):
            return None
        cast = Cast(self.gender)
        for letter in sorted({slot[1] for slot in SLOT.finditer(json.dumps(frames))} & LISTS.keys()):
            if not self._names[LISTS[letter]]:
                return None
            cast.values[letter] = self._names[LISTS[letter]].pop()
        cast.values["y"], cast.values["z"] = sorted((self._years.pop(), self._years.pop()))
        cast.values["n"], cast.values["m"] = sorted((self._numbers.pop(), self._numbers.pop()))
        return cast

    def twin(self, name: str) -> Twin | None:
        """Right and wrong answer about a fact; None if no question about it is unambiguous."""
        cast = self.cast(name)
        if cast is None:
            return None
        rival = self.cast(name) if self.rng.random() < RIVALLED else None
        (kind, source), (_, frame) = (wordings(tag)["frames"][name] for tag in (self.tag, self.answer_language))
        if kind == "state":
            return self._state_twin(source, frame, cast, rival)
        return self._value_twin(kind, source, frame, cast, rival)

    def _value_twin(
        self, kind: str, source: dict[str, Any], frame: dict[str, Any], cast: Cast, rival: Cast | None
    ) -> Twin | None:
        answer, question = self.rng.choice(frame["answers"]), self.rng.choice(frame["questions"])
        if rival is not None and not (_names(answer) or _names(question)):
            rival = None  # a question would be ambiguous
        right = Text(cast.fill(answer, self.answer_language).text)
        asked = cast.fill(question, self.answer_language).text
        slots = [slot[1] for part in re.findall(r"\[[^\]]*\]", answer) for slot in SLOT.finditer(part)]
        if kind == "role":
            first = next(first for first, second in EXCHANGED.items() if {first, second} & set(slots))
            which = "order" if frame["id"] == "succeeded" else "roles"
            wrong = cast.exchanged(first).fill(answer, self.answer_language)
            return Twin(which, self._stated(source["evidence"], cast, rival), asked, right, wrong)
        letter, beside = slots[0], list[str]()
        value: int | None
        telling = _with_slot(source["evidence"], letter)
        if not telling:
            return None
        if rival is not None:
            which, value = "entity", rival.values[letter]
        elif letter in LISTS or self.rng.random() < CROSSED:
            which, beside, value = "crossed", *self._other_fact(frame["id"], letter)
        else:
            last = not (letter in "nm" and self.round)
            which, value = "number", _changed(cast.values[letter], self.rng, last=last)
        if value is None:
            return None
        wrong = cast.with_value(letter, value).fill(answer, self.answer_language)
        return Twin(which, [*self._stated(telling, cast, rival), *beside], asked, right, wrong)

    def _other_fact(self, name: str, letter: str) -> tuple[list[str], int | None]:
        """A sentence about any other fact with such a slot, and the value of the slot."""
        names = facts(self.tag, name in facts(self.tag, held_out=True))
        for other in self.rng.sample(names, len(names)):
            texts = _with_slot(wordings(self.tag)["frames"][other][1].get("evidence", ()), letter)
            if other != name and texts and (cast := self.cast(other)) is not None:
                return self._stated(texts, cast), cast.values[letter]
        return [], None

    def _stated(self, texts: Sequence[str], *casts: Cast | None) -> list[str]:
        return [cast.fill(self.rng.choice(texts), self.tag).text for cast in casts if cast is not None]

    def _state_twin(self, source: dict[str, Any], frame: dict[str, Any], cast: Cast, rival: Cast | None) -> Twin:
        states, rng, data = frame["states"], self.rng, wordings(self.answer_language)
        true, false = rng.sample(range(len(states)), 2)
        number = rng.randrange(len(states[true]["answers"]))
        right, wrong = (states[state]["answers"][number] for state in (true, false))
        asked = rng.random() < ASKED and 0 in (true, false)
        question = rng.choice(frame["ask" if asked else "questions"])
        evidence = self._stated(source["states"][true]["evidence"], cast)
        if rival is not None and (_names(question) or (_names(right) and _names(wrong))):
            evidence += self._stated(source["states"][false]["evidence"], rival)
        answers = [cast.fill(right, self.answer_language), cast.fill(wrong, self.answer_language)]
        if asked and rng.random() < 0.2:
            plain = [rng.choice(data["plain_yes" if state == 0 else "plain_no"]) for state in (true, false)]
            answers = [Text(text, ((0, len(STOP.sub("", text))),)) for text in plain]
        elif asked:
            prefixes = [rng.choice(data["yes" if state == 0 else "no"]) for state in (true, false)]
            answers = [
                _with_prefix(*pair, data.get("lower", ()), wrong=True) for pair in zip(prefixes, answers, strict=True)
            ]
        kind = "polarity" if asked else frame["kind"]
        return Twin(kind, evidence, cast.fill(question, self.answer_language).text, Text(answers[0].text), answers[1])


def _with_prefix(prefix: str, answer: Text, lower: Sequence[str], *, wrong: bool = False) -> Text:
    """The answer after a prefix, or after its yes or no, which is wrong if the rest is.

    Words of `lower` begin with a small letter inside a sentence.
    """
    before, small, _ = prefix.partition("{answer}")
    if not small:
        before = prefix.partition("{Answer}")[0]
    elif re.match(r"\w*", answer.text)[0] in lower:  # type: ignore[index]  # it matches at least nothing
        answer = answer._replace(text=answer.text[0].lower() + answer.text[1:])
    opening = ((0, len(before.rstrip(" ,.:;!،؛।۔，。、：；！"))),) if wrong and before.strip() else ()
    return answer.after(before, *opening)


def _with_slot(texts: Sequence[str], letter: str) -> list[str]:
    return [text for text in texts if re.search(rf"\{{{letter}\b", text)]


def _names(template: str) -> bool:
    return any(slot[1] in LISTS for slot in SLOT.finditer(template))


def _changed(value: int, rng: Random, *, last: bool) -> int:
    """The number with one digit changed: not the first digit of a year; the last one only if `last` is true."""
    digits = list(str(value))
    at = rng.randrange(len(digits) == 4, len(digits) - (not last))
    digits[at] = rng.choice([digit for digit in "123456789" if digit != digits[at]])
    return int("".join(digits))


def draw_twins(world: World, *, held_out: bool) -> Iterator[Twin]:
    """Twins about facts of the language of the evidence in a drawn order, each fact once.

    Args:
        world: draws the facts, and what stands in their slots.
        held_out: whether the facts are those that train nothing.
    """
    kinds = {name: OFTEN[kind] for name, (kind, _) in wordings(world.tag)["frames"].items()}
    names = facts(world.tag, held_out)
    for name in sorted(names, key=lambda name: world.rng.random() ** (1 / kinds[name]), reverse=True):
        twin = world.twin(name)
        if twin is not None:
            yield twin


def draw_case(tag: str, rng: Random, *, answer_language: str | None = None, held_out: bool = False) -> list[Row]:
    """A right and a wrong answer in a form that assistants use, and sometimes further answers.

    These are refusals, copies of the evidence, and right answers with an addition.

    Args:
        tag: language of the evidence.
        rng: random generator.
        answer_language: language of the answers, if it is another.
        held_out: whether to use held-out facts.
    """
    world = World(tag, answer_language or tag, rng)
    data, twins = wordings(world.answer_language), []
    for twin in draw_twins(world, held_out=held_out):
        twins.append(twin)
        if len(twins) >= rng.choice((1, 1, 2, 4)):
            break
    asked, lines = twins[0], [line for twin in twins for line in twin.evidence]
    rng.shuffle(lines)
    space = "" if wordings(tag).get("no_spaces") else " "
    cut = rng.randint(1, len(lines)) if rng.random() < 0.4 else len(lines)
    passages = tuple(space.join(part) for part in (lines[:cut], lines[cut:]) if part)
    shape, state = rng.choice(SHAPES), rng.getstate()
    several = shape in ("several", "list") and len(twins) > 1
    question = rng.choice(data["summaries"]) if several else asked.question
    case = _Case(world, passages, f"twins:out:{rng.random()}")
    for answer, kind in ((asked.right, "right"), (asked.wrong, asked.kind)):
        rng.setstate(state)
        case.add(kind, question, case.shaped(shape, answer, twins), twin=True)
    case.add_further(asked, lines, space)
    return case.rows


class _Case:
    """The rows for one evidence."""

    def __init__(self, world: World, passages: tuple[str, ...], group: str) -> None:
        self._world, self._passages, self._group = world, passages, group
        self._data = wordings(world.answer_language)
        self._space = "" if self._data.get("no_spaces") else " "
        self.rows: list[Row] = []

    def add(self, kind: str, question: str | None, answer: Text, *, twin: bool = False) -> None:
        """Add a row, sometimes without its question."""
        world = self._world
        type_ = "invented" if kind == "addition" else TYPES.get(kind)
        example = Example(
            kind, "twins", self._group, world.answer_language, answer.text, self._passages,
            question, tuple(Mark(start, end, type_) for start, end in answer.marks),
            evidence_language=world.tag if world.tag != world.answer_language else None,
        )  # fmt: skip
        self.rows.append(Row(example, bool(answer.marks), True, self._group if twin else None))

    def shaped(self, shape: str, answer: Text, twins: Sequence[Twin]) -> Text:
        """An answer in its form; in some forms it is among right answers to other questions."""
        rng, data = self._world.rng, self._data
        if shape == "opened":
            opened = _with_prefix(rng.choice(data["openings"]), answer, data.get("lower", ()))
            return _joined([opened, Text(rng.choice(data["closings"]))], self._space) if rng.random() < 0.5 else opened
        if shape == "cited":
            return self._cited(answer, twins[0])
        parts = [answer]
        if shape in ("several", "list"):
            parts += [twin.right for twin in twins[1 : rng.randint(2, 5)]]
            rng.shuffle(parts)
        if shape == "list" and len(parts) > 1:
            bullet = rng.choice(BULLETS)
            parts = [part.after(bullet.format(number)) for number, part in enumerate(parts, start=1)]
            intro = [Text(rng.choice(data["list_intros"]))] if rng.random() < 0.6 else []
            return _joined([*intro, *parts], "\n")
        return _joined(parts, self._space)

    def _cited(self, answer: Text, twin: Twin) -> Text:
        number = next((k for k, passage in enumerate(self._passages, start=1) if twin.evidence[0] in passage), 1)
        end = STOP.search(answer.text).start()  # type: ignore[union-attr]  # it matches at the end at least
        return Text(answer.text[:end] + f" [{number}]" + answer.text[end:], answer.marks)

    def add_further(self, asked: Twin, lines: Sequence[str], space: str) -> None:
        """Add refusals, additions and copies."""
        rng, data, world = self._world.rng, self._data, self._world
        if rng.random() < 0.15:
            question = rng.choice(data["unanswerable"])
            cast = world.cast(facts("en", held_out=False)[0]) or Cast(world.gender)
            if {slot[1] for slot in SLOT.finditer(question)} <= cast.values.keys():
                refusal = Text(rng.choice(data["refusals"]))
                self.add("refusal", cast.fill(question, world.answer_language).text, refusal)
        if rng.random() < 0.2:
            right = asked.right.text
            if rng.random() < 0.5:
                end = STOP.search(right).start()  # type: ignore[union-attr]
                added = rng.choice(data["additions"])
                self.add(
                    "addition", asked.question, Text(right[:end] + added + right[end:], ((end, end + len(added)),))
                )
            else:
                text = rng.choice(data["made_up"])
                self.add("addition", asked.question, _joined([Text(right), Text(text, ((0, len(text)),))], self._space))
        if world.tag == world.answer_language and rng.random() < 0.15:
            chosen = [Text(line) for line in rng.sample(lines, rng.randint(1, min(3, len(lines))))]
            bullet = rng.choice(("- ", "{}. "))
            listed = [part.after(bullet.format(number)) for number, part in enumerate(chosen, start=1)]
            copied = _joined(chosen, space) if rng.random() < 0.7 else _joined(listed, "\n")
            self.add("copy", asked.question, copied)


def _joined(parts: Sequence[Text], space: str) -> Text:
    whole = parts[0]
    for part in parts[1:]:
        after = part.after(whole.text + space)
        whole = Text(after.text, (*whole.marks, *after.marks))
    return whole


# Answers that were written one by one.


class _Item(StrictRecord):
    """A right and a wrong text, which differ only between [[ and ]].

    Texts without a question are statements, or translations of the evidence if they are in another language.
    """

    kind: str
    right: str
    wrong: str
    question: str | None = None
    other: str | None = None  # also right, in other words
    lang: str | None = None  # if it differs from the evidence's


class _Article(StrictRecord):
    lang: str
    article: str
    evidence: tuple[str, ...]
    items: tuple[_Item, ...]


@cache
def _written(held_out: bool) -> tuple[tuple[_Article, _Item], ...]:
    """The items of `written.json.gz`: of held-out articles, or of those for training."""
    articles = read_package_data(__package__, "written.json.gz", tuple[_Article, ...])
    chosen = (article for article in articles if (share_of(article.article) < HELD_OUT) == held_out)
    return tuple((article, item) for article in chosen for item in article.items)


def draw_written(rng: Random) -> list[Row]:
    """A right and a wrong answer that were written one by one, and sometimes another right one."""
    return _rows_of(*rng.choice(_written(False)), rng)


def held_out_written(rng: Random) -> list[Row]:
    """All items about held-out articles."""
    return [row for article, item in _written(True) for row in _rows_of(article, item, rng)]


def _rows_of(article: _Article, item: _Item, rng: Random) -> list[Row]:
    group = f"written:{article.article}:{item.question or item.right}"
    across = item.lang not in (None, article.lang)
    texts = [(item.kind, item.right), (item.kind, item.wrong), ("clean", item.other if rng.random() < 0.5 else None)]
    rows = []
    for kind, written in texts:
        if written is not None:
            text, marks = "", []
            for number, part in enumerate(re.split(r"\[\[(.*?)\]\]", written, flags=re.DOTALL)):
                if number % 2:
                    marks.append(Mark(len(text), len(text) + len(part), TYPES.get(kind, "invented")))
                text += part
            example = Example(
                kind, "written", group, item.lang or article.lang, text, article.evidence, item.question, tuple(marks),
                evidence_language=article.lang if across else None, translation=across and item.question is None,
            )  # fmt: skip
            rows.append(Row(example, bool(marks), True, None if kind == "clean" else group))
    return rows

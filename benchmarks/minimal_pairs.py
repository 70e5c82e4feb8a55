"""Twins in answer form: is the wrong one scored higher, where all its words stand in the evidence?

    python benchmarks/minimal_pairs.py --detector grounding auto --language de ru ja

`minimal_pairs/` holds one file a language, written for Veriglot: wordings of some sixty facts as evidence and as
answers. A twin is made of them and of names, years and numbers that are drawn: a few sentences of evidence, a question
about one of them, a right answer, and a wrong one that differs in as few words as carry the difference.

- `[[state]]`: the wrong answer says another state (accepted or refused, rose or fell, all, some or none). Answer k of
  each state is the counterpart of answer k of the others. The first state is the yes of `ask`.
- `[[role]]`: the names in brackets change places.
- `[[fact]]`: the value in brackets is that of another thing in the evidence, or has a digit changed.

Slots: `{A}` and `{B}` are people, `{P}` and `{Q}` places, `{O}` and `{R}` companies, `{W}` and `{V}` books, `{y}` and
`{z}` years (the first is earlier), `{n}` and `{m}` numbers (the first is smaller); `{A:gen}` is a form of a name that
is given with its forms. [Brackets] stand around what is wrong in an answer that is wrong. A frame may be for one gender
(`people`). With `round_numbers` numbers are multiples of five, as nouns depend on them. `--show` prints twins to read.

The figure is the share of twins whose wrong answer has the higher score, ties counting half: 0.5 is chance.
"""

from __future__ import annotations

import argparse
import json
import re
import tomllib
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from figures import show
from veriglot.detectors.registry import load_detector
from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Task

FOLDER = Path(__file__).resolve().parent / "minimal_pairs"
LISTS = {"A": "people", "B": "people", "C": "people", "P": "places", "Q": "places", "O": "companies", "R": "companies"}
LISTS |= {"W": "works", "V": "works"}
EXCHANGED = {"A": "B", "O": "R", "P": "Q", "W": "V"}
KINDS = ("negation", "contrast", "direction", "quantity", "order", "polarity", "roles", "entity", "number")
TYPES = dict.fromkeys(KINDS, "contradictory") | {
    "order": "relation",
    "roles": "relation",
    "entity": "entity",
    "number": "entity",
}
SLOT = re.compile(r"\{([A-Za-z])(?::(\w+))?\}")
SENTENCES = (2, 6)  # of the evidence
ASKED, RIVALLED = 0.25, 0.6  # shares of states asked with yes or no, and of facts beside one of the same kind


class Text(NamedTuple):
    """An answer, and what is wrong in it where it is wrong: half-open code points."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


class Twin(NamedTuple):
    """What is asked of the evidence, and a right and a wrong answer."""

    kind: str
    evidence: list[str]
    question: str
    right: Text
    wrong: Text


@cache
def read_frames(tag: str) -> dict[str, Any]:
    """A language's file; `frames` has the kind and the table of each fact by its id."""
    data = tomllib.loads((FOLDER / f"{tag}.toml").read_text("utf-8"))
    data["frames"] = {frame["id"]: (kind, frame) for kind in ("state", "role", "fact") for frame in data[kind]}
    return data


def languages() -> list[str]:
    """The tags that have a file."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


@dataclass
class Cast:
    """What stands in the slots."""

    values: dict[str, Any] = field(default_factory=dict)

    def fill(self, template: str) -> Text:
        """The sentence, and where its brackets stood."""
        filled = SLOT.sub(lambda slot: self._name(slot[1], slot[2] or "nom"), template)
        text, marks = "", []
        for part in re.split(r"(\[[^\]]*\])", filled):
            inner = part[1:-1] if part.startswith("[") else part
            if part.startswith("["):
                marks.append((len(text), len(text) + len(inner)))
            text += inner
        return Text(text, tuple(marks))

    def exchanged(self, first: str) -> Cast:
        """With the two of a kind in each other's place."""
        second = EXCHANGED[first]
        return Cast(self.values | {first: self.values[second], second: self.values[first]})

    def _name(self, letter: str, form: str) -> str:
        value = self.values[letter]
        return value[form] if isinstance(value, dict) else str(value)


class World:
    """Draws names and numbers, none of them twice."""

    def __init__(self, tag: str, rng: Random) -> None:
        self._data, self._rng = read_frames(tag), rng
        self.gender = rng.choice(("women", "men"))
        lists = {name: self._data[name] for name in ("places", "companies", "works")}
        lists["people"] = self._data[self.gender] + self._data[f"local_{self.gender}"]
        self._names = {name: rng.sample(names, len(names)) for name, names in lists.items()}
        step = 5 if self._data.get("round_numbers") else 1
        self._years, self._numbers = rng.sample(range(1700, 2020), 60), rng.sample(range(15, 995, step), 60)

    def cast(self, frame: dict[str, Any]) -> Cast | None:
        """What stands in the slots of a frame; None where names have run out, or it is for the other gender."""
        if frame.get("people", self.gender) not in (self.gender, "any"):
            return None
        cast = Cast()
        for letter in sorted({slot[1] for slot in SLOT.finditer(json.dumps(frame))} & LISTS.keys()):
            if not self._names[LISTS[letter]]:
                return None
            cast.values[letter] = self._names[LISTS[letter]].pop()
        cast.values["y"], cast.values["z"] = sorted((self._years.pop(), self._years.pop()))
        cast.values["n"], cast.values["m"] = sorted((self._numbers.pop(), self._numbers.pop()))
        return cast


def draw_twin(tag: str, rng: Random) -> Twin:
    """A twin in a language, with evidence that says more than what is asked for."""
    world = World(tag, rng)
    frames = read_frames(tag)["frames"]
    drawn = rng.sample(sorted(frames), len(frames))
    twin = next(twin for name in drawn if (twin := _twin_of(tag, *frames[name], world, rng)) is not None)
    sentences = list(twin.evidence)
    for name in reversed(drawn):
        if len(sentences) >= rng.randint(*SENTENCES):
            break
        kind, frame = frames[name]
        if (cast := world.cast(frame)) is not None:
            told = rng.choice(frame["states"])["evidence"] if kind == "state" else frame["evidence"]
            sentences.append(cast.fill(rng.choice(told)).text)
    rng.shuffle(sentences)
    return twin._replace(evidence=sentences)


def _twin_of(tag: str, kind: str, frame: dict[str, Any], world: World, rng: Random) -> Twin | None:
    cast = world.cast(frame)
    rival = world.cast(frame) if rng.random() < RIVALLED else None
    if cast is None:
        return None
    if kind == "state":
        return _state_twin(read_frames(tag), frame, cast, rival, rng)
    answer, question = rng.choice(frame["answers"]), rng.choice(frame["questions"])
    if rival is not None and not (_names(answer) or _names(question)):
        rival = None  # nobody could tell which of the two is asked for
    right = Text(cast.fill(answer).text)
    if kind == "role":
        named = {slot[1] for part in re.findall(r"\[[^\]]*\]", answer) for slot in SLOT.finditer(part)}
        first = next(first for first, second in EXCHANGED.items() if {first, second} & named)
        told = [each.fill(rng.choice(frame["evidence"])).text for each in (cast, rival) if each is not None]
        which = "order" if frame["id"] == "succeeded" else "roles"
        return Twin(which, told, cast.fill(question).text, right, cast.exchanged(first).fill(answer))
    letter = SLOT.search(answer, answer.index("["))[1]  # type: ignore[index]  # every answer has one
    wordings = [wording for wording in frame["evidence"] if re.search(rf"\{{{letter}\b", wording)]
    if rival is None and letter not in "yznm":
        return None
    whole = letter in "nm" and read_frames(tag).get("round_numbers", False)
    value = rival.values[letter] if rival is not None else _changed(cast.values[letter], rng, last=not whole)
    told = [each.fill(rng.choice(wordings)).text for each in (cast, rival) if each is not None]
    wrong = Cast(cast.values | {letter: value}).fill(answer)
    return Twin("entity" if rival is not None else "number", told, cast.fill(question).text, right, wrong)


def _state_twin(
    data: dict[str, Any], frame: dict[str, Any], cast: Cast, rival: Cast | None, rng: Random
) -> Twin | None:
    states = frame["states"]
    true, false = rng.sample(range(len(states)), 2)
    number = rng.randrange(len(states[true]["answers"]))
    right, wrong = (states[state]["answers"][number] for state in (true, false))
    asked = rng.random() < ASKED and 0 in (true, false)
    question = rng.choice(frame["ask" if asked else "questions"])
    told = [cast.fill(rng.choice(states[true]["evidence"])).text]
    if rival is not None and (_names(question) or (_names(right) and _names(wrong))):
        told.append(rival.fill(rng.choice(states[false]["evidence"])).text)
    answers = cast.fill(right), cast.fill(wrong)
    if asked:
        prefixes = (rng.choice(data["yes" if state == 0 else "no"]) for state in (true, false))
        answers = tuple(_with_prefix(prefix, answer) for prefix, answer in zip(prefixes, answers, strict=True))
    kind = "polarity" if asked else frame["kind"]
    return Twin(kind, told, cast.fill(question).text, Text(answers[0].text), answers[1])


def _with_prefix(prefix: str, answer: Text) -> Text:
    """The answer after its yes or no, which is as wrong as what follows."""
    before = prefix.replace("{answer}", "{Answer}").partition("{Answer}")[0]
    opening = (0, len(before.rstrip(" ,.:;!،؛।۔，。、：；！")))
    marks = ((start + len(before), end + len(before)) for start, end in answer.marks)
    return Text(before + answer.text, (opening, *marks))


def _names(template: str) -> bool:
    return any(slot[1] in LISTS for slot in SLOT.finditer(template))


def _changed(value: int, rng: Random, *, last: bool) -> int:
    """The number with one digit changed: of years not the first, of others not the last one where `last` is false."""
    digits = list(str(value))
    at = rng.randrange(len(digits) == 4, len(digits) - (not last))
    digits[at] = rng.choice([digit for digit in "123456789" if digit != digits[at]])
    return int("".join(digits))


def samples_of(twin: Twin, tag: str, number: int) -> tuple[Sample, Sample]:
    """The right and the wrong answer as samples, with what is wrong as spans."""
    space = "" if read_frames(tag).get("no_spaces") else " "
    evidence = (Evidence(text=space.join(twin.evidence)),)
    spans = tuple(Span(start=start, end=end, type=TYPES[twin.kind]) for start, end in twin.wrong.marks)
    return tuple(  # type: ignore[return-value]
        Sample(
            id=f"{tag}-{number}-{name}",
            task=Task.QA,
            language=tag,
            question=twin.question,
            evidence=evidence,
            response=answer.text,
            annotations=(Annotation(annotator="authors", kind=Kind.HUMAN, taxonomy="fava", spans=marks),),
            meta={"kind": twin.kind, "twin": name},
        )
        for name, answer, marks in (("right", twin.right, ()), ("wrong", twin.wrong, spans))
    )


def draw(tag: str, count: int, seed: int) -> list[tuple[Sample, Sample]]:
    """Twins of a language."""
    rng = Random(f"{seed} {tag}")
    return [samples_of(draw_twin(tag, rng), tag, number) for number in range(count)]


def rows_of(wins: dict[str, list[float]]) -> list[dict[str, Any]]:
    """A row a group, with the share of wins and its 95% interval over twins (normal approximation)."""
    rows = []
    for name, values in wins.items():
        half = 1.96 * float(np.std(values)) / len(values) ** 0.5
        mean = float(np.mean(values))
        figure = f"{mean:.2f} [{max(mean - half, 0):.2f}, {min(mean + half, 1):.2f}]"
        rows.append({"twins": name, "n": len(values), "wrong one higher": figure})
    return rows


def main() -> None:
    """Draw, judge, count, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--detector", nargs="+", default=["grounding"], help="names of detectors, a table for each")
    parser.add_argument("--language", nargs="+", default=languages(), help="tags; all that there are by default")
    parser.add_argument("-n", "--count", type=int, default=100, help="twins a language")
    parser.add_argument("--show", action="store_true", help="print twins to read instead")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    twins = {tag: draw(tag, options.count, options.seed) for tag in options.language}
    if options.show:
        for right, wrong in (pair for pairs in twins.values() for pair in pairs):
            print(f"\n{right.meta['kind']}: {right.evidence[0].text}\n  ? {right.question}\n  + {right.response}")
            marked = [wrong.response[span.start : span.end] for span in wrong.annotations[0].spans or ()]
            print(f"  - {wrong.response}   {marked}")
        return
    for name in options.detector:
        detector = load_detector(name)
        wins: dict[str, list[float]] = defaultdict(list)
        for tag, pairs in twins.items():
            scores = [p.score for p in detector.predict([sample for pair in pairs for sample in pair])]
            for (right, _), first, second in zip(pairs, scores[::2], scores[1::2], strict=True):
                if first is not None and second is not None:
                    won = float(second > first) + 0.5 * (second == first)
                    for group in ("all", f"kind {right.meta['kind']}", f"language {tag}"):
                        wins[group].append(won)
        unchecked = sum(map(len, twins.values())) - len(wins["all"])
        notes = [f"{options.count} twins a language, seed {options.seed}; not checked: {unchecked}"]
        show(detector.name, rows_of(dict(sorted(wins.items()))), as_json=options.json, notes=notes)


if __name__ == "__main__":
    main()

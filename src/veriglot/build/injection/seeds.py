"""Seed passages: what errors are put into, which ought to be right itself."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

import msgspec

from veriglot.build.injection.wording import passage_prompt
from veriglot.build.quality import same_language
from veriglot.build.refusals import refuses
from veriglot.build.repetition import is_repetitive
from veriglot.formats.garbled import garbled
from veriglot.llm import Message
from veriglot.llm.thoughts import after_thoughts
from veriglot.provenance import digest
from veriglot.records import Sample
from veriglot.run import FailedRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from veriglot.llm import Reply

__all__ = ["Order", "SeedReason", "Task", "passage_messages", "passage_of", "seed_fault", "tasks"]

SeedReason = Literal["no_text", "refused", "held_back", "cut", "language", "repetitive", "garbled", "markup"]
Order = Literal["given", "shuffled"]

_FEWEST_WORDS = 3


class Task(msgspec.Struct, frozen=True):
    """A seed and what is to become of it.

    Attributes:
        id: the seed's.
        seed: its language is set.
        types: the types of errors: all of them one after another (fava), or one a sentence, in turn (halluverse);
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
    """What is to become of each seed; nothing is held but a counter per language.

    Args:
        seeds: samples with a response, which is the passage, or with evidence that a passage can be made from.
        types: of the errors, in the order of the rounds.
        turns: one type a sentence, drawn at random and balanced: each run of as many sentences of a language as there
            are types gets each once (halluverse, 3.2); otherwise every passage gets all of them (mfava, 3.1).
        order: `shuffled` draws the order of the rounds for each passage.
        clean: the share of the seeds, 0 to 1, that stay without errors; exact for each language, to one seed.
        seed: of the draws.

    Yields:
        A `Task`, or a `FailedRow` for a seed that nothing can be made of: no text at all, or a language that is
        neither stated nor to be told. Nothing is set to English.
    """
    counts: Counter[str] = Counter()
    dirty: Counter[str] = Counter()
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
    """The types of the sentences of a passage, to be gone through again and again, from the `turn`-th draw on."""
    block, place = divmod(turn, len(types))
    first = _shuffled(types, f"{key} {block}")
    return (*first[place:], *first[:place])


def _shuffled(types: Sequence[str], key: str) -> tuple[str, ...]:
    return tuple(sorted(types, key=lambda one: digest([key, one])))


def _usable(seed: Sample) -> Sample | FailedRow:
    evidence = any(passage.text.strip() for passage in seed.evidence)
    if not seed.response.strip() and not evidence:
        return FailedRow("the seed has neither a response nor evidence", field="evidence", id=seed.id)
    if seed.language is not None:
        return seed
    from veriglot.text import identify

    told = (seed.response, seed.question or "", *(passage.text for passage in seed.evidence))
    found = next((one for one in map(identify, filter(str.strip, told)) if one is not None), None)
    if found is None:
        return FailedRow(
            "the seed states no language, and its text does not tell",
            field="language",
            remedy="Write its BCP 47 tag into `language`.",
            id=seed.id,
        )
    return msgspec.structs.replace(seed, language=found.tag)


def passage_messages(seed: Sample) -> tuple[Message, ...]:
    """Asks for a passage that says what the seed's evidence says."""
    reference = "\n\n".join(passage.text for passage in seed.evidence)
    return (Message("user", passage_prompt(seed.language or "", seed.question or "", reference)),)


def passage_of(reply: Reply) -> str:
    """The passage in a reply."""
    return after_thoughts(reply.text).strip()


def seed_fault(passage: str, seed: Sample, finish: str = "stop") -> tuple[SeedReason, str] | None:
    """Why a passage is no seed, and the same in words; None where nothing speaks against it.

    Args:
        passage: the text.
        seed: the sample that it belongs to, with its language.
        finish: why its reply ended.
    """
    from veriglot.text import fold, identify, words

    tag = seed.language or ""
    folded = fold(passage)
    bounds = words(folded, tag)
    if finish == "filter":
        return "held_back", "the provider held the passage back"
    if finish == "length":
        return "cut", "the passage was cut at its length"
    if len(bounds) < _FEWEST_WORDS:
        return "no_text", f"the passage holds fewer than {_FEWEST_WORDS} words"
    if refuses(passage, tag):
        return "refused", f"the model declines: {passage[:120]!r}"
    if "<" in passage and ">" in passage:
        return "markup", "the passage holds angle brackets, which cannot be told from tags"
    if garbled(passage) is not None:
        return "garbled", "the passage loops, or holds unknown characters"
    if is_repetitive([folded[start:end] for start, end in bounds], passage):
        return "repetitive", "the passage repeats itself"
    found = identify(passage)
    if found is not None and not same_language(found.tag, tag):
        return "language", f"the passage reads like {found.tag}, and should be {tag}"
    return None

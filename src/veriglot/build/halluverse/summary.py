"""What came of a set: pages, facts, pairs by type, words, cost, and how diverse the people in it are."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from veriglot.build.diversity import Diversity, diversity_of
from veriglot.build.diversity.spread import evenness
from veriglot.build.halluverse.facts import facts_path
from veriglot.build.halluverse.pairs import read_facts
from veriglot.build.injection.account import TypeAccount, load_account  # msgspec reads it at run time
from veriglot.records import Sample
from veriglot.run import lost_of
from veriglot.text import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from veriglot.build.halluverse.facts import PageFacts
    from veriglot.build.injection.account import LanguageAccount
    from veriglot.sources import Person

__all__ = ["Example", "LanguageSummary", "Summary", "load_summary", "samples_of", "summary_of", "summary_path"]

_EXAMPLES = 2  # pairs of each type and language


class Example(msgspec.Struct, frozen=True):
    """A pair to look at."""

    id: str
    language: str
    type: str
    original: str
    edited: str


class LanguageSummary(msgspec.Struct, frozen=True):
    """One language.

    Attributes:
        pages: that were given.
        unfit: those of them that no facts were chosen from, by reason.
        asked: facts that were wanted.
        facts: facts that were taken.
        inexact: those of them that were not chosen in the page's own words; the page's sentence stands for them.
        fact_reasons: sentences that were chosen and not taken, and those that never came, by reason.
        fact_failures: pages whose calls gave nothing, and those that could not be read (in the total alone).
        pairs: in the set.
        types: by type; `reasons` are of the injection's check.
        sentence_reasons: sentences that got no error since something spoke against them, by reason.
        pair_failures: sentences whose calls gave nothing (in the total alone).
        balance: Pielou's evenness of the pairs over the types, 0 to 1; None without pairs.
        people: about whom there are pairs.
        words_original, words_edited: of all pairs, in our segmentation (halluverse25, Table 2, in tokens of its own).
        calls, tokens_in, tokens_out: what it cost (in the total also what failed, which is in no language); tokens are
            estimated where a server did not say.
    """

    pages: int
    unfit: dict[str, int]
    asked: int
    facts: int
    inexact: int
    fact_reasons: dict[str, int]
    fact_failures: int
    pairs: int
    types: dict[str, TypeAccount]
    sentence_reasons: dict[str, int]
    pair_failures: int
    balance: float | None
    people: int
    words_original: int
    words_edited: int
    calls: int
    tokens_in: int
    tokens_out: int


class Summary(msgspec.Struct, frozen=True):
    """All of a set.

    Attributes:
        languages: by BCP 47 tag, sorted.
        total: all of them.
        given: the people that were given; None where nobody was.
        set: those about whom there are pairs.
        by_language: the same in each language.
        unknown: groups of pairs about nobody who is known.
        examples: some pairs.
    """

    languages: dict[str, LanguageSummary]
    total: LanguageSummary
    given: Diversity | None
    set: Diversity
    by_language: dict[str, Diversity]
    unknown: int
    examples: tuple[Example, ...]

    def money(self, price_in: float, price_out: float) -> float:
        """What all calls cost, at prices for a million tokens of prompts and of replies, in the prices' currency."""
        return (self.total.tokens_in * price_in + self.total.tokens_out * price_out) / 1e6


def summary_path(output: Path) -> Path:
    """Where the summary of a set is."""
    return output.with_name(output.name + ".summary.json")


def load_summary(output: Path) -> Summary:
    """The summary that lies beside a set."""
    return msgspec.json.decode(summary_path(output).read_bytes(), type=Summary)


def samples_of(output: Path) -> Iterator[Sample]:
    """The pairs of a finished set, as `veriglot.read` gives them."""
    decoder = msgspec.json.Decoder(Sample)
    with output.open("rb") as lines:
        yield from map(decoder.decode, lines)


def summary_of(output: Path, people: Mapping[str, Person] | None, *, fact_failures: int = 0) -> Summary:
    """Sum up a finished set, and write the summary beside it.

    Args:
        output: the pairs, with their account and facts beside them.
        people: those that were given, by item.
        fact_failures: pages that failed in the first step.
    """
    account, rows = load_account(output), read_facts(facts_path(output))
    counts: dict[str, _Counts] = {tag: _Counts() for tag in sorted({row.language for row in rows})}
    everything = _Counts()
    examples: list[Example] = []
    for sample in samples_of(output):
        tag, type_ = sample.language or "", (sample.annotations[0].units or ())[0].label
        for one in (counts[tag], everything):
            one.add(sample)
        if counts[tag].types[type_] <= _EXAMPLES:
            examples.append(Example(sample.id, tag, type_, sample.evidence[0].text, sample.response))
    languages = {
        tag: _language([row for row in rows if row.language == tag], account.languages.get(tag), one)
        for tag, one in counts.items()
    }
    total = _language(rows, account.total, everything, fact_failures, account.failed)
    lost = lost_of(facts_path(output))
    total = msgspec.structs.replace(
        total,
        calls=total.calls + lost.calls,
        tokens_in=total.tokens_in + lost.tokens_in,
        tokens_out=total.tokens_out + lost.tokens_out,
    )
    known = people or {}
    found = [known[group] for group in everything.groups if group in known]
    born = [one.born for one in (*known.values(),) if one.born is not None]
    within = (min(born), max(born)) if born else None
    made = Summary(
        languages,
        total,
        diversity_of(known.values(), within=within) if people is not None else None,
        diversity_of(found, within=within),
        {
            tag: diversity_of([known[group] for group in one.groups if group in known], within=within)
            for tag, one in counts.items()
        },
        sum(group not in known for group in everything.groups),
        tuple(sorted(examples, key=lambda one: (one.language, one.type, one.id))),
    )
    summary_path(output).write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n")
    return made


class _Counts:
    """Counts over the pairs of a language, or of all."""

    def __init__(self) -> None:
        self.types: Counter[str] = Counter()
        self.groups: dict[str, None] = {}
        self.original = self.edited = 0

    def add(self, sample: Sample) -> None:
        self.types[(sample.annotations[0].units or ())[0].label] += 1
        self.groups[sample.meta["group"]] = None
        self.original += len(words(sample.evidence[0].text, sample.language))
        self.edited += len(words(sample.response, sample.language))


def _language(
    rows: list[PageFacts], account: LanguageAccount | None, counts: _Counts, fact_failures: int = 0, failed: int = 0
) -> LanguageSummary:
    types = account.types if account is not None else {}
    taken = [one.taken for one in types.values()]
    return LanguageSummary(
        len(rows),
        _ranked(row.unfit for row in rows if row.unfit is not None),
        sum(row.asked for row in rows),
        sum(len(row.facts) for row in rows),
        sum(not fact.exact for row in rows for fact in row.facts),
        _ranked(one.reason for row in rows for one in row.rejections),
        fact_failures,
        account.rows if account is not None else 0,
        types,
        account.passages.reasons if account is not None else {},
        failed,
        evenness(taken) if sum(taken) else None,
        len(counts.groups),
        counts.original,
        counts.edited,
        sum(row.calls for row in rows) + (account.calls if account is not None else 0),
        sum(row.tokens_in for row in rows) + (account.tokens_in if account is not None else 0),
        sum(row.tokens_out for row in rows) + (account.tokens_out if account is not None else 0),
    )


def _ranked(found: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(found).items(), key=lambda item: (-item[1], item[0])))

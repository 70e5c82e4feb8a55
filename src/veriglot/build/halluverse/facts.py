"""The first step: factual sentences of every page, chosen by a model or by rule, and checked (halluverse25, 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from veriglot.build.halluverse.choosing import Chosen, Fact, FactRejection, PageText, read_sentences
from veriglot.build.halluverse.pages import LEAST_SENTENCES, page_sentences, unfit
from veriglot.build.halluverse.wording import choose_prompt, facts_version
from veriglot.build.injection.support import NoReplyError, failed_row, replies_of
from veriglot.build.injection.waves import in_waves
from veriglot.build.refusals import refusals_version, refuses
from veriglot.llm import Message, Request, Settings, Spent, schema_of
from veriglot.llm.thoughts import after_thoughts
from veriglot.run import FailedRow, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
    from pathlib import Path

    from veriglot.build.halluverse.pages import Page
    from veriglot.llm import Answer, Client, Reply
    from veriglot.run import Tally
    from veriglot.run.manifest import Option

__all__ = ["CHOICE_VERSION", "Chooser", "FactSettings", "PageFacts", "choose_facts", "empty_page", "facts_path"]

CHOICE_VERSION = "1"  # raise it with any change of which sentences are taken


class FactSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which pages are used, and what of them.

    Attributes:
        count: facts a page (halluverse25: five).
        least: sentences that a page has to have (halluverse25: 20).
        known: whether a page has to be about one of the people that were given.
        named: whether a sentence has to name whom its page is about.
    """

    count: int = 5
    least: int = LEAST_SENTENCES
    known: bool = False
    named: bool = True


class Chooser(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The model that chooses sentences.

    Attributes:
        model: as its server names it.
        settings: how it generates.
        seed: of the calls; each further attempt takes the next number.
        attempts: how often a page is asked about, until there are facts enough; at least 1.
    """

    model: str
    settings: Settings = Settings()
    seed: int | None = None
    attempts: int = 2

    def request(self, page: Page, count: int, taken: Sequence[str] = (), attempt: int = 1) -> Request:
        """Asks for sentences of a page, as JSON."""
        name = page.names[0] if page.names else "somebody"
        prompt = choose_prompt(page.language, name, page.reference.text, count, taken=taken)
        seed = None if self.seed is None and attempt == 1 else (self.seed or 0) + attempt - 1
        return Request(
            self.model, (Message("user", prompt),), seed=seed, settings=self.settings, schema=schema_of(Chosen)
        )


class PageFacts(msgspec.Struct, frozen=True):
    """What became of one page. The row of the step.

    Attributes:
        id: the page's.
        language: BCP 47 tag.
        group: whom it is about: an item, or the page itself.
        title: of the page.
        sentences: how many it has.
        unfit: why no facts were chosen from it (`nobody`, `short`, `garbled`); None where they were.
        asked: how many facts were wanted.
        facts: those that were taken.
        rejections: what was not.
        calls, tokens_in, tokens_out: what it cost; tokens are estimated where a server did not say.
    """

    id: str
    language: str
    group: str
    title: str
    sentences: int
    unfit: str | None = None
    asked: int = 0
    facts: tuple[Fact, ...] = ()
    rejections: tuple[FactRejection, ...] = ()
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


def facts_path(output: Path) -> Path:
    """Where the facts of a set are."""
    return output.with_name(output.name + ".facts.jsonl")


def empty_page(page: Page, settings: FactSettings) -> PageFacts | None:
    """The row of a page that no facts are chosen from; None for one that they are."""
    reason = unfit(page, least=settings.least, known=settings.known)
    if reason is None:
        return None
    found = len(page_sentences(page.reference.text, page.language))
    return PageFacts(page.id, page.language, page.group, page.reference.title, found, reason[0])


def choose_facts(
    output: Path,
    pages: Iterable[Page | FailedRow],
    chooser: Chooser,
    client: Client,
    settings: FactSettings,
    *,
    inputs: Sequence[str] = (),
    options: dict[str, Option] | None = None,
    jobs: int = 8,
    restart: bool = False,
    retry: bool = False,
    seen: Callable[[msgspec.Struct | FailedRow], None] | None = None,
) -> Tally:
    """Have a model choose factual sentences of every page, and check them.

    Args:
        output: JSON lines of `PageFacts`.
        pages: the same ones in the same order at each call.
        chooser: who chooses them.
        client: whom to ask.
        settings: which pages, and how many sentences.
        inputs, options, jobs, restart, retry, seen: as for `queries`.

    Returns:
        What became of the pages. One whose calls gave nothing is a failed row; one without facts is not.

    Raises:
        UsageError: the output was begun otherwise.
        ModelError: what every further call would meet too.
    """
    stage: Stage[Page] = Stage(
        output,
        signature=client.signature,
        inputs=inputs,
        options={
            "model": chooser.model,
            "seed": chooser.seed,
            "attempts": chooser.attempts,
            "settings": msgspec.json.encode(chooser.settings, order="deterministic").decode(),
            "facts": msgspec.json.encode(settings, order="deterministic").decode(),
            "prompt": facts_version(),
            "check": f"choice@{CHOICE_VERSION},{refusals_version()}",
            **(options or {}),
        },
        restart=restart,
        retry=retry,
        maker="client",
    )

    def work(rows: Iterator[Page]) -> Iterator[PageFacts | FailedRow]:
        return in_waves(client, rows, lambda page: _chosen(page, chooser, settings), jobs=jobs)

    return stage.run(pages, work, seen=seen)


def _chosen(
    page: Page, chooser: Chooser, settings: FactSettings
) -> Generator[tuple[Request, ...], list[Answer], PageFacts | FailedRow]:
    """The work on one page; see `in_waves`."""
    empty = empty_page(page, settings)
    if empty is not None:
        return empty
    text = PageText(page, named=settings.named)
    rejected: list[FactRejection] = []
    spent = Spent()
    for attempt in range(1, chooser.attempts + 1):
        wanted = settings.count - len(text.facts)
        request = chooser.request(page, wanted, [fact.text for fact in text.facts], attempt)
        answers = yield (request,)
        try:
            (reply,) = replies_of(answers)
        except NoReplyError as failure:
            return failed_row(failure, page.id, spent)
        spent = spent.plus(request, reply)
        rejected += _taken(text, reply, wanted, attempt)
        if len(text.facts) == settings.count:
            break
    return PageFacts(
        page.id,
        page.language,
        page.group,
        page.reference.title,
        len(text.sentences),
        None,
        settings.count,
        tuple(text.facts),
        tuple(rejected),
        spent.calls,
        spent.tokens_in,
        spent.tokens_out,
    )


def _taken(text: PageText, reply: Reply, wanted: int, attempt: int) -> list[FactRejection]:
    """Take what a reply holds; returns what was not taken, and what is missing."""
    found = read_sentences(reply)
    if reply.finish == "filter":
        return [FactRejection("held_back", "the provider held the reply back", "", attempt)] * wanted
    if not found:
        said = after_thoughts(reply.text)
        if reply.finish == "length":
            return [FactRejection("cut", "the reply was cut at its length; raise max_tokens", said, attempt)] * wanted
        if refuses(said, "en"):
            return [FactRejection("refused", "the model declines", said, attempt)] * wanted
        return [FactRejection("unreadable", "the reply holds no sentences", said, attempt)] * wanted
    rejected = [one for said in found[:wanted] if (one := text.take(said, attempt)) is not None]
    more = f"{wanted} sentences were asked for, and this is one more"
    rejected += [FactRejection("number", more, said, attempt) for said in found[wanted:]]
    fewer = FactRejection("number", f"{wanted} sentences were asked for, and {len(found)} came", "", attempt)
    return rejected + [fewer] * (wanted - len(found))

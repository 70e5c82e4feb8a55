"""Factual data sets of biographies (Kang et al.): responses compared with articles, and with each other.

Section 2.2: responses in the wrong language are removed; the others are compared with the article about the person, or
with the other samples of the same prompt. Removed responses are in a file of their own, with the reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from itertools import groupby, islice, permutations
from operator import attrgetter
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Self

import msgspec
from msgspec.structs import replace

from veriglot.datasets.quality import Quality, QualityTally, refuses
from veriglot.datasets.queries import NamedPerson, Part, Reference, reference_from
from veriglot.errors import UsageError
from veriglot.llm.client import estimate_tokens
from veriglot.records import Annotation, Evidence, Sample, decode_json, encode, sample_from
from veriglot.records.languages import same_language
from veriglot.records.settings import Record
from veriglot.scorers.pairwise import with_other_responses
from veriglot.signatures import __version__, digest, file_sha256
from veriglot.storage.checkpoint import FailedRow, JsonLines
from veriglot.storage.files import beside, open_whole, write_json
from veriglot.text.identification import identify
from veriglot.wikipedia.articles import Absent, Article, draw_diverse

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.wikipedia.api import AnswerCache, Wikipedia

    Articles = dict[str, Reference | str]  # the article about a person, or why there is none

__all__ = [
    "ArticleSource",
    "ArticleStore",
    "ChoiceAccount",
    "FactualManifest",
    "RejectedPerson",
    "choose",
    "given_articles",
    "order_people",
    "wiki_articles",
    "write_sets",
]

Spread = Literal["diverse", "top", "given"]
_ITEM = re.compile(r"Q\d+")
_IMPOSSIBLE = frozenset("|\n")  # invalid in titles of a wiki
_BATCH = 20  # people in one lookup: pages in one answer of Wikipedia
_VERSION = 1  # of the manifest


ArticleSource = Callable[[Sequence[NamedPerson], str], "Articles"]
"""By id of the person: the article in a language, or why there is none (such as `missing`)."""


def order_people(
    candidates: Sequence[NamedPerson], count: int, *, spread: Spread = "diverse", groups: int = 10, seed: int = 0
) -> list[NamedPerson]:
    """All candidates in the order in which they are tried until `count` of them have enough articles.

    Args:
        candidates: in the order of their file.
        count: number of people.
        spread: `diverse` takes equally many from each of `groups` groups of equal size by page views (Kang et al.,
            section 3: "based on diverse page view counts"), with the others in reserve, in an order that a hash draws;
            `top` takes those with the most page views; `given` keeps the order.
        groups, seed: of the draw.

    Raises:
        UsageError: a count or number of groups below 1.
    """
    if spread == "given":
        return list(candidates)
    if spread == "top":
        return sorted(candidates, key=lambda person: (-person.views, person.id))
    first = draw_diverse(candidates, count, size=attrgetter("views"), name=attrgetter("id"), groups=groups, seed=seed)
    taken = {person.id for person in first}
    reserve = [person for person in candidates if person.id not in taken]
    return first + sorted(reserve, key=lambda person: digest([str(seed), person.id]))


def wiki_articles(wiki: Callable[[str], Wikipedia], *, part: Part = "text") -> ArticleSource:
    """Current articles of Wikipedias.

    A redirect to an article about another Wikidata item does not count as an article.

    Args:
        wiki: the Wikipedia of a language tag; called once for each.
        part: the part of an article that is the reference (Kang et al.: "the full-page content", section 3).
    """
    wiki = cache(wiki)

    def articles_of(people: Sequence[NamedPerson], tag: str) -> Articles:
        asked = {
            person.id: person.titles.get(tag) or person.titles.get(tag.partition("-")[0]) or "" for person in people
        }
        possible = [title for title in asked.values() if title and not _IMPOSSIBLE.intersection(title)]
        rows = list(wiki(tag).titles(possible)) if possible else []
        by_item = {row.item: row for row in rows if isinstance(row, Article) and row.item is not None}
        by_title = {row.title: row for row in rows}
        articles: Articles = {}
        for person, title in asked.items():
            if title not in possible:
                articles[person] = "invalid title" if title else "no title"
            else:
                row = by_item.get(person) or by_title.get(title) or next(iter(wiki(tag).titles([title])), None)
                articles[person] = _reference(person, tag, row, part)
        return articles

    return articles_of


def _reference(person: str, tag: str, row: Article | Absent | None, part: Part) -> Reference | str:
    if not isinstance(row, Article):
        return "missing" if row is None else row.reason
    if row.item not in (None, person) and _ITEM.fullmatch(person):
        return "another item"
    return _named(reference_from(msgspec.to_builtins(row), part=part), person, tag)


def given_articles(
    rows: Iterable[Reference | FailedRow], store: AnswerCache, note: Callable[[FailedRow | Reference], None]
) -> ArticleSource:
    """Store articles from files by person and language, in constant memory.

    Args:
        rows: references with the `item` that they are about in `meta`.
        store: an empty store for them.
        note: callback for each unusable row: one that could not be read, that has no item, or a second one about the
            same person in the same language.
    """
    for row in rows:
        item = row.meta.get("item") if isinstance(row, Reference) else None
        if not isinstance(row, Reference) or not isinstance(item, str):
            note(row)
            continue
        named = _named(row, item, row.language)
        if store.get(named.id) is not None:
            note(row)
        else:
            store.put(named.id, msgspec.json.encode(named))

    def articles_of(people: Sequence[NamedPerson], tag: str) -> Articles:
        articles: Articles = {}
        for person in people:
            ids = (f"{person.id}-{each}" for each in (tag, tag.partition("-")[0]))  # a file may have `zh` for `zh-Hans`
            encoded = next(filter(None, map(store.get, ids)), None)
            articles[person.id] = (
                _named(msgspec.json.decode(encoded, type=Reference), person.id, tag) if encoded else "missing"
            )
        return articles

    return articles_of


def _named(reference: Reference, person: str, tag: str) -> Reference:
    """The reference with the same id as the prompt."""
    return replace(reference, id=f"{person}-{tag}", language=tag, meta={**reference.meta, "item": person})


class RejectedPerson(Record, omit_defaults=True):
    """A person who was looked up and not chosen, or an article that is missing or unusable.

    Attributes:
        id: of the person; empty if an article does not have it.
        reason: of a person `articles` (too few); of an article `missing`, `disambiguation`, `no text`, `invalid title`,
            `not an article`, `redirect`, `another item`, `no title`, `no name`, `too short`, `unusable`.
        languages: languages without an article, with the reason; of a person.
        language: of the article.
        detail: the reason as a sentence.
    """

    id: str
    reason: str
    languages: dict[str, str] = {}
    language: str = ""
    detail: str = ""


class ChoiceAccount(msgspec.Struct):
    """Counts of the choice of people, updated while it runs.

    Attributes:
        looked_up: people who were looked up.
        chosen: of them, those who were chosen.
        set_aside: those who were not, and missing articles of chosen people.
        lacking: language -> reason -> number of people without an article, of those looked up.
    """

    looked_up: int = 0
    chosen: int = 0
    set_aside: list[RejectedPerson] = []
    lacking: dict[str, Counter[str]] = {}


def choose(
    candidates: Sequence[NamedPerson],
    source: ArticleSource,
    languages: Sequence[str],
    count: int,
    account: ChoiceAccount,
    *,
    at_least: int | None = None,
    also: Sequence[str] = (),
    min_characters: int = 0,
) -> Iterator[tuple[NamedPerson, dict[str, Reference]]]:
    """The first `count` people with a usable article in enough of the languages, with their articles by language.

    Args:
        candidates: in the order in which they are tried (`order_people`).
        source, languages, count: source of articles, languages of the data set, number of people.
        account: gets the counts.
        at_least: minimum number of languages with an article; None for all (Kang et al., section 3).
        also: further languages whose articles are added if they exist, such as English.
        min_characters: shorter articles do not count; code points.

    Raises:
        UsageError: there is no language, or `at_least` is not between 1 and their number.
        Any exception of `source`.
    """
    needed = len(languages) if at_least is None else at_least
    if not 1 <= needed <= len(languages):
        raise UsageError(f"Articles in {needed} of {len(languages)} languages cannot be asked for.")
    waiting = iter(candidates)
    while batch := list(islice(waiting, min(_BATCH, count - account.chosen))):
        by_tag = {tag: source(batch, tag) for tag in dict.fromkeys((*languages, *also))}
        for person in batch:
            articles: dict[str, Reference] = {}
            lacking: dict[str, str] = {}
            for tag, by_person in by_tag.items():
                article = by_person[person.id]
                if isinstance(article, Reference) and len(article.text) < min_characters:
                    article = "too short"
                elif isinstance(article, Reference) and tag in languages and person.name_in(tag) is None:
                    article = "no name"
                if isinstance(article, Reference):
                    articles[tag] = article
                elif tag in languages:
                    lacking[tag] = article
                    account.lacking.setdefault(tag, Counter())[article] += 1
            account.looked_up += 1
            if len(languages) - len(lacking) < needed:
                account.set_aside.append(RejectedPerson(person.id, "articles", lacking))
                continue
            account.set_aside += [RejectedPerson(person.id, reason, {}, tag) for tag, reason in lacking.items()]
            account.chosen += 1
            yield person, articles


_Reason = Literal["empty", "undetected", "language"]


class Verdict(Record):
    """The detected language of a response, with its confidence (0 to 1).

    A removed response has a reason: `empty` (no letter), `undetected` (the language cannot be detected; *Valid %* of
    Kang et al. counts the others), `language` (another one; their *Acc.*). Others have None.
    """

    language: str | None
    confidence: float | None
    reason: _Reason | None = None
    detail: str = ""


def verdict_on(response: str, asked: str) -> Verdict:
    """Check the language of one response against the requested one; the script may differ."""
    if not any(char.isalpha() for char in response):
        return Verdict(None, None, "empty", "it has no letters")
    identified = identify(response)
    if identified is None:
        return Verdict(None, None, "undetected", "its language cannot be identified")
    confidence = round(identified.confidence, 4)
    if not same_language(identified.tag, asked):
        return Verdict(identified.tag, confidence, "language", f"it is in {identified.tag} and should be in {asked}")
    return Verdict(identified.tag, confidence)


class FactualCell(msgspec.Struct):
    """Counts of one model in one language.

    `asked` are prompts times samples: calls that `failed` after all retries, and `responses`, which are `accepted` or
    removed (see `Verdict`). Of those accepted, `alone` are the only ones of their prompt; `pairs` and `cross` are their
    rows against other samples and against the article in the other language; `labelled` have labels. Tokens of all
    responses are counted by the server or estimated; so is `quality` (Kang et al., Table 1), None without responses.
    """

    model: str
    language: str
    asked: int = 0
    failed: int = 0
    responses: int = 0
    accepted: int = msgspec.field(name="kept", default=0)
    empty: int = 0
    undetected: int = 0
    language_wrong: int = 0
    alone: int = 0
    pairs: int = 0
    cross: int = 0
    labelled: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    quality: Quality | None = None


_UNSUMMED = {"model", "language", "quality"}


class _RejectedResponse(Record):
    """A removed response: the whole sample, so that users can decide differently."""

    id: str
    model: str
    language: str
    reason: _Reason
    detail: str
    identified: str | None = msgspec.field(name="found")
    sample: Sample


class Labels:
    """Annotations of responses, by id of the row of `reference.jsonl`.

    Args:
        samples: annotated rows, in any order. The text must be that of the response; nothing else is read.
    """

    def __init__(self, samples: Iterable[Sample] = ()) -> None:
        self._given = {sample.id: sample for sample in samples if sample.annotations}
        self._used: dict[str, bool] = {}  # whether the text is the row's, by id

    def of(self, sample: Sample) -> tuple[Annotation, ...]:
        """The annotations of a response; none if it has no labels, or if the labelled text differs."""
        labelled = self._given.get(sample.id)
        if labelled is None:
            return ()
        self._used[sample.id] = labelled.response == sample.response
        return labelled.annotations if self._used[sample.id] else ()

    def account(self) -> dict[str, int]:
        """Number of given and used labels, of labels for another text, and of labels for no row of the data set."""
        given, used = len(self._given), sum(self._used.values())
        counts = {"given": given, "used": used, "of_another_text": len(self._used) - used}
        return counts | {"of_no_row": given - len(self._used)}


class _SetJob(msgspec.Struct):
    """State of `write_sets`."""

    store: ArticleStore
    languages: Sequence[str]
    cross: str | None
    labels: Labels
    writers: dict[str, BinaryIO] = {}
    rows: Counter[str] = msgspec.field(default_factory=Counter)
    without_cross: int = 0
    tallies: dict[tuple[str, str], tuple[FactualCell, QualityTally]] = {}

    def _write(self, name: str, record: msgspec.Struct) -> None:
        self.writers[name].write(encode(record) + b"\n")
        self.rows[name] += 1

    def read(self, model: str, path: Path) -> None:
        """Read all responses of one model."""
        samples = (sample_from(decode_json(line)) for line in JsonLines(path).lines())
        for _, rows in groupby(samples, key=lambda sample: sample.meta["query"]):
            self._prompt(model, list(rows))
        tags = sorted(self.languages, key=len, reverse=True)
        for line in JsonLines(beside(path, ".failed.jsonl")).lines():
            failed = msgspec.json.decode(line, type=FailedRow)
            query = (failed.id or "").rpartition(f"/{model}/")[0]
            cell = self._cell(model, next((tag for tag in tags if query.endswith(f"-{tag}")), ""))
            cell.asked += 1
            cell.failed += 1

    def _cell(self, model: str, language: str) -> FactualCell:
        return self.tallies.setdefault((model, language), (FactualCell(model, language), QualityTally()))[0]

    def _count(self, cell: FactualCell, sample: Sample, verdict: Verdict) -> None:
        """Count a response with its language verdict and its tokens."""
        cell.asked += 1
        cell.responses += 1
        cell.accepted += verdict.reason is None
        cell.empty += verdict.reason == "empty"
        cell.undetected += verdict.reason == "undetected"
        cell.language_wrong += verdict.reason == "language"
        tokens_in, tokens_out = sample.meta.get("tokens_in"), sample.meta.get("tokens_out")
        cell.tokens_in += tokens_in if isinstance(tokens_in, int) else estimate_tokens(sample.question or "")
        cell.tokens_out += tokens_out if isinstance(tokens_out, int) else estimate_tokens(sample.response)
        self.tallies[cell.model, cell.language][1].add(sample)

    def _prompt(self, model: str, rows: list[Sample]) -> None:
        """Write the samples of one prompt."""
        tag = rows[0].language or ""
        cell = self._cell(model, tag)
        accepted = []
        for row in rows:
            verdict = verdict_on(row.response, tag)
            self._count(cell, row, verdict)
            if verdict.reason is None:
                accepted.append(_marked(row, verdict))
            else:
                rejected = _RejectedResponse(row.id, model, tag, verdict.reason, verdict.detail, verdict.language, row)
                self._write("rejected.jsonl", rejected)
        if not accepted:
            return
        cell.alone += len(accepted) == 1
        person, crosses = accepted[0].meta["person"], self.cross not in (None, tag)
        article = self.store.get(f"{person}-{tag}")
        other = self.store.get(f"{person}-{self.cross}") if crosses else None
        for sample in with_other_responses(accepted):
            annotations = self.labels.of(sample)
            cell.labelled += bool(annotations)
            evidence = (article.evidence,) if article is not None else ()
            self._write("reference.jsonl", replace(sample, evidence=evidence, annotations=annotations))
            if other is not None:
                id_, meta = f"{sample.id}/{self.cross}", {**sample.meta, "response": sample.id}
                self._write(f"{self.cross}.jsonl", replace(sample, id=id_, evidence=(other.evidence,), meta=meta))
                cell.cross += 1
            self.without_cross += crosses and other is None
        for sample, second in permutations(accepted, 2):
            self._write("pairs.jsonl", _pair(sample, second))
            cell.pairs += 1


def _marked(sample: Sample, verdict: Verdict) -> Sample:
    """The response with its verdict. `group` has all rows of a person in one part of a bench's split."""
    notes = {"group": sample.meta["person"], "identified": verdict.language, "identified_with": verdict.confidence}
    if refuses(sample.response, sample.language):
        notes["refused"] = True
    return replace(sample, meta=sample.meta | notes)


def _pair(sample: Sample, second: Sample) -> Sample:
    """A response with another sample of its prompt as evidence."""
    meta = {key: sample.meta[key] for key in ("group", "person", "name", "query")}
    suffix = f"{second.generator.seed}" if second.generator is not None else second.id
    return replace(
        sample,
        id=f"{sample.id}/vs/{suffix}",
        evidence=(Evidence(second.response, language=second.language),),
        annotations=(),
        meta={**meta, "response": sample.id, "sister": second.id},
    )


class _WrittenFile(Record):
    """A file of the data set: number of rows, size in bytes, and SHA-256."""

    rows: int
    size: int
    sha256: str


class FactualManifest(Record):
    """Manifest of a data set.

    Attributes:
        veriglot: version that made it.
        made_by: every setting that changes the data set, with versions of prompts and of language detection.
        made_from: SHA-256 of the responses, articles and labels that it was made from.
        people: number of people in the candidates, looked up, chosen, and not chosen.
        articles: language -> reason -> number of people without a usable article, of those looked up.
        cells: counts by model and language.
        total: the sum of their counts.
        labels: labels given and used.
        without_cross: accepted responses without an article in the other language.
        money: cost of all calls at the given prices; None without prices.
        files: each file by name.
        version: of this format.
    """

    veriglot: str
    made_by: dict[str, Any]
    made_from: str
    people: dict[str, Any]
    articles: dict[str, dict[str, int]]
    cells: tuple[FactualCell, ...]
    total: dict[str, int]
    labels: dict[str, int]
    without_cross: int
    money: float | None
    files: dict[str, _WrittenFile]
    version: int = _VERSION


def write_sets(
    root: Path,
    responses: Mapping[str, Path],
    account: Mapping[str, Any],
    settings: Mapping[str, Any],
    *,
    cross: str | None = "en",
    labels: Iterable[Sample] = (),
    labelled: Sequence[Path] = (),
    prices: tuple[float, float] | None = None,
) -> FactualManifest:
    """Write the data sets of all responses, and `manifest.json`; unchanged inputs leave them as they are.

    `reference.jsonl` has every accepted response with the article in its language as evidence, and the other samples of
    its prompt in `meta.samples`; `CROSS.jsonl` has the article in another language; `pairs.jsonl` has each of the other
    samples; `rejected.jsonl` has the removed responses. Each file appears only when it is complete.

    Args:
        root: the folder, which has `articles.jsonl`.
        responses: name of the model -> its responses, as `responses` writes them under the design `runs`, with the rows
            of one prompt next to each other; failed calls are in a file beside them.
        account: counts of the choice of people: `made_by`, with the `languages` of the data set, `people` and
            `articles`.
        settings: other settings that change the data sets.
        cross: tag of the other language; None for no such file.
        labels: annotated rows of `reference.jsonl`, in any order.
        labelled: the files of the labels.
        prices: of a million tokens of prompts and of replies.

    Raises:
        InputError: a row of responses is not a sample.
    """
    path, order = root / "manifest.json", account["made_by"]
    failed = [beside(output, ".failed.jsonl") for output in responses.values()]
    sources = [root / "articles.jsonl", *responses.values(), *failed, *labelled]
    hashes = [file_sha256(str(source)) if source.exists() else "-" for source in sources]
    made_from = digest([*hashes, msgspec.json.encode({**settings, "order": order}, order="deterministic")])
    with suppress(FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        before = msgspec.json.decode(path.read_bytes(), type=FactualManifest)
        sizes = {name: (root / name).stat().st_size for name in before.files}
        whole = all(sizes[name] == written.size for name, written in before.files.items())
        if whole and before.version == _VERSION and before.made_from == made_from:
            return before
    path.unlink(missing_ok=True)  # first, so that an old manifest is never beside new files
    names = ["reference.jsonl", *([f"{cross}.jsonl"] if cross is not None else []), "pairs.jsonl", "rejected.jsonl"]
    with ExitStack() as stack:
        article_store = stack.enter_context(ArticleStore(root / "articles.jsonl"))
        job = _SetJob(article_store, order["languages"], cross, Labels(labels))
        job.writers.update((name, stack.enter_context(open_whole(root / name))) for name in names)
        for model, rows in responses.items():
            job.read(model, rows)
    for cell, quality in job.tallies.values():
        cell.quality = quality.quality()
    cells = tuple(cell for cell, _ in job.tallies.values())
    encoded = [msgspec.to_builtins(cell) for cell in cells]
    summed = [name for name in FactualCell.__struct_encode_fields__ if name not in _UNSUMMED]
    total = {name: sum(cell[name] for cell in encoded) for name in summed}
    spent = None if prices is None else total["tokens_in"] * prices[0] + total["tokens_out"] * prices[1]
    manifest = FactualManifest(
        veriglot=__version__,
        made_by=order | settings,
        made_from=made_from,
        people=account["people"],
        articles=account["articles"],
        cells=cells,
        total=total,
        labels=job.labels.account(),
        without_cross=job.without_cross,
        money=None if spent is None else round(spent / 1e6, 6),
        files={
            name: _WrittenFile(job.rows[name], (root / name).stat().st_size, file_sha256(str(root / name)))
            for name in names
        },
    )
    write_json(path, manifest)
    return manifest


class ArticleStore:
    """References of a file of JSON lines, by id; in memory are only offsets, because a file may have half a gigabyte.

    Args:
        path: the file, which must not change meanwhile.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._places: dict[str, int] = {}
        offset = 0
        for line in self._file:
            self._places[msgspec.json.decode(line, type=Reference).id] = offset
            offset += len(line)

    def get(self, id_: str) -> Reference | None:
        """The reference of an id (`<person>-<language>`), or None."""
        offset = self._places.get(id_)
        if offset is None:
            return None
        self._file.seek(offset)
        return msgspec.json.decode(self._file.readline(), type=Reference)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._places

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

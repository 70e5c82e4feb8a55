"""`veriglot dataset silver` and `rules`: typed errors put into texts by a model, or by rule."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from veriglot.cli.command import command
from veriglot.cli.console import ProgressBar, say
from veriglot.cli.generation import (
    Checks,
    Connection,
    Cost,
    Queries,
    Reading,
    Run,
    print_plan,
    references,
    show_account,
    tell,
)
from veriglot.cli.inputs import parts, readable
from veriglot.datasets.generation import rejected_path
from veriglot.datasets.prompts import use_prompts
from veriglot.datasets.queries import Reference
from veriglot.datasets.rules.material import Articles
from veriglot.datasets.rules.silver import RuleSettings, rule_silver
from veriglot.datasets.silver.check import Edited
from veriglot.datasets.silver.injection import Form, Injector, Order, Task, tasks
from veriglot.datasets.silver.job import LanguageAccount, load_account
from veriglot.datasets.silver.job import silver as make
from veriglot.errors import InputError, UsageError
from veriglot.formats.reader import guess
from veriglot.llm.client import estimate_tokens
from veriglot.records import Sample
from veriglot.text.segmentation import sentences

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.storage.checkpoint import FailedRow

__all__ = ["types_of"]


@command
def rules(
    seeds: list[str],
    *,
    output: str,
    count: int | None = None,
    taxonomy: Literal["fava", "halluverse"] = "fava",
    clean: float = 0.3,
    shares: str | None = None,
    errors: str = "1-3",
    reworded: float = 0.4,
    articles: int = 1000,
    seed: int = 0,
    reading: Reading,
    overwrite: bool = False,
    json: bool = False,
    quiet: bool = False,
) -> int:
    """Make silver data by rule: quote the evidence and insert errors with exact spans, without a model.

    \b
    Example:  veriglot dataset rules articles.jsonl -n 10000 -o silver.jsonl
    """
    fewest, most = _range(errors)
    settings = RuleSettings(
        rows=count or 1000,
        taxonomy=taxonomy,
        shares=_shares(shares),
        clean=clean,
        fewest=fewest,
        most=most,
        reworded=reworded,
        articles=articles,
        seed=seed,
    )
    source = Queries(seeds, reading)
    quoted = _articles(source, settings, reading)
    path = Path(output)
    with ProgressBar(shown=not quiet, total=lambda: settings.rows) as bar:
        tally = rule_silver(path, quoted, settings, restart=overwrite, seen=lambda _: bar.advance(), **source.made_of)
    if not quiet:
        _show(path, None, json=json)
        _say_unsupported(quoted, settings)
    total = load_account(path).total
    if (unmade := total.seeds - total.rows) > 0:
        say(f"Planned rows that could not be made: {unmade:,}; {path}.rejected.jsonl gives the reasons.")
    return tell(path, tally, what="planned rows")


def _shares(text: str | None) -> dict[str, float]:
    shares: dict[str, float] = {}
    for part in parts(text or ""):
        name, _, number = part.partition("=")
        try:
            shares[name.strip()] = float(number)
        except ValueError:
            raise UsageError(
                f"`shares` has {part!r}.", "Write it as entity=2,relation=1, with a number for each type."
            ) from None
    return shares


def _range(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    try:
        return int(first), int(last or first)
    except ValueError:
        raise UsageError(f"`errors` is {text!r}, which is no range.", "Write it as 2 or as 1-3.") from None


def _articles(source: Queries, settings: RuleSettings, reading: Reading) -> Articles:
    """The passages of the seeds: from samples in any readable format, and from files of `veriglot dataset articles`."""
    articles = Articles(settings.articles, settings.seed)

    def rows() -> Iterator[Sample | Reference | FailedRow]:
        for path in source.paths:
            plain = reading.format is None and not _holds_samples(path)
            yield from references([path], "lead") if plain else Queries([path], reading).rows()

    answered = 0
    for row in readable(rows(), "seeds could not be read."):
        if isinstance(row, Sample | Reference):
            answered += bool(getattr(row, "response", ""))
            articles.add(row)
    if answered:
        say(f"responses not used: {answered:,}; they may be wrong, and rules quote evidence")
    for reason, number in sorted(articles.left_out.items()):
        say(f"{number:,} seeds are left out: {reason}.")
    return articles


def _holds_samples(path: str) -> bool:
    """Whether a file has a format of samples; other JSON lines may be articles."""
    if not path.endswith(".jsonl"):
        return True
    try:
        guess(path)
    except InputError:
        return False
    return True


def _say_unsupported(articles: Articles, settings: RuleSettings) -> None:
    """Warn of languages that lack requested types, or are left out."""
    missing: dict[tuple[str, ...], list[str]] = {}
    for tag in articles.quotable:
        can = settings.supported(tag)
        types = tuple(type_ for type_, weight in settings.weights().items() if weight and type_ not in can)
        missing.setdefault(types, []).append(tag)
    for types, tags in missing.items():
        if types:
            without = f"{', '.join(types)} in {', '.join(tags)}"
            say(f"Rules make no errors of {without}: the other types take their share there.")
    alone = [tag for tag in articles.languages() if tag not in articles.quotable]
    if alone:
        say(f"No rows in {', '.join(alone)}: errors take words from a second article, and there is only one.")


@command
def silver(
    seeds: list[str],
    *,
    output: str,
    model: str,
    taxonomy: Literal["fava", "halluverse"] = "fava",
    order: str | None = None,
    form: Form | None = None,
    prompt: str | None = None,
    clean: float = 0.0,
    checks: Checks,
    seed: int = 0,
    cost: Cost,
    connection: Connection,
    reading: Reading,
    run: Run,
    dry_run: bool = False,
    json: bool = False,
) -> int:
    """Make silver data: passages into which a model inserts errors, with exact spans.

    Every row is checked: its text outside the spans equals the passage, no words run together, and each span differs
    from the original text and is in the right language and script. OUTPUT.rejected.jsonl holds what does not pass, with
    reasons; OUTPUT.account.json holds the yield by type and language and the cost.

    \b
    Passages:   veriglot dataset silver queries.jsonl -m gpt --base-url https://host/v1 -o silver.jsonl
    Sentences:  veriglot dataset silver facts.jsonl --taxonomy halluverse -m gpt --base-url https://host/v1 -o out.jsonl
    Settings:   veriglot dataset silver --write-config > silver.toml, then --config silver.toml
    """
    if prompt is not None:
        use_prompts(prompt, "injection")
    types, turns = types_of(order)
    form = form or ("plain" if taxonomy == "halluverse" else "tags")
    injector = Injector(
        model, connection.settings, seed, taxonomy=taxonomy, types=types, form=form, attempts=checks.attempts
    )
    source = Queries(seeds, reading)
    if dry_run:
        _plan(source, injector, turns, clean, checked=checks.support == "model", cost=cost)
        return 0
    support, path = checks.support_check(model, seed), Path(output)
    with connection.open(path, checks.models(model)) as client, run.progress(source.count) as progress:
        tally = make(
            path,
            source.rows(),
            injector,
            client,
            support=support,
            order=turns,
            clean=clean,
            jobs=connection.concurrency,
            **source.made_of,
            **progress,
        )
    if not run.quiet:
        _show(path, cost, json=json)
    return tell(path, tally, what="seeds")


def types_of(order: str | None) -> tuple[tuple[str, ...], Order]:
    """The chosen types (empty for all) and their order; a `UsageError` if the list is empty."""
    if order is None:
        return (), "given"
    if order.strip().lower() == "shuffled":
        return (), "shuffled"
    types = tuple(parts(order))
    if not types:
        raise UsageError(f"`order` is {order!r}, which names no type.")
    return types, "given"


def _plan(source: Queries, injector: Injector, order: Order, clean: float, *, checked: bool, cost: Cost) -> None:
    """Estimated calls and tokens: one call per error, passages of the known length."""
    calls = unusable = tokens_in = tokens_out = 0
    turns = injector.per_sentence
    for row in tasks(source.rows(), injector.all_types, turns=turns, order=order, clean=clean, seed=injector.seed):
        if not isinstance(row, Task):
            unusable += 1
            continue
        given = row.seed.response.strip()
        passage = given or " ".join(row.seed.evidence[0].text.split()[:80])  # of average length, for the estimate
        reference = sum(estimate_tokens(evidence.text) for evidence in row.seed.evidence)
        if not given:
            calls += 1
            tokens_in += injector.passage_request(row.seed, 1).tokens
            tokens_out += estimate_tokens(passage)
        texts = [passage[s:e] for s, e in sentences(passage, row.seed.language)] if turns else [passage]
        rounds = [(text, type_) for text in texts for type_ in (row.types[:1] if turns else row.types)]
        for text, type_ in rounds:
            calls += 1
            tokens_in += injector.request(row, Edited(text, text), type_, 1).tokens
            tokens_out += estimate_tokens(text)
        if checked:
            calls += 1 + len(rounds)
            tokens_in += (1 + len(rounds)) * (reference + estimate_tokens(passage))
    print_plan(cost.prices, calls=calls, seeds_that_cannot_be_used=unusable, tokens_in=tokens_in, tokens_out=tokens_out)


def _show(output: Path, cost: Cost | None, *, json: bool) -> None:
    """The yield per language and type, and the reasons for rejections."""
    account = load_account(output)
    total = account.total

    def cells(part: LanguageAccount) -> Iterator[tuple[str, str]]:
        for head, number in (("seeds", part.seeds), ("rows", part.rows), ("clean", part.clean)):
            yield head, f"{number:,}"
        for head, each in (("passages", part.passages), *part.types.items()):
            yield head, "-" if each.share is None else f"{each.share:.0%}"

    by_type = {type_: each.reasons for type_, each in total.types.items()}
    reasons = {"passage": total.passages.reasons, **by_type, "row": total.row_reasons}
    rejected = sum(sum(counts.values()) for counts in reasons.values())
    show_account(
        account,
        cells,
        done=f"{output}: {total.rows:,} rows, {total.clean:,} of them clean.",
        reasons=reasons,
        rejected=f"{rejected:,} rejections, listed in {rejected_path(output)}:",
        prices=cost.prices if cost is not None else None,
        json=json,
    )
    if not json:
        say("Percentages: the share of attempts that was accepted.")

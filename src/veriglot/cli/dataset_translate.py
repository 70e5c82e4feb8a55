"""`veriglot dataset translate` and `labels`: samples in other languages with their spans, and spans as token labels."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from veriglot.cli.command import command
from veriglot.cli.console import print_json, say
from veriglot.cli.generation import Connection, Queries, Reading, Run, show_account, tell
from veriglot.cli.inputs import language_tags, parts
from veriglot.datasets.generation import Account, read_account, rejected_path
from veriglot.datasets.prompts import use_prompts
from veriglot.datasets.translation.job import Around, Dropped, TranslationLanguage, TranslationSettings
from veriglot.datasets.translation.job import translate as translated
from veriglot.datasets.translation.projection import STRATEGIES
from veriglot.datasets.translation.translators import ModelTranslator, Translator, load_aligner, load_translator
from veriglot.errors import UnknownNameError, UsageError
from veriglot.storage.checkpoint import Manifest

if TYPE_CHECKING:
    from collections.abc import Iterator


@command
def translate(
    data: list[str],
    *,
    languages: str,
    translator: str,
    output: str,
    strategy: str = "tags,spans,align",
    aligner: str = "auto",
    min_quality: float = 0.5,
    dropped: Dropped = "aside",
    evidence: Around = "translate",
    question: Around = "translate",
    translator_options: dict[str, Any] = {},  # noqa: B006  # never changed
    model: str | None = None,
    prompt: str | None = None,
    by_sentence: bool = False,
    attempts: int = 2,
    seed: int = 0,
    connection: Connection,
    reading: Reading,
    run: Run,
    json: bool = False,
) -> int:
    """Translate annotated samples, with their spans, into other languages.

    Every span has a quality: how certain its position is. Spans below min_quality are dropped and counted.
    OUTPUT.rejected.jsonl holds rejected rows and translations, with reasons; OUTPUT.account.json holds the counts by
    language and type.

    \b
    A model here:  veriglot dataset translate fava.jsonl -l de,ar,zh --translator hf:FOLDER -o out.jsonl
    A server:      veriglot dataset translate fava.jsonl -l de --translator llm -m gpt --base-url URL -o out.jsonl
    """
    named = parts(strategy)
    for name in named:
        if name not in STRATEGIES:
            raise UnknownNameError("strategy", name, STRATEGIES)
    strategies = tuple(name for name in STRATEGIES if name in named)
    settings = TranslationSettings(strategies, min_quality, dropped, evidence, question, attempts)
    path = Path(output)
    with ExitStack() as stack:
        loaded_translator: Translator
        if translator != "llm":
            if prompt is not None:
                raise UsageError("--prompt goes with --translator llm.", "Leave out --prompt.")
            if model is not None:
                raise UsageError("--model goes with --translator llm.", "Name the folder after a colon: hf:FOLDER.")
            loaded_translator = load_translator(translator, **translator_options)
        elif model is None:
            raise UsageError("No model is named.", "Name it with --model.")
        elif translator_options:
            raise UsageError("translator_options go with hf.", "Set generation and client_options.")
        else:
            if prompt is not None:
                use_prompts(prompt, "translation")
            client = stack.enter_context(connection.open(path, [model]))
            generation = connection.settings if connection.generation else None
            loaded_translator = ModelTranslator(
                client, model, settings=generation, seed=seed, jobs=connection.concurrency, by_sentence=by_sentence
            )
        source = Queries(data, reading)
        targets = list(language_tags(languages))
        begun = {"begun": _begun(path, restart=run.overwrite)} if aligner == "auto" else {}
        aligning = load_aligner(aligner, **begun) if "align" in strategies else None
        rows = source.rows()
        progress = stack.enter_context(run.progress(lambda: (source.count() or 0) * len(targets) or None))
        tally = translated(
            path, rows, targets, loaded_translator, aligner=aligning, settings=settings, **source.made_of, **progress
        )
    account = read_account(path, Account[TranslationLanguage])
    if not run.quiet:
        _show_translated(account, path, json=json)
    code = tell(path, tally, what="rows")
    if not account.total.translated:
        asked = _asked(account)
        say(f"No row was kept of {asked:,}: {path} is empty." if asked else "There was no row to translate.")
    return code


def _asked(account: Account[TranslationLanguage]) -> int:
    """All rows to translate; failed rows have no language."""
    return account.total.rows + account.failed


def _begun(output: Path, *, restart: bool) -> str | None:
    """The signature of the aligner of a started output, if it will be resumed."""
    before = None if restart else Manifest.load(output)
    begun = before.options.get("aligner") if before is not None else None
    return begun if isinstance(begun, str) else None


def _show_translated(account: Account[TranslationLanguage], output: Path, *, json: bool) -> None:
    """The counts per language and type, and the reasons for rejections."""
    total, marks = account.total, account.total.marks

    def cells(part: TranslationLanguage) -> Iterator[tuple[str, str]]:
        given = _asked(account) if part is total else part.rows
        for head, number in (
            ("rows", given),
            ("kept", part.translated),
            ("partial", part.partial),
            ("spans", part.marks.asked),
        ):
            yield head, f"{number:,}"
        yield "quality", "-" if part.marks.quality is None else f"{part.marks.quality:.2f}"
        for name, each in (("dropped", part.marks), *((name, part.types.get(name)) for name in total.types)):
            rate = each.drop_rate if each is not None else None
            yield name or "no type", "-" if rate is None else f"{rate:.1%}"

    failed = f"{account.failed:,} failed, " if account.failed else ""
    show_account(
        account,
        cells,
        done=f"{output}: {total.translated:,} of {_asked(account):,} rows kept, {failed}{marks.dropped:,} of"
        f" {marks.asked:,} spans dropped.",
        reasons={"row": total.row_reasons, **total.reply_reasons},
        rejected=f"Rejected, as listed in {rejected_path(output)}:",
        json=json,
    )


@command
def labels(
    data: list[str],
    *,
    tokenizer: str,
    output: str,
    scheme: Literal["io", "bio"] = "io",
    max_length: int | None = None,
    annotator: str | None = None,
    format_: str | None = None,
    language: str | None = None,
    run: Run,
    json: bool = False,
) -> int:
    """Label the tokens of annotated responses, for training a token classifier.

    A row has the token ids, their offsets in code points, and a label for each token: O, I-type or B-type, and none for
    special tokens. OUTPUT.account.json counts tokens by label and numbers the labels. It also counts the spans that the
    labels reproduce exactly, and the reasons for the others: cut off, wider than the span by part of a token, or merged
    with another span.

    \b
    For mBERT:  veriglot dataset labels train.jsonl --tokenizer bert-base-multilingual-cased -o train.parquet
    Here:       veriglot dataset labels train.jsonl --tokenizer t.json --scheme bio --max-length 512 -o out.jsonl
    """
    from veriglot.datasets.token_labels import LabelAccount, label_samples

    source = Queries(data, Reading(format=format_, language=language))
    path = Path(output)
    with run.progress(source.count) as progress:
        tally = label_samples(
            path,
            source.rows(),
            tokenizer,
            scheme=scheme,
            max_length=max_length,
            annotator=annotator,
            **source.made_of,
            **progress,
        )
    account = read_account(path, LabelAccount)
    if json:
        print_json(account)
    elif not run.quiet:
        total = sum(account.tokens.values())
        for name, count in account.tokens.items():
            print(f"{name:24} {account.label_ids[name]:>3} {count:>12,} tokens {count / max(1, total):>7.2%}")
        print(f"spans: {', '.join(f'{number:,} {what}' for what, number in account.spans.items()) or 'none'}")
        if account.unchecked:
            names = ", ".join(f"{name!r} ({account.taxonomies[name]:,} rows)" for name in account.unchecked)
            print(f"taxonomies that are not known here, so that types could not be looked up: {names}")
        print(f"rows: {account.rows:,}, without a span {account.clean:,}, cut {account.cut:,}")
    return tell(path, tally, what="rows")

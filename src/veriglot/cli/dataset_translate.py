"""`veriglot dataset translate` and `labels`: samples in other languages with their spans, and spans as token labels."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from veriglot.cli.command import Help, Setting, command
from veriglot.cli.generation import Queries, print_json, say, tell
from veriglot.cli.inputs import count_rows
from veriglot.cli.options import (
    AccountJson,
    Annotator,
    Attempts,
    Connection,
    InputFormat,
    OptionalModel,
    Output,
    Overwrite,
    Quiet,
    Reading,
    RequiredLanguages,
    Retry,
    RowLanguage,
    language_tags,
    parts,
)
from veriglot.cli.progress import Bar
from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.datasets.generation import Account
    from veriglot.datasets.token_labels import LabelAccount
    from veriglot.datasets.translation.job import MarkAccount, TranslationLanguage, TranslationSettings
    from veriglot.datasets.translation.translators import Translator

__all__ = ["labels", "translate"]


_ALL = "tags,spans,align"


@command
def translate(
    data: Annotated[
        list[str],
        typer.Argument(metavar="DATA...", show_default=False, help="Annotated samples in any readable format."),
    ],
    *,
    languages: Annotated[RequiredLanguages, Help("To translate into, such as de,ar,zh.")],
    translator: Annotated[
        str,
        typer.Option(
            "--translator",
            metavar="NAME",
            help="hf:FOLDER (any sequence-to-sequence model of transformers: NLLB, M2M-100, mBART, Marian ...),"
            " ct2:FOLDER (one that CTranslate2's converter wrote), or llm"
            " (a model that is asked; name it with --model).",
        ),
    ],
    output: Annotated[Output, Help("JSON lines.")],
    strategy: Annotated[
        str,
        Setting(
            "How spans are found again; of several the best is taken, span by span. tags: markers that go through"
            " the translator. spans: each span translated by itself and looked for. align: by the words that belong"
            " together."
        ),
    ] = _ALL,
    aligner: Annotated[
        str,
        Setting(
            "lexical (equal words, numbers, names, places) or vectors (of an encoder; vectors:NAME names one);"
            " auto is vectors where the encoder is here, else lexical. Each row says which."
        ),
    ] = "auto",
    min_quality: Annotated[float, Setting("Quality below which a span is dropped, 0 to 1.", 0, 1)] = 0.5,
    dropped: Annotated[
        Literal["aside", "keep"],
        Setting(
            "A row that lost a span: set aside, or kept with the others and the flag spans_dropped. One that lost all"
            " is always set aside."
        ),
    ] = "aside",
    evidence: Annotated[Literal["translate", "keep"], Setting("The evidence: translate or keep.")] = "translate",
    question: Annotated[Literal["translate", "keep"], Setting("The question: translate or keep.")] = "translate",
    translator_options: Annotated[
        dict[str, Any],
        Setting('Options of hf: beams = 1, batch = 32, device = "cuda:0", dtype = "bfloat16", prefix, codes.'),
    ] = {},  # noqa: B006  # never changed
    model: Annotated[OptionalModel, Help("For --translator llm. Default: none.")] = None,
    by_sentence: Annotated[bool, Setting("Ask llm sentence by sentence, not for whole texts.")] = False,
    attempts: Attempts = 2,
    seed: Annotated[int, Setting("Seed of llm's calls.", 0)] = 1,
    connection: Connection,
    reading: Reading,
    overwrite: Overwrite = False,
    retry: Retry = False,
    json: AccountJson = False,
    quiet: Quiet = False,
) -> None:
    """Translate annotated samples, with their spans, into other languages.

    Every span has a quality that says how sure its place is; what falls below min_quality is dropped and counted. Rows
    that are set aside, and translations that were not taken, stand with their reasons in OUTPUT.rejected.jsonl,
    the account per language and type in OUTPUT.account.json.

    \b
    A model here:  veriglot dataset translate fava.jsonl -l de,ar,zh --translator hf:FOLDER -o out.jsonl
    A server:      veriglot dataset translate fava.jsonl -l de --translator llm -m gpt --base-url URL -o out.jsonl
    """
    from veriglot.datasets.translation.job import TranslationSettings
    from veriglot.datasets.translation.projection import STRATEGIES
    from veriglot.datasets.translation.translators import ModelTranslator, load_translator
    from veriglot.errors import UnknownNameError

    named = parts(strategy)
    for name in named:
        if name not in STRATEGIES:
            raise UnknownNameError("strategy", name, STRATEGIES)
    settings = TranslationSettings(
        tuple(name for name in STRATEGIES if name in named), min_quality, dropped, evidence, question, attempts
    )
    work = Work(
        data,
        reading.format,
        reading.language,
        languages,
        settings,
        aligner,
        Path(output),
        overwrite,
        retry,
        json,
        quiet,
    )
    if translator != "llm":
        if model is not None:
            raise UsageError("--model goes with --translator llm.", remedy="Name the folder after a colon: hf:FOLDER.")
        code = translate_all(work, load_translator(translator, **translator_options))
    else:
        if model is None:
            raise UsageError("Which model is to be asked?", remedy="Name it with --model.")
        if translator_options:
            raise UsageError("translator_options go with hf.", remedy="Set generation and client_options.")
        with connection.open(Path(output), [model]) as client:
            generation = connection.settings if connection.generation else None
            code = translate_all(
                work,
                ModelTranslator(
                    client,
                    model,
                    settings=generation,
                    seed=seed,
                    jobs=connection.concurrency,
                    by_sentence=by_sentence,
                ),
            )
    if code:
        raise typer.Exit(code)


@command
def labels(
    data: Annotated[
        list[str],
        typer.Argument(metavar="DATA...", show_default=False, help="Annotated samples in any readable format."),
    ],
    *,
    tokenizer: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="A tokenizer.json, the folder of a checkpoint, a model of the registry, or a name on the hub.",
        ),
    ],
    output: Annotated[Output, Help(".parquet, or JSON lines.")],
    scheme: Annotated[
        Literal["io", "bio"],
        typer.Option(help="io, or bio, whose first token of each span is B. Default: io."),
    ] = "io",
    max_length: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=3,
            help="The most tokens of a row, special ones included; what is left out is counted. Default: nothing is.",
        ),
    ] = None,
    annotator: Annotated[Annotator, Help("Default: the only annotator's.")] = None,
    format_: InputFormat = None,
    language: RowLanguage = None,
    overwrite: Overwrite = False,
    retry: Retry = False,
    json: AccountJson = False,
    quiet: Quiet = False,
) -> None:
    """Label the tokens of annotated responses, for training a token classifier.

    A row has the token ids, their offsets in code points, and a label each: O, I-type, B-type, none for special tokens.
    OUTPUT.account.json counts tokens by label, gives each label a number, and says how many spans the labels give back
    exactly, and why the others are not: cut off, wider than the span by part of a token, or merged with another span.

    \b
    For mBERT:  veriglot dataset labels train.jsonl --tokenizer bert-base-multilingual-cased -o train.parquet
    Here:       veriglot dataset labels train.jsonl --tokenizer t.json --scheme bio --max-length 512 -o out.jsonl
    """
    from veriglot.cli.generation import Queries, print_json, tell
    from veriglot.cli.inputs import count_rows
    from veriglot.cli.progress import Bar
    from veriglot.datasets.token_labels import label_samples, load_label_account

    source = Queries(data, format_name=format_, language=language)
    path = Path(output)
    with Bar(shown=not quiet, total=lambda: count_rows(source.inputs)) as bar:
        tally = label_samples(
            path,
            source.rows(),
            tokenizer,
            scheme=scheme,
            max_length=max_length,
            annotator=annotator,
            inputs=source.paths,
            options={**source.options},
            restart=overwrite,
            retry=retry,
            seen=lambda _: bar.advance(),
        )
    account = load_label_account(path)
    if json:
        print_json(account)
    elif not quiet:
        _show(account)
    code = tell(path, tally, what="rows")
    if code:
        raise typer.Exit(code)


def _show(account: LabelAccount) -> None:
    """The account on standard output: tokens by label, then what became of spans."""
    import sys

    total = sum(account.tokens.values())
    for name, count in account.tokens.items():
        sys.stdout.write(f"{name:24} {account.label_ids[name]:>3} {count:>12,} tokens {count / max(1, total):>7.2%}\n")
    spans = ", ".join(f"{number:,} {what}" for what, number in account.spans.items()) or "none"
    sys.stdout.write(f"spans: {spans}\n")
    if account.unchecked:
        names = ", ".join(f"{name!r} ({account.taxonomies[name]:,} rows)" for name in account.unchecked)
        sys.stdout.write(f"taxonomies that are not known here, so that types could not be looked up: {names}\n")
    sys.stdout.write(f"rows: {account.rows:,}, without a span {account.clean:,}, cut {account.cut:,}\n")


class Work(NamedTuple):
    """What is to be translated, into what, and how; as the options of the command have it."""

    data: Sequence[str]
    format_name: str | None
    language: str | None
    languages: str
    settings: TranslationSettings
    aligner: str
    output: Path
    restart: bool
    retry: bool
    json: bool
    quiet: bool


def translate_all(work: Work, translator: Translator) -> int:
    """Translate, and say what came of it.

    Returns:
        The exit code.
    """
    from veriglot.datasets.translation.job import load_translation_account, translate
    from veriglot.datasets.translation.translators import load_aligner

    source = Queries(work.data, format_name=work.format_name, language=work.language)
    targets = list(language_tags(work.languages))
    options = {"begun": _begun(work)} if work.aligner == "auto" else {}
    aligner = load_aligner(work.aligner, **options) if "align" in work.settings.strategies else None

    def total() -> int | None:
        rows = count_rows(source.inputs)
        return None if rows is None else rows * len(targets)

    with Bar(shown=not work.quiet, total=total) as bar:
        tally = translate(
            work.output,
            source.rows(),
            targets,
            translator,
            aligner=aligner,
            settings=work.settings,
            inputs=source.paths,
            options={**source.options},
            restart=work.restart,
            retry=work.retry,
            seen=lambda _: bar.advance(),
        )
    account = load_translation_account(work.output)
    if not work.quiet:
        _show_account(account, work.output, json=work.json)
    code = tell(work.output, tally, what="rows")
    if not account.total.kept:
        asked = _asked(account)
        say(f"No row was kept of {asked:,}: {work.output} is empty." if asked else "There was no row to translate.")
    return code


def _asked(account: Account[TranslationLanguage]) -> int:
    """All rows that were to be translated: those that failed are in no language."""
    return account.total.rows + account.failed


def _begun(work: Work) -> str | None:
    """The signature of the aligner that an output was begun with, if it is to be continued."""
    from veriglot.storage.checkpoint import Manifest

    before = None if work.restart else Manifest.load(work.output.with_name(f"{work.output.name}.progress"))
    begun = before.options.get("aligner") if before is not None else None
    return begun if isinstance(begun, str) else None


def _show_account(account: Account[TranslationLanguage], output: Path, *, json: bool) -> None:
    """The account per language and type on standard output; why the rest was not taken on standard error."""
    from veriglot.datasets.generation import rejected_path

    if json:
        print_json(account)
        return
    _table(account)
    total = account.total
    marks = total.marks
    failed = f"{account.failed:,} failed, " if account.failed else ""
    cost = f" {total.calls:,} calls, {total.tokens_in:,} tokens of prompts, {total.tokens_out:,} of replies."
    say(
        f"{output}: {total.kept:,} of {_asked(account):,} rows kept,"
        f" {failed}{marks.dropped:,} of {marks.asked:,} spans dropped." + (cost if total.calls else "")
    )
    reasons = {"row": total.row_reasons, **total.reply_reasons}
    if any(reasons.values()):
        say(f"What was not taken stands in {rejected_path(output)}:")
    for what, counts in reasons.items():
        if counts:
            say(f"  {what}: " + ", ".join(f"{reason} {number:,}" for reason, number in counts.items()))


def _table(account: Account[TranslationLanguage]) -> None:
    from rich.console import Console
    from rich.table import Table

    types = list(account.total.types)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("language")
    for name in ("rows", "kept", "partial", "spans", "quality", "dropped", *types):
        table.add_column(name or "no type", justify="right")
    rows = [*account.languages.items()]
    if len(rows) != 1 or account.failed:
        rows.append(("all", account.total))
    for tag, language in rows:
        asked = _asked(account) if language is account.total else language.rows
        counts = [f"{number:,}" for number in (asked, language.kept, language.partial, language.marks.asked)]
        quality = "-" if language.marks.quality is None else f"{language.marks.quality:.2f}"
        rates = [_rate(each) for each in (language.marks, *(language.types.get(type_) for type_ in types))]
        table.add_row(tag, *counts, quality, *rates)
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def _rate(account: MarkAccount | None) -> str:
    rate = account.drop_rate if account is not None else None
    return "-" if rate is None else f"{rate:.1%}"

"""`veriglot build translate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from veriglot.cli.build_options import (  # noqa: TC001  # typer reads them at run time
    FormatName,
    Json,
    LanguageTag,
    Quiet,
    Restart,
    Retry,
)
from veriglot.cli.model_options import (
    BaseUrl,
    Cache,
    ClientName,
    ClientOption,
    Connection,
    Jobs,
    Key,
    MaxCalls,
    MaxTokensSpent,
    Preset,
    Script,
    Setting,
    settings_of,
)
from veriglot.errors import UsageError

__all__ = ["translate"]

_ALL = "tags,spans,align"


def translate(
    data: Annotated[
        list[str],
        typer.Argument(metavar="DATA...", show_default=False, help="Annotated samples in any readable format."),
    ],
    to: Annotated[
        str, typer.Option("--to", metavar="TAGS", show_default=False, help="Languages to translate into: de,ar,zh.")
    ],
    translator: Annotated[
        str,
        typer.Option(
            "--translator",
            "-t",
            metavar="NAME",
            show_default=False,
            help="hf:FOLDER (any sequence-to-sequence model of transformers: NLLB, M2M-100, mBART, Marian ...),"
            " ct2:FOLDER (one that CTranslate2's converter wrote), or llm"
            " (a model that is asked; name it with --model).",
        ),
    ],
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="OUT", show_default=False, help="Where the rows go: JSON lines."),
    ],
    strategies: Annotated[
        str,
        typer.Option(
            "--strategy",
            metavar="LIST",
            show_default=False,
            help="How spans are found again; of several the best is taken, span by span. tags: markers that go through"
            " the translator. spans: each span translated by itself and looked for. align: by the words that belong"
            f" together. Default: {_ALL}.",
        ),
    ] = _ALL,
    aligner: Annotated[
        str,
        typer.Option(
            "--aligner",
            metavar="NAME",
            show_default=False,
            help="lexical (equal words, numbers, names, places) or vectors (of an encoder; vectors:NAME names one)."
            " Default: auto, vectors where the encoder is here, else lexical; each row says which.",
        ),
    ] = "auto",
    threshold: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, show_default=False, help="Quality below which a span is dropped, 0 to 1. Default: 0.5."
        ),
    ] = 0.5,
    dropped: Annotated[
        Literal["aside", "keep"],
        typer.Option(
            show_default=False,
            help="A row that lost a span: set aside, or kept with the others and the flag spans_dropped. One that lost"
            " all is always set aside. Default: aside.",
        ),
    ] = "aside",
    evidence: Annotated[
        Literal["translate", "keep"],
        typer.Option(show_default=False, help="The evidence. Default: translate."),
    ] = "translate",
    question: Annotated[
        Literal["translate", "keep"],
        typer.Option(show_default=False, help="The question. Default: translate."),
    ] = "translate",
    translator_option: Annotated[
        list[str] | None,
        typer.Option(
            "--translator-option",
            metavar="NAME=VALUE",
            help="An option of hf, its value as in TOML: beams=1, batch=32, device=cuda:0, dtype=bfloat16,"
            " prefix, codes=de=deu_Latn; repeat it for several.",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="MODEL", help="The model that llm asks.")
    ] = None,
    by_sentence: Annotated[
        bool, typer.Option("--by-sentence", help="Ask llm sentence by sentence. Default: whole texts.")
    ] = False,
    attempts: Annotated[
        int,
        typer.Option(
            min=1, max=9, show_default=False, help="How often llm is asked for a text that was not right. Default: 2."
        ),
    ] = 2,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, show_default=False, help="Seed of llm's calls. Default: 1.")
    ] = 1,
    client: ClientName = "openai",
    base_url: BaseUrl = None,
    key: Key = None,
    script: Script = None,
    client_option: ClientOption = None,
    preset: Preset = None,
    set_: Setting = None,
    cache: Cache = None,
    max_calls: MaxCalls = None,
    max_tokens_spent: MaxTokensSpent = None,
    jobs: Jobs = 8,
    format_name: FormatName = None,
    language: LanguageTag = None,
    restart: Restart = False,
    retry_failed: Retry = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Translate annotated samples, with their spans, into other languages.

    Every span has a quality that says how sure its place is; what falls below --threshold is dropped and counted. Rows
    that are set aside, and translations that were not taken, stand with their reasons in OUT.rejected.jsonl, the
    account per language and type in OUT.account.json.

    \b
    A model here:  veriglot build translate fava.jsonl --to de,ar,zh --translator hf:FOLDER -o out.jsonl
    A server:      veriglot build translate fava.jsonl --to de -t llm -m gpt --base-url https://host/v1 -o out.jsonl
    """
    from veriglot.build.translating import STRATEGIES, ModelTranslator, TranslationSettings, load_translator
    from veriglot.cli.recipe import read_settings
    from veriglot.cli.translating import Work, translate_all
    from veriglot.errors import UnknownNameError

    named = tuple(part.strip() for part in strategies.split(",") if part.strip())
    for one in named:
        if one not in STRATEGIES:
            raise UnknownNameError("strategy", one, STRATEGIES)
    settings = TranslationSettings(
        tuple(one for one in STRATEGIES if one in named), threshold, dropped, evidence, question, attempts
    )
    work = Work(data, format_name, language, to, settings, aligner, Path(output), restart, retry_failed, json, quiet)
    if translator != "llm":
        if model is not None:
            raise UsageError("--model goes with --translator llm.", remedy="Name the folder after a colon: hf:FOLDER.")
        options = read_settings(translator_option or (), option="--translator-option")
        code = translate_all(work, load_translator(translator, **options))
    else:
        if model is None:
            raise UsageError("Which model is to be asked?", remedy="Name it with --model.")
        if translator_option:
            raise UsageError("--translator-option goes with hf.", remedy="Use --set and --client-option.")
        connection = Connection(
            client, base_url, key, script, client_option or (), cache, max_calls, max_tokens_spent, jobs
        )
        with connection.open(Path(output), [model]) as asked:
            told = None if preset is None and not set_ else settings_of(preset, set_ or ())
            code = translate_all(
                work, ModelTranslator(asked, model, settings=told, seed=seed, jobs=jobs, by_sentence=by_sentence)
            )
    if code:
        raise typer.Exit(code)

"""`veriglot build silver`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from veriglot.cli.build_options import (  # noqa: TC001  # typer reads them at run time
    DryRun,
    FormatName,
    Json,
    LanguageTag,
    Quiet,
    Restart,
    Retry,
)
from veriglot.cli.build_silver_rules import (  # noqa: TC001
    Errors,
    MostArticles,
    Reworded,
    Rows,
    Rules,
    Shares,
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

__all__ = ["silver"]

Supporting = Literal["none", "detector", "model"]


def silver(
    seeds: Annotated[
        list[str],
        typer.Argument(
            metavar="SEEDS...",
            show_default=False,
            help="Samples in any readable format. The response of one that has a response is the passage that errors"
            " go into; for one that has none, the model first answers its question, or retells its text, from its"
            " evidence.",
        ),
    ],
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="OUT", show_default=False, help="Where the rows go: JSON lines."),
    ],
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", metavar="MODEL", help="The model that puts the errors in."),
    ] = None,
    rules: Rules = False,
    rows: Rows = None,
    shares: Shares = None,
    errors: Errors = None,
    reworded: Reworded = None,
    articles: MostArticles = None,
    taxonomy: Annotated[
        Literal["fava", "halluverse"],
        typer.Option(
            show_default=False,
            help="fava: passages that get errors of its six types one after another. halluverse: one sentence a row,"
            " with one of its three types, drawn at random and balanced. Default: fava.",
        ),
    ] = "fava",
    order: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Types in the order they are put in, such as entity,subjective (those that are not named are left"
            " out); or shuffled, drawn for each passage. Default: all types, in the order of the taxonomy.",
        ),
    ] = None,
    form: Annotated[
        Literal["tags", "plain"] | None,
        typer.Option(
            help="How the model says what it changed. tags: with tags around it. plain: by writing the edited text, and"
            " spans are where it differs. Default: tags for fava, plain for halluverse.",
        ),
    ] = None,
    clean: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0.0,
            max=1.0,
            help="Share of seeds that stay without errors; with --rules, of rows. Default: 0; with --rules, 0.3.",
        ),
    ] = None,
    attempts: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            max=9,
            show_default=False,
            help="How often each error is tried, until one passes. Default: 2.",
        ),
    ] = 2,
    support: Annotated[
        Supporting,
        typer.Option(
            show_default=False,
            help="How it is checked that the evidence supports the passages and not the errors. detector: a detector"
            " has to mark the errors, and little of the passage. model: a model is asked. none: not at all, and each"
            " row says so. Default: none.",
        ),
    ] = "none",
    detector: Annotated[
        str,
        typer.Option(
            metavar="NAME", show_default=False, help="The detector of --support detector. Default: grounding."
        ),
    ] = "grounding",
    support_model: Annotated[
        str | None,
        typer.Option(
            "--support-model", metavar="MODEL", help="The model of --support model. Default: the one that edits."
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, show_default=False, help="Seed of draws and calls. Default: 1.")
    ] = 1,
    price_in: Annotated[
        float | None,
        typer.Option(
            "--price-in", metavar="X", min=0.0, help="What a million tokens of prompts cost, in any currency."
        ),
    ] = None,
    price_out: Annotated[
        float | None,
        typer.Option("--price-out", metavar="X", min=0.0, help="What a million tokens of replies cost."),
    ] = None,
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
    dry_run: DryRun = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make silver data: passages, and errors with exact spans that a model, or with --rules no model, puts into them.

    Every row is checked: outside its spans it is the passage, nothing is glued, each span says something else than
    before, in the right language and script. What does not pass stands with its reason in OUT.rejected.jsonl, the yield
    per type and language and the cost in OUT.account.json.

    \b
    Passages:   veriglot build silver queries.jsonl -m gpt --base-url https://host/v1 --key API_KEY -o silver.jsonl
    Sentences:  veriglot build silver facts.jsonl --taxonomy halluverse -m gpt --base-url https://host/v1 -o out.jsonl
    No model:   veriglot build silver --rules articles.jsonl --rows 10000 -o silver.jsonl
    """
    from veriglot.cli.build_silver_rules import make_by_rule, rule_settings

    of_rules = {"rows": rows, "shares": shares, "errors": errors, "reworded": reworded, "articles": articles}
    if rules:
        if model is not None or dry_run or support != "none":
            raise UsageError("Rules ask no model.", remedy="Leave out --model, --support and --dry-run, or --rules.")
        settings = rule_settings(
            rows=rows,
            taxonomy=taxonomy,
            shares=shares,
            clean=clean,
            errors=errors,
            reworded=reworded,
            articles=articles,
            seed=seed,
        )
        given = {"format_name": format_name, "language": language}
        code = make_by_rule(seeds, output, settings, **given, restart=restart, json=json, quiet=quiet)
        if code:
            raise typer.Exit(code)
        return
    if model is None:
        raise UsageError("Nobody is named who makes the errors.", remedy="Name a model with --model, or give --rules.")
    for name, value in of_rules.items():
        if value is not None:
            raise UsageError(f"--{name} goes with --rules.", remedy="Give --rules, or leave it out.")
    from veriglot.build.injection import Injector
    from veriglot.cli.building import Queries
    from veriglot.cli.silvering import dry_run_of, inject, prices_of, support_of, types_of

    types, way = types_of(order)
    injector = Injector(
        model,
        taxonomy,
        types,
        form or ("plain" if taxonomy == "halluverse" else "tags"),
        settings_of(preset, set_ or ()),
        seed,
        attempts,
    )
    prices = prices_of(price_in, price_out)
    source = Queries(seeds, format_name=format_name, language=language)
    if dry_run:
        dry_run_of(source, injector, order=way, clean=clean or 0.0, checked=support == "model", prices=prices)
        return
    connection = Connection(
        client, base_url, key, script, client_option or (), cache, max_calls, max_tokens_spent, jobs
    )
    code = inject(
        source,
        injector,
        connection,
        Path(output),
        support=support_of(support, detector, support_model or model, seed),
        also=support_model if support == "model" else None,
        order=way,
        clean=clean or 0.0,
        restart=restart,
        retry=retry_failed,
        json=json,
        quiet=quiet,
        prices=prices,
    )
    if code:
        raise typer.Exit(code)

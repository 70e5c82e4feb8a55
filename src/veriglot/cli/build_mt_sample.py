"""`veriglot build mt-sample`."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  # typer reads it at run time
from typing import Annotated, Literal

import typer

from veriglot.cli.build_options import Json, Quiet  # noqa: TC001  # typer reads them at run time

__all__ = ["mt_sample"]


def mt_sample(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            show_default=False,
            help="Parquet, JSON lines, CSV or TSV with columns source and target; samples of our own; or plain text"
            " (.txt), a source a line.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="DIR", show_default=False, help="The folder that gets the sample."),
    ],
    source: Annotated[
        str,
        typer.Option("--source", "-s", metavar="TAG", show_default=False, help="Language of the sources (BCP 47)."),
    ],
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", metavar="TAG", help="Language of the translations. Default: there are none yet."
        ),
    ] = None,
    targets: Annotated[
        list[str] | None,
        typer.Option(
            "--targets", metavar="FILE", help="Translations of a plain text, line by line; one for each, in order."
        ),
    ] = None,
    scorer: Annotated[
        list[str] | None,
        typer.Option(
            "--scorer",
            metavar="NAME",
            help='A scorer whose worst lines are chosen, with its options: "top-ngram graded=true"; repeat it for'
            " several. veriglot doctor lists them. Default: none.",
        ),
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--given",
            metavar="COLUMN:DIRECTION",
            help="A column of scores in the data, and whether higher-is-better or higher-is-worse. Default: none.",
        ),
    ] = None,
    worst: Annotated[
        int, typer.Option(metavar="N", min=0, show_default=False, help="Worst lines of each scorer. Default: 1000.")
    ] = 1_000,
    drawn: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            show_default=False,
            help="Lines drawn at random from each scorer's worst percentile besides. Default: 1000.",
        ),
    ] = 1_000,
    percentile: Annotated[
        float,
        typer.Option(
            metavar="P", show_default=False, help="Per cent of the lines that are the worst percentile. Default: 1."
        ),
    ] = 1.0,
    most: Annotated[
        int, typer.Option(metavar="N", min=1, show_default=False, help="Most lines altogether. Default: 10000.")
    ] = 10_000,
    parts: Annotated[
        str,
        typer.Option(
            metavar="NAME=N,...",
            show_default=False,
            help="Parts and their sizes; shares, where other than so many lines are chosen. Default:"
            " train=5000,dev=2000,test=3000.",
        ),
    ] = "train=5000,dev=2000,test=3000",
    near: Annotated[
        float,
        typer.Option(
            metavar="J",
            min=0,
            max=1,
            show_default=False,
            help="Share of character n-grams from which two texts are near-duplicates, 0 to 1: later ones fall out, and"
            " what is left comes into the same part. 0 keeps them all, and splits by 0.8. Default: 0.8.",
        ),
    ] = 0.8,
    unique: Annotated[
        Literal["source", "pair"],
        typer.Option(show_default=False, help="What may occur once: a source, or a pair. Default: source."),
    ] = "source",
    min_length: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            show_default=False,
            help="Shortest source in visible characters, those of Chinese, Japanese and Korean counted twice. Default:"
            " 15.",
        ),
    ] = 15,
    max_length: Annotated[
        int, typer.Option(metavar="N", min=0, show_default=False, help="Longest source, likewise. Default: 1000.")
    ] = 1_000,
    min_confidence: Annotated[
        float,
        typer.Option(
            metavar="P", show_default=False, help="Least confidence of a source's language, 0 to 1. Default: 0.5."
        ),
    ] = 0.5,
    cleaned: Annotated[
        bool, typer.Option("--cleaned", help="The data were cleaned before: keep every line. Default: clean them.")
    ] = False,
    fallen: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write every line that fell out here, with the reason. Default: no."),
    ] = None,
    source_column: Annotated[
        str, typer.Option(metavar="NAME", show_default=False, help="Column of sources. Default: source.")
    ] = "source",
    target_column: Annotated[
        str, typer.Option(metavar="NAME", show_default=False, help="Column of translations. Default: target.")
    ] = "target",
    id_column: Annotated[
        str, typer.Option(metavar="NAME", show_default=False, help="Column of ids, if there is one. Default: id.")
    ] = "id",
    seed: Annotated[
        int, typer.Option(metavar="N", show_default=False, help="Of all draws and of the split. Default: 0.")
    ] = 0,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            min=0,
            show_default=False,
            help="Processes that tell languages; 0 is one for each core. Default: 0.",
        ),
    ] = 0,
    scorer_jobs: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            show_default=False,
            help="Processes that score, each with scorers of its own. Default: 1.",
        ),
    ] = 1,
    restart: Annotated[
        bool, typer.Option("--restart", help="Do again the stages that were done in another way. Default: refuse.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Sample translations to annotate out of millions, as hat does: clean, score, choose the worst, split.

    Sources without translations are only cleaned: DIR/clean.jsonl is what to translate. Otherwise DIR gets every part
    in the native format and as HAT JSON, and report.json with all counts. Interrupted, the same command goes on.
    Leaves with 3 where rows could not be read.

    \b
    Sources:      veriglot build mt-sample crawl.txt -s de -o sample
    Translations: veriglot build mt-sample translated.jsonl -s de -t en -o sample --scorer top-ngram
                  --scorer labse:FOLDER --given logprob:higher-is-better
    """
    from veriglot.build.sampling import Cleaning, Columns, MtSample, Sampling
    from veriglot.cli.mt_sampling import given_scores, parts_of, sample_mt, scorer_sources
    from veriglot.records.languages import language

    columns_given = given_scores(given or [])
    order = MtSample(
        paths=tuple(data),
        target=None if target is None else language(target).tag,
        cleaning=Cleaning(
            language=language(source).tag,
            unique=unique,
            min_length=min_length,
            max_length=max_length,
            min_confidence=min_confidence,
            near=near or None,
            skip=cleaned,
        ),
        sampling=Sampling(worst, drawn, percentile, most, parts_of(parts), near or 0.8, seed),
        columns=Columns(
            source_column, target_column, id_column, tuple(one.label for one in columns_given), tuple(targets or ())
        ),
        scorers=scorer_sources(scorer or []),
        given=columns_given,
    )
    code = sample_mt(
        order, output, jobs=jobs, scorer_jobs=scorer_jobs, restart=restart, fallen=fallen, json=json, quiet=quiet
    )
    if code:
        raise typer.Exit(code)

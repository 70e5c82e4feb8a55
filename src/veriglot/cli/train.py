"""`veriglot train`: train detectors and the weights of ensembles from labelled data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from veriglot.cli.command import command, new_app
from veriglot.cli.console import Account, listed, print_json
from veriglot.cli.detectors import show_measured
from veriglot.cli.inputs import find_inputs, rows_of
from veriglot.detectors.ensemble import read_members
from veriglot.report.tables import Table
from veriglot.storage.files import write_json
from veriglot.training import load_trainer

app = new_app()


@app.callback()
def _train() -> None:
    """Train a detector from labelled data."""


def _echo(line: str) -> None:
    print(line, file=sys.stderr)


@app.command("grounding")
@command
def grounding(data: list[str], *, output: str, seed: int = 0, encoder: str | None = None, epochs: int = 6) -> None:
    """Train the grounding detector, and write a folder of weights that it loads.

    For example: veriglot train grounding silver/ checked.jsonl -o weights/
    """
    load_trainer("grounding")(
        list(map(Path, data)),
        Path(output),
        seed=seed,
        encoder=Path(encoder) if encoder is not None else None,
        epochs=epochs,
        say=_echo,
    )


@app.command("reader")
@command
def reader(
    data: list[str],
    *,
    output: str,
    seed: int = 0,
    tokens: float = 40,
    threads: int = 2,
    device: Literal["cpu", "cuda"] = "cpu",
    start: str | None = None,
) -> None:
    """Train the reader, and write a folder of weights that it loads. Rerun the command to resume.

    For example: veriglot train reader mfava/silver xquad pawsx indonli -o weights/ --device cuda
    """
    load_trainer("reader")(
        list(map(Path, data)),
        Path(output),
        seed=seed,
        tokens=tokens,
        threads=threads,
        device=device,
        start=Path(start) if start is not None else None,
        say=_echo,
    )


@app.command("tokens")
@command
def tokens(config: str, *, dry_run: bool = False, json: bool = False) -> None:
    """Train token classifiers from any checkpoint of transformers; `hf:FOLDER` loads them. Rerun the command to resume.

    For example: veriglot train tokens multi.toml --dry-run
    """
    module = load_trainer("tokens")
    settings, folder = module.read_config(Path(config)), Path(config).parent
    if dry_run:
        plan = module.plan(settings, folder)
        if json:
            print_json(plan)
            return
        shown = [
            ("rows to train on, to validate on", f"{plan.rows:,}, {plan.validation:,}"),
            ("rows left out", ", ".join(f"{count:,} {reason}" for reason, count in plan.left_out.items()) or "none"),
            ("rows whose evidence is cut to fit", f"{plan.cut:,}"),
            ("tokens of an epoch", f"{plan.tokens:,}"),
            ("checkpoints, steps in all", f"{plan.checkpoints:,}, {plan.steps:,}"),
            ("parameters, trained ones", f"{plan.parameters:,}, {plan.trained:,}"),
            ("time by the speed of one step", f"about {plan.seconds / 60:,.0f} min"),
            ("memory of that step", f"{plan.memory / 1e9:.1f} GB"),
        ]
        Table("What training takes", ("", ""), shown).print()
        return
    runs = module.train(settings, folder, say=_echo)
    rows = module.summary(runs)
    if json:
        print_json({"runs": runs, "summary": rows})
    else:
        columns = ("language", "figure", "mean", "deviation", "seeds")
        cells = [[row[column] for column in columns] for row in rows]
        Table("Validation, over seeds", columns, [[cell or "all", *rest] for cell, *rest in cells]).print()


@app.command("nli")
@command
def nli(config: str, *, dry_run: bool = False, json: bool = False) -> None:
    """Fine-tune an encoder to judge premise and hypothesis; `nli:FOLDER` loads it. Rerun the command to resume.

    For example: veriglot train nli nli.toml --dry-run
    """
    module = load_trainer("nli")
    settings, folder = module.read_config(Path(config)), Path(config).parent
    result = module.plan(settings, folder) if dry_run else module.train(settings, folder, say=_echo)
    if json:
        print_json(result)
        return
    Table.of("Rows", result.rows, "data language part rows labels tokens").print()
    if result.left_out:
        print(f"Left out: {listed(result.left_out)}.")
    if dry_run:
        Table.of("What training takes", [result], "steps tokens parameters trained memory").print()
        return
    Table.of("Accuracy on held-out rows, with 95% intervals", result.accuracy, _ACCURACY).print()


_ACCURACY = "data language rows accuracy low high majority"


@app.command("stacking")
@command
def stacking(data: list[str], *, members: str, output: str, annotator: str | None = None, seed: int = 0) -> None:
    """Learn a weight for each of several detectors, by script, and show the result on held-out texts.

    For example: veriglot train stacking dev.jsonl --members grounding+reader -o stack.json

    Then: veriglot detect answers.jsonl --detector ensemble --set stacking=stack.json
    """
    from veriglot.training.calibration import train_stacking

    account = Account(quiet=False)
    samples = account.samples(rows_of(find_inputs(data, skipped=account.warn), report=account.report), stop=True)
    ensemble, rows = train_stacking(samples, read_members(members), annotator=annotator, seed=seed)
    write_json(Path(output), ensemble, indent=2)
    show_measured(
        ensemble.quality,
        f"Weights of {len(ensemble.members)} detectors, in {output}",
        [
            "mean: of their confidences; stack: by weights fitted on the other folds. F1: each detector at its own"
            " threshold, the mean at 0.5, the stack at a threshold chosen on the other folds. 95% intervals over whole"
            " texts; those of ECE are too high in small data.",
            f"F1 of words is best from {ensemble.threshold:.4f} on: the threshold of the file.",
            *([f"Left out: {listed(rows.left_out)}."] if rows.left_out else []),
            ensemble.signature,
        ],
    )

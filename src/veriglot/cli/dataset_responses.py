"""`veriglot dataset responses`, and a report of their quality."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast, get_args

from msgspec.structs import asdict

from veriglot.cli.command import command
from veriglot.cli.console import print_json
from veriglot.cli.generation import Connection, Queries, Reading, Run, tell
from veriglot.cli.inputs import readable
from veriglot.datasets.prompts import use_prompts
from veriglot.datasets.quality import quality as measured
from veriglot.datasets.responses import Design, Respondent, Style, budget
from veriglot.datasets.responses import responses as ask_respondent
from veriglot.errors import UnknownNameError, UsageError
from veriglot.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.llm.client import Settings
    from veriglot.storage.checkpoint import Tally

__all__ = ["ask", "named_models", "show_quality"]


@command
def responses(
    queries: list[str],
    *,
    model: list[str],
    output: str,
    design: Design = "subsets",
    seeds: str = "42,43,44,47,49",
    prompt: str = "closed",
    completion: bool = False,
    revision: str | None = None,
    connection: Connection,
    reading: Reading,
    run: Run,
    dry_run: bool = False,
    json: bool = False,
) -> int:
    """Ask models every query of a design, and describe the responses.

    Rerun the command to resume; no finished call is repeated. OUTPUT.failed.jsonl holds failed calls; the command then
    exits with 3.

    \b
    One model:  veriglot dataset responses queries.jsonl -m qwen --base-url http://127.0.0.1:8000/v1 -o qwen.jsonl
    Several:    veriglot dataset responses queries.jsonl -m qwen -m gemma --base-url http://127.0.0.1:8000/v1 -o out/
    """
    respondents = named_models(model, revision, connection.settings, style=_style(prompt), completion=completion)
    source = Queries(queries, reading)
    asked = seeds_of(seeds)
    if dry_run:
        print_json({each.name: budget(source.rows(), each, design=design, seeds=asked) for each in respondents})
        return 0
    tallies = ask(source, respondents, connection, Path(output), design=design, seeds=asked, run=run)
    code = max(tell(path, tally) for path, tally in tallies.items())
    answered = [str(path) for path, tally in tallies.items() if tally.statuses]
    if answered and not run.quiet:
        show_quality(Queries(answered), json=json)
    return code


def ask(
    queries: Queries,
    respondents: Sequence[Respondent],
    connection: Connection,
    output: Path,
    *,
    design: Design,
    seeds: Sequence[int | None],
    run: Run,
) -> dict[Path, Tally]:
    """Send every query to every model; one file per model, in the folder `output` if there are several.

    Returns:
        Counts of the responses, by file.
    """

    def total() -> int | None:
        rows = queries.count()
        return None if rows is None else rows * (len(seeds) if design == "runs" else 1)

    tallies = {}
    files = _files(respondents, output)
    revision = respondents[0].revision  # the same option for all
    with connection.open(output, [respondent.model for respondent in respondents], revision) as client:
        for respondent, path in zip(respondents, files, strict=True):
            with run.progress(total) as progress:
                tallies[path] = ask_respondent(
                    path,
                    queries.rows(),
                    respondent,
                    client,
                    design=design,
                    seeds=seeds,
                    jobs=connection.concurrency,
                    **queries.made_of,
                    **progress,
                )
    return tallies


def _files(respondents: Sequence[Respondent], output: Path) -> list[Path]:
    if len(respondents) == 1 and output.suffix == ".jsonl":
        return [output]
    if output.suffix == ".jsonl":
        raise UsageError(f"{output} is one file, and there are several models.", "Name a folder with -o.")
    names = [file_name(respondent.name) for respondent in respondents]
    if len(set(names)) < len(names):
        raise UsageError("Two models would write the same file.", "Name each model once.")
    return [output / f"{name}.jsonl" for name in names]


def file_name(model: str) -> str:
    """A file name for a model's name: letters, digits, dots, dashes and underscores."""
    return re.sub(r"[^\w.-]+", "_", model).strip("._") or "model"


def seeds_of(text: str) -> list[int | None]:
    """Seeds as a list: `42,43,44` or `1-5`; `none` for the server's choice."""
    if text.strip().lower() == "none":
        return [None]
    seeds: list[int | None] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if match is None:
            raise UsageError(f"{text!r} is no list of seeds.", "Write them as 42,43,44 or as 1-5.")
        first, last = int(match[1]), int(match[2] or match[1])
        seeds += range(first, last + 1)
    return seeds


def show_quality(responses: Queries, *, json: bool) -> None:
    """Print the quality of the responses in some files; unreadable rows are counted on standard error."""
    qualities = measured(readable(responses.rows(), "rows could not be read: left out of this account"))
    if json:
        print_json(
            [{"model": model, "language": tag, **asdict(quality)} for (model, tag), quality in qualities.items()]
        )
        return
    heads = ("responses", "words", "sentences", "most in", *_SHARES)
    cells = [
        (
            model,
            tag,
            f"{quality.responses:,}",
            f"{quality.words:.1f}",
            f"{quality.sentences:.2f}",
            quality.most_frequent_language or "-",
            *("-" if (share := getattr(quality, name)) is None else f"{share:.1%}" for name in _SHARES.values()),
        )
        for (model, tag), quality in qualities.items()
    ]
    Table("", ("model", "language", *heads), cells, lead=2).print()


_SHARES = {
    "detectable": "detectable",
    "right": "right_language",
    "refused": "refused",
    "repetitive": "repetitive",
    "cut": "truncated",
    "empty": "empty",
}


def _style(prompt: str) -> Style | Literal["own"]:
    """The style with a name, or the user's own file, which is then the default."""
    if prompt in get_args(Style):
        return cast("Style", prompt)
    if not Path(prompt).suffix and not Path(prompt).exists():
        raise UnknownNameError("style of prompts", prompt, [*get_args(Style), "FILE.toml"])
    use_prompts(prompt, "response")
    return "own"


def named_models(
    words: Sequence[str],
    revision: str | None,
    settings: Settings,
    *,
    style: Style | Literal["own"] = "closed",
    completion: bool = False,
) -> list[Respondent]:
    """The models of `NAME=MODEL` or `MODEL`, all with the same settings.

    Raises:
        UsageError: a name or a model is empty, or two models have the same name.
    """
    respondents = []
    for word in words:
        name, equals, model = word.partition("=")
        if not name or (equals and not model):
            raise UsageError(f"--model {word!r} names no model.")
        respondents.append(Respondent(name, model if equals else word, revision, style, settings, completion))
    if len({respondent.name for respondent in respondents}) < len(respondents):
        raise UsageError("Two models have one name.", "Name each model once.")
    return respondents

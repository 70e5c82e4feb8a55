"""The options of all commands: each is declared here once, by the name of its parameter, with one meaning.

A command whose parameter is called `seed` has the option `--seed`. It adds what is its own by `Help`, declares an
option that no other command has as `Annotated[int, Option("Passes over the data.", "N")]`, and one of its settings file
as `Annotated[int, Setting("Facts a page.")]`. The default is said at the end where the help does not say it.
"""

from __future__ import annotations

from dataclasses import dataclass

from veriglot.errors import UsageError

__all__ = ["OPTIONS", "Argument", "FromRoot", "Help", "Option", "Setting", "iso_date", "language_tags", "parts"]


@dataclass(frozen=True)
class Option:
    """An option of the command line.

    Attributes:
        help: what it is, with its unit; the default is added.
        metavar: what stands for its value.
        short: its short form, such as `-o`.
        min: the smallest number allowed, or None.
        max: the largest number allowed, or None.
        envvar: the environment variable that stands in for it.
        names: how it is written; of itself `--` and the parameter's name.
    """

    help: str
    metavar: str | None = None
    short: str | None = None
    min: int | None = None
    max: int | None = None
    envvar: str | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Argument:
    """An argument of the command line: what stands for it, and its help."""

    metavar: str
    help: str


@dataclass(frozen=True)
class Setting:
    """A parameter that only the settings file gives: its help with its unit, and the numbers allowed."""

    help: str
    min: float | None = None
    max: float | None = None


@dataclass(frozen=True)
class Help:
    """What a command adds to the help of an option that several commands share."""

    text: str


@dataclass(frozen=True)
class FromRoot:
    """A parameter that `veriglot` itself takes, or a group of commands before its command."""

    name: str


OPTIONS: dict[str, Option | Setting | FromRoot] = {
    "annotator": Option("Whose labels count: a name, majority or union.", "NAME"),
    "attempts": Setting("How often a model is asked again for what does not pass, 1 to 9.", 1, 9),
    "batch_size": Option("Most rows judged at once; the results do not depend on it. Default: 32 rows.", "N", min=1),
    "calibration": Option(
        "Calibrate the detector's confidences by this file, which veriglot evaluate --calibrate wrote.", "FILE"
    ),
    "count": Option("How many to make.", "N", "-n", min=1),
    "database": FromRoot("database"),
    "detector": Option(
        "Detector by name: grounding (words against words), semantic (by meaning, across languages too, with a model"
        " that has to be fetched), auto (the best that is here for the language); or package.module:Class of one's"
        " own. Some take an argument, such as hf:FOLDER, nli:FOLDER, judge:KIND and ensemble:NAME+NAME; veriglot"
        " doctor lists all.",
        "NAME",
    ),
    "dry_run": Option("Ask nothing and write nothing: print how many calls and tokens it would take, roughly."),
    "encoder": Option("ONNX file of the sentence encoder.", "FILE"),
    "epochs": Option("Passes over the data.", "N", min=1),
    "format": Option("Format of the input. Default: recognised from its content.", "NAME"),
    "json": Option("Print JSON."),
    "language": Option("Language of rows that state none, as a BCP 47 tag, a code or a name (de, deu, German).", "TAG"),
    "languages": Option("Languages, separated by commas.", "TAGS", "-l"),
    "leave_out_tests": Option(
        "Do not learn from parallel articles and translations that Veriglot's benchmarks test on. Default: learn from"
        " all."
    ),
    "model": Option("The model to ask, as its server names it.", "MODEL", "-m"),
    "on_error": Option(
        "At a row that cannot be read: stop, or skip it, write it to OUTPUT.failed.jsonl and exit with 3 in the end."
    ),
    "output": Option("Where to write.", "PATH", "-o"),
    "overwrite": Option("Start anew, whatever is there; finished calls are not repeated. Default: resume."),
    "part": Setting("What of an article is the reference: its lead section (lead), or all of it (text)."),
    "people": Option("People, as `veriglot dataset people` writes them; may be repeated.", "FILE"),
    "predictions": Option("Predictions of `veriglot detect`, joined to the samples by id.", "FILE"),
    "processes": Option("Worker processes; 0 is one for each core.", "N", "-j", min=0),
    "public_url": Option(
        "Where people reach the studio, such as https://studio.example.org, or a path below a host.", "URL"
    ),
    "quiet": FromRoot("quiet"),
    "resamples": Option("Bootstrap resamples of whole texts; 0 gives no intervals.", "N", min=0),
    "retry": Option("Redo what failed in an earlier run. Default: leave it."),
    "revision": Setting("Revision of the model, to stand with its responses."),
    "seed": Option("Seed of whatever is drawn at random.", "N", min=0),
    "set": Option("A further option of the detector, such as model=NAME; may be repeated.", "NAME=VALUE"),
    "splits": Option(
        "What a split is, for leaks. names: what samples say in meta.split, or train, dev, test in the names of files"
        " and folders. files: each file. arguments: each DATA."
    ),
    "table": Option("Which table to write.", "NAME"),
    "taxonomy": Option("Taxonomy of the types of spans.", "NAME"),
    "threshold": Option("Confidence from which a word is marked, a probability from 0 to 1.", "P"),
    "to": Option("Format of the output.", "FORMAT"),
    "unit": Option("What is counted: char, word, or hf:TOKENIZER (a tokenizer.json or a hub name).", "UNIT"),
}


def parts(text: str) -> list[str]:
    """The parts of a list that is written with commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def language_tags(text: str) -> tuple[str, ...]:
    """The BCP 47 tags of languages that are written with commas, each once.

    Raises:
        UnknownNameError: no such language.
        UsageError: there is none.
    """
    from veriglot.records.languages import get_language

    tags = tuple(dict.fromkeys(get_language(part).tag for part in parts(text)))
    if not tags:
        raise UsageError(f"{text!r} names no language.")
    return tags


def iso_date(text: str) -> str:
    """A date as `2022-01-01`.

    Raises:
        UsageError: it is none.
    """
    from datetime import date

    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise UsageError(f"{text!r} is no date.", remedy="Write it as 2022-01-01.") from None

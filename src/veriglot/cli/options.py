"""The options of all commands: each is declared here once, and means one thing wherever it stands.

A command adds what is its own, such as a default, by `Help`: `Annotated[Seed, Help("Default: 0.")]`.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from veriglot.cli.command import FromRoot, Help, Setting
from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from veriglot.llm.client import Client, Settings

__all__ = [
    "MFAVA_SEEDS",
    "OUTPUT_FORMAT",
    "AccountJson",
    "Annotator",
    "Attempts",
    "BatchSize",
    "CalibrationFile",
    "Checks",
    "Connection",
    "Cost",
    "Count",
    "Database",
    "DetectorName",
    "DetectorSettings",
    "DryRun",
    "Encoder",
    "Epochs",
    "InjectedTaxonomy",
    "InputFormat",
    "Json",
    "Language",
    "Languages",
    "LeaveOutTests",
    "Model",
    "Models",
    "OnError",
    "OptionalCount",
    "OptionalModel",
    "OptionalModels",
    "OptionalOutput",
    "OptionalProcesses",
    "OptionalUnit",
    "Output",
    "OutputFormat",
    "Overwrite",
    "Part",
    "People",
    "Popularity",
    "PredictionsFile",
    "Prices",
    "Processes",
    "PublicUrl",
    "Quiet",
    "Reading",
    "RequiredLanguages",
    "Resamples",
    "Retry",
    "Revision",
    "RowLanguage",
    "Seed",
    "Splits",
    "TableName",
    "Taxonomy",
    "Threshold",
    "Unit",
    "Wikidata",
    "Wikimedia",
    "iso_date",
    "language_tags",
    "parts",
]


_OUTPUT = typer.Option(
    "--output",
    "-o",
    metavar="PATH",
    help="Where to write.",
)
Output = Annotated[str, _OUTPUT]
OptionalOutput = Annotated[str | None, _OUTPUT]
_LANGUAGE = typer.Option(
    "--language",
    metavar="TAG",
    help="Language of rows that state none, as a BCP 47 tag, a code or a name (de, deu, German).",
)
Language = Annotated[str | None, _LANGUAGE]
RowLanguage = Annotated[Language, Help("Default: told from the text.")]
OUTPUT_FORMAT = typer.Option("--to", metavar="FORMAT", help="Format of the output.")  # each command has its own
OutputFormat = Annotated[str | None, OUTPUT_FORMAT]
_LANGUAGES = typer.Option(
    "--languages",
    "-l",
    metavar="TAGS",
    help="Languages, separated by commas.",
)
Languages = Annotated[str | None, _LANGUAGES]
RequiredLanguages = Annotated[str, _LANGUAGES]
_FORMAT = typer.Option(
    "--format",
    metavar="NAME",
    help="Format of the input. Default: recognised from its content.",
)
InputFormat = Annotated[str | None, _FORMAT]
_JSON = typer.Option(
    "--json",
    help="Print JSON.",
)
Json = Annotated[bool, _JSON]
AccountJson = Annotated[Json, Help("The account. Default: a table.")]
_SEED = typer.Option(
    "--seed",
    metavar="N",
    min=0,
    help="Seed of whatever is drawn at random.",
)
Seed = Annotated[int, _SEED]
_UNIT = typer.Option(
    "--unit",
    metavar="UNIT",
    help="What is counted: char, word, or hf:TOKENIZER (a tokenizer.json or a hub name).",
)
Unit = Annotated[str, _UNIT]
OptionalUnit = Annotated[str | None, _UNIT]
_ANNOTATOR = typer.Option(
    "--annotator",
    metavar="NAME",
    help="Whose labels count: a name, majority or union.",
)
Annotator = Annotated[str | None, _ANNOTATOR]
_TAXONOMY = typer.Option(
    "--taxonomy",
    metavar="NAME",
    help="Taxonomy of the types of spans.",
)
Taxonomy = Annotated[str | None, _TAXONOMY]
InjectedTaxonomy = Annotated[Literal["fava", "halluverse"], _TAXONOMY]
_THRESHOLD = typer.Option(
    "--threshold",
    metavar="P",
    help="Confidence from which a word is marked, a probability from 0 to 1.",
)
Threshold = Annotated[float | None, _THRESHOLD]
_RESAMPLES = typer.Option(
    "--resamples",
    metavar="N",
    min=0,
    help="Bootstrap resamples of whole texts; 0 gives no intervals.",
)
Resamples = Annotated[int, _RESAMPLES]
_PROCESSES = typer.Option(
    "--processes",
    "-j",
    metavar="N",
    min=0,
    help="Worker processes; 0 is one for each core.",
)
Processes = Annotated[int, _PROCESSES]
OptionalProcesses = Annotated[int | None, _PROCESSES]
_BATCH_SIZE = typer.Option(
    "--batch-size",
    metavar="N",
    min=1,
    help="Most rows judged at once; the results do not depend on it. Default: 32 rows.",
)
BatchSize = Annotated[int, _BATCH_SIZE]
_ON_ERROR = typer.Option(
    "--on-error",
    help="At a row that cannot be read: stop, or skip it, write it to OUTPUT.failed.jsonl and exit with 3 in the"
    " end. Default: skip.",
)
OnError = Annotated[Literal["stop", "skip"], _ON_ERROR]
_OVERWRITE = typer.Option(
    "--overwrite",
    help="Start anew, whatever is there; finished calls are not repeated. Default: resume.",
)
Overwrite = Annotated[bool, _OVERWRITE]
_RETRY = typer.Option(
    "--retry",
    help="Redo what failed in an earlier run. Default: leave it.",
)
Retry = Annotated[bool, _RETRY]
_DRY_RUN = typer.Option(
    "--dry-run",
    help="Ask nothing and write nothing: print how many calls and tokens it would take, roughly. Default: off.",
)
DryRun = Annotated[bool, _DRY_RUN]
_COUNT = typer.Option(
    "--count",
    "-n",
    metavar="N",
    min=1,
    help="How many to make.",
)
Count = Annotated[int, _COUNT]
OptionalCount = Annotated[int | None, _COUNT]
_PEOPLE = typer.Option(
    "--people",
    metavar="FILE",
    help="People, as `veriglot dataset people` writes them; may be repeated.",
)
People = Annotated[list[str] | None, _PEOPLE]
_CONTACT = typer.Option(
    "--contact",
    metavar="ADDRESS",
    envvar="VERIGLOT_CONTACT",
    help="An e-mail or web address of yours, which Wikimedia asks for and which is sent to it. Default: none.",
)
Contact = Annotated[str | None, _CONTACT]
_MODEL = typer.Option(
    "--model",
    "-m",
    metavar="MODEL",
    help="The model to ask, as its server names it.",
)
Model = Annotated[str, _MODEL]
OptionalModel = Annotated[str | None, _MODEL]
Models = Annotated[list[str], _MODEL]
OptionalModels = Annotated[list[str] | None, _MODEL]
Database = Annotated[str | None, FromRoot("database")]  # of `veriglot studio`
_SPLITS = typer.Option(
    "--splits",
    help="What a split is, for leaks. names: what samples say in meta.split, or train, dev, test in the names of"
    " files and folders. files: each file. arguments: each DATA. Default: names.",
)
Splits = Annotated[Literal["names", "files", "arguments", "none"], _SPLITS]
_PREDICTIONS = typer.Option(
    "--predictions",
    metavar="FILE",
    help="Predictions of `veriglot detect`, joined to the samples by id.",
)
PredictionsFile = Annotated[str | None, _PREDICTIONS]
_TABLE = typer.Option(
    "--table",
    metavar="NAME",
    help="Which table to write.",
)
TableName = Annotated[str | None, _TABLE]
_PUBLIC_URL = typer.Option(
    "--public-url",
    metavar="URL",
    help="Where people reach the studio, such as https://studio.example.org, or a path below a host.",
)
PublicUrl = Annotated[str | None, _PUBLIC_URL]
_DETECTOR = typer.Option(
    "--detector",
    metavar="NAME",
    help="Detector by name: grounding (words against words), semantic (by meaning, across languages too, with a"
    " model that has to be fetched), auto (the best that is here for the language); or package.module:Class of"
    " one's own. Some take an argument, such as hf:FOLDER, nli:FOLDER, judge:KIND and ensemble:NAME+NAME;"
    " veriglot doctor lists all. Default: grounding.",
)
DetectorName = Annotated[str, _DETECTOR]
_SET = typer.Option(
    "--set",
    metavar="NAME=VALUE",
    help="A further option of the detector, such as model=NAME; may be repeated. Default: none.",
)
DetectorSettings = Annotated[list[str] | None, _SET]
_CALIBRATION = typer.Option(
    "--calibration",
    metavar="FILE",
    help="Calibrate the detector's confidences by this file, which veriglot evaluate --calibrate wrote. Default: none.",
)
CalibrationFile = Annotated[str | None, _CALIBRATION]
_ENCODER = typer.Option(
    "--encoder",
    metavar="FILE",
    help="ONNX file of the sentence encoder.",
)
Encoder = Annotated[str | None, _ENCODER]
_EPOCHS = typer.Option(
    "--epochs",
    metavar="N",
    min=1,
    help="Passes over the data.",
)
Epochs = Annotated[int, _EPOCHS]
_LEAVE_OUT = typer.Option(
    "--leave-out-tests",
    help="Do not learn from parallel articles and translations that Veriglot's benchmarks test on. Default: learn"
    " from all.",
)
LeaveOutTests = Annotated[bool, _LEAVE_OUT]
Quiet = Annotated[bool, FromRoot("quiet")]

Attempts = Annotated[int, Setting("How often a model is asked again for what does not pass, 1 to 9.", 1, 9)]
Revision = Annotated[str | None, Setting("Revision of the model, to stand with its responses.")]
Part = Annotated[
    Literal["lead", "text"],
    Setting("What of an article is the reference: its lead section (lead), or all of it (text)."),
]


@dataclass(frozen=True)
class Reading:
    """How the rows of a data set are read."""

    language: RowLanguage = None
    format: Annotated[str | None, Setting("Format of the input. Default: recognised from the content.")] = None


@dataclass(frozen=True)
class Checks:
    """How it is checked that the evidence supports passages and not errors.

    Raises:
        UsageError: a price without the other.
    """

    support: Annotated[
        Literal["none", "detector", "model"],
        Setting(
            "How it is checked that the evidence supports a passage and not its errors. detector: a detector has to"
            " mark the errors, and little of the passage. model: a model is asked. none: each row says so."
        ),
    ] = "none"
    detector: Annotated[str, Setting("The detector of `support`.")] = "grounding"
    support_model: Annotated[str | None, Setting("The model of `support`. Default: the one that edits.")] = None
    attempts: Attempts = 2


class Prices(NamedTuple):
    """What a million tokens of prompts and of replies cost, in one currency."""

    tokens_in: float
    tokens_out: float


@dataclass(frozen=True)
class Cost:
    """What tokens cost."""

    price_in: Annotated[float | None, Setting("What a million tokens of prompts cost, in any currency.", 0)] = None
    price_out: Annotated[float | None, Setting("What a million tokens of replies cost.", 0)] = None

    @property
    def prices(self) -> Prices | None:
        """Both prices, or None where none is given.

        Raises:
            UsageError: one is given without the other.
        """
        if self.price_in is None and self.price_out is None:
            return None
        if self.price_in is None or self.price_out is None:
            raise UsageError("A cost needs both prices.", remedy="Set price_in and price_out.")
        return Prices(self.price_in, self.price_out)


@dataclass(frozen=True)
class Wikimedia:
    """Which Wikipedias to ask, and how fast."""

    contact: Contact = None
    rate: Annotated[
        float | None,
        Setting("Requests a second, at most. Default: 5 (Wikipedia), 1 (Wikidata), 10 (page views)."),
    ] = None
    wiki_servers: Annotated[
        list[str] | None,
        Setting("Other Wikipedias: TAG=URL, or a URL with {edition} in it. Default: Wikimedia's."),
    ] = None
    fetched: Annotated[str | None, Setting("Folder where fetched answers are kept. Default: beside the output.")] = None


@dataclass(frozen=True)
class Wikidata(Wikimedia):
    """Whom to ask for people, beside Wikipedias."""

    wikidata_server: Annotated[str | None, Setting("Another SPARQL server. Default: Wikidata's.")] = None
    views_server: Annotated[str | None, Setting("Another server of page views. Default: Wikimedia's.")] = None


@dataclass(frozen=True)
class Popularity:
    """How people are found in Wikidata and drawn by how often they are read."""

    at_least: Annotated[int | None, Setting("Articles in so many of the languages are enough. Default: in all.", 1)] = (
        None
    )
    candidates: Annotated[
        int | None, Setting("How many people, drawn at random, are described and counted. Default: 10 times count.", 1)
    ] = None
    groups: Annotated[
        int, Setting("As many people are taken from each of so many groups of equal size by page views.", 1)
    ] = 10
    views_in: Annotated[
        str | None, Setting("Wikipedias whose page views count, separated by commas; or none. Default: one, en first.")
    ] = None
    views_from: Annotated[str, Setting("Page views from this first of a month.")] = "2022-01-01"
    views_to: Annotated[str, Setting("Page views up to the day before, as Kang et al.")] = "2023-01-01"


@dataclass(frozen=True)
class Connection:
    """Whom to ask, and what may be spent."""

    base_url: Annotated[
        str | None,
        typer.Option(
            "--base-url",
            metavar="URL",
            help="Address of a server with OpenAI's API, with the version: http://127.0.0.1:8000/v1. Its key, if it"
            " wants one, is read from VERIGLOT_API_KEY. Default: none.",
        ),
    ] = None
    mock_rules: Annotated[
        str | None,
        typer.Option(
            "--mock-rules",
            metavar="FILE",
            help="Rehearse without a model: replies by the rules of this TOML or JSON file. Default: none.",
        ),
    ] = None
    concurrency: Annotated[
        int, typer.Option("--concurrency", metavar="N", min=1, help="Calls at the same time. Default: 8.")
    ] = 8
    client: Annotated[
        str | None,
        Setting(
            "How the model is reached: openai (a server with OpenAI's API), transformers (in this process) or scripted"
            " (replies by rules). Default: scripted with mock_rules, else openai."
        ),
    ] = None
    key: Annotated[
        str | None,
        Setting(
            "Name of the environment variable that holds the server's key; the key itself is never written down."
            " Default: VERIGLOT_API_KEY, where it is set."
        ),
    ] = None
    cache: Annotated[
        str | None,
        Setting(
            "Folder of finished calls, which are never paid for twice; several runs may share one."
            " Default: OUTPUT.calls."
        ),
    ] = None
    max_calls: Annotated[int | None, Setting("Stop before the call after so many paid ones. Default: none.", 0)] = None
    max_tokens_spent: Annotated[
        int | None, Setting("Stop before prompts and replies of this run pass so many tokens. Default: none.", 0)
    ] = None
    client_options: Annotated[
        dict[str, Any],
        Setting("Further options of the client, such as rate = 2 (requests a second) or timeout = 120 (seconds)."),
    ] = field(default_factory=dict)
    generation: Annotated[
        dict[str, Any],
        Setting(
            'How the model generates: preset = "mfava-llama-3", and over it max_tokens = 256, temperature = 0.6, top_p,'
            " top_k, min_p, repetition_penalty, stop. Default: as the server does."
        ),
    ] = field(default_factory=dict)

    @property
    def client_name(self) -> str:
        """How the model is reached."""
        return self.client or ("scripted" if self.mock_rules is not None else "openai")

    @property
    def settings(self) -> Settings:
        """How the model generates; see `generation_settings`."""
        return generation_settings(self.generation)

    def options(self) -> dict[str, Any]:
        """The options of the client.

        Raises:
            UsageError: one that it needs is missing.
        """
        key = self.key or ("VERIGLOT_API_KEY" if os.environ.get("VERIGLOT_API_KEY") else None)
        named = {"base_url": self.base_url, "rules": self.mock_rules}
        if self.client_name == "openai":
            named["key"] = key
        options = {name: value for name, value in named.items() if value is not None} | self.client_options
        if self.client_name == "openai" and "base_url" not in options:
            raise UsageError("Which server is to be asked?", remedy="Add --base-url http://HOST:PORT/v1.")
        if self.client_name == "scripted" and "rules" not in options:
            raise UsageError("The scripted client needs its rules.", remedy="Add --mock-rules FILE.")
        return options

    @contextmanager
    def open(self, output: Path, models: Iterable[str], revision: str | None = None) -> Iterator[Client]:
        """The client, with the cache that belongs to `output` where none was named.

        Args:
            output: what is made.
            models: the names of all models that are going to be asked.
            revision: of the models; calls of another one are not used again.

        Raises:
            UsageError: several models of a client that runs a single one, or an option that is missing.
            UnknownNameError: no such client or option.
            MissingExtraError: its packages are not installed.
        """
        from veriglot.llm.registry import Limits, connect

        limits = None
        if self.max_calls is not None or self.max_tokens_spent is not None:
            limits = Limits(self.max_calls, self.max_tokens_spent)
        output = output.resolve()  # `.` has no name
        folder = self.cache or str(output.with_name(output.name + ".calls"))
        client = connect(self.client_name, cache=folder, limits=limits, **self._options_for(models, revision))
        try:
            yield client
        finally:
            client.close()

    def _options_for(self, models: Iterable[str], revision: str | None) -> dict[str, Any]:
        options = self.options()
        if self.client_name == "transformers":
            first, *others = dict.fromkeys(models)
            if others:
                raise UsageError(
                    f"The client transformers runs one model, and {first!r} and {others[0]!r} are named.",
                    remedy="Give the command once for each.",
                )
            options.setdefault("model", first)
        if revision is not None and self.client_name != "scripted":
            options.setdefault("revision", revision)
        return options


def generation_settings(table: Mapping[str, Any]) -> Settings:
    """Generation settings: those given, over those of the preset that is named.

    Raises:
        UnknownNameError: no such preset or setting; the error suggests the nearest.
        UsageError: a value out of range, or of the wrong kind.
    """
    import msgspec

    from veriglot.errors import UnknownNameError
    from veriglot.llm.client import Settings, preset

    values = dict(table)
    name = values.pop("preset", None)
    for key in values:
        if key not in Settings.__struct_fields__:
            raise UnknownNameError("generation setting", key, ["preset", *Settings.__struct_fields__])
    if isinstance(values.get("stop"), str):
        values["stop"] = [values["stop"]]
    try:
        settings = msgspec.convert(values, Settings)
    except msgspec.ValidationError as error:
        raise UsageError(f"A generation setting cannot be used: {error}.") from error
    return settings if name is None else settings.over(preset(str(name)))


MFAVA_SEEDS = "42,43,44,47,49"


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

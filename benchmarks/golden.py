"""Golden outputs: what the commands write today, kept, so that a change of the code can be held against it.

    python benchmarks/golden.py record runs/before --data ../shared/data
    ... move, join, rename ...
    python benchmarks/golden.py record runs/after --data ../shared/data
    python benchmarks/golden.py compare runs/before runs/after --names renamed.toml

`record` runs every case of `CASES` below, always with the code of the checkout that this script stands in, and writes
its files to `DIR/CASE`. Each case is a few command lines as a user would type them: where an option or a command is
renamed, edit its line here. A case is skipped, with a line that says so, where it needs the real data or a sentence
encoder and these are not here. Seeds and numbers of processes are fixed, so two records of one code are equal.

`compare` prints for each case `equal`, or the first differences, and leaves with 1 if there are any. Nothing is
normalised when it is written, only here:

- JSON and JSON lines (those inside pages too): keys and values, the order of keys apart, numbers as they are written.
- CSV: cells by column. Parquet: rows, as JSON. TOML: as JSON.
- HTML: the embedded JSON, the figures of the visible text and of drawings in their order, the text of marks, and how
  often each tag occurs that gives the page its structure. Words may change, and so may classes and attributes.
- Markdown, LaTeX and plain text: the figures in their order, and the number of cells and rows.
- Signatures, hashes, versions, times, random ids, keys, ports and the folders of a record compare as a class: each is
  there in both, whatever it is. Columns of tables that hold times are left out. Prose under `PROSE` compares by its
  figures.
- All else: its bytes.

`--names` is a TOML file of renamed names, old = "new". Before comparison they are applied to OLD: to keys of JSON,
columns of CSV, whole values that are exactly the old name, and parts of paths.
"""

from __future__ import annotations

import argparse
import http.cookiejar
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

from golden_comparison import compare

ROOT = Path(__file__).resolve().parents[1]
ENTRY = [sys.executable, "-c", "import sys; from veriglot.cli import main; sys.exit(main())"]
ENCODER = "e5-multilingual"


@dataclass(frozen=True)
class Case:
    """One folder of outputs.

    Attributes:
        name: of the case and its folder.
        steps: command lines, run one after another in the folder. `{examples}` and `{data}` are the folders of
            examples and of real data, `../CASE/FILE` is what another case wrote. `> FILE` keeps standard output.
            Besides `veriglot`, a step may be one of `STEPS`.
        outputs: patterns of the files that are compared; what stands behind `>` always is.
        needs: `data`, `encoder`, or both.
        after: cases whose files it reads.
        files: input that is written first, by name.
    """

    name: str
    steps: tuple[str, ...]
    outputs: tuple[str, ...]
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)


def _rows(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _script(*rules: tuple[str | None, Any]) -> str:
    """Rules of the scripted client: a pattern of the request, and the reply; a reply that is no text is JSON."""
    texts = [(m, r if isinstance(r, str) else json.dumps(r, ensure_ascii=False)) for m, r in rules]
    return json.dumps({"rules": [{"match": m or "", "reply": r.replace("\\", "\\\\")} for m, r in texts]})


EVIDENCE = "The lighthouse of Norva was built in 1871 by Ada Berg. It is 34 metres high, and it was restored in 1950."
RESPONSE = "The lighthouse of Norva was built in 1881 by Ada Berg. It is the tallest in the country."
LIGHTHOUSE = _rows(
    {"id": "wrong", "task": "qa", "language": "en", "question": "Who built the lighthouse of Norva?",
     "evidence": [{"id": "p0", "text": EVIDENCE}], "response": RESPONSE},
    {"id": "right", "task": "qa", "language": "en", "question": "Who restored the lighthouse of Norva?",
     "evidence": [{"id": "p0", "text": EVIDENCE}], "response": "Ada Berg built it."},
    {"id": "broken", "task": "qa", "language": "en", "question": "How high is the lighthouse of Norva?",
     "evidence": [{"id": "p0", "text": EVIDENCE}], "response": "About 40 metres, says the keeper."},
)  # fmt: skip
JUDGE = _script(
    ("About 40 metres", "I would rather not."),
    ("built in 1881", {"spans": [
        {"text": "1881", "type": "entity", "before": "built in"},
        {"text": "It is the tallest in the country.", "type": "unverifiable", "before": "by Ada Berg."}]}),
    (None, {"spans": []}),
)  # fmt: skip
MILL = "The mill of Oberfeld was built in 1731 by the widow Anna Kroll. It burnt down in 1902."
MILLS = _rows(
    *(
        {"id": f"mill-{n}", "language": "en", "evidence": [{"id": "p0", "text": MILL.replace("Oberfeld", place)}],
         "response": MILL.replace("Oberfeld", place)}
        for n, place in enumerate(("Oberfeld", "Norva", "Altmoor", "Elmtal"))
    )
)  # fmt: skip
EDITED = "was built in <entity><delete>1731</delete><mark>1764</mark></entity> by the widow Anna Kroll."
INJECTION = _script(
    ("mill of Norva", "I'm sorry, but I can't help with spreading false information."),
    ("mill of Altmoor", f"The mill of Altmoor {EDITED} It burnt down in 1903."),
    ("mill of Elmtal", f"Sure, here it is:\n\nThe mill of Elmtal {EDITED} It burnt down in 1902."),
    (None, f"The mill of Oberfeld {EDITED} It burnt down in 1902."),
)
QUERIES = _rows(
    {"id": "en-0", "language": "en", "question": "When was the mill built?", "response": "",
     "evidence": [{"text": MILL}]},
    {"id": "de-0", "language": "de", "question": "Wann wurde die Mühle von Oberfeld gebaut?", "response": "",
     "evidence": [{"text": "Die Mühle von Oberfeld wurde 1731 von der Witwe Anna Kroll gebaut."}]},
)  # fmt: skip
ANSWERS = _script(
    ("Wann", "Die Mühle von Oberfeld wurde 1741 von einem Müller gebaut."), (None, "It was built in 1731.")
)
BRIDGE = _rows(
    {"id": "bridge", "language": "en",
     "response": "The bridge was opened in 1879 by Karl Meyer, and it still stands over the river today.",
     "annotations": [{"annotator": "gold", "kind": "human", "taxonomy": "fava",
                      "spans": [{"start": 25, "end": 29, "type": "entity"}]}]}
)  # fmt: skip
TRANSLATIONS = _script(
    (None, "Die Brücke wurde <1>1879</1> von Karl Meyer eröffnet, und sie steht noch heute über dem Fluss."),
)
PEOPLE = _rows(
    {"id": "Q1", "sitelinks": 3, "names": {"en": "Ada Berg", "de": "Ada Berg", "ar": "آدا بيرغ"},
     "titles": {"en": "Ada Berg", "de": "Ada Berg", "ar": "آدا بيرغ"}},
)  # fmt: skip
LIFE = (
    "Ada Berg was born in Norva on 3 May 1841. Ada Berg studied engineering in Altmoor from 1859 to 1863. Ada Berg"
    " built the lighthouse of Norva in 1871. Ada Berg married the painter Karl Meyer in 1872. Ada Berg wrote four books"
    " about harbours. Ada Berg moved to Elmtal in 1880 and opened a school. Ada Berg taught there for 21 years. Ada"
    " Berg died in Elmtal in 1907."
)
PAGES = _rows(
    {"id": "en-1", "language": "en", "title": "Ada Berg", "page_id": 1, "item": "Q1", "revision": 7,
     "url": "https://en.example.org/1", "text": LIFE, "lead": LIFE}
)  # fmt: skip
SCORERS = """
[bench]
title = "Scorers"
rank_by = "auroc"
baseline = "rouge-l"
resamples = 100

[[data]]
name = "questions"
path = "{examples}/study/labelled.jsonl"
levels = ["sentence", "response"]
annotator = "language-model"
""" + "".join(
    f'\n[[systems]]\nscorer = "{name}"\n'
    for name in (
        "rouge-1", "rouge-2", "rouge-l", "chrf", "number-agreement", "name-agreement", "top-ngram", "length-ratio",
        "pairwise:rouge-l",
    )
)  # fmt: skip
PROJECT = """
[project]
name = "Golden"
slug = "golden"
task = "spans"
languages = ["de", "ar", "zh", "hi", "th"]

[data]
path = "{examples}/studio/data.jsonl"
silver = "silver"

[work]
overlap = 50
reviews = 1
adjudicate = true

[consent]
en = "I take part of my own free will."
"""

STUDY = "{examples}/study/responses/smollm2-open.jsonl"
MARKED = "estimate ../judged/open.jsonl --samples " + STUDY
RATES = f"{MARKED} --profile ../evaluate/profile.json --pooled --draws 500"
SCRIPTED = "-m mill --mock-rules script.json --concurrency 1"
REAL = ("mfava", "mu-shroom", "wice")
MT = "{data}/mt_guerreiro_deen/annotated_corpus.csv -s de -t en"
DRAWING = """
worst = 50
drawn = 50
parts = "train=60,dev=20,test=20"
source_column = "src"
target_column = "mt"
"""

CASES = (
    # What every figure of real data rests on: all rows of three sets, read and judged.
    *(
        Case(
            name,
            (f"veriglot convert {{data}}/{folder} -o rows.jsonl --json > account.json",),
            ("rows.jsonl",), ("data",),
        )
        for name, folder in (("mfava", "mfava/gold_dev"), ("mu-shroom", "mu_shroom_val"), ("wice", "wice/claims"))
    ),
    *(
        Case(
            f"grounding-{data}",
            (f"veriglot detect ../{data}/rows.jsonl --words -j 1 -o out.jsonl",),
            ("out.jsonl",), ("data",), (data,),
        )
        for data in REAL
    ),
    *(
        Case(
            f"{detector}-{data}",
            (
                f"take {rows} ../{data}/rows.jsonl in.jsonl",
                f"veriglot detect in.jsonl --detector {detector} --words -j 1 -o out.jsonl",
            ),
            ("out.jsonl",),
            ("data", "encoder"),
            (data,),
        )
        for detector, rows in (("reader", 80), ("auto", 40))
        for data in REAL
    ),
    Case(
        "evaluate-mfava",
        (
            "veriglot evaluate ../mfava/rows.jsonl --predictions ../grounding-mfava/out.jsonl -j 1 -o profile.json"
            " --config few.toml --json > figures.json",
        ),
        ("profile.json",), ("data",), ("mfava", "grounding-mfava"), {"few.toml": "resamples = 100"},
    ),
    # Detectors on the examples: every form of the output.
    Case(
        "detect",
        (
            "veriglot detect {examples}/samples.jsonl --words -j 1 -o words.jsonl",
            "veriglot detect {examples}/samples.jsonl --level fact -j 1 -o facts.jsonl",
            "veriglot detect {examples}/samples.jsonl --level sentence --threshold 0.3 -j 1 > sentences.jsonl",
            "veriglot detect {examples}/samples.jsonl -j 1 -o page.html",
            "veriglot detect {examples}/samples.jsonl --words -j 1 -o words.parquet",
            "veriglot detect {examples}/probes/probes.jsonl --words -j 1 -o probes.jsonl",
            "veriglot detect --evidence-text 'It was opened in 1897.' --response-text 'It was opened in 1879.'"
            " --to terminal > pair.txt",
        ),
        ("words.jsonl", "facts.jsonl", "page.html", "words.parquet", "probes.jsonl"),
    ),
    Case(
        "detect-by-reader",
        (
            "veriglot detect {examples}/samples.jsonl --detector reader --words -j 1 -o reader.jsonl",
            "take 24 {examples}/samples.jsonl some.jsonl",
            "veriglot detect some.jsonl --detector ensemble:grounding+reader --words -j 1 -o ensemble.jsonl",
        ),
        ("reader.jsonl", "ensemble.jsonl"), ("encoder",),
    ),
    Case(
        "judge",
        (
            "!3 veriglot detect in.jsonl --detector judge:spans --set client=scripted --set rules=script.json --words"
            " -j 1 -o out.jsonl",
        ),
        ("out.jsonl",),
        files={"in.jsonl": LIGHTHOUSE, "script.json": JUDGE},
    ),
    # Figures, error profiles, rates.
    Case(
        "evaluate",
        (
            "veriglot evaluate {examples}/samples.jsonl -j 1 -o profile.json"
            " --config counts.toml --json > figures.json",
            "veriglot evaluate counts.json --seed 2 --config unit.toml > again.txt",
            "veriglot evaluate {examples}/samples.jsonl --config none.toml --unit char -j 1 --json > char.json",
            "veriglot evaluate {examples}/samples.jsonl --config none.toml -j 1 --calibrate calibration.json > fit.txt",
            "veriglot detect {examples}/samples.jsonl --detector calibrated:grounding"
            " --set calibration=calibration.json -j 1 -o calibrated.jsonl",
        ),
        ("profile.json", "counts.json", "calibration.json", "calibrated.jsonl"),
        files={
            "counts.toml": 'counts = "counts.json"\nresamples = 200',
            "unit.toml": 'levels = ["unit"]\nresamples = 100',
            "none.toml": "resamples = 0",
        },
    ),
    Case("judged", (f"veriglot detect {STUDY} --words -j 1 -o open.jsonl",), ("open.jsonl",)),
    Case(
        "estimate",
        (
            f"veriglot {RATES} --json > label-shift.json",
            f"veriglot {RATES} --estimator raw --estimator paper --estimator em --by-seed --json > several.json",
            f"veriglot {RATES} --labels {{examples}}/study/labelled.jsonl --estimator ppi --json > ppi.json",
            f"veriglot {RATES} --estimator raw --to csv > raw.csv",
            f"veriglot {RATES} --plan 0.02 --json > plan.json",
            f"veriglot {RATES} > table.txt",
        ),
        (), after=("judged", "evaluate"),
    ),
    Case(
        "study",
        (
            "veriglot study run {examples}/study/study.toml -o run -j 1 > table.txt",
            "veriglot study status run --json > status.json",
        ),
        ("run/rates.json", "run/results.json", "run/report.html", "run/tables/*.csv", "run/predictions/*/*.jsonl",
         "run/profiles/*.json"),
    ),
    Case(
        "report",
        (
            "veriglot report ../study/run -o page.html",
            "veriglot report ../study/run --to latex > tables.tex",
            "veriglot report ../study/run --to markdown > tables.md",
            "veriglot report ../study/run --to json > tables.json",
            "veriglot report ../study/run --to csv --table comparisons > comparisons.csv",
            "veriglot report ../study/run --table all -o tables",
            "veriglot report ../study/run --to terminal > terminal.txt",
        ),
        ("page.html", "tables/*.csv"), after=("study",),
    ),
    Case(
        "bench",
        (
            "!0,3 veriglot bench run {examples}/bench/bench.toml -o run -j 1 --json > results.json",
            "veriglot report run > terminal.txt",
            "veriglot report run --to csv --table wins > wins.csv",
            "veriglot bench statistics {examples}/samples.jsonl {examples}/study/labelled.jsonl --json > data.json",
        ),
        ("run/results.json", "run/leaderboard.*", "run/tables/*.csv", "run/cells/*/answers.jsonl"),
    ),
    Case(
        "scorers",
        ("!0,3 veriglot bench run bench.toml -o run -j 1 > terminal.txt",),
        ("run/results.json", "run/tables/*.csv", "run/cells/*/answers.jsonl"),
        files={"bench.toml": SCORERS},
    ),
    # Data that is made: by rule, by a model that follows a script, by drawing.
    Case(
        "silver-rules",
        ("veriglot dataset rules {examples}/samples.jsonl -n 60 -o out.jsonl --json > account.json",),
        ("out.jsonl", "*.rejected.jsonl"),
    ),
    Case(
        "silver-model",
        (
            f"veriglot dataset silver in.jsonl {SCRIPTED} --config settings.toml"
            " -o out.jsonl --json > account.json",
        ),
        ("out.jsonl", "*.rejected.jsonl"),
        files={
            "in.jsonl": MILLS,
            "script.json": INJECTION,
            "settings.toml": 'order = ["entity"]\nattempts = 1\nprice_in = 2\nprice_out = 8',
        },
    ),
    Case(
        "halluverse",
        (
            "veriglot dataset halluverse pages.jsonl --people people.jsonl --rules --config settings.toml -o out.jsonl"
            " --json > account.json",
        ),
        ("out*.jsonl", "*.csv"),
        files={"pages.jsonl": PAGES, "people.jsonl": PEOPLE, "settings.toml": "min_sentences = 3"},
    ),
    Case(
        "responses",
        (
            f"veriglot dataset responses in.jsonl {SCRIPTED} --design runs --seeds 1,2 -o out.jsonl --json"
            " > account.json",
            "veriglot dataset check --quality out.jsonl --json > quality.json",
        ),
        ("out.jsonl",),
        files={"in.jsonl": QUERIES, "script.json": ANSWERS},
    ),
    Case(
        "biographies",
        ("veriglot dataset queries --people people.jsonl --languages en,de,ar -o prompts.jsonl",),
        ("prompts.jsonl",),
        files={"people.jsonl": PEOPLE},
    ),
    Case(
        "translate",
        (
            f"veriglot dataset translate in.jsonl --languages de --translator llm {SCRIPTED} --config settings.toml"
            " -o out.jsonl --json > account.json",
        ),
        ("out.jsonl", "*.rejected.jsonl"),
        files={
            "in.jsonl": BRIDGE,
            "script.json": TRANSLATIONS,
            "settings.toml": 'strategy = "tags"\naligner = "lexical"\nevidence = "keep"',
        },
    ),
    Case(
        "mt-sample",
        (
            f"!3 veriglot dataset sample {MT} -o sample -j 1 --scorer top-ngram --scorer length-ratio"
            " --config settings.toml --rejected fallen.jsonl --json > report.json",
        ),
        ("sample/*.jsonl", "sample/*.json", "fallen.jsonl"), ("data",),
        files={"settings.toml": DRAWING},
    ),
    Case(
        "check",
        (
            "veriglot dataset check {examples}/samples.jsonl {examples}/study/labelled.jsonl -o clean"
            " --report check.html --report check.md --json > check.json",
        ),
        ("check.html", "check.md", "clean/*.jsonl"),
    ),
    Case(
        "card",
        ("veriglot dataset card {examples}/samples.jsonl --write-about about.toml -o card.md",),
        ("card.md", "about.toml"),
    ),
    Case(
        "convert",
        (
            "veriglot convert {examples}/samples.jsonl -o samples.parquet",
            *(
                f"!0,3 veriglot convert {{examples}}/samples.jsonl --to {to} -o samples.{to}.{suffix}"
                for to, suffix in (("label-studio", "json"), ("inline", "jsonl"), ("hat", "json"),
                                   ("ragtruth", "jsonl"), ("lettucedetect", "json"))
            ),
            "veriglot convert samples.label-studio.json --format label-studio -o back.jsonl",
            "veriglot convert {examples}/study/labelled.jsonl -o labelled.jsonl --json > report.json",
        ),
        ("samples.*", "back.jsonl"),
    ),
    Case(
        "convert-mfava",
        tuple(f"veriglot convert ../mfava/rows.jsonl --to {to} -o rows.{to}.json" for to in ("mfava", "label-studio")),
        ("rows.*",), ("data",), ("mfava",),
    ),
    # The studio: the commands, and what its server answers to a lead and two annotators.
    Case(
        "studio",
        (
            *(
                f"veriglot studio init {preset} --preset {preset} > {preset}.txt"
                for preset in ("mfava", "hat", "kang", "halluverse")
            ),
            "copy {examples}/studio five",
            "veriglot studio import five --json > import.json",
            "veriglot studio status five --json > status.json",
            "veriglot studio import . --json > import-golden.json",
            "veriglot studio invite . --role lead --json > lead.json",
            "veriglot studio invite . --count 2 --json > annotators.json",
            "visit lead.json annotators.json veriglot studio serve . --port {port}",
            "veriglot studio status . --json > status-golden.json",
            "veriglot studio settle . --json > settled.json",
            *(
                f"veriglot studio export . exports/{to} --to {to} --names --json > export-{to}.json"
                for to in ("native", "mfava", "hat", "inline", "label-studio")
            ),
        ),
        ("*/project.toml", "api/*", "exports/**/*"),
        files={"project.toml": PROJECT},
    ),
    Case(
        "agreement",
        (
            "veriglot studio agreement ../studio/exports/native/data.jsonl --gamma 5 --resamples 100 --json"
            " > agreement.json",
        ),
        (), after=("studio",),
    ),
    Case(
        "agreement-mfava",
        ("veriglot studio agreement ../mfava/rows.jsonl --gamma 2 --resamples 100 --json > agreement.json",),
        (), ("data",), ("mfava",),
    ),
)  # fmt: skip


# --- record -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recording:
    """Where a record goes, and what it is made from."""

    out: Path
    data: Path | None

    def filled(self, text: str) -> str:
        """The text with its folders."""
        return text.replace("{examples}", str(ROOT / "examples")).replace("{data}", str(self.data))

    @property
    def environment(self) -> dict[str, str]:
        """Of every command: this checkout's code, one thread, nothing of a terminal."""
        path = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        fixed = {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(path), "COLUMNS": "100", "PYTHONHASHSEED": "0"}
        return {**os.environ, **fixed, "NO_COLOR": "1", "TZ": "UTC"}

    def lacks(self, case: Case) -> str:
        """What the case needs and is not here; empty where all is."""
        if "data" in case.needs and self.data is None:
            return "needs --data"
        if "encoder" in case.needs and not self._has_encoder():
            return f"needs the sentence encoder (veriglot models get {ENCODER})"
        return ""

    def _has_encoder(self) -> bool:
        command = [*ENTRY, "models", "path", ENCODER]
        return subprocess.run(command, env=self.environment, capture_output=True).returncode == 0

    def run(self, case: Case) -> list[str]:
        """Run the steps of a case; what went wrong, a line each."""
        folder = self.out / case.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, text in case.files.items():
            (folder / name).write_text(self.filled(text), "utf-8")
        wrong = []
        for step in case.steps:
            wanted, line = _wanted(self.filled(step))
            words, kept = _redirected(shlex.split(line))
            if words[0] in STEPS:
                STEPS[words[0]](self, folder, words[1:])
                continue
            done = subprocess.run([*ENTRY, *words[1:]], cwd=folder, env=self.environment, capture_output=True)
            if kept:
                (folder / kept).write_bytes(done.stdout)
            if done.returncode not in wanted:
                wrong.append(f"exit code {done.returncode}: {line}\n{done.stderr.decode('utf-8', 'replace')}")
        return wrong


def _wanted(step: str) -> tuple[set[int], str]:
    """The exit codes that a step may have, and its command line."""
    if not step.startswith("!"):
        return {0}, step
    codes, _, line = step[1:].partition(" ")
    return {int(code) for code in codes.split(",")}, line


def _redirected(words: list[str]) -> tuple[list[str], str | None]:
    return (words[:-2], words[-1]) if len(words) > 2 and words[-2] == ">" else (words, None)


def take(_: Recording, folder: Path, words: Sequence[str]) -> None:
    """`take N IN OUT`: N lines, evenly spaced."""
    count, source, target = int(words[0]), folder / words[1], folder / words[2]
    lines = source.read_bytes().splitlines(keepends=True)
    target.write_bytes(b"".join(lines[i * len(lines) // count] for i in range(min(count, len(lines)))))


def copy(_: Recording, folder: Path, words: Sequence[str]) -> None:
    """`copy IN OUT`: a folder."""
    shutil.copytree(folder / words[0], folder / words[1])


class Visitor:
    """Somebody who talks to the studio's server; every answer is written to a file of its own, in order."""

    def __init__(self, url: str, out: Path, name: str) -> None:
        self.url, self.out, self.name, self.csrf, self.calls = url, out, name, "", 0
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self.opener = urllib.request.build_opener(cookies, urllib.request.ProxyHandler({}))

    def call(self, path: str, body: Any = None, *, post: bool = False) -> Any:
        """The JSON of an answer, whatever its status."""
        data = json.dumps(body).encode() if body is not None else b"" if post else None
        headers = {"Content-Type": "application/json", "X-CSRF-Token": self.csrf}
        try:
            with self.opener.open(urllib.request.Request(self.url + path, data, headers), timeout=60) as answer:
                status, content = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, content = error.code, error.read()
        said = json.loads(content)
        self.calls += 1
        asked = path if "join" not in path else "/api/join"
        where = self.out / f"{self.name}-{self.calls:02}.json"
        where.write_text(json.dumps({"asked": asked, "status": status, "said": said}, ensure_ascii=False, indent=1))
        return said

    def join(self, token: str) -> None:
        """Through the link, to a session."""
        self.call(f"/api/join/{token}")
        body = {"token": token, "name": self.name, "language": "en", "consent": True}
        self.csrf = self.call("/api/join", body)["csrf"]
        self.call("/api/me")

    def annotate(self, items: int, word: int) -> None:
        """Mark one word of each of so many items, and hand them in."""
        for number in range(items):
            given = self.call("/api/next", post=True)["assignment"]
            if given is None:
                return
            start, end = given["item"]["words"][word]
            layer = {"spans": [{"id": "s1", "start": start, "end": end, "type": "entity"}]}
            event = f"00000000-0000-4000-8000-{word:06}{number:06}"
            body = {"event_id": event, "base_version": given["version"], "kind": "submit", "layer": layer}
            self.call(f"/api/assignments/{given['id']}/events", body)
        self.call(f"/api/assignments/{given['id']}")
        self.call(f"/api/assignments/{given['id']}/shared")
        self.call("/api/assignments")


def visit(recording: Recording, folder: Path, words: Sequence[str]) -> None:
    """`visit LEAD ANNOTATORS COMMAND...`: start the server, have a lead and two annotators use it, and stop it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    out = folder / "api"
    out.mkdir()
    command = [*ENTRY, *(word.replace("{port}", port) for word in words[3:])]
    links = [json.loads((folder / name).read_text("utf-8")) for name in words[:2]]
    lead, first, second = (link["link"].rsplit("/", 1)[1] for links_ in links for link in links_)
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(command, cwd=folder, env=recording.environment, stderr=log, stdout=log)
        try:
            _answers(f"http://127.0.0.1:{port}", server, out, (lead, first, second))
        finally:
            server.terminate()
            server.wait(60)


def _answers(url: str, server: subprocess.Popen[bytes], out: Path, tokens: Sequence[str]) -> None:
    anybody = Visitor(url, out, "anybody")
    for _ in range(300):
        try:
            anybody.call("/api/health")
            break
        except urllib.error.URLError:
            if server.poll() is not None:
                raise
            time.sleep(0.1)
    for path in ("/api/words/de", "/api/words/th", "/api/me"):
        anybody.call(path)
    with anybody.opener.open(f"{url}/", timeout=60) as page:
        (out / "index.html").write_bytes(page.read())
    lead, *annotators = (Visitor(url, out, name) for name in ("lead", "anna", "ben"))
    for visitor, token in zip((lead, *annotators), tokens, strict=True):
        visitor.join(token)
        visitor.call("/api/guidelines")
    for word, annotator in enumerate(annotators):
        annotator.annotate(5, word)
    for path in ("overview", "items?limit=5", "disagreements", "agreement", "items/1/history"):
        lead.call(f"/api/lead/{path}")


STEPS = {"take": take, "copy": copy, "visit": visit}


def with_needed(names: Sequence[str]) -> list[Case]:
    """The cases of these names, all if there are none, and those whose files they read, in the order of the table."""
    known = {case.name: case for case in CASES}
    if unknown := set(names) - set(known):
        raise SystemExit(f"There is no case {', '.join(sorted(unknown))}. There are: {', '.join(known)}.")
    wanted = list(names or known)
    for name in wanted:
        wanted.extend(known[name].after)
    return [case for case in CASES if case.name in wanted]


def record(out: Path, data: Path | None, only: Sequence[str]) -> int:
    """Run the cases; 1 if a command failed."""
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    recording = Recording(out, data.resolve() if data else None)
    roots = {str(out): "<out>", str(recording.data): "<data>", str(ROOT): "<checkout>", str(Path.home()): "<home>"}
    path = out / "golden.json"
    kept = json.loads(path.read_text("utf-8")) if path.exists() else {"cases": {}}
    failed = False
    for case in with_needed(only):
        begun = _cpu()
        skipped = recording.lacks(case)
        wrong = [] if skipped else recording.run(case)
        took = round(_cpu() - begun, 1)
        written = [words[1] for step in case.steps if (words := _redirected(shlex.split(step)))[1]]
        kept["cases"][case.name] = {"outputs": [*case.outputs, *written], "skipped": skipped, "cpu_s": took}
        print(f"{case.name}: " + (f"skipped, it {skipped}" if skipped else f"{took} s of CPU"), flush=True)
        for line in wrong:
            failed = True
            print(f"  {line}", file=sys.stderr)
    path.write_text(json.dumps({"roots": roots, "cases": kept["cases"]}, indent=1), "utf-8")
    print(f"{sum(case['cpu_s'] for case in kept['cases'].values()):.0f} s of CPU in all")
    return int(failed)


def _cpu() -> float:
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(arguments: Sequence[str] | None = None) -> int:
    """Record or compare; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recorder = commands.add_parser("record", help="run the cases and keep what they write")
    recorder.add_argument("out", metavar="DIR", type=Path, help="folder of the record")
    recorder.add_argument("--data", type=Path, help="folder of real data; default: its cases are skipped")
    recorder.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only these cases, and what they read")
    comparer = commands.add_parser("compare", help="hold one record against another")
    comparer.add_argument("old", metavar="OLD", type=Path)
    comparer.add_argument("new", metavar="NEW", type=Path)
    comparer.add_argument("--names", type=Path, help='TOML of renamed names, old = "new"')
    comparer.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only these cases")
    given = parser.parse_args(arguments)
    if given.command == "record":
        return record(given.out, given.data, given.only)
    names = tomllib.loads(given.names.read_text("utf-8")) if given.names else {}
    return compare(given.old, given.new, names, given.only)


if __name__ == "__main__":
    sys.exit(main())

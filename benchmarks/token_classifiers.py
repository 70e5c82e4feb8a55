"""mFAVA's experiment on models that fit a CPU: token classifiers that `veriglot train tokens` makes of its gold_dev.

    python benchmarks/token_classifiers.py --data ../shared/data --facts ../shared/facts --out runs/tokens \
        --encoder e5=e5-multilingual --decoder gemma=gemma-3-270m-q4_k_m.gguf
    python benchmarks/token_classifiers.py ... --only e5-multi-bidirectional-binary gemma-multi-causal-binary

A cell is a model, of one language (mono) or of all five (multi), with causal or bidirectional attention, without or
with types, in three seeds. Each is trained by `veriglot train tokens` and measured by `veriglot evaluate`; what is
finished is not done again. The tables, in the shape of the paper's Tables 3 and 10, stand on the cells that are
finished and name the others. `--tables` trains nothing.

`OUT/data` has the parts: of each language, 30% of the texts are for testing; rows that share a response or evidence
stay on one side, and a response is taken once, with the labels of whoever stands first. Responses are cut after
`--words` words and evidence after `--evidence-words`, 0 for never: the head of a response retells the head of its
article. Nothing was chosen by a figure of the test part. Settings are the paper's (Table 5) but for those below.
`grounding` and `reader` learned nothing from gold_dev; they are given the same test texts, and once more with whole
evidence. Needs the extras `train` and `reader`, and gguf for files of that kind.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import statistics
import sys
from collections import defaultdict
from contextlib import redirect_stdout
from io import StringIO
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

import veriglot
from figures import command_line, show
from veriglot.cli import main as veriglot_command
from veriglot.datasets.near_duplicates import text_keys, texts_of
from veriglot.encoders.e5 import transformers_folder
from veriglot.records.languages import base_tag
from veriglot.signatures import digest
from veriglot.text.segmentation import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from veriglot.records import Sample

LANGUAGES = {"ar": "Arabic", "zh": "Chinese", "de": "German", "tr": "Turkish", "ru": "Russian"}  # as in Table 10
TEST_SHARE = 0.3
SEEDS = (42, 47, 49)
LABEL = {"binary": "Binary", "typed": "Category"}
# Beside the paper's. Its learning rate is for thousands of steps; here there are hundreds.
SETTINGS = {
    "adapter": "lora", "save": "adapter", "validation_share": 0.02, "accept_licence": True,
}  # fmt: skip
TRAINING: dict[str, Any] = {
    "per_device_train_batch_size": 4, "gradient_accumulation_steps": 1, "learning_rate": 3e-4, "num_train_epochs": 3,
    "save_steps": 0.25, "train_sampling_strategy": "group_by_length",
}  # fmt: skip
BASELINES = {
    "grounding": "test",
    "grounding, whole evidence": "whole",
    "reader": "test",
    "reader, whole evidence": "whole",
}


class Cell(NamedTuple):
    """A row of Table 3: what is trained, in all seeds and, if it is `mono`, in all languages."""

    model: str
    context: str
    attention: str
    task: str

    @property
    def name(self) -> str:
        """As `--only` takes it."""
        return "-".join(self)


def cells(encoders: Iterable[str], decoders: Iterable[str]) -> list[Cell]:
    """The grid; encoders look both ways alone."""
    ways = [(name, "bidirectional") for name in encoders]
    ways += [(name, attention) for name in decoders for attention in ("bidirectional", "causal")]
    return [Cell(m, context, way, task) for (m, way), context, task in product(ways, ("multi", "mono"), LABEL)]


def checkpoint_folder(model: str, out: Path) -> str:
    """A checkpoint of transformers: of a GGUF file with its notices, of our encoder, or the folder itself."""
    path = Path(model)
    if model == "e5-multilingual":
        return str(transformers_folder())
    if path.suffix != ".gguf":
        return str(path.resolve())
    target = out / "models" / path.stem
    if not (target / "tokenizer.json").is_file():
        import torch
        import transformers

        options = {"gguf_file": path.name, "dtype": torch.float32}
        whole = transformers.GgufConfig(dequantize=True)
        network = transformers.AutoModelForCausalLM.from_pretrained(path.parent, quantization_config=whole, **options)
        network.config.__dict__.pop("quantization_config", None)
        network.bfloat16().save_pretrained(target)
        for notice in path.parent.iterdir():
            if re.match(r"(notice|licen[cs]e|.*terms)", notice.name, re.IGNORECASE):
                shutil.copy(notice, target)
        transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name).save_pretrained(target)
    return str(target)


def write_parts(data: Path, out: Path, length: int, evidence_length: int) -> None:
    """Write the training part, and the test part of each language with its evidence cut and whole, once."""
    if (out / "whole").exists():
        return
    rows = reversed(list(veriglot.read(data / "mfava" / "gold_dev")))
    samples = list({sample.response: sample for sample in rows}.values())
    texts = texts_of([text_keys(sample) for sample in samples])
    parts: dict[str, list[Sample]] = defaultdict(list)
    for tag in LANGUAGES:
        own = [(s, text) for s, text in zip(samples, texts, strict=True) if base_tag(s.language or "") == tag]
        order = sorted({text for _, text in own}, key=lambda text: digest(["test", text]))
        held_out = set(order[: round(TEST_SHARE * len(order))])
        for sample, text in own:
            sample = _cut(sample, length)
            if text in held_out:
                parts[f"test/{tag}"].append(_with_evidence(sample, evidence_length))
                parts[f"whole/{tag}"].append(sample)
            else:
                parts["train"].append(_with_evidence(sample, evidence_length))
    for name in sorted(parts):
        (out / f"{name}.jsonl").parent.mkdir(parents=True, exist_ok=True)
        veriglot.write(parts[name], out / f"{name}.jsonl")


def _head(text: str, language: str | None, length: int) -> str:
    """The first words of a text; all for 0."""
    bounds = words(text, language)
    return text[: bounds[length - 1][1]] if 0 < length < len(bounds) else text


def _cut(sample: Sample, length: int) -> Sample:
    """With the first words of its response, and people's labels of them."""
    response = _head(sample.response, sample.language, length)
    end = len(response)
    annotations = tuple(
        msgspec.structs.replace(annotation, spans=tuple(
            msgspec.structs.replace(span, end=min(span.end, end)) for span in annotation.spans or () if span.start < end
        ))
        for annotation in sample.annotations if annotation.annotator == "gold"
    )  # fmt: skip
    return msgspec.structs.replace(sample, response=response, annotations=annotations)


def _with_evidence(sample: Sample, length: int) -> Sample:
    """With the first words of its evidence."""
    text = _head(" ".join(sample.passages), sample.language, length)
    return msgspec.structs.replace(sample, evidence=(veriglot.Evidence(text, language=sample.language),))


def run_cell(
    cell: Cell, model: str, out: Path, seeds: Sequence[int], *, decoder: bool, training: dict[str, Any]
) -> None:
    """Train and measure what of a cell is not there."""
    folder = out / cell.name
    settings: dict[str, Any] = {
        "model": model, "output": cell.name, "data": ["data/train.jsonl"], "seeds": list(seeds),
        "monolingual": cell.context == "mono", "types": cell.task == "typed", **SETTINGS,
    }  # fmt: skip
    if decoder:
        settings["attention"] = cell.attention
    path = out / f"{cell.name}.toml"
    path.write_text("\n".join([*_toml(settings), "[training]", *_toml(training), ""]), "utf-8")
    _command("train", "tokens", str(path))
    for tag, seed in product(LANGUAGES, seeds):
        checkpoint = folder / (tag if cell.context == "mono" else "") / f"seed-{seed}"
        _measure(f"hf:{checkpoint}", out / "data" / "test" / f"{tag}.jsonl", folder / "figures" / f"{tag}-{seed}.json")


def _toml(table: dict[str, Any]) -> list[str]:
    return [f"{key} = {json.dumps(value)}" for key, value in table.items()]


def _measure(detector: str, data: Path, target: Path) -> None:
    """The figures of a detector on a file, as `veriglot evaluate --json` prints them."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    printed = StringIO()
    with redirect_stdout(printed):
        _command("evaluate", str(data), "--detector", detector, "--threshold", "0.5", "--json", "-q")
    target.write_text(printed.getvalue(), "utf-8")


def _command(*words: str) -> None:
    if code := veriglot_command(list(words)):
        sys.exit(code)


def figures_of(path: Path, level: str, names: Sequence[str]) -> list[float]:
    """Percentages of a file of `_measure`, over all its rows."""
    rows = json.loads(path.read_bytes())["figures"]
    values = {row["name"]: row["value"] for row in rows if row["level"] == level and row["language"] is not None}
    return [100 * (values[name] or 0.0) for name in names]


def prevalence(path: Path) -> float:
    """The share of words that people marked."""
    rows = json.loads(path.read_bytes())["figures"]
    return float(next(row["prevalence"] for row in rows if row["level"] == "unit" and row["language"] is not None))


def mean_and_deviation(values: Sequence[float]) -> str:
    """Over seeds, as the tables show it."""
    deviation = f" ±{statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{deviation}"


def finished(out: Path, cell: Cell) -> list[int]:
    """The seeds whose figures are all there."""
    return [s for s in SEEDS if all((out / cell.name / "figures" / f"{tag}-{s}.json").exists() for tag in LANGUAGES)]


def table_3(out: Path, facts: Path, grid: Sequence[Cell]) -> list[dict[str, Any]]:
    """By language, the paper's rows on gold, then ours: F1 of words, area under their ROC curve, mean F1 over types."""
    rows = []
    with (facts / "mfava_table3_detector_f1.csv").open(encoding="utf-8") as file:
        published = [row for row in csv.DictReader(file) if row["test_set"] == "Gold"]
    for task, level, name in (("binary", "unit", "f1"), ("binary", "unit", "auroc"), ("typed", "category", "f1_macro")):
        shown = f"{task}: {name}"
        for context, attention in (("Mono", "Bidirect"), ("Multi", "Causal"), ("Multi", "Bidirect")):
            own = {
                row["language"]: float(row["f1"]) for row in published
                if (row["task"], row["model"], row["context"]) == (LABEL[task], context, attention)
            }  # fmt: skip
            values = [[own[language]] for language in LANGUAGES.values()]
            if name != "auroc":
                rows.append(_row("Llama-3-8B, published", shown, context, attention, values) | {"seeds": "3"})
        for cell in grid:
            if cell.task == task and (seeds := finished(out, cell)):
                folder = out / cell.name / "figures"
                files = [[folder / f"{tag}-{seed}.json" for seed in seeds] for tag in LANGUAGES]
                values = [[figures_of(path, level, [name])[0] for path in row] for row in files]
                rows.append(_row(cell.model, shown, cell.context.title(), cell.attention[:8].title(), values))
        for system in BASELINES:
            values = [figures_of(out / "figures" / system / f"{tag}.json", level, [name]) for tag in LANGUAGES]
            rows.append(_row(system, shown, "", "", values) | {"seeds": ""})
    shares = [prevalence(out / "figures" / "grounding" / f"{tag}.json") for tag in LANGUAGES]
    values = [[200 * share / (1 + share)] for share in shares]
    rows.append(_row("everything marked", "binary: f1", "", "", values) | {"seeds": ""})
    return rows


def _row(system: str, figure: str, context: str, attention: str, values: list[list[float]]) -> dict[str, Any]:
    """A row: each language over seeds, and the mean of languages over seeds."""
    means = [statistics.mean(column) for column in zip(*values, strict=True)]
    by_language = {tag: mean_and_deviation(own) for tag, own in zip(LANGUAGES, values, strict=True)}
    return {
        "figure": figure, "system": system, "model": context, "context": attention, "seeds": str(len(means)),
        **by_language, "mean": mean_and_deviation(means),
    }  # fmt: skip


def table_10(out: Path, facts: Path, grid: Sequence[Cell]) -> list[dict[str, Any]]:
    """Precision, recall and F1 of words by language, of multilingual binary classifiers."""
    names = ("precision", "recall", "f1")
    with (facts / "mfava_table10_precision_recall_f1.csv").open(encoding="utf-8") as file:
        published = {row["code"]: row for row in csv.DictReader(file) if row["test_set"] == "Gold"}
    rows = []
    for tag in LANGUAGES:
        values = {name: f"{float(published[tag][name]):.1f}" for name in names}
        rows.append({"language": tag, "system": "Llama-3-8B bidirectional, published", **values})
        for cell in grid:
            if (cell.context, cell.task) == ("multi", "binary") and (seeds := finished(out, cell)):
                runs = [figures_of(out / cell.name / "figures" / f"{tag}-{s}.json", "unit", names) for s in seeds]
                own = dict(zip(names, map(mean_and_deviation, zip(*runs, strict=True)), strict=True))
                rows.append({"language": tag, "system": f"{cell.model} {cell.attention}", **own})
        for system in BASELINES:
            bare = figures_of(out / "figures" / system / f"{tag}.json", "unit", names)
            rows.append({"language": tag, "system": system} | {n: f"{v:.1f}" for n, v in zip(names, bare, strict=True)})
    return rows


def main() -> int:
    """Train and measure what is asked for, and print the tables."""
    parser = command_line(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with mfava/gold_dev")
    parser.add_argument("--facts", type=Path, required=True, help="folder with the paper's tables as CSV")
    parser.add_argument("--out", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--encoder", action="append", default=[], metavar="NAME=MODEL", help="a folder, or our encoder")
    parser.add_argument("--decoder", action="append", default=[], metavar="NAME=MODEL", help="a folder, or a GGUF file")
    parser.add_argument("--only", nargs="*", metavar="CELL", help="these cells, in this order; all by default")
    parser.add_argument("--seeds", type=int, nargs="*", default=SEEDS, choices=SEEDS)
    parser.add_argument("--epochs", type=float, default=TRAINING["num_train_epochs"], help="default: %(default)s")
    parser.add_argument("--learning-rate", type=float, default=TRAINING["learning_rate"], help="default: %(default)s")
    parser.add_argument("--words", type=int, default=48, help="of a response; 0 for all; default: 48")
    parser.add_argument("--evidence-words", type=int, default=32, help="likewise; default: 32")
    parser.add_argument("--tables", action="store_true", help="train nothing")
    arguments = parser.parse_args()
    encoders, decoders = (dict(x.split("=", 1) for x in own) for own in (arguments.encoder, arguments.decoder))
    grid = {cell.name: cell for cell in cells(encoders, decoders)}
    out = arguments.out.resolve()
    write_parts(arguments.data, out / "data", arguments.words, arguments.evidence_words)
    for (system, part), tag in product(BASELINES.items(), LANGUAGES):
        _measure(system.split(",")[0], out / "data" / part / f"{tag}.jsonl", out / "figures" / system / f"{tag}.json")
    if not arguments.tables:
        for name in arguments.only or grid:
            cell = grid[name]
            model = checkpoint_folder({**encoders, **decoders}[cell.model], out)
            decoder = cell.model in decoders
            training = {"num_train_epochs": arguments.epochs, "learning_rate": arguments.learning_rate}
            run_cell(cell, model, out, arguments.seeds, decoder=decoder, training=TRAINING | training)
    lacking = {name: len(SEEDS) - len(finished(out, cell)) for name, cell in grid.items()}
    notes = ["of words; published: of Llama's tokens, on other texts, trained on silver of 30 languages"]
    if any(lacking.values()):
        notes.append("seeds not run: " + ", ".join(f"{name} {count}" for name, count in lacking.items() if count))
    for title, table in (("F1 (Table 3)", table_3), ("Words marked (Table 10)", table_10)):
        show(title, table(out, arguments.facts, list(grid.values())), as_json=arguments.json, notes=notes)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`veriglot estimate`: rates out of files, what they say of themselves, and calls that do not fit."""

from __future__ import annotations

import csv
import io
import json
import random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from json_lines import write_lines
from veriglot import detect_many, estimate
from veriglot.errors import InputError, UsageError
from veriglot.formats.reader import read_predictions
from veriglot.records import Annotation, Evidence, Generator, Kind, Rate, Sample, Span

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Outcome

    Command = Callable[..., Outcome]

KEYS = ["model", "language", "rate", "low", "high", "estimator", "unit", "units", "responses", "coverage", "status",
        "reason", "signature"]  # fmt: skip
KNOWN = ["the", "old", "mill", "river", "built", "grey", "stone", "wheel", "oak", "still", "turns"]
DETECTOR = ("--detector", "word_absence:WordAbsence")


def made(count: int, share: float, *, seed: int, model: str, language: str = "en", per: int = 2) -> list[Sample]:
    """Responses in which `share` of the words are unsupported, `per` to a query. The detector, which marks words that
    the evidence lacks, is misled: one in ten supported words is inflected, one in five unsupported ones happens to
    stand in the evidence."""
    draw = random.Random(seed)
    evidence = " ".join(KNOWN)
    rows = []
    for number in range(count):
        text, spans = "", []
        for _ in range(30):
            wrong = draw.random() < share
            absent = draw.random() < (0.8 if wrong else 0.1)
            word = f"x{draw.randrange(10**6)}" if absent else draw.choice(KNOWN)
            if wrong:
                spans.append(Span(len(text), len(text) + len(word), "invented"))
            text += word + " "
        gold = Annotation("gold", Kind.HUMAN, "fava", spans=tuple(spans))
        rows.append(
            Sample(
                id=f"{model}-{language}-{number}", response=text, language=language, evidence=(Evidence(evidence),),
                generator=Generator(model, seed=number % per), annotations=(gold,),
                meta={"query": f"q{number // per}"},
            )
        )  # fmt: skip
    return rows


class Files:
    """A study of two models whose true rates are 4% and 12%, and a profile measured at 30%."""

    def __init__(self, folder: Path, veriglot: Command) -> None:
        self.folder = folder
        self.rows = made(160, 0.04, seed=1, model="careful") + made(160, 0.12, seed=2, model="bold")
        self.samples = write_lines(folder / "answers.jsonl", self.rows)
        labelled = write_lines(folder / "labelled.jsonl", made(120, 0.3, seed=3, model="other", per=1))
        self.predictions, self.profile = folder / "marked.jsonl", folder / "profile.json"
        detect = veriglot("detect", self.samples, "-o", self.predictions, "--words", *DETECTOR)
        evaluate = veriglot("evaluate", labelled, "-o", self.profile, *DETECTOR)
        assert (detect.code, evaluate.code) == (0, 0), (detect.err, evaluate.err)

    @property
    def words(self) -> tuple[object, ...]:
        return (self.predictions, "--samples", self.samples, "--profile", self.profile)


@pytest.fixture
def files(tmp_path: Path, veriglot: Command) -> Files:
    return Files(tmp_path, veriglot)


def rates(outcome: Outcome) -> list[dict[str, Any]]:
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


def test_rates_have_the_keys_of_the_design_and_hold_the_truth(files: Files, veriglot: Command) -> None:
    bold, careful = rates(veriglot("estimate", *files.words, "--json"))
    assert list(bold)[: len(KEYS)] == KEYS
    assert (bold["model"], bold["language"], bold["estimator"], bold["unit"]) == ("bold", "en", "label-shift", "word")
    assert (bold["units"], bold["responses"], bold["coverage"], bold["status"]) == (4800, 160, 1.0, "ok")
    assert careful["low"] <= 0.04 <= careful["high"] < 0.09
    assert 0.04 < bold["low"] <= 0.12 <= bold["high"]
    assert "rates:en" in bold["signature"]
    assert "profile:" in bold["signature"]


def test_predictions_in_several_files_give_the_same_rates(files: Files, veriglot: Command) -> None:
    whole = rates(veriglot("estimate", *files.words, "--json"))
    lines = files.predictions.read_bytes().splitlines(keepends=True)
    parts = [files.folder / f"part{k}.jsonl" for k in range(3)]
    for k, part in enumerate(parts):
        part.write_bytes(b"".join(lines[k::3]))
    outcome = veriglot("estimate", *parts, "--samples", files.samples, "--profile", files.profile, "--json")
    assert rates(outcome) == whole
    twice = veriglot("estimate", *parts, parts[0], "--samples", files.samples, "--profile", files.profile)
    assert twice.code == 1
    assert "occurs twice" in twice.err


def test_rows_without_evidence_are_said_to_be_unjudged(files: Files, veriglot: Command) -> None:
    rows = [msgspec.structs.replace(row, evidence=()) for row in files.rows]
    samples, predictions = write_lines(files.folder / "bare.jsonl", rows), files.folder / "unjudged.jsonl"
    veriglot("detect", samples, "-o", predictions, "--words", *DETECTOR)
    words = (predictions, "--samples", samples, "--profile", files.profile, "--estimator", "em", "--json")
    assert {rate["reason"].split(";")[0] for rate in rates(veriglot("estimate", *words))} == {"no unit was judged"}


def test_the_paper_is_off_where_the_profile_is_denser(files: Files, veriglot: Command) -> None:
    found = rates(veriglot("estimate", *files.words, "--json", "--estimator", "paper", "--estimator", "em"))
    paper = {rate["model"]: rate for rate in found if rate["estimator"] == "paper"}
    mixed = {rate["model"]: rate for rate in found if rate["estimator"] == "em"}
    assert paper["careful"]["low"] > 0.08, "twice the truth and more"
    assert mixed["careful"]["low"] <= 0.04 <= mixed["careful"]["high"]


def test_labels_give_rates_without_a_profile(files: Files, veriglot: Command) -> None:
    gold = write_lines(files.folder / "gold.jsonl", files.rows[:60] + files.rows[160:220])
    found = rates(veriglot("estimate", files.predictions, "--samples", files.samples, "--labels", gold, "--json"))
    assert [rate["estimator"] for rate in found] == ["ppi", "ppi"]
    assert all("|notes:ppi:" in rate["signature"] for rate in found)
    table = veriglot("estimate", files.predictions, "--samples", files.samples, "--labels", gold).out
    assert table.count("Signature: ") == 1, "a line each, for a number of no row that one could tell"
    strangers = write_lines(files.folder / "gold.jsonl", files.rows[:60] + made(3, 0.1, seed=9, model="else"))
    outcome = veriglot("estimate", files.predictions, "--samples", files.samples, "--labels", strangers, "--json")
    assert "3 of 63 labelled responses are none of those that were judged" in outcome.err
    assert all(low <= truth <= high for (low, high), truth in zip(
        ((rate["low"], rate["high"]) for rate in found), (0.12, 0.04), strict=True))  # fmt: skip


def test_seeds_are_given_apart_on_demand(files: Files, veriglot: Command) -> None:
    found = rates(veriglot("estimate", *files.words, "--json", "--by-seed"))
    assert [(rate["model"], rate["seed"], rate["responses"]) for rate in found] == [
        ("bold", None, 160), ("bold", 0, 80), ("bold", 1, 80),
        ("careful", None, 160), ("careful", 0, 80), ("careful", 1, 80),
    ]  # fmt: skip


def test_table_and_csv_say_the_same(files: Files, veriglot: Command) -> None:
    (bold, _) = rates(veriglot("estimate", *files.words, "--json"))
    table = veriglot("estimate", *files.words)
    assert f"{bold['rate']:.2%}" in table.out
    assert "160 of 160" in table.out
    assert "Rate: share of words that the evidence does not support, with its 95% interval\n" in table.out
    assert "90% interval" in veriglot("estimate", *files.words, "--confidence", 0.9).out
    rows = list(csv.DictReader(io.StringIO(veriglot("estimate", *files.words, "--to", "csv").out)))
    assert (float(rows[0]["rate"]), rows[0]["reason"]) == (bold["rate"], "")


def test_order_does_not_matter_and_what_is_missing_is_coverage(files: Files, veriglot: Command) -> None:
    lines = files.predictions.read_bytes().splitlines(keepends=True)
    whole = rates(veriglot("estimate", *files.words, "--json"))
    random.Random(5).shuffle(lines)
    files.predictions.write_bytes(b"".join(lines))
    assert rates(veriglot("estimate", *files.words, "--json")) == whole
    kept = [line for line in lines if not json.loads(line)["id"].startswith("bold-en-1")]
    files.predictions.write_bytes(b"".join(kept))
    outcome = veriglot("estimate", *files.words, "--json")
    bold, careful = rates(outcome)
    assert (bold["responses"], bold["coverage"], bold["status"]) == (89, 89 / 160, "unreliable")
    assert "only 56% of the responses were judged" in bold["reason"]
    assert careful["coverage"] == 1.0
    assert "samples without a prediction: 71" in outcome.err
    by_seed = rates(veriglot("estimate", *files.words, "--json", "--by-seed"))
    apart = [rate for rate in by_seed if rate["model"] == "bold" and rate["seed"] is not None]
    assert [(rate["seed"], rate["responses"] / rate["coverage"]) for rate in apart] == [(0, 80), (1, 80)]


def test_predictions_of_other_samples_are_refused(files: Files, veriglot: Command) -> None:
    other = write_lines(files.folder / "other.jsonl", made(3, 0.1, seed=4, model="other"))
    outcome = veriglot("estimate", files.predictions, "--samples", other, "--estimator", "raw")
    assert (outcome.code, outcome.out) == (1, "")
    assert "no prediction is of a sample of --samples\n  Give the samples that were judged." in outcome.err


def test_a_language_that_the_profile_lacks_gives_no_number_unless_pooled(files: Files, veriglot: Command) -> None:
    rows = made(160, 0.04, seed=4, model="careful", language="nl")
    samples, predictions = write_lines(files.folder / "nl.jsonl", rows), files.folder / "nl-marked.jsonl"
    assert veriglot("detect", samples, "-o", predictions, "--words", *DETECTOR).code == 0
    words = (predictions, "--samples", samples, "--profile", files.profile, "--json")
    (alone,) = rates(veriglot("estimate", *words))
    assert (alone["rate"], alone["status"]) == (None, "unreliable")
    assert "does not hold this language" in alone["reason"]
    (pooled,) = rates(veriglot("estimate", *words, "--pooled"))
    assert (pooled["status"], pooled["low"] <= 0.04 <= pooled["high"]) == ("ok", True)
    assert "rates:pooled" in pooled["signature"]


def test_reasons_that_many_cells_share_are_said_once(files: Files, veriglot: Command) -> None:
    tags = ["bn", "de", "fr", "nl"]
    rows = [
        row for size, tag in enumerate(tags, 1) for row in made(size, 0.5, seed=5, model="few", language=tag, per=1)
    ]
    samples, predictions = write_lines(files.folder / "few.jsonl", rows), files.folder / "few-marked.jsonl"
    veriglot("detect", samples, "-o", predictions, "--words", *DETECTOR)
    told = veriglot("estimate", predictions, "--samples", samples, "--profile", files.profile).out
    assert told.count("bn, de, fr, nl: the error profile does not hold this language.\n") == 1
    raw = veriglot("estimate", predictions, "--samples", samples, "--estimator", "raw").out
    why = "a reliable interval needs 8 independent texts or queries, and the study has 1–4.\n"
    assert f"bn, de, fr, nl: {why}" in raw
    models = [*rows, *made(2, 0.5, seed=6, model="fewer", language="de", per=1)]
    veriglot("detect", write_lines(samples, models), "-o", predictions, "--words", "--overwrite", *DETECTOR)
    both = veriglot("estimate", predictions, "--samples", samples, "--estimator", "raw").out
    assert f"few in bn, few in de, few in fr, few in nl, fewer in de: {why}" in both


def test_columns_that_are_stated_are_those_of_labels_too(files: Files, veriglot: Command) -> None:
    rows = [{"key": row.id, "said": row.response, "shown": KNOWN, "tongue": "en"} for row in files.rows]
    marks = [[[span.start, span.end] for span in row.annotations[0].spans or ()] for row in files.rows]
    texts, labels = files.folder / "texts.jsonl", files.folder / "labels.jsonl"
    texts.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    gold = [{**row, "wrong": each} for row, each in zip(rows, marks, strict=True)]
    labels.write_text("\n".join(map(json.dumps, gold[:60])), "utf-8")
    columns = "id=key,response=said,evidence=shown,language=tongue,spans=wrong"
    words = ("estimate", files.predictions, "--samples", texts, "--map", columns, "--json", "--labels")
    own = write_lines(files.folder / "own.jsonl", files.rows[60:80])  # in our format, which has no such columns
    outcome = veriglot(*words, labels, "--labels", own)
    assert [rate["estimator"] for rate in rates(outcome)] == ["ppi"]
    assert "labelled responses" not in outcome.err
    assert "the id 'careful-en-0' occurred before" in veriglot(*words, labels, "--labels", labels).err


def test_labels_of_whole_responses_are_read_as_stated_and_lack_marks(files: Files, veriglot: Command) -> None:
    rows = [(row.id, "en", " ".join(KNOWN), row.response, "0") for row in files.rows]
    for name, width in (("labels.csv", 5), ("texts.csv", 4)):
        with (files.folder / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(
                row[:width] for row in [("id", "language", "context", "answer", "human_label"), *rows]
            )
    words = ("--samples", files.folder / "texts.csv", "--labels", files.folder / "labels.csv")
    outcome = veriglot("estimate", files.predictions, *words, "--map", "unsupported=human_label")
    assert outcome.code == 1
    assert "read as unsupported from human_label" in outcome.err
    assert "labels are not used" not in outcome.err
    assert "Add --unit response, for the share of responses; or mark their unsupported parts." in outcome.err
    words += ("--map", "unsupported=human_label", "--unit", "response", "--json")
    (rate,) = rates(veriglot("estimate", files.predictions, *words))
    assert (rate["unit"], rate["estimator"], rate["units"]) == ("response", "ppi", rate["responses"])
    nobody = veriglot("estimate", files.predictions, *words, "--annotator", "zoe")
    assert "no annotator named 'zoe'" in nobody.err
    made = veriglot("evaluate", files.folder / "labels.csv", "--predictions", files.predictions, *words[4:-1], "-o",
                    files.folder / "of_responses.json")  # fmt: skip
    assert made.code == 0, made.err
    profile = json.loads((files.folder / "of_responses.json").read_text("utf-8"))["languages"]["en"]
    assert profile["fp"] + profile["tn"] == len(files.rows)
    words = ("--predictions", files.predictions, "--map", "unsupported=human_label", "--full")
    outcome = veriglot("evaluate", files.folder / "labels.csv", *words)
    assert outcome.code == 0, outcome.err
    assert "Responses\nlanguage" in outcome.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--estimator", "labelshift"), "Did you mean label-shift?"),
        (("--estimator", "ppi"), "needs labels"),
        (("--unit", "char"), "The profile counts 'word'"),
        (("--plan", "2"), "--plan is a share"),
        (("--json", "--to", "csv"), "exclude each other"),
    ],
)
def test_calls_that_do_not_fit(files: Files, veriglot: Command, words: tuple[str, ...], message: str) -> None:
    outcome = veriglot("estimate", *files.words, *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err


def test_a_profile_of_another_detector_or_threshold_is_refused(files: Files, veriglot: Command) -> None:
    profile = json.loads(files.profile.read_bytes())
    for key, value, message in (("detector", "another@2", "is of another@2"), ("threshold", 0.9, "threshold 0.9")):
        other = files.folder / f"{key}.json"
        other.write_text(json.dumps({**profile, key: value}), "utf-8")
        outcome = veriglot("estimate", files.predictions, "--samples", files.samples, "--profile", other)
        assert outcome.code == 2
        assert message in outcome.err


def test_without_a_profile_only_raw_is_to_be_had(files: Files, veriglot: Command) -> None:
    words = (files.predictions, "--samples", files.samples)
    outcome = veriglot("estimate", *words)
    assert outcome.code == 2
    assert "veriglot evaluate LABELLED -o profile.json" in outcome.err
    assert [rate["estimator"] for rate in rates(veriglot("estimate", *words, "--estimator", "raw", "--json"))] == [
        "raw", "raw"]  # fmt: skip


def test_python_gives_the_rates_of_the_command(files: Files, veriglot: Command) -> None:
    predictions, samples = list(read_predictions(files.predictions)), files.rows
    given = [Rate(**rate) for rate in rates(veriglot("estimate", *files.words, "--json"))]
    content = json.loads(files.profile.read_bytes())
    for profile in (str(files.profile), content):
        assert [rate.rate for rate in estimate(predictions, samples, profile)] == [rate.rate for rate in given]
    with pytest.raises(InputError, match="missing"):
        estimate(predictions, samples, {"detector": "x"})
    chosen = samples[:60] + samples[160:220]
    labelled = estimate(predictions, samples, labels=chosen)
    plain = [json.loads(msgspec.json.encode(sample)) for sample in chosen]
    assert estimate(predictions, samples, labels=plain) == labelled
    assert [(rate.model, rate.estimator) for rate in labelled] == [("bold", "ppi"), ("careful", "ppi")]
    with pytest.raises(UsageError, match="needs an error profile"):
        estimate(predictions, samples)
    with pytest.raises(InputError, match="belongs to no sample"):
        estimate(predictions, samples[1:], estimator="raw")


def test_python_takes_the_rows_that_detect_many_takes() -> None:
    """Dictionaries among the samples were an AttributeError."""
    rows = [{"response": f"Most z 18{n}7.", "evidence": "Most z 1897.", "model": "m", "language": "pl"} for n in "79"]
    (rate,) = estimate(detect_many(rows), rows, estimator="raw")
    assert (rate.model, rate.language, rate.responses, rate.coverage) == ("m", "pl", 2, 1.0)
    plain = [prediction.to_dict() for prediction in detect_many(rows)]
    assert estimate(plain, rows, estimator="raw") == [rate]
    for predictions, samples in ((plain, ["a.jsonl"]), (["a.jsonl"], rows)):
        with pytest.raises(InputError, match="object"):
            estimate(predictions, samples, estimator="raw")

"""The gates to ship: sets are read as published, halves never part a text, and figures are those of evaluate."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import veriglot
from veriglot.bench.evaluation import evaluate
from veriglot.detectors.registry import load_detector
from veriglot.metrics.estimate import Resampling
from veriglot.records import Annotation, Evidence, Kind, Prediction, Sample, Span, Status, Unit, Word

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import gates


def write_lines(path: Path, *rows: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


def units(sample: Sample) -> list[tuple[str, str]]:
    """The labelled parts of a response, with their labels."""
    return [(sample.response[u.start : u.end], u.label) for u in sample.annotations[0].units or ()]


def test_sentences_of_qags_are_labelled_by_majority(tmp_path: Path) -> None:
    def sentence(text: str, *votes: str) -> dict[str, Any]:
        return {"sentence": text, "responses": [{"worker_id": i, "response": vote} for i, vote in enumerate(votes)]}

    sentences = [sentence("A cat.", "yes", "no", "yes"), sentence("A dog.", "no", "no", "yes")]
    row = {"article": "A cat sat.", "summary_sentences": sentences}
    write_lines(tmp_path / "qags" / "mturk_xsum.jsonl", row, {**row, "article": "a CAT sat ."})
    first, second = gates.read_set("qags", tmp_path)
    assert first.response == "A cat. A dog."
    assert units(first) == [("A cat.", "supported"), ("A dog.", "unverified")]
    assert first.meta["group"] == second.meta["group"]
    alone = gates.read_set("qags_sentences", tmp_path)
    assert [(s.response, gates.is_wrong(s), s.meta["group"]) for s in alone[:2]] == [
        ("A cat.", False, first.meta["group"]),
        ("A dog.", True, first.meta["group"]),
    ]
    assert len({s.id for s in alone}) == 4


def test_claims_without_references_are_left_out_and_those_of_begin_are_grouped_as_there(tmp_path: Path) -> None:
    row = {"question": "Who?", "claim": "He did.", "references": ["He did it."], "attribution_label": "attributable"}
    write_lines(
        tmp_path / "attributionbench" / "dev.jsonl",
        {**row, "id": "1", "src_dataset": "HAGRID"},
        {**row, "id": "2", "src_dataset": "HAGRID", "references": [], "attribution_label": "not attributable"},
        {**row, "id": "3", "src_dataset": "BEGIN", "attribution_label": "not attributable"},
    )
    (tmp_path / "begin" / "wow").mkdir(parents=True)
    (tmp_path / "begin" / "wow" / "dev.tsv").write_text(
        "model_name\tdata_source\tknowledge\tmessage\tresponse\tbegin_label\n"
        'gpt2\twow\tHe did it .\tWho ?\t"he\tFully attributable\n'
        "gpt2\twow\tHe did it .\tWho ?\tNo\tNot fully attributable\n"
        "gpt2\twow\tHe did it .\tWho ?\thaha\tGeneric\n"
    )
    claims, answers = gates.read_set("attributionbench", tmp_path), gates.read_set("begin", tmp_path)
    assert [(s.id, gates.is_wrong(s)) for s in claims] == [("attribution-1", False), ("attribution-3", True)]
    assert [(s.response, gates.is_wrong(s)) for s in answers] == [('"he', False), ("No", True)]
    assert claims[1].meta["group"] == answers[0].meta["group"] == answers[1].meta["group"] != claims[0].meta["group"]


def test_keywords_of_uhgeval_are_found_in_order(tmp_path: Path) -> None:
    row = {
        "id": "doc_1", "newsBeginning": "甲到乙。", "newsRemainder": "\n甲到丙。完。",
        "hallucinatedContinuation": "\n甲到丁,甲说。", "realContinuation": "\n甲到丙。",
        "annotations": ["甲<sep>合理", "丁<sep>不合理，应为丙", "甲<sep>不合理", "戊<sep>合理"],
    }  # fmt: skip
    write_lines(tmp_path / "uhgeval" / "dataset_uhgeval_concise.jsonl", row)
    made, real = gates.read_set("uhgeval", tmp_path)
    assert units(made) == [("甲", "supported"), ("丁", "unverified"), ("甲", "unverified")]
    assert (made.annotations[0].units or ())[2].start == 5
    assert [p.text for p in made.evidence] == ["甲到乙。", "\n甲到丙。完。"]
    assert gates.is_wrong(made)
    assert not gates.is_wrong(real)


def test_entries_and_articles_are_the_groups_of_sets_with_spans(tmp_path: Path) -> None:
    entry: dict[str, Any] = {"id": "val-de-1", "lang": "DE", "model_input": "Wo?", "model_output_text": "In Rom."}
    entry |= {"hard_labels": [[3, 6]], "soft_labels": [], "wikipedia_url": "https://de.wikipedia.org/wiki/Ort"}
    write_lines(tmp_path / "mu_shroom_val" / "mushroom.de-val.jsonl", entry, {**entry, "id": "val-de-2"})
    write_lines(
        tmp_path / "mu_shroom_val" / "de-val.refs.jsonl", {"id": "val-de-1", "reference": "Der Ort liegt in Ulm."}
    )
    claims = [
        {"claim": "A b.", "claim_tokens": ["A", "b", "."], "non_supported_spans": [False, True, False],
         "label": "partially_supported", "supporting_sentences": [], "evidence": ["A."], "meta": {"id": f"dev{i}"}}
        for i in range(60)
    ]  # fmt: skip
    write_lines(tmp_path / "wice" / "non_supported_tokens" / "dev.jsonl", *claims)
    (sample,) = gates.read_set("mu_shroom_val", tmp_path)
    assert (sample.meta["group"], sample.response[3:6]) == (gates.text_key("Der Ort liegt in Ulm."), "Rom")
    held_out = gates.read_set("wice", tmp_path)
    assert 0 < len(held_out) < 20
    assert len({s.meta["group"] for s in held_out}) == 1


def test_parts_and_limits_hang_on_the_group_alone() -> None:
    samples = [Sample(str(i), "a", meta={"group": f"group {i % 100}"}) for i in range(300)]
    parts = {part: gates.select(samples, part) for part in gates.PARTS}
    assert sum(map(len, parts.values())) == 300
    assert 35 <= len(parts["report"]) / 3 <= 65
    assert not {s.meta["group"] for s in parts["report"]} & {s.meta["group"] for s in parts["calibration"]}
    assert {gates.part_of(s.meta["group"]) for s in parts["report"]} == {"report"}
    few = gates.select(samples, "report", 5)
    assert len(few) == 15
    assert gates.select(samples[::-1], "report", 5) == few[::-1]
    assert gates.part_of("wikipedia") == "report"  # what is calibrated on one half must never move to the other


def whole(name: str, group: int, wrong: bool) -> Sample:
    label = Unit(0, 4, "unverified" if wrong else "supported")
    labels = Annotation("gold", Kind.HUMAN, "support", units=(label,))
    return Sample(
        name, "a b.", language="en", evidence=(Evidence("a"),), annotations=(labels,), meta={"group": str(group)}
    )


def judged(sample: Sample, score: float, marks: bool) -> Prediction:
    words = (Word(0, 1, 0.1), Word(2, 3, score))
    return Prediction(sample.id, Status.SCORED, "x", score=score, spans=(Span(2, 3),) if marks else (), words=words)


def test_a_detector_that_orders_worse_is_told_and_one_that_contradicts_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = [whole(str(i), i // 2, wrong=bool(i % 2)) for i in range(80)]
    good = [judged(s, 0.9 if gates.is_wrong(s) else 0.2, gates.is_wrong(s)) for s in samples]
    bad = [judged(s, 0.9 if i % 3 else 0.2, marks=True) for i, s in enumerate(samples)]
    entry = gates.GateSet(
        lambda _: samples, (gates.RESPONSES, gates.Figure("marked", gates.false_alarm, "mean", lower=True))
    )
    monkeypatch.setitem(gates.SETS, "made", entry)
    for pair, verdicts in (
        (gates.Pair.of("made", samples, bad, good, resamples=200, seed=1), ["yes", "yes"]),
        (gates.Pair.of("made", samples, good, bad, resamples=200, seed=1), ["no", "no"]),
        (gates.Pair.of("made", samples, good, good, resamples=200, seed=1), ["no", "no"]),
    ):
        rows = pair.figures(["first", "second"], None)
        assert [row["worse"] for row in rows] == verdicts
    rows, whole_rows = pair.figures(["a", "b"], "language"), pair.whole(["a", "b"])
    assert [row["figure"] for row in rows] == ["responses AUC", "responses AUC: en", "marked", "marked: en"]
    assert (whole_rows[0]["wrong"], whole_rows[0]["false alarms"], whole_rows[0]["misses"]) == (0.5, 0, 0)
    assert whole_rows[0]["calibration"] == pytest.approx(0.15)
    assert [row["passes"] for row in gates.gate_rows(rows, whole_rows, "a")] == ["yes", "yes"]
    pair = gates.Pair.of("made", samples, bad, good, resamples=200, seed=1)
    rows, whole_rows = pair.figures(["a", "b"], None), pair.whole(["a", "b"])
    assert whole_rows[0]["contradictory"] == 27
    assert [row["passes"] for row in gates.gate_rows(rows, whole_rows, "a")] == ["no", "no", "", ""]


def test_what_one_of_the_two_did_not_score_is_in_no_figure() -> None:
    samples = [whole(str(i), i, wrong=bool(i % 2)) for i in range(4)]
    scored = [judged(s, 0.5, marks=True) for s in samples]
    failed = [Prediction(s.id, Status.FAILED, "x", reason="why") for s in samples]
    pair = gates.Pair.of("wice", samples, scored, [*scored[:3], failed[3]], resamples=10, seed=1)
    assert ([s.id for s in pair.samples], pair.unscored) == (["0", "1", "2"], 1)


def test_figures_are_those_of_evaluate() -> None:
    samples = list(gates.read_own(Path()))[:12]
    detector = load_detector("grounding", words=True)
    predictions = gates.Side(detector).judge(samples)
    resampling = Resampling.of([s.meta["group"] for s in samples], resamples=10)
    measured = evaluate(samples, detector, resamples=0)
    for figure, level, name, language in (
        (gates.WORD_F1, "unit", "f1", "pooled"),
        (gates.SETS["gold_dev"].figures[0], "unit", "f1", "mean"),
        (gates.WORD_AUC, "unit", "auroc", "pooled"),
        (gates.Figure("", gates.overlap, "mean"), "char", "iou", "pooled"),
        (gates.Figure("", gates.false_alarm, "mean"), "response", "fpr", "pooled"),
    ):
        drawn = figure.drawn(samples, predictions, resampling)
        assert drawn.shape == (11,)
        assert drawn[0] == pytest.approx(measured.figure(level, name, language).value, abs=2e-3)


def test_given_predictions_stand_in_and_a_text_is_judged_once() -> None:
    class Counting:
        asked = 0

        def predict(self, samples: list[Sample]) -> list[Prediction]:
            self.asked += len(samples)
            return [judged(s, 0.4, marks=False) for s in samples]

    samples = [whole(str(i), i, wrong=False) for i in range(3)]
    detector = Counting()
    predictions = gates.Side(detector, {"1": judged(samples[1], 0.9, marks=True)}).judge(samples)  # type: ignore[arg-type]
    assert [(p.id, p.score) for p in predictions] == [("0", 0.4), ("1", 0.9), ("2", 0.4)]
    assert detector.asked == 1


def test_calibration_errs_by_the_distance_of_ten_equal_groups() -> None:
    wrong = np.arange(100) % 10 < 3
    assert gates.calibration_error(np.full(100, 0.3), wrong) == pytest.approx(0.0, abs=0.1)
    assert gates.calibration_error(np.full(100, 0.8), wrong) == pytest.approx(0.5)


@pytest.mark.slow
def test_every_verbatim_response_stands_in_its_evidence(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "MOST_QUOTED", 5)
    samples = gates.read_set("verbatim", shared_data)
    assert len({s.language for s in samples}) >= 35
    assert len({s.id for s in samples}) == len(samples)
    for sample in samples:
        if sample.meta["form"] == "list":
            assert all(line.removeprefix("- ") in sample.evidence_text for line in sample.response.split("\n"))


def test_examples_are_read_by_the_library() -> None:
    assert len(gates.read_set("own", Path())) == sum(1 for _ in veriglot.read(gates.EXAMPLES))


def test_types_are_held_against_those_of_people_where_both_give_one() -> None:
    def marks(*spans: tuple[int, int, str | None]) -> tuple[Span, ...]:
        return tuple(Span(start=start, end=end, type=type_) for start, end, type_ in spans)

    gold = Annotation("a", Kind.HUMAN, "fava", spans=marks((0, 4, "entity"), (5, 8, "invented"), (9, 12, None)))
    sample = Sample(id="a", response="Four one two.", evidence=(), annotations=(gold,))
    predicted = marks((0, 2, "entity"), (2, 4, None), (5, 8, "entity"), (9, 12, "relation"))
    prediction = Prediction("a", Status.SCORED, "d", score=0.9, spans=predicted)
    assert gates.type_f1([sample], [prediction]) == {"entity": 2 * 2 / (2 + 5), "invented": 0}
    assert gates.type_f1([sample], [msgspec.structs.replace(prediction, spans=())]) == {}

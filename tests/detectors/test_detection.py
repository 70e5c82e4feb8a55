"""What `detect` and `detect_many` give: verdicts, spans that were not checked, rows of every kind, other shapes."""

from __future__ import annotations

import copy
import logging
import os
import pickle
import subprocess
import sys
from functools import partial
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import veriglot
from veriglot.detectors.registry import load_detector
from veriglot.errors import InputError, UsageError
from veriglot.testing import ContractError, check_detector

FACT, WRONG = "The bridge was opened in 1897.", "It was opened in 1879."
HOSTILE = "<script>alert(1)</script> 1879"


def test_a_prediction_has_a_verdict_and_is_no_truth_value() -> None:
    prediction = veriglot.detect(FACT, response=WRONG)
    assert prediction.verdict is veriglot.Verdict.UNSUPPORTED
    assert [span.text for span in prediction.spans] == ["1879"]
    assert veriglot.detect(FACT, response=FACT).verdict is veriglot.Verdict.SUPPORTED
    with pytest.raises(TypeError, match="verdict"):
        bool(prediction)


def test_nothing_is_kept_of_its_use(tmp_path: Path) -> None:
    code = f"import veriglot; print(veriglot.detect({FACT!r}, response={WRONG!r}).verdict)"
    folders = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME"), str(tmp_path))
    environment = {**folders, **{name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "unsupported\n"
    files = [path for path in tmp_path.rglob("*") if path.is_file() and "e5-multilingual" not in path.parts]
    assert files == []  # ONNX Runtime keeps the number of a device, and events to send


def test_spans_of_what_was_not_checked_have_to_be_asked_for() -> None:
    prediction = veriglot.detect("", response=WRONG)
    assert prediction.verdict is veriglot.Verdict.NOT_CHECKED
    for ask in (lambda: prediction.spans, prediction.as_dicts):
        with pytest.raises(veriglot.NotChecked, match="no_evidence"):
            ask()
    assert prediction.get_spans(None) is None
    assert "spans" not in prediction.to_dict()
    assert "NOT CHECKED" in str(prediction)
    assert "not checked" in prediction._repr_html_()


def test_it_pickles_copies_and_equals_what_says_the_same() -> None:
    prediction = veriglot.detect(FACT, response=WRONG)
    for other in (
        pickle.loads(pickle.dumps(prediction)),
        copy.deepcopy(prediction),
        veriglot.detect(FACT, response=WRONG),
    ):
        assert other == prediction
        assert hash(other) == hash(prediction)
    assert prediction != veriglot.detect(FACT, response=FACT)


def test_the_notebook_view_escapes_and_runs_the_right_way() -> None:
    view = veriglot.detect(
        [FACT, HOSTILE], response=HOSTILE.replace("1879", "1901"), language="en", detector="grounding"
    )._repr_html_()
    assert "<script" not in view
    assert "&lt;script&gt;" in view
    assert "<mark" in view
    assert "% likely that any part is unsupported · grounding@" in view
    assert "was not given" in veriglot.detect(FACT, response=WRONG)._repr_html_()
    assert 'dir="rtl"' in veriglot.detect("فُتح الجسر عام ١٨٩٧.", response="فُتح عام ١٨٧٩.", language="ar")._repr_html_()
    alone = veriglot.Prediction(veriglot.detect(FACT, response=WRONG).record)
    assert alone._repr_html_() is None
    assert "1879" in str(alone)


def test_many_rows_are_read_as_they_are_taken_and_in_order() -> None:
    taken = []

    def rows() -> object:
        for number in count():
            taken.append(number)
            yield {"id": f"r{number}", "evidence": FACT, "response": WRONG if number % 2 else FACT}

    predictions = list(islice(veriglot.detect_many(rows(), batch_size=4), 6))  # type: ignore[arg-type]
    assert [prediction.id for prediction in predictions] == [f"r{number}" for number in range(6)]
    assert [prediction.verdict.value for prediction in predictions] == ["supported", "unsupported"] * 3
    assert len(taken) == 8


def test_rows_are_dictionaries_samples_or_a_table() -> None:
    wanted = veriglot.detect(FACT, response=WRONG).get_spans(None)
    evidence = (veriglot.Evidence(FACT),)
    rows = [
        {"evidence": FACT, "response": WRONG},
        {"evidence": [FACT], "response": WRONG},
        {"evidence": {"text": FACT}, "response": WRONG},
        {"evidence": evidence, "response": WRONG},
        veriglot.Sample("s", WRONG, evidence=evidence),
    ]
    predictions = list(veriglot.detect_many(rows))
    assert [prediction.spans for prediction in predictions] == [wanted] * 5
    assert [prediction.id for prediction in predictions] == ["0", "1", "2", "3", "s"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"evidence": FACT, "response": 3}, r"rows\[1\], field response"),
        ({"evidence": FACT, "response": [WRONG, WRONG]}, r"rows\[1\], field response: .* list of 2"),
        ({"evidence": FACT, "response": {"of": WRONG}}, r"rows\[1\], field response: .* dict"),
        ({"evidence": 3, "response": WRONG}, r"rows\[1\], field evidence"),
        ({"evidence": [FACT, 3], "response": WRONG}, r"rows\[1\], field evidence\[1\]\.text"),
        ((FACT, WRONG), r"rows\[1\]: a dictionary or a Sample"),
    ],
)
def test_a_wrong_type_names_row_and_field_after_the_rows_before_it(row: object, message: str) -> None:
    predictions = veriglot.detect_many([{"evidence": FACT, "response": WRONG}, row])
    assert next(predictions).verdict is veriglot.Verdict.UNSUPPORTED
    with pytest.raises(TypeError, match=message):
        next(predictions)


def test_a_row_that_cannot_be_read_is_named_or_not_checked_in_its_place() -> None:
    good, bad = {"contexts": [FACT], "answer": WRONG}, {"id": "q-17", "contexts": [FACT], "answer": [WRONG, FACT]}
    with pytest.raises(InputError, match=r"rows\[1\] \(id 'q-17'\), field response: .*on_error=\"skip\""):
        list(veriglot.detect_many([good, bad, good]))
    rows = [good, bad, {**good, "answer": None}, FACT, good]
    predictions = list(veriglot.detect_many(rows, on_error="skip"))
    assert [prediction.id for prediction in predictions] == ["0", "q-17", "2", "3", "4"]
    assert [prediction.status for prediction in predictions] == ["scored", "failed", "failed", "failed", "scored"]
    assert "rows[1] (id 'q-17')" in (predictions[1].reason or "")
    with pytest.raises(ZeroDivisionError):  # what the iterator itself raises is no row
        list(veriglot.detect_many((1 // 0 for _ in "a"), on_error="skip"))
    with pytest.raises(UsageError, match="'stop' or 'skip', and not 'raise'"):
        veriglot.detect_many(rows, on_error="raise")  # type: ignore[arg-type]


def test_what_columns_and_labels_were_taken_for_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "veriglot"):
        list(veriglot.detect_many([{"contexts": [FACT], "answer": WRONG, "label": "perhaps"}] * 3))
    guess, labels = caplog.messages
    assert guess.startswith("rows: read as response from answer, evidence from contexts, label")
    assert labels.startswith("rows: labels are not used: the label 'perhaps'")
    caplog.clear()
    list(veriglot.detect_many([{"evidence": FACT, "response": WRONG}] * 3))
    assert not caplog.messages


def test_messages_are_read_where_texts_are_expected() -> None:
    asked, told = {"role": "user", "content": "When?"}, {"role": "assistant", "content": WRONG}
    parts = {"role": "assistant", "content": [{"type": "text", "text": WRONG[:5]}, {"type": "text", "text": WRONG[5:]}]}
    for response in (told, parts, [asked, told], [told, asked]):
        prediction = veriglot.detect(FACT, response=response)  # type: ignore[arg-type]
        assert [span.text for span in prediction.spans] == ["1879"]
    (prediction,) = veriglot.detect_many([{"evidence": FACT, "question": [asked], "response": told}])
    assert prediction.sample is not None
    assert (prediction.sample.question, prediction.sample.response) == ("When?", WRONG)
    with pytest.raises(InputError, match="field response: no message has the role assistant"):
        veriglot.detect(FACT, response=asked)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["polars", "polars, lazy", "pandas", "pyarrow", "pyarrow, batch", "pyarrow, reader"])
def test_tables_are_rows(kind: str) -> None:
    name, _, way = kind.partition(", ")
    package = pytest.importorskip(name)
    columns = {"contexts": [[FACT], None, [FACT]], "answer": [WRONG, WRONG, FACT]}
    table = package.table(columns) if name == "pyarrow" else package.DataFrame(columns)
    ways = {"": lambda: table, "lazy": lambda: table.lazy(), "batch": lambda: table.to_batches()[0],
            "reader": lambda: table.to_reader(max_chunksize=2)}  # fmt: skip
    predictions = veriglot.detect_many(ways[way]())
    assert [prediction.verdict.value for prediction in predictions] == ["unsupported", "not_checked", "supported"]
    if not way:  # as pandas.read_csv(chunksize=...) gives them
        assert [prediction.verdict.value for prediction in veriglot.detect_many([table, table])][3] == "unsupported"


@pytest.mark.parametrize("name", ["numpy", "pandas", "polars"])
def test_evidence_is_a_column_or_documents_too(name: str) -> None:
    package = pytest.importorskip(name)
    column = (package.array if name == "numpy" else package.Series)([FACT, "It is old."])
    document = SimpleNamespace(page_content=FACT)
    for evidence in (column, [document]):
        assert veriglot.detect(evidence=evidence, response=WRONG).verdict == "unsupported"
        (prediction,) = veriglot.detect_many([{"evidence": evidence, "response": WRONG}])
        assert prediction.verdict == "unsupported"
    assert veriglot.detect(evidence=float("nan"), response=WRONG).status == "no_evidence"  # type: ignore[arg-type]


@pytest.mark.parametrize("detector", [None, type(load_detector()), veriglot.load_scorer("rouge-l"), []])
def test_what_is_no_detector_is_named(detector: Any) -> None:
    sample = veriglot.Sample("a", WRONG, evidence=(veriglot.Evidence(FACT),))
    for call in (
        lambda: veriglot.detect(evidence=FACT, response=WRONG, detector=detector),
        lambda: veriglot.detect_many([sample], detector=detector),
        lambda: veriglot.evaluate([sample], detector),
    ):
        with pytest.raises(UsageError, match="is no detector"):
            call()
    with pytest.raises(UsageError, match="probability"):
        veriglot.load_detector(threshold="0.5")  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", ["text", {"evidence": FACT, "response": WRONG}, b"", None, Path("rows.csv"), 7])
def test_one_row_is_no_list_of_rows(rows: object) -> None:
    with pytest.raises(TypeError, match="Use"):
        veriglot.detect_many(rows)  # type: ignore[arg-type]


class GivesTheFace:
    """A detector that gives what callers get rather than records."""

    taxonomy = "fava"

    def __init__(self, *, threshold: float | None = None, words: bool = False) -> None:
        self._inner = load_detector(threshold=threshold, words=words)
        self.name, self.signature, self.threshold = self._inner.name, self._inner.signature, self._inner.threshold

    def predict(self, samples: list[veriglot.Sample]) -> list[veriglot.Prediction]:
        return [veriglot.Prediction(record) for record in self._inner.predict(samples)]


def test_the_contract_says_that_plug_ins_give_records() -> None:
    samples = [veriglot.Sample("a", WRONG, language="en", evidence=(veriglot.Evidence(FACT),))]
    check_detector(partial(load_detector, "grounding"), samples)
    with pytest.raises(ContractError, match=r"gives records, veriglot\.records\.Prediction"):
        check_detector(GivesTheFace, samples)  # type: ignore[arg-type]


@pytest.mark.parametrize("page", ["coming_from.md", "detect.md"])
def test_the_examples_of_the_page_run(page: str) -> None:
    text = (Path(__file__).parents[2] / "docs" / page).read_text("utf-8")
    blocks = [part.partition("```")[0] for part in text.split("```python\n")[1:]]
    assert blocks
    exec("\n".join(blocks), {})


def test_rows_of_other_names_keep_their_ids_and_columns_can_be_stated() -> None:
    row = {"contexts": ["The bridge was opened in 1897."], "answer": "The bridge was opened in 1879."}
    rows = [row, {**row, "uid": 7}, {"id": 8, "evidence": row["contexts"], "response": row["answer"]}]
    assert [(p.id, p.verdict) for p in veriglot.detect_many(rows, language="en")] == [
        ("0", "unsupported"), ("7", "unsupported"), ("8", "unsupported"),
    ]  # fmt: skip
    columns = {"response": "said", "evidence": "kb"}
    (stated,) = veriglot.detect_many([{"kb": "It has 3 arches.", "said": "It has 5 arches."}], columns=columns)
    assert stated.id == "0"


def test_cells_that_are_empty_and_languages_by_name() -> None:
    pandas = pytest.importorskip("pandas")
    texts = {"contexts": [["It opened in 1897."], None], "answer": ["It opened in 1879."] * 2}
    native = {"id": [7, None], "evidence": texts["contexts"], "response": texts["answer"]}
    for frame in map(pandas.DataFrame, (texts, {"id": [7, None], **texts}, native)):
        marked, unchecked = veriglot.detect_many(frame, language="English")
        assert (marked.id, unchecked.id) == ("7" if "id" in frame else "0", "1")
        assert (marked.verdict, marked.language, unchecked.verdict) == ("unsupported", "en", "not_checked")
    assert veriglot.detect("It has 3 arches.", response="It has 5 arches.", language="English").language == "en"

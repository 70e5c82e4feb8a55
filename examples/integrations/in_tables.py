"""A verdict for each row: of a dataset of Hugging Face's datasets, a DataFrame of pandas, and one of Spark."""

import json
import pickle
from collections.abc import Iterator

import numpy
import pandas
import pytest

from datasets import Dataset
from veriglot.errors import UsageError
from veriglot.integrations import detect_batch

rows = [
    {"answer": "It was opened in 1879.", "contexts": ["It was opened in 1879.", "It is old."]},
    {"answer": "Built in 1879, it opened in 1907.", "contexts": ["It was built in 1879."]},
    {"answer": "It was opened in 1907.", "contexts": []},
    {"answer": None, "contexts": ["It was opened in 1879."]},
]
names = {"response": "answer", "evidence": "contexts"}
verdicts = ["supported", "unsupported", "not_checked", "not_checked"]

# Batches of one: what is None in all of one batch must not spoil the types of the next.
for size in (1, 2, 4):
    dataset = Dataset.from_list(rows).map(detect_batch, batched=True, batch_size=size, fn_kwargs=names)
    assert dataset["veriglot_verdict"][:] == verdicts
    spans = [json.loads(text) for text in dataset["veriglot_spans"]]
    assert spans[0] == []
    assert [span["text"] for span in spans[1]] == ["1907"]
    assert spans[2:] == [None, None]
backwards = Dataset.from_list(rows[::-1]).map(detect_batch, batched=True, batch_size=1, fn_kwargs=names)
assert backwards["veriglot_verdict"][:] == verdicts[::-1]
print(dataset.to_pandas().drop(columns="contexts"))

frame = pandas.DataFrame(rows, index=["a", "b", "c", "d"])
marked = frame.assign(**detect_batch(frame, **names))
print(marked.drop(columns="contexts"))
assert list(marked["veriglot_verdict"]) == verdicts
assert list(marked.index) == ["a", "b", "c", "d"]
assert marked["veriglot_score"].isna().tolist() == [False, False, True, True]
assert pickle.loads(pickle.dumps(detect_batch)) is detect_batch


def with_verdicts(frames: Iterator[pandas.DataFrame]) -> Iterator[pandas.DataFrame]:
    """For Spark: `answers.mapInPandas(with_verdicts, schema)`; the schema has the columns and those of `added`."""
    for part in frames:
        yield part.assign(**detect_batch(part, **names))


added = "veriglot_verdict string, veriglot_score double, veriglot_spans string, veriglot_reason string"
arrow = frame.assign(contexts=frame["contexts"].map(numpy.array))  # as Spark hands lists over
parts = pandas.concat(with_verdicts(iter([arrow[:1], arrow[1:]])))
pandas.testing.assert_frame_equal(parts.drop(columns="contexts"), marked.drop(columns="contexts"))
assert [column.split()[0] for column in added.split(", ")] == list(parts.columns[2:])

texts = pandas.DataFrame({"response": ["Opened in 1907.", float("nan")], "evidence": ["Opened in 1879.", None]})
assert detect_batch(texts)["veriglot_verdict"] == ["unsupported", "not_checked"]
assert not any(detect_batch(texts.iloc[:0]).values())
with pytest.raises(UsageError, match="no 'reply' among"):
    detect_batch(texts, response="reply")

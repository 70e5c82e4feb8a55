"""A metric of Ragas that asks no language model. Ragas 0.4.3 needs langchain-community 0.4.1 or older."""

import asyncio
import math

import pytest
from ragas import EvaluationDataset, evaluate

from veriglot.errors import NotChecked
from veriglot.integrations import ragas_metric

rows = [
    {"user_input": "When?", "response": "It was opened in 1879.", "retrieved_contexts": ["It was opened in 1879."]},
    {"user_input": "When?", "response": "It was opened in 1907.", "retrieved_contexts": ["It was opened in 1879."]},
    {"user_input": "When?", "response": "It was opened in 1907.", "retrieved_contexts": []},
]
dataset = EvaluationDataset.from_list(rows)
metric = ragas_metric(strictness="normal")
result = evaluate(dataset, metrics=[metric], show_progress=False)
print(result, result.to_pandas())
supported, unsupported, unchecked = result["groundedness"]
assert (supported, unsupported) == (1.0, 0.0)
assert math.isnan(unchecked)  # what Ragas makes of a row without a score; its log says why

with pytest.raises(NotChecked, match="no evidence"):  # where it is asked for one row
    metric.single_turn_score(dataset.samples[2])

scored = asyncio.run(metric.ascore(response="Opened in 1907.", retrieved_contexts=["Opened in 1879."]))
print(scored.value, scored.reason)
assert scored.value == 0.0
assert "1907" in scored.reason

"""A metric of DeepEval that asks no language model, in assert_test and in evaluate."""

import pytest
from deepeval import assert_test, evaluate
from deepeval.evaluate.configs import AsyncConfig, DisplayConfig, ErrorConfig
from deepeval.test_case import LLMTestCase

from veriglot.errors import NotChecked
from veriglot.integrations import deepeval_metric

passages = ["The bridge was opened in 1879."]
right = LLMTestCase(input="When?", actual_output="The bridge was opened in 1879.", retrieval_context=passages)
wrong = LLMTestCase(input="When?", actual_output="The bridge was opened in 1907.", retrieval_context=passages)
unchecked = LLMTestCase(input="When?", actual_output="The bridge was opened in 1907.", retrieval_context=[])

assert_test(right, [deepeval_metric()], run_async=False)
with pytest.raises(AssertionError, match="Groundedness"):
    assert_test(wrong, [deepeval_metric()], run_async=False)

unchecked.context = ["The bridge was opened in 1907."]  # what a test's author wrote stands for no retrieved text
with pytest.raises(NotChecked, match="no evidence"):
    deepeval_metric().measure(unchecked)

metric = deepeval_metric()
assert metric.measure(wrong) == 0.0
print(metric.reason)
assert not metric.is_successful()

result = evaluate(
    [right, wrong, unchecked],
    [deepeval_metric()],
    async_config=AsyncConfig(run_async=True),
    display_config=DisplayConfig(show_indicator=False, print_results=False),
    error_config=ErrorConfig(ignore_errors=True),
)
by_output = sorted(result.test_results, key=lambda one: one.index)
found = [(one.success, one.metrics_data[0].score, one.metrics_data[0].error) for one in by_output]
print(found)
assert [success for success, _, _ in found] == [True, False, False]
assert [score for _, score, _ in found] == [1.0, 0.0, None]
assert "no evidence" in found[2][2]

"""LlamaIndex: an answer evaluated by the nodes it was made from."""

import pytest
from llama_index.core.base.response.schema import Response
from llama_index.core.schema import NodeWithScore, TextNode

from veriglot.integrations import llama_index_evaluator

nodes = [
    NodeWithScore(node=TextNode(text="The bridge was opened in 1879."), score=0.9),
    NodeWithScore(node=TextNode(text="Kangaroos carry offspring inside pouches."), score=0.2),
]

evaluator = llama_index_evaluator()
for year, passing in (("1879", True), ("1907", False)):
    response = Response(f"The bridge was opened in {year}.", source_nodes=nodes)
    result = evaluator.evaluate_response("When was the bridge opened?", response)
    print(result.passing, result.score, result.feedback)
    assert result.passing is passing
    assert result.score == float(passing)

unchecked = evaluator.evaluate(response="The bridge was opened in 1907.", contexts=[])
print(unchecked.invalid_reason)
assert unchecked.passing is None
assert unchecked.score is None
assert unchecked.invalid_result

with pytest.raises(TypeError, match="detecter"):
    llama_index_evaluator(detecter="reader")

"""LlamaIndex: an answer evaluated by the nodes it was made from, and the nodes that support it."""

import pytest
from llama_index.core.base.response.schema import Response
from llama_index.core.schema import NodeWithScore, TextNode

from veriglot.integrations import llama_index_evaluator, llama_index_postprocessor

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

answer = "The bridge was opened in 1879."
counts = llama_index_postprocessor().postprocess_nodes(nodes, query_str=answer)
print([node.metadata["veriglot_words"] for node in counts])
assert [node.metadata["veriglot_words"] for node in counts] == [6, 0]
assert "veriglot_words" not in nodes[0].metadata

with pytest.raises(TypeError, match="detecter"):
    llama_index_postprocessor(detecter="reader")

supporting = llama_index_postprocessor(drop=True).postprocess_nodes(nodes, query_str=answer)
assert [node.text for node in supporting] == ["The bridge was opened in 1879."]
assert "veriglot_words" not in supporting[0].node.get_content(metadata_mode="llm")

"""A Haystack pipeline that routes replies by their verdict, saved and loaded."""

from haystack import Document, Pipeline
from haystack.components.routers import ConditionalRouter
from haystack.dataclasses import ChatMessage, ToolCall

from veriglot.integrations import haystack_checker

routes = [
    {"condition": f"{{{{ verdicts[0] == '{verdict}' }}}}", "output": "{{ replies[0] }}", "output_name": verdict,
     "output_type": str}
    for verdict in ("supported", "unsupported", "not_checked")
]  # fmt: skip
pipeline = Pipeline()
pipeline.add_component("checker", haystack_checker(language="en"))
pipeline.add_component("router", ConditionalRouter(routes))
pipeline.connect("checker.verdicts", "router.verdicts")
pipeline.connect("checker.replies", "router.replies")
pipeline = Pipeline.loads(pipeline.dumps(), allowed_modules=["veriglot.*", "haystack.*"])

documents = [Document(content="The bridge was opened in 1879.")]
for reply, given, route in (
    ("It was opened in 1879.", documents, "supported"),
    ("It was opened in 1907.", documents, "unsupported"),
    ("It was opened in 1907.", [], "not_checked"),
):
    data = {"replies": [reply], "documents": given}
    result = pipeline.run({"checker": data})
    print(result["router"])
    assert result["router"] == {route: reply}

call = ChatMessage.from_assistant(tool_calls=[ToolCall("search", {})])
assert haystack_checker().run([call], [*documents, Document()])["verdicts"] == ["not_checked"]

message = ChatMessage.from_assistant("It was opened in 1907.")
checked = haystack_checker().run(replies=[message], documents=documents, query="When was it opened?")
assert checked["replies"] == [message]
assert [span["text"] for span in checked["predictions"][0]["spans"]] == ["1907"]

"""A LangChain chain whose answers carry a verdict, and LangSmith's evaluate with Veriglot as evaluator, offline."""

from uuid import uuid4

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnablePassthrough
from langsmith import Client, evaluate
from langsmith.schemas import Example

from veriglot.integrations import langchain_evaluator, langchain_runnable

documents = [Document("The bridge was opened in 1879."), Document("It is 120 metres long.")]
model = FakeListChatModel(responses=["The bridge was opened in 1907.", "The bridge was opened in 1879."])
chain = (
    RunnablePassthrough.assign(context=lambda _: documents)
    | RunnablePassthrough.assign(answer=lambda row: model.invoke(row["question"]))
    | langchain_runnable(question="question")
)

wrong, right = chain.batch([{"question": "When was the bridge opened?"}] * 2, config={"max_concurrency": 1})
print(wrong["grounding"]["verdict"], [span["text"] for span in wrong["grounding"]["spans"]])
assert wrong["grounding"]["verdict"] == "unsupported"
assert [span["text"] for span in wrong["grounding"]["spans"]] == ["1907"]
assert right["grounding"]["verdict"] == "supported"

unchecked = langchain_runnable().invoke({"answer": "It was opened in 1907.", "context": []})
assert unchecked["grounding"]["verdict"] == "not_checked"
assert "spans" not in unchecked["grounding"]

rows = [("1907", ["Opened in 1879."]), ("1879", ["Opened in 1879."]), ("1907", [])]
examples = [
    Example(id=uuid4(), dataset_id=uuid4(), inputs={"year": year, "context": context}) for year, context in rows
]
experiment = evaluate(
    lambda inputs: {"answer": f"Opened in {inputs['year']}."},
    data=examples,
    evaluators=[langchain_evaluator()],
    client=Client(api_url="http://127.0.0.1:9", api_key="none", auto_batch_tracing=False),
    upload_results=False,
    max_concurrency=0,
)
results = [row["evaluation_results"]["results"][0] for row in experiment]
for result in results:
    print(result.score, result.comment)
assert [result.score for result in results] == [0.0, 1.0, None]
assert results[2].value == "not_checked"

"""What the adapters share, and what they do without the package that they are for."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import veriglot
from programs import printed
from veriglot import integrations
from veriglot.errors import InputError, UsageError
from veriglot.integrations import detect_batch, explain, judge, langchain_evaluator, otel_attributes, texts_of

ROOT = Path(__file__).resolve().parents[2]
EVIDENCE = "The bridge was opened in 1879."
WRONG = "The bridge was opened in 1907."


def hide(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)


def test_assert_grounded_passes_what_the_evidence_supports() -> None:
    assert veriglot.assert_grounded(EVIDENCE, EVIDENCE).verdict is veriglot.Verdict.SUPPORTED


def test_assert_grounded_shows_spans_and_evidence() -> None:
    with pytest.raises(AssertionError) as failure:
        veriglot.assert_grounded(WRONG, [EVIDENCE])
    lines = str(failure.value).splitlines()
    assert lines[0] == "1 unsupported span in the response, 0 allowed:"
    assert lines[1] == "The bridge was opened in ⟦1907⟧."
    assert lines[2].startswith("  '1907' [25, 29), entity, 0.")
    assert lines[3] == "    evidence: The bridge was opened in ⟦1879⟧."


def test_assert_grounded_counts_spans() -> None:
    assert len(veriglot.assert_grounded(WRONG, EVIDENCE, max_unsupported=1).spans) == 1
    for count in (-1, float("nan")):
        with pytest.raises(UsageError, match="max_unsupported"):
            veriglot.assert_grounded(WRONG, EVIDENCE, max_unsupported=count)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="positional"):
        veriglot.assert_grounded(WRONG, EVIDENCE, "When?")  # type: ignore[misc]


class _Missing:
    """As pandas' NA: it equals nothing, not even to say no."""

    def __ne__(self, other: object) -> _Missing:  # type: ignore[override]
        return self

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")


@pytest.mark.parametrize("missing", [None, float("nan"), _Missing()])
def test_a_missing_cell_is_one_row_that_is_not_checked(missing: object) -> None:
    texts = [WRONG, missing, WRONG, WRONG]
    passages = [EVIDENCE, EVIDENCE, missing, [missing, EVIDENCE]]
    found = detect_batch({"response": texts, "evidence": passages})
    assert found["veriglot_verdict"] == ["unsupported", "not_checked", "not_checked", "unsupported"]
    assert all(found["veriglot_reason"][1:3])
    with pytest.raises(InputError, match="string"):  # and a number is no missing text
        detect_batch({"response": [0], "evidence": [EVIDENCE]})


@pytest.mark.parametrize(("response", "evidence"), [(WRONG, ""), (WRONG, []), (WRONG, None), ("", EVIDENCE)])
def test_assert_grounded_never_passes_what_was_not_checked(response: str, evidence: object) -> None:
    with pytest.raises(AssertionError, match="not checked"):
        veriglot.assert_grounded(response, evidence, max_unsupported=99)


def test_assert_grounded_takes_other_detectors_and_strictness() -> None:
    detector = veriglot.load_detector("grounding", threshold=1.0)
    assert not veriglot.assert_grounded(WRONG, EVIDENCE, detector=detector).spans
    with pytest.raises(veriglot.VeriglotError, match="strictness"):
        veriglot.assert_grounded(WRONG, EVIDENCE, strictness="severe")


def test_a_text_of_two_scripts_is_marked_where_its_spans_are() -> None:
    response = "桥于1907年建成。🌉 It opened in 1907."
    prediction = judge(response, ["桥于1879年建成。", "It opened in 1879."])
    text = explain(prediction)
    for span in prediction.spans:
        assert f"⟦{response[span.start : span.end]}⟧" in text
    assert text.splitlines()[0].replace("⟦", "").replace("⟧", "") == response


@pytest.mark.parametrize(
    "content",
    [
        "a text",
        ["a text"],
        {"text": "a text"},
        {"role": "assistant", "content": "a text"},
        [{"type": "text", "text": "a text"}],
        SimpleNamespace(page_content="a text"),
        [SimpleNamespace(content="a text")],
        SimpleNamespace(content=[{"type": "text", "text": "a text"}]),
        SimpleNamespace(get_content=lambda: "a text"),
        (veriglot.Evidence("a text"),),
    ],
)
def test_texts_of_documents_messages_and_nodes(content: object) -> None:
    assert texts_of(content) == ["a text"]


@pytest.mark.parametrize("content", [None, [None], SimpleNamespace(text=None), SimpleNamespace(content=None, score=1)])
def test_what_has_no_text_holds_none(content: object) -> None:
    assert texts_of(content) == []


@pytest.mark.parametrize("content", [7, [7], object(), {"page": "a"}, b"a text"])
def test_what_holds_no_text_is_refused(content: object) -> None:
    with pytest.raises(TypeError, match="a document"):
        texts_of(content)


@pytest.mark.parametrize(
    ("name", "package", "module"),
    [
        ("langchain_runnable", "langchain-core", "langchain_core"),
        ("llama_index_evaluator", "llama-index-core", "llama_index"),
        ("haystack_checker", "haystack-ai", "haystack"),
        ("ragas_metric", "ragas", "ragas"),
        ("deepeval_metric", "deepeval", "deepeval"),
        ("traced_detect", "opentelemetry-api", "opentelemetry"),
    ],
)
def test_a_missing_package_is_named(name: str, package: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, module)
    texts = {"evidence": EVIDENCE, "response": WRONG} if name == "traced_detect" else {}
    with pytest.raises(UsageError, match=f"pip install '{package}'"):
        getattr(integrations, name)(**texts)


def test_all_names_lead_somewhere_and_others_nowhere() -> None:
    assert set(integrations.__all__) <= set(dir(integrations))
    assert all(hasattr(integrations, name) for name in integrations.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        getattr(integrations, "nothing")  # noqa: B009


def test_a_langsmith_evaluator_needs_no_package() -> None:
    evaluator = langchain_evaluator(response="reply", evidence="documents")
    result = evaluator({"documents": [EVIDENCE]}, {"reply": WRONG})
    assert (result["key"], result["score"], result["value"]) == ("grounded", 0.0, "unsupported")
    assert "⟦1907⟧" in result["comment"]
    unchecked = evaluator({"documents": []}, {"reply": WRONG})
    assert (unchecked["score"], unchecked["value"]) == (None, "not_checked")
    with pytest.raises(UsageError, match=r"no 'reply' among 'answer'.*response=NAME"):
        evaluator({"documents": []}, {"answer": WRONG})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strictness": "severe"}, "no strictness"),
        ({"detector": "groundin"}, "Did you mean grounding"),
        ({"detectr": "grounding"}, "detectr"),
    ],
)
def test_a_wrong_option_is_refused_as_the_evaluator_is_made(options: dict[str, str], message: str) -> None:
    with pytest.raises((UsageError, TypeError), match=message):
        langchain_evaluator(**options)


def test_attributes_hold_no_text_unless_asked_for() -> None:
    prediction = veriglot.detect(EVIDENCE, response=WRONG)
    attributes = otel_attributes(prediction)
    assert attributes["veriglot.verdict"] == "unsupported"
    assert attributes["veriglot.spans"] == 1
    assert not {"veriglot.unsupported", "veriglot.reason"} & set(attributes)
    assert otel_attributes(prediction, text=True)["veriglot.unsupported"] == ["1907"]
    unchecked = otel_attributes(veriglot.detect("", response=WRONG), text=True)
    assert unchecked["veriglot.verdict"] == "not_checked"
    assert "evidence" in unchecked["veriglot.reason"]
    assert "veriglot.spans" not in unchecked


def test_batches_have_a_value_for_every_row() -> None:
    batch = {"response": [EVIDENCE, WRONG, None], "evidence": [EVIDENCE, [EVIDENCE, "It is old."], EVIDENCE]}
    columns = detect_batch(batch)
    assert columns["veriglot_verdict"] == ["supported", "unsupported", "not_checked"]
    assert columns["veriglot_spans"][0] == "[]"
    assert columns["veriglot_spans"][2] == "null"
    assert [bool(reason) for reason in columns["veriglot_reason"]] == [False, False, True]
    assert detect_batch({"response": [], "evidence": []})["veriglot_verdict"] == []
    with pytest.raises(UsageError, match="no 'question' among"):
        detect_batch(batch, question="question")
    with pytest.raises(InputError):
        detect_batch({"response": [7], "evidence": [EVIDENCE]})
    with pytest.raises(UsageError, match="batched=True"):  # datasets gives one row without it
        detect_batch({"response": WRONG, "evidence": [EVIDENCE, "It is old."]})  # type: ignore[dict-item]


def test_the_import_of_veriglot_and_of_its_plug_in_is_light() -> None:
    heavy = ("pandas", "opentelemetry", "numpy", "onnxruntime", "msgspec", "asyncio", "veriglot.integrations")
    code = f"import sys, veriglot.pytest; print([name for name in {heavy!r} if name in sys.modules])"
    assert printed(code) == "[]\n"


def test_assert_grounded_works_without_pytest() -> None:
    code = (
        "import sys; sys.modules['pytest'] = None\n"
        "import veriglot; veriglot.assert_grounded('It opened in 1879.', 'It opened in 1879.')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_examples_are_named_so_that_they_hide_no_package() -> None:
    folder = ROOT / "examples" / "integrations"
    assert all(path.stem.startswith("in_") for path in folder.glob("*.py"))


def test_the_page_names_all_that_is_public() -> None:
    page = (ROOT / "docs" / "integrations.md").read_text("utf-8")
    assert not [name for name in integrations.__all__ if f"`{name}" not in page]


@pytest.mark.slow
def test_the_github_workflow_is_one_and_fails_where_an_answer_is_unsupported(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="needs PyYAML, which comes with the extra hf")
    text = (ROOT / "examples" / "integrations" / "github_workflow.yml").read_text("utf-8")
    workflow = yaml.safe_load(text)
    assert set(workflow) == {"name", True, "jobs"}  # YAML 1.1 reads `on` as true, as GitHub's own checks do
    (job,) = workflow["jobs"].values()
    assert all(len({"uses", "run"} & set(step)) == 1 for step in job["steps"])
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"]) for step in job["steps"] if "uses" in step)
    (line,) = [step["run"] for step in job["steps"] if step.get("run", "").startswith("veriglot ")]
    for response, evidence, code in ((EVIDENCE, EVIDENCE, 0), (WRONG, EVIDENCE, 4), (EVIDENCE, "", 4)):
        row = {"id": "a", "response": response, "evidence": [{"text": evidence}] if evidence else []}
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        (folder / "answers.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
        command = [
            sys.executable,
            "-c",
            "import sys; from veriglot.cli import main; sys.exit(main())",
            *shlex.split(line)[1:],
        ]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        assert (folder / "marked.html").exists()


def test_a_step_of_langchain_takes_a_dictionary() -> None:
    with pytest.raises(UsageError, match="takes a dictionary with 'answer' and 'context', and not str"):
        integrations._with_prediction("answer", "context", None, "grounding", {}, "text")  # type: ignore[arg-type]

"""The bundled study: its questions come from their sources, its responses belong to them and say who gave them."""

from __future__ import annotations

import json
import runpy
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from veriglot.records import Kind, Sample, Task, decode_json, encode, sample_from

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STUDY = EXAMPLES / "study"
MAKER = runpy.run_path(str(STUDY / "make_queries.py"))
LANGUAGES = {"en", "de", "fr", "es", "it", "pt", "tr", "ar", "ru", "zh-Hans", "hi", "ja"}
MODELS = ("smollm2-closed", "smollm2-open")
SEEDS = (42, 43, 44)


def samples_in(path: Path) -> list[Sample]:
    return [sample_from(decode_json(line)) for line in path.read_bytes().splitlines()]


@pytest.fixture(scope="module")
def queries() -> list[Sample]:
    return samples_in(STUDY / "queries.jsonl")


@pytest.fixture(scope="module", params=MODELS)
def responses(request: pytest.FixtureRequest) -> list[Sample]:
    return samples_in(STUDY / "responses" / f"{request.param}.jsonl")


@pytest.fixture(scope="module")
def asking(request: pytest.FixtureRequest) -> dict[str, Any]:
    sys.path.insert(0, str(STUDY))
    try:
        return runpy.run_path(str(STUDY / "make_responses.py"))
    finally:
        sys.path.remove(str(STUDY))


def test_queries_are_what_their_sources_make() -> None:
    assert (STUDY / "queries.jsonl").read_bytes() == MAKER["as_jsonl"](), "run: make examples"


def test_each_language_has_five_passages_with_two_questions(queries: list[Sample]) -> None:
    assert {query.language for query in queries} == LANGUAGES
    groups = Counter((query.language, query.meta["group"]) for query in queries)
    assert set(groups.values()) == {2}
    assert set(Counter(language for language, _ in groups).values()) == {5}
    invented = {(query.language, query.meta["group"]) for query in queries if query.meta["invented"]}
    assert set(Counter(language for language, _ in invented).values()) == {2}


def test_a_query_can_be_answered_from_its_passage_alone(queries: list[Sample]) -> None:
    for query in queries:
        assert query.task is Task.QA
        assert not query.response
        assert query.question
        (passage,) = query.evidence
        assert query.meta["answer"] in passage.text, query.id
        assert query.meta["answer"] not in query.question, query.id
    questions = [query.question for query in queries]
    assert len(set(questions)) == len(questions)


def test_an_answer_that_the_passage_lacks_is_refused() -> None:
    passage = {"title": "t", "evidence": "It is 3 m high.", "questions": [{"ask": "How high?", "answer": "4 m"}]}
    with pytest.raises(ValueError, match="does not contain '4 m'"):
        list(MAKER["queries_of"]("en", 1, passage))


def test_the_profile_is_measured_on_other_subjects(queries: list[Sample]) -> None:
    subjects = {passage.title for query in queries for passage in query.evidence}
    others = {passage.title for sample in samples_in(EXAMPLES / "samples.jsonl") for passage in sample.evidence}
    assert not subjects & others


def test_every_query_was_answered_with_every_seed(responses: list[Sample], queries: list[Sample]) -> None:
    asked = {query.id: query for query in queries}
    model = responses[0].generator
    assert model is not None
    found = {response.id for response in responses}
    assert found == {f"{query}/{model.name}/{seed}" for query in asked for seed in SEEDS}
    for response in responses:
        query = asked[response.meta["query"]]
        assert (response.question, response.evidence, response.language) == (
            query.question,
            query.evidence,
            query.language,
        ), "the queries changed since: run examples/study/make_responses.py"


def test_a_response_says_who_gave_it_and_how(responses: list[Sample], asking: dict[str, Any]) -> None:
    wanted = dict(setting.split("=") for setting in asking["SETTINGS"])
    for response in responses:
        model = response.generator
        assert model is not None
        assert model.revision == asking["revision"]()
        assert model.seed in SEEDS
        assert model.settings["model"] == asking["MODEL"]
        assert {name: float(model.settings[name]) for name in wanted} == {n: float(v) for n, v in wanted.items()}
        assert model.settings["prompt"].split(":")[0] == asking["STYLES"][model.name]
        assert response.meta["finish"] in {"stop", "length"}


def test_both_ways_to_ask_gave_other_words() -> None:
    closed, open_ = (samples_in(STUDY / "responses" / f"{name}.jsonl") for name in MODELS)
    same = sum(one.response == other.response for one, other in zip(closed, open_, strict=True))
    assert same < len(closed) / 10


def test_the_study_names_what_is_there() -> None:
    study = tomllib.loads((STUDY / "study.toml").read_text("utf-8"))
    assert {model["name"] for model in study["models"]} == set(MODELS)
    assert set(study["study"]["languages"]) == LANGUAGES
    for path in (*study["responses"]["path"], *(detector["labelled"] for detector in study["detectors"])):
        assert (STUDY / path).is_file(), path


def test_the_readme_states_the_model(asking: dict[str, Any]) -> None:
    told = " ".join((STUDY / "README.md").read_text("utf-8").split())
    for fact in (asking["SHA256"], "Apache-2.0", "42, 43 and 44", "temperature 0.2", "64 tokens"):
        assert fact in told, fact
    for line in (STUDY / "small_model_requirements.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            name, version = line.split("==")
            assert f"`{name}` {version}" in told


def test_the_folder_is_small() -> None:
    kept = [path for path in STUDY.rglob("*") if path.is_file() and path.suffix in {".toml", ".jsonl", ".py", ".md"}]
    assert sum(path.stat().st_size for path in kept) < 2_000_000


def test_rows_are_json_with_letters_as_they_are() -> None:
    first = (STUDY / "responses" / f"{MODELS[0]}.jsonl").read_text("utf-8").splitlines()[0]
    assert json.loads(first)["language"] == "ar"
    assert "\\u" not in first


@pytest.fixture(scope="module")
def labelling() -> dict[str, Any]:
    return runpy.run_path(str(STUDY / "make_labelled.py"))


def test_labelled_responses_are_what_responses_and_labels_make(labelling: dict[str, Any]) -> None:
    made = labelling["labelled"]()
    assert (STUDY / "labelled.jsonl").read_bytes() == b"".join(encode(row) + b"\n" for row in made)
    assert Counter((row.language, row.generator.name) for row in made) == {
        (language, model): 10 for language in LANGUAGES for model in MODELS
    }
    assert {row.annotations[0].kind for row in made} == {Kind.MODEL}


def test_a_quote_marks_every_place_and_nothing_that_is_not_there(labelling: dict[str, Any]) -> None:
    spans = labelling["spans"]
    assert [(span.start, span.end) for span in spans("ab cd ab", ["ab"], "x")] == [(0, 2), (6, 8)]
    assert [(span.start, span.end) for span in spans("ab cd", ["*"], "x")] == [(0, 5)]
    assert spans("ab", [], "x") == ()
    with pytest.raises(SystemExit, match="does not hold 'ef'"):
        spans("ab", ["ef"], "x")

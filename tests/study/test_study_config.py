"""Study files: what is accepted, what is refused, and with what words."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from study_folder import write_queries, write_responses

from veriglot.errors import InputError
from veriglot.records import Estimator
from veriglot.study.config import (
    Config,
    DetectorEntry,
    Entries,
    LabelsEntry,
    LimitsEntry,
    ModelEntry,
    QueriesEntry,
    ResponsesEntry,
    StudyEntry,
    file_name,
    load,
)

DOCS = Path(__file__).resolve().parents[2] / "docs"
GIVEN = """
[responses]
path = "responses.jsonl"
"""
ASKED = """
[queries]
path = "queries.jsonl"
[[models]]
name = "kiln"
base_url = "http://127.0.0.1:9/v1"
"""
DETECTOR = """
[[detectors]]
name = "grounding"
labelled = "responses.jsonl"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_queries(tmp_path / "queries.jsonl", 3)
    write_responses(tmp_path / "responses.jsonl", ["kiln"], 3)
    return tmp_path


def read(folder: Path, text: str) -> Config:
    path = folder / "study.toml"
    path.write_text(text, "utf-8")
    return load(path)


def test_defaults(folder: Path) -> None:
    config = read(folder, GIVEN + DETECTOR)
    assert config.title == "study"
    assert config.estimators == (Estimator.LABEL_SHIFT, Estimator.RAW, Estimator.PAPER)
    assert config.study.confidence == 0.95
    assert read(folder, ASKED + DETECTOR).asked.seeds == (42, 43, 44, 47, 49)


def test_languages_are_known_by_any_name(folder: Path) -> None:
    config = read(folder, '[study]\nlanguages = ["German", "zho", "fr", "de"]' + GIVEN + DETECTOR)
    assert config.languages == ("de", "zh-Hans", "fr")


def test_paths_are_relative_to_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert read(folder, GIVEN + DETECTOR).resolve("responses.jsonl").exists()


REFUSED = [
    ("[study]\nlanguges = []" + GIVEN + DETECTOR, "study.languges", "Did you mean languages?"),
    ("[studdy]" + GIVEN + DETECTOR, "studdy", "Did you mean study?"),
    ('[study]\nestimator = "labelshift"' + GIVEN + DETECTOR, "study.estimator", "Did you mean label-shift?"),
    ('[study]\nestimators = ["rw"]' + GIVEN + DETECTOR, "study.estimators", "Did you mean raw?"),
    ('[study]\nestimator = "ppi"' + GIVEN + DETECTOR, "labels", "needs labels"),
    ('[study]\nunit = "wrod"' + GIVEN + DETECTOR, None, "Did you mean word?"),
    ('[study]\nlanguages = ["Germn"]' + GIVEN + DETECTOR, None, "german"),
    ('[study]\nconfidence = "high"' + GIVEN + DETECTOR, "study.confidence", "a number is expected"),
    ("[study]\nconfidence = 1.0" + GIVEN + DETECTOR, "study.confidence", "between 0 and 1"),
    ("[study]\ndraws = 3" + GIVEN + DETECTOR, "study.draws", "at least 100"),
    (DETECTOR, "queries", "either [queries] or [responses]"),
    (GIVEN + ASKED + DETECTOR, "queries", "either [queries] or [responses]"),
    ('[responses]\npath = "none.jsonl"' + DETECTOR, "responses.path", "there is no file"),
    (GIVEN, "detectors", "there is no detector"),
    (GIVEN + "[[detectors]]", "detectors[0].profile", "veriglot evaluate"),
    (GIVEN + DETECTOR + DETECTOR, "detectors.label", "'grounding' occurs twice"),
    (GIVEN + DETECTOR + "threshold = 2.0", "detectors[0].threshold", "between 0 and 1"),
    (GIVEN + DETECTOR + 'profile = "queries.jsonl"', "detectors[0]", "either a profile or labelled data"),
    (GIVEN + DETECTOR + 'compare_profile = "none.json"', "detectors[0].compare_profile", "there is no file"),
    (GIVEN + '[[models]]\nname = "kiln"\nprompt = "open"' + DETECTOR, "models[0].prompt", "nothing is asked"),
    (ASKED + 'prompt = "opn"' + DETECTOR, "models.prompt", "Did you mean open?"),
    (ASKED + 'client = "opnai"' + DETECTOR, None, "Did you mean openai?"),
    (ASKED + 'client = "scripted"' + DETECTOR, "models[0].script", "the file of its rules"),
    (ASKED + 'preset = "mfava-lama-3"' + DETECTOR, None, "Did you mean"),
    (ASKED + "settings = { temprature = 1.0 }" + DETECTOR, "models.settings.temprature", "Did you mean temperature?"),
    (ASKED + "settings = { temperature = -1.0 }" + DETECTOR, "models[0].settings", "at least 0"),
    (ASKED.replace("base_url", "revision") + DETECTOR, "models[0].base_url", "address of a server"),
    (ASKED + ASKED.partition("jsonl\"")[2] + DETECTOR, "models.name", "'kiln' occurs twice"),
    (ASKED.replace("[[models]]", 'design = "runz"\n[[models]]') + DETECTOR, "queries.design", "Did you mean runs?"),
    (ASKED.replace("[[models]]", "seeds = [1, 1]\n[[models]]") + DETECTOR, "queries.seeds", "each seed once"),
    (GIVEN + DETECTOR + "[limits]\njobs = 0", "limits.jobs", "at least 1"),
    (GIVEN + DETECTOR + "[resources.articles]\nGermn = 3", None, "german"),
    ("[study\n", None, "not valid TOML"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "field", "words"), REFUSED, ids=[f"{field}: {words}" for _, field, words in REFUSED])
def test_slips_of_the_pen_are_refused_with_place_and_remedy(
    folder: Path, text: str, field: str | None, words: str
) -> None:
    with pytest.raises(InputError) as caught:
        read(folder, text)
    assert caught.value.path == str(folder / "study.toml")
    assert caught.value.field == field
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "line", ['key = "sk-abc123"', 'options = { headers = { Authorization = "Bearer sk-abc123" } }']
)
def test_a_key_in_the_file_is_refused_and_not_shown(folder: Path, line: str) -> None:
    with pytest.raises(InputError) as caught:
        read(folder, ASKED + line + DETECTOR)
    assert caught.value.field == "models[0].key"
    assert "abc123" not in str(caught.value)
    assert read(folder, ASKED + 'key = "MY_API_KEY"' + DETECTOR).models[0].key == "MY_API_KEY"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        load(tmp_path / "study.toml")
    with pytest.raises(InputError, match="this is a folder"):
        load(tmp_path)


def test_file_names_are_safe_and_differ() -> None:
    names = ["kiln", "Kiln", "KILN", "kiln 3b", "kiln/3b", "kiln-3b", "../kiln", "窯", "窑", "", "."]
    made = [file_name(name) for name in names]
    assert made[0] == "kiln"
    assert made[5] == "kiln-3b"
    assert len({name.lower() for name in made}) == len(names)
    assert not any(part in name for name in made for part in ("/", "\\", ":", " "))
    assert not any(name.startswith(".") for name in made)


def test_the_study_file_of_the_documentation_is_one(folder: Path) -> None:
    page = (DOCS / "study.md").read_text("utf-8")
    write_queries(folder / "questions.jsonl", 3)
    write_responses(folder / "labelled.jsonl", ["kiln"], 3)
    config = read(folder, page.partition("```toml\n")[2].partition("```")[0])
    assert [model.name for model in config.models] == ["model-a", "model-b"]
    assert config.asked.seeds == (42, 43, 44)


def test_the_documentation_names_every_key() -> None:
    page = (DOCS / "study.md").read_text("utf-8")
    for table in msgspec.structs.fields(Entries):
        assert f"`[{table.name}" in page or f"`[[{table.name}]]`" in page, table.name
    for entry in (StudyEntry, QueriesEntry, ResponsesEntry, ModelEntry, DetectorEntry, LabelsEntry, LimitsEntry):
        for key in entry.__struct_fields__:
            assert f"`{key}`" in page, f"{entry.__name__}.{key}"

"""LettuceDetect's prompts and pairs, to the last token."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import veriglot
from json_lines import write_lines
from veriglot.detectors.registry import load_detector
from veriglot.detectors.token_classifier.detector import checkpoint_language, format_of, prompt_for, wording
from veriglot.records import Annotation, Evidence, Kind, Sample, Span

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

PASSAGES = ["The mill was built in 1874.", "It stands near the river: 40% of $x {y}."]
QUESTION = "When was the mill built?"
# The first 16 digits of the SHA-256 of PromptUtils.format_context(PASSAGES, QUESTION or None, language) of the package
# lettucedetect 0.2.3.
RECORDED = {
    "de": ("9b83b4ee65ef5735", "ee2b7840c50320d6"),
    "en": ("af95d884359df3e7", "a16e2e36ff3371ee"),
    "es": ("8a37e5f90c857f01", "d0469a7540d9a5ce"),
    "fr": ("2afe8028a8bedbf6", "d4f95eebff4fde13"),
    "hu": ("6a4003a497bf5260", "5ce5b6deb872281a"),
    "it": ("ae0409d1da769325", "71a69ce76edf78f7"),
    "pl": ("77ecf68d1a89a26f", "69552bba849f83d8"),
    "zh": ("4056ca75689fc4ff", "42f6eb9fdc6f6306"),
}


def sample(
    question: str | None, response: str = "It was built in 1901 near the stone bridge.", **fields: Any
) -> Sample:
    passages = tuple(Evidence(text) for text in PASSAGES)
    return Sample("s", response, **{"question": question, "evidence": passages, "language": "en", **fields})


@pytest.fixture(scope="module")
def package(needs_local: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The package itself, for comparison; without what it needs, for that is here."""
    folder = str(tmp_path_factory.mktemp("package"))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder]
    if subprocess.run([*command, "lettucedetect==0.2.3"], capture_output=True, check=False).returncode:
        pytest.skip("needs a package index")
    sys.path.append(folder)
    yield pytest.importorskip("lettucedetect.detectors.transformer")
    sys.path.remove(folder)


def test_both_sides_of_the_comparison_find_the_same_tokens(package: Any, lettuce: Path) -> None:
    page = Path(__file__).parents[3].joinpath("docs", "coming_from.md").read_text("utf-8")
    given = page.partition("```python\n")[2].partition("```")[0]
    block = page.partition("```text\n")[2].partition("```")[0]
    names: dict[str, Any] = {}
    exec("from lettucedetect.models.inference import HallucinationDetector\n" + given, names)
    exec(re.sub(r'model_path="[^"]*"', f'model_path="{lettuce}"', block), names)
    answer = names["answer"]
    theirs = {i for span in names["spans"] for i in range(span["start"], span["end"]) if answer[i].isalnum()}
    assert theirs
    found = veriglot.detect(
        [names["context"]], response=answer, question=names["question"], detector=f"hf:{lettuce}", language="en"
    )
    ours = found.as_dicts()
    assert set(names["spans"][0]) == {"start", "end", "text", "confidence"} <= set(ours[0])
    # A word of ours is marked as soon as one of its tokens is.
    words = [range(span["start"], span["end"]) for span in ours]
    assert theirs <= {index for word in words for index in word}
    assert all(theirs & set(word) for word in words)


def test_the_package_loads_what_we_train(
    package: Any, lettuce: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("peft", reason="needs the extra `train`")
    # The folder tests/datasets looks to transformers like the package of that name.
    monkeypatch.setattr("transformers.trainer.is_datasets_available", lambda: False)
    from veriglot.training.tokens import TokensConfig, train

    gold = Annotation("gold", Kind.HUMAN, "hat", spans=(Span(22, 26),))
    rows = [
        Sample(
            f"r{number}", f"The mill was built in {1900 + number}.", language="en", question=QUESTION,
            evidence=(Evidence(PASSAGES[0]),), annotations=(gold,),
        )
        for number in range(8)
    ]  # fmt: skip
    write_lines(tmp_path / "data.jsonl", rows)
    config = TokensConfig(
        model=str(lettuce), output="out", data=("data.jsonl",), prompt="lettucedetect", seeds=(1,), device="cpu",
        training={"max_steps": 3, "learning_rate": 0.01, "per_device_train_batch_size": 4},
    )  # fmt: skip
    (run,) = train(config, tmp_path)
    theirs = package.TransformerDetector(model_path=run.folder)
    tokens = theirs.predict(PASSAGES, "Built in 1901.", QUESTION, output_format="tokens")
    (ours,) = load_detector(f"hf:{run.folder}", words=True, device="cpu").predict([sample(QUESTION, "Built in 1901.")])
    assert max(token["prob"] for token in tokens) == pytest.approx(ours.score, abs=1e-5)


@pytest.mark.parametrize("tag", RECORDED)
def test_prompts_are_those_of_the_package(tag: str) -> None:
    found = [prompt_for("lettucedetect", sample(question), tag).over(PASSAGES) for question in (QUESTION, None)]
    assert tuple(hashlib.sha256(text.encode()).hexdigest()[:16] for text in found) == RECORDED[tag]


def test_other_languages_are_asked_in_english() -> None:
    assert wording("lettucedetect", "fi").language == "en"
    assert wording("lettucedetect", "zh-Hant").language == "zh"
    assert wording("plain", "fi").language is None


@pytest.mark.parametrize(
    ("model", "form", "language"),
    [
        ("KRLabsOrg/lettucedect-base-modernbert-en-v1", "lettucedetect", "en"),
        ("models/lettucedect-210m-eurobert-de-v1/", "lettucedetect", "de"),
        ("KRLabsOrg/lettucedect-610m-eurobert-cn-v1", "lettucedetect", "zh"),
        ("KRLabsOrg/lettucedect-v2-mmbert-base", "lettucedetect", None),
        ("KRLabsOrg/tinylettuce-ettin-17m-en", "lettucedetect", "en"),
        ("hub/models--KRLabsOrg--lettucedect-large-modernbert-en-v1/snapshots/0f3a", "lettucedetect", "en"),
        ("lettucedetect-trials/our-tagger-en", "plain", None),
    ],
)
def test_a_name_says_format_and_language(model: str, form: str, language: str | None) -> None:
    assert (format_of(model), checkpoint_language(model)) == (form, language)


def test_pairs_are_those_of_the_tokenizer(lettuce: Path) -> None:
    import transformers

    detector = load_detector(f"hf:{lettuce}")
    tokenizer = transformers.AutoTokenizer.from_pretrained(lettuce)
    given = sample(QUESTION)
    prompt = prompt_for("lettucedetect", given, "en").over(PASSAGES)
    wanted = tokenizer(prompt, given.response, truncation="only_first", max_length=4096, return_offsets_mapping=True)
    found = detector._tokens.pair(prompt, given.response)  # type: ignore[attr-defined]
    assert found.ids == wanted["input_ids"]
    assert found.offsets == [tuple(place) for place in wanted["offset_mapping"]]
    assert "window:4096" in detector.signature


@pytest.mark.parametrize("question", [QUESTION, None])
def test_tokens_are_as_the_package_has_them(package: Any, lettuce: Path, question: str | None) -> None:
    theirs = package.TransformerDetector(model_path=str(lettuce), device="cpu")
    given = sample(question)
    wanted = theirs.predict(PASSAGES, given.response, question, output_format="tokens")
    wanted.pop()  # the special token at the end, which it counts as the response's
    detector: Any = load_detector(f"hf:{lettuce}", device="cpu")
    plan = detector._plan(given)
    (found,) = detector._outputs(plan.inputs.encodings)
    assert found.outputs[:, 1] == pytest.approx([token["prob"] for token in wanted], abs=1e-5)
    spans = theirs.predict(PASSAGES, given.response, question, output_format="spans")
    theirs_marked = {place for span in spans for place in range(span["start"], span["end"])}
    words = load_detector(f"hf:{lettuce}", device="cpu", words=True).predict([given])[0].words or ()
    assert words
    for word in words:
        assert (word.confidence > 0.5) == bool(theirs_marked & set(range(word.start, word.end)))


def test_long_evidence_is_grouped_as_the_package_groups_it(package: Any, lettuce: Path) -> None:
    theirs = package.TransformerDetector(model_path=str(lettuce), device="cpu", max_length=600)
    passages = [f"Mill number {number} was built near the river in {1800 + number}." for number in range(40)]
    given = sample(QUESTION, evidence=tuple(Evidence(text) for text in passages))
    wanted = theirs._group_passages_into_chunks(passages, QUESTION, given.response)
    detector: Any = load_detector(f"hf:{lettuce}", device="cpu", max_length=600)
    made = detector._plan(given).inputs
    assert len(wanted) > 3
    assert [len(window) for window in made.windows] == [len(group) for group in wanted]
    texts = [[passages[int(pointer.id[1:])] for pointer in window] for window in made.windows]
    assert texts == wanted
    for one in detector._outputs(made.encodings):
        assert np.isfinite(one.outputs).all()

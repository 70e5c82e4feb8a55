"""`auto` with recorded figures: the best detector that is here, of the revision that was measured, and why."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import msgspec
import pytest
from many_languages import TEXTS
from told_words import plugged_in

from veriglot.detectors.auto import BenchDetector, Recorded, RecordedFigure, runs_here
from veriglot.detectors.registry import load_detector
from veriglot.errors import UsageError
from veriglot.records import Evidence, Sample, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Write = Callable[..., str]

pytestmark = pytest.mark.usefixtures("no_reader")

GROUNDING = load_detector("grounding").name


@pytest.fixture(autouse=True, scope="module")
def told_words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A further detector by name, as a plug-in."""
    with plugged_in(tmp_path_factory.mktemp("site")):
        yield


def figure(
    name: str, value: float, language: str = "de", *, data: str = "answers", revision: str | None = None,
    translation: bool = False, options: dict[str, str] | None = None,
) -> RecordedFigure:  # fmt: skip
    known = {"grounding": GROUNDING, "told-words": "told-a@1"}
    return RecordedFigure(
        detector=revision or known.get(name, f"{name}@1"), name=name, language=language,
        setting="translation" if translation else "evidence", data=data, value=value, low=None, high=None, items=100,
        texts=50, options=options or {},
    )  # fmt: skip


def recorded(*figures: RecordedFigure) -> Recorded:
    return Recorded(
        format=Recorded.known, level="word", measure="auc_pr_nonfactual", figures=figures, signature="bench:x"
    )


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes figures into a file of their own."""

    def made(*figures: RecordedFigure) -> str:
        path = tmp_path / "figures.json"
        path.write_bytes(msgspec.json.encode(recorded(*figures)))
        return str(path)

    return made


def sample(tag: str, of: str | None = None, task: Task = Task.QA) -> Sample:
    evidence = Evidence(TEXTS[of or tag].evidence, language=of or tag)
    return Sample(f"{tag}-{of}", TEXTS[tag].changed, language=tag, evidence=(evidence,), task=task)


def test_the_best_that_is_here_judges_and_says_why(write: Write) -> None:
    path = write(figure("grounding", 0.6), figure("told-words", 0.8), figure("reader", 0.9))
    auto = load_detector("auto", figures=path, candidates="grounding+told-words+reader")
    (found,) = auto.predict([sample("de")])
    assert found.detector == "told-a@1"
    assert found.notes[-1] == "auto:by figures (auc_pr_nonfactual of words, de: told-words 0.800, grounding 0.600)"
    assert found.asked == auto.name
    assert "told-a-1" in auto.name


def test_its_strictness_is_that_of_the_one_detector_that_judges(write: Write) -> None:
    levels = ("low", "normal", "high")
    alone = [load_detector("auto", figures="none", strictness=name).threshold for name in levels]
    assert alone == [load_detector("grounding", strictness=name).threshold for name in levels]
    path = write(figure("grounding", 0.6), figure("told-words", 0.8))
    with pytest.raises(UsageError, match="Give a threshold"):  # what was measured for one holds for no other
        load_detector("auto", figures=path, candidates="grounding+told-words", strictness="high")


def test_in_a_language_without_figures_the_rule_is_what_it_was(write: Write) -> None:
    auto = load_detector("auto", figures=write(figure("grounding", 0.6)))
    assert auto.predict([sample("de")])[0].notes[-1].startswith("auto:by figures")
    assert auto.predict([sample("fr")])[0].notes[-1] == "auto:no reader"


def test_figures_of_answers_say_nothing_of_translations_nor_across_languages(write: Write) -> None:
    auto = load_detector(
        "auto", figures=write(figure("grounding", 0.6), figure("grounding", 0.3, "fr", translation=True))
    )
    assert auto.predict([sample("de", "en", Task.TRANSLATION)])[0].notes[-1] == "auto:no reader"
    assert auto.predict([sample("de", "en")])[0].notes[-1] == "auto:no reader"
    (found,) = auto.predict([sample("fr", "en", Task.TRANSLATION)])
    assert found.notes[-1] == "auto:by figures (auc_pr_nonfactual of words, fr translations: grounding 0.300)"


def test_figures_of_another_revision_do_not_count(write: Write) -> None:
    auto = load_detector("auto", figures=write(figure("grounding", 0.6, revision="grounding@0.1")))
    assert auto.predict([sample("de")])[0].notes[-1] == "auto:no reader"


def test_a_batch_of_many_detectors_is_in_order(write: Write) -> None:
    path = write(figure("told-words", 0.8), figure("grounding", 0.8, "fr"))
    auto = load_detector("auto", figures=path, candidates=["told-words", "grounding"])
    samples = [sample(tag) for tag in ("de", "fr", "he", "de", "fr")]
    found = auto.predict(samples)
    assert [one.id for one in found] == [one.id for one in samples]
    assert found == [auto.predict([one])[0] for one in samples]
    assert len({one.detector for one in found}) == 2
    again = pickle.loads(pickle.dumps(auto))
    assert again.predict(samples) == found


def test_nothing_is_asked_that_was_not_named(tmp_path: Path) -> None:
    assert runs_here("grounding")
    assert runs_here("ensemble:grounding+reader")
    assert runs_here(f"hf:{tmp_path}")
    for name in ("judge:spans", "hf:org/model", "told-words", "ensemble:grounding+judge:spans", "xcomet:model"):
        assert not runs_here(name), name


def test_a_plug_in_is_not_taken_unless_it_is_named(write: Write) -> None:
    auto = load_detector("auto", figures=write(figure("grounding", 0.6), figure("told-words", 0.8)))
    assert auto.predict([sample("de")])[0].detector == GROUNDING


def test_a_candidate_without_figures_is_refused(write: Write) -> None:
    with pytest.raises(UsageError, match="no recorded figures of the candidate 'judge:spans'"):
        load_detector("auto", figures=write(figure("grounding", 0.6)), candidates="grounding+judge:spans")


def test_options_are_those_that_were_measured(write: Write) -> None:
    path = write(figure("told-words", 0.8, revision="told-b@1", options={"letter": '"b"'}))
    auto = load_detector("auto", figures=path, candidates="told-words")
    assert auto.predict([sample("de")])[0].detector == "told-b@1"


def test_detectors_are_compared_on_the_data_that_they_share() -> None:
    found = recorded(
        figure("a", 0.9, data="easy"), figure("a", 0.2, data="hard"), figure("b", 0.4, data="hard"),
        figure("c", 0.99, data="other"),
    )  # fmt: skip
    among = found.detectors()
    assert [(known.name, value) for known, value in found.ranking("de", "evidence", among[:2])] == [
        ("b", 0.4),
        ("a", 0.2),
    ]
    assert found.ranking("fr", "evidence", among) == []
    assert [known.name for known, _ in found.ranking("de", "evidence", [BenchDetector("c", (), "c@1")])] == ["c"]

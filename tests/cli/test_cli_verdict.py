"""The verdict of `veriglot detect`: its summary, limits with exit code 4, strictness."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from veriglot.detectors.registry import at_strictness, load_detector
from veriglot.errors import UnknownNameError, UsageError, WeightsError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Outcome

    Command = Callable[..., Outcome]

DETECTOR = ("--detector", "word_absence:WordAbsence")
RIGHT, WRONG = "The mill is old.", "The mill is new."


def write_rows(path: Path, *rows: tuple[str, str, str]) -> Path:
    """Rows of language, response and evidence."""
    lines = [
        {
            "id": str(number),
            "language": language,
            "response": response,
            "evidence": [{"text": evidence}] if evidence else [],
        }
        for number, (language, response, evidence) in enumerate(rows)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    rows = [("en", RIGHT, RIGHT)] * 6 + [("en", WRONG, RIGHT), ("de", WRONG, RIGHT)] + [("de", RIGHT, "")] * 2
    return write_rows(tmp_path / "in.jsonl", *rows)


SUMMARY = (
    "veriglot: 10 rows: 8 checked, 2 of them marked (25.0%); 2 not checked (no evidence 2).\n"
    "veriglot: marked of checked, by language: en 1 of 7, de 1 of 1.\n"
)


def test_the_summary_counts_marked_and_unchecked_rows_by_language(veriglot: Command, source: Path) -> None:
    outcome = veriglot("detect", source, *DETECTOR)
    assert (outcome.code, outcome.err) == (0, SUMMARY)
    assert len(outcome.out.splitlines()) == 10
    assert "marked" not in outcome.out
    quiet = veriglot("detect", source, *DETECTOR, "--quiet")
    assert (quiet.code, quiet.err, quiet.out) == (0, "", outcome.out)


@pytest.mark.parametrize("name", ["out.jsonl", "out.html"])
def test_a_run_that_is_finished_has_the_same_verdict(
    veriglot: Command, source: Path, tmp_path: Path, name: str
) -> None:
    words = ("detect", source, *DETECTOR, "-o", tmp_path / name, "--max-rate", "10%")
    for _ in range(2):
        outcome = veriglot(*words)
        assert outcome.code == 4
        assert SUMMARY in outcome.err
    assert "all of them had been done by an earlier run" in outcome.err
    progress = tmp_path / f"{name}.progress"
    assert json.loads(progress.read_text())["verdicts"] == {
        "": {"not_checked": 2},
        "de": {"unsupported": 1},
        "en": {"supported": 6, "unsupported": 1},
    }


@pytest.mark.parametrize(
    ("limits", "code", "message"),
    [
        (("--max-rate", "25%"), 0, ""),
        (("--max-rate", "0.25"), 0, ""),
        (("--max-rate", "20%"), 4, "--max-rate 20%: 2 of 8 checked are marked, 25.0%"),
        (("--fail-on", "unsupported"), 4, "--fail-on unsupported: 2 marked"),
        (("--fail-on", "not-checked", "--max-rate", "0"), 4, "--fail-on not-checked: 2 not checked"),
    ],
)
def test_limits(veriglot: Command, source: Path, limits: tuple[str, ...], code: int, message: str) -> None:
    outcome = veriglot("detect", source, *DETECTOR, *limits, "--quiet")
    assert outcome.code == code
    assert (message in outcome.err) if message else outcome.err == ""
    assert len(outcome.out.splitlines()) == 10


def test_where_nothing_was_checked_no_rate_is_kept(veriglot: Command, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in.jsonl", ("en", RIGHT, ""))
    outcome = veriglot("detect", source, *DETECTOR, "--max-rate", "100%")
    assert outcome.code == 4
    assert "nothing was checked" in outcome.err


def test_a_limit_counts_more_than_rows_that_cannot_be_read(veriglot: Command, source: Path) -> None:
    source.write_text(source.read_text() + "{\n")
    assert veriglot("detect", source, *DETECTOR).code == 3
    outcome = veriglot("detect", source, *DETECTOR, "--fail-on", "unsupported,not-checked")
    assert outcome.code == 4
    assert "--fail-on not-checked: 3 not checked" in outcome.err


def test_a_pair_has_a_verdict_too(veriglot: Command) -> None:
    pair = ("--evidence-text", RIGHT, "--response-text", WRONG, *DETECTOR, "--language", "en")
    assert veriglot("detect", *pair).code == 0
    assert veriglot("detect", *pair, "--fail-on", "unsupported").code == 4
    unchecked = ("--evidence-text", "", "--response-text", RIGHT)
    outcome = veriglot("detect", *unchecked, "--fail-on", "unsupported")
    assert outcome.code == 4
    assert "over the limit: nothing was checked." in outcome.err
    assert veriglot("detect", *unchecked, "--fail-on", "not-checked").code == 4


class Graded:
    """A detector that states thresholds."""

    def __init__(self, threshold: float | None = None) -> None:
        self.name = "graded@1"
        self.threshold = 0.5 if threshold is None else threshold
        self.thresholds = {"low": 0.8, "high": 0.3}


def test_strictness_is_a_threshold_that_the_detector_states() -> None:
    made = [at_strictness(Graded, name, None).threshold for name in ("low", "normal", "high")]  # type: ignore[arg-type]
    assert made == [0.8, 0.5, 0.3]
    with pytest.raises(UsageError, match="exclude each other"):
        at_strictness(Graded, "low", 0.9)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="high"):
        at_strictness(Graded, "hihg", None)  # type: ignore[arg-type]


def test_a_detector_that_states_none_says_what_to_give_instead(veriglot: Command, source: Path) -> None:
    assert veriglot("detect", source, *DETECTOR, "--strictness", "normal").code == 0
    outcome = veriglot("detect", source, *DETECTOR, "--strictness", "high")
    assert outcome.code == 2
    assert "states no threshold for the strictness high" in outcome.err
    assert "--threshold" in outcome.err


def test_weights_state_thresholds(tmp_path: Path) -> None:
    import shutil
    from importlib.resources import files
    from pathlib import Path

    folder = tmp_path / "weights"
    shutil.copytree(Path(str(files("veriglot.detectors.grounding") / "weights")), folder)
    manifest = json.loads((folder / "weights.json").read_text())
    own = manifest["threshold"]
    manifest["thresholds"] = {"low": own + 0.3, "high": own - 0.3}
    (folder / "weights.json").write_text(json.dumps(manifest))
    detectors = [load_detector("grounding", weights=str(folder), strictness=name) for name in ("low", "normal", "high")]
    assert [each.threshold for each in detectors] == [own + 0.3, own, own - 0.3]
    assert len({each.signature for each in detectors}) == 3
    manifest["thresholds"] = {"low": own - 0.3}
    (folder / "weights.json").write_text(json.dumps(manifest))
    with pytest.raises(WeightsError, match="from low to high"):
        load_detector("grounding", weights=str(folder))


def test_an_output_without_counted_verdicts_passes_no_limit(source: Path, tmp_path: Path, veriglot: Command) -> None:
    output = tmp_path / "out.jsonl"
    assert veriglot("detect", source, "-o", output, *DETECTOR).code == 0
    progress = output.with_name("out.jsonl.progress")
    progress.write_text(json.dumps({**json.loads(progress.read_text("utf-8")), "verdicts": {}}), "utf-8")
    outcome = veriglot("detect", source, "-o", output, *DETECTOR, "--fail-on", "unsupported")
    assert outcome.code == 2
    assert "counted no verdicts" in outcome.err


@pytest.mark.parametrize("has_reader", [True, False])
def test_the_summary_tells_of_reader_where_it_is_not_installed(
    veriglot: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_reader: bool
) -> None:
    monkeypatch.setattr("veriglot.detectors.registry.load_if_installed", lambda _: object() if has_reader else None)
    built = "The mill was built in 1897 beside the river, and people of the village still use it."
    rows = write_rows(tmp_path / "in.jsonl", ("de", "Die Mühle steht seit 1879 am Fluss.", built))
    outcome = veriglot("detect", rows, "--detector", "grounding")
    assert ("pip install 'veriglot[reader]', and leave out" in outcome.err) is not has_reader

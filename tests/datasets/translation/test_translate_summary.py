"""The final message of `veriglot dataset translate`: counts of all requested rows, and a warning if none was kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from settings_file import main
from veriglot.datasets.translation.job import translate
from veriglot.datasets.translation.projection import LexicalAligner
from veriglot.datasets.translation.translators import FunctionTranslator
from veriglot.records import Annotation, Kind, Sample, Span

TEXTS = {
    "The bridge was opened in 1879.": "Die Brücke wurde 1879 eröffnet.",
    "The mill was built by the widow.": "Die Mühle wurde von der Witwe gebaut.",
    "The tower burnt down in the war.": "Der Turm brannte im Krieg nieder.",
}


def run(folder: Path, rules: list[dict[str, Any]]) -> int:
    """Translate three clean rows into German by a script, as docs/translate.md says."""
    rows = [{"id": f"r{n}", "language": "en", "response": text} for n, text in enumerate(TEXTS)]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    (folder / "script.json").write_text(json.dumps({"rules": rules}), "utf-8")
    asked = ["--translator", "llm", "-m", "any", "--mock-rules", str(folder / "script.json")]
    output = ["--aligner", "lexical", "-o", str(folder / "de.jsonl")]
    return main(["dataset", "translate", str(folder / "rows.jsonl"), "-l", "de", *asked, *output])


def test_rows_that_failed_are_among_those_that_were_asked_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    good = [{"match": text.split()[1], "reply": reply} for text, reply in TEXTS.items() if "tower" not in text]
    assert run(tmp_path, [*good, {"error": "the line is dead"}]) == 3
    told = capfd.readouterr()
    assert "de.jsonl: 2 of 3 rows kept, 1 failed, 0 of 0 spans dropped." in told.err
    table = {line.split()[0]: line.split()[1:3] for line in told.out.splitlines() if line.strip()}
    assert (table["de"], table["all"]) == (["2", "2"], ["3", "2"])
    assert "No row was kept" not in told.err


@pytest.mark.parametrize(("rule", "code"), [({"reply": "I cannot help with that."}, 0), ({"error": "dead"}, 3)])
def test_a_run_that_keeps_nothing_says_so_last(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], rule: dict[str, Any], code: int
) -> None:
    assert run(tmp_path, [rule]) == code
    last = capfd.readouterr().err.rstrip().splitlines()[-1]
    assert last.endswith("de.jsonl is empty.")
    assert "No row was kept of 3: " in last


def test_the_script_of_the_page_is_one_that_runs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "translate.md").read_text("utf-8")
    (tmp_path / "script.toml").write_text(page.split("```toml\n")[1].split("```")[0], "utf-8")
    span = {"start": 25, "end": 29, "type": "entity"}
    layer = {"annotator": "gold", "kind": "human", "taxonomy": "fava", "spans": [span]}
    row = {"id": "r", "language": "en", "response": next(iter(TEXTS)), "annotations": [layer]}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row), "utf-8")
    asked = ["--translator", "llm", "-m", "any", "--mock-rules", str(tmp_path / "script.toml")]
    output = ["--aligner", "lexical", "-o", str(tmp_path / "de.jsonl"), "-q"]
    assert main(["dataset", "translate", str(tmp_path / "rows.jsonl"), "-l", "de", *asked, *output]) == 0
    assert json.loads((tmp_path / "de.jsonl").read_text("utf-8"))["response"] == "Die Brücke wurde 1879 eröffnet."
    assert json.loads((tmp_path / "de.jsonl.account.json").read_text("utf-8"))["total"]["calls"] == 3


def test_a_function_is_sent_single_sentences_with_and_without_markers_and_spans_alone(tmp_path: Path) -> None:
    sent: list[str] = []

    def same(text: str, source: str, target: str) -> str:
        sent.append(text)
        return text

    text = " ".join(TEXTS)
    layer = Annotation("gold", Kind.HUMAN, "fava", spans=(Span(25, 29, "entity"),))
    sample = Sample("r", text, language="en", annotations=(layer,))
    translate(tmp_path / "de.jsonl", [sample], ["de"], FunctionTranslator(same, "same@1"), aligner=LexicalAligner())
    first, *others = TEXTS
    assert sorted(sent) == sorted([first, first.replace("1879", "<1>1879</1>"), "1879", *others])

# ruff: noqa: E501  # patterns are whole sentences
"""What the pages of a check, a set of pairs and judged samples say, held to random records."""

from __future__ import annotations

import io
import re
from collections import Counter
from statistics import median

import numpy as np
from rich.console import Console
from sentences import held
from test_report_words import NOTES

from veriglot.datasets.checks.checker import CheckReport, _CleanedAccount
from veriglot.datasets.checks.findings import Finding, checks
from veriglot.datasets.halluverse.pairs import births_of
from veriglot.records import Evidence, JudgedUnit, Pointer, Prediction, Sample, Span, Status, Word
from veriglot.report.checks import check_markdown
from veriglot.report.halluverse import _births_text, _year
from veriglot.report.terminal import render_terminal
from veriglot.report.text_layout import _NOTES, misplaced_parts, note_words, status_words

LEVELS = ("error", "warning", "note")


def check_holds(seed: int) -> None:
    """Counts of findings by level, of checks that found nothing and that were not made; shares of each finding."""
    draw = np.random.default_rng(seed)
    names = list(checks())
    state = draw.integers(0, 3, len(names)) if seed % 4 else np.full(len(names), (0, 1, 2)[seed // 4 % 3])
    found = tuple(_finding(name, draw) for name, at in zip(names, state, strict=True) if at == 0)
    passed = tuple(name for name, at in zip(names, state, strict=True) if at == 1)
    skipped = {name: "no row has it" for name, at in zip(names, state, strict=True) if at == 2}
    rows, repaired, left_out = (int(draw.integers(1, 90)) for _ in range(3))
    copy = _CleanedAccount("clean.jsonl", "bad.jsonl", rows, repaired, left_out, reasons=Counter({names[0]: left_out}))
    report = CheckReport((), found, passed, skipped, (), (), (), (), {}, 0.8, "check:0", "0", copy)
    text = check_markdown(report).replace("\\", "")
    made = len(found) + len(passed)
    for sentence, wanted in (
        ("Nothing was found.", not found), ("Every check that was made found something.", found and not passed),
        ("No check was made.", not made),
    ):  # fmt: skip
        assert (sentence in text) == bool(wanted), sentence
        held("sets", sentence * bool(wanted))
    match = re.search(r"(\d+) rows? kept in clean\.jsonl, (\d+) of them repaired; (\d+) rows? left out, with reasons in bad\.jsonl\. Reasons \(a row may have several\): (\S+) (\d+)\.", " ".join(text.replace("\n- ", " ").split()))  # fmt: skip
    assert match is not None
    assert match.groups() == (str(rows), str(repaired), str(left_out), names[0], str(left_out))
    held("sets", match[0])
    held("sets", "In a cleaned copy: kept." if "In a cleaned copy: kept." in text else "")
    assert text.count("In a cleaned copy: kept.") == len(found)
    match = re.search(r"(?:(\d+) kinds? of finding \((.+?)\)|nothing found); (\d+) checks? found nothing, (\d+) not made\.", text)  # fmt: skip
    assert match is not None
    assert [int(each or 0) for each in match.group(1, 3, 4)] == [len(found), len(passed), len(skipped)]
    levels = {name: int(n) for n, name in re.findall(r"(\d+) (error|warning|note)", match[2] or "")}
    assert levels == {name: n for name in LEVELS if (n := sum(each.level == name for each in found))}
    held("sets", match[0])
    for finding in found:
        about = "about " * (finding.how == "estimate")
        share = f"{100 * finding.count / finding.of:.1f}%"
        head = f"{checks()[finding.check].title}: {about}{finding.count:,} of {finding.of:,} samples ({share})"
        assert f"### {finding.level}: {head}" in text, head
        held("sets", head)


def _finding(name: str, draw: np.random.Generator) -> Finding:
    of = int(draw.integers(20, 3000))
    count = int(draw.integers(of // 10, of))
    level, how = LEVELS[int(draw.integers(3))], ("count", "estimate")[int(draw.integers(2))]
    return Finding(name, level, "sample", how, count, of, {"a": count}, {"a": of}, {}, {}, (), "keep")  # type: ignore[arg-type]


def births_hold(seed: int) -> None:
    """Years of birth: how many are known, the first, the last and the one in the middle."""
    draw = np.random.default_rng(seed)
    unknown = 0.3 if seed % 4 else 1.0
    years = [
        None if draw.random() < unknown else int(draw.integers(-60, 2000)) for _ in range(int(draw.integers(1, 30)))
    ]
    known = sorted(year for year in years if year is not None)
    text = _births_text("all", births_of(years))
    match = re.fullmatch(r"all: (\d+) of (\d+) years? known, from (.+) to (.+); the median is (.+)\.", text)
    assert bool(match) == bool(known)
    if match is None:
        assert text == "all: no year is known"
    else:
        assert (int(match[1]), int(match[2])) == (len(known), len(years))
        assert match.group(3, 4, 5) == (_year(known[0]), _year(known[-1]), _year(round(median(known))))
    held("sets", text)


def notes_hold() -> None:
    """A note of a prediction says in words what it holds: every number and name, and no other number."""
    for note in NOTES:
        text = note_words(note)
        assert set(re.findall(r"\d+(?:\.\d+)?", text)) <= {*re.findall(r"\d+(?:\.\d+)?", note), "1"}, note
        pattern = next(pattern for pattern in _NOTES if re.fullmatch(pattern, note, re.DOTALL))
        match = re.fullmatch(pattern, note, re.DOTALL)
        assert match is not None
        for part in match.groups():
            assert status_words(part) in text or part in text, note
        held("notes", text)


def misfits_hold(seed: int) -> None:
    """What of a prediction lies outside of its sample is counted and named, and nothing else is."""
    draw = np.random.default_rng(seed)
    sample = Sample("a", "x" * 20, evidence=(Evidence("y" * 9, id="p"),))
    pointers = [Pointer(("p", "q")[int(draw.integers(2))], 0, int(draw.integers(1, 15))) for _ in range(6)]
    spans = tuple(Span(0, int(draw.integers(1, 30)), evidence=(pointer,)) for pointer in pointers[:3])
    words = tuple(
        Word(index, int(draw.integers(15, 25)), 0.5, (pointer,)) for index, pointer in enumerate(pointers[3:])
    )
    units = tuple(JudgedUnit(0, int(draw.integers(15, 25)), "fact", 0.5) for _ in range(2))
    told = misplaced_parts(sample, Prediction("a", Status.SCORED, "d@1", 0.5, spans, words, units=units))
    text = "\n".join(told)
    assert text.count("ends beyond the response of 20 code points") == sum(span.end > 20 for span in spans)
    assert text.count("points into passage 'q', which the sample does not have") == sum(
        p.id == "q" for p in pointers[:3]
    )
    assert text.count("points beyond the end of passage 'p'") == sum(p.id == "p" and p.end > 9 for p in pointers[:3])
    for what, pieces in (("word", words), ("unit", units)):
        beyond = sum(piece.end > 20 for piece in pieces)
        match = re.search(rf"(\d+) {what}s? beyond the end of the response of 20 code points", text)
        assert (int(match[1]) if match else 0) == beyond
    lost = sum(pointer.id == "q" or pointer.end > 9 for pointer in pointers[3:])
    match = re.search(r"(\d+) pointers? of words outside of the evidence", text)
    assert (int(match[1]) if match else 0) == lost
    for each in told:
        held("notes", each)


def places_hold(seed: int) -> None:
    """The terminal shows two places of a mark, and says how many more there are."""
    draw = np.random.default_rng(seed)
    sample = Sample("a", "x" * 20, evidence=(Evidence("y" * 40, id="p"),))
    number = int(draw.integers(1, 6))
    span = Span(0, 4, "entity", 0.5, evidence=tuple(Pointer("p", at, at + 3) for at in range(number)))
    console = Console(file=io.StringIO(), width=200, no_color=True)
    render_terminal(sample, Prediction("a", Status.SCORED, "d@1", 0.345, (span,)), console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    match = re.search(r"and (\d+) more places?", text)
    assert (int(match[1]) if match else 0) == max(number - 2, 0)
    held("notes", match[0] if match else "")
    match = re.search(r"1 unsupported span · (\d+)% likely that any part is unsupported", text)
    assert match is not None
    assert int(match[1]) == 34
    held("notes", match[0])

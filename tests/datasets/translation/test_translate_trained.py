"""A trained translation model: spans of the command's output, kills, failures and losses."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import msgspec
import pytest

pytest.importorskip("transformers", reason="needs the extra local")
pytest.importorskip("sentencepiece", reason="needs the extra reader")

from trained_translator import HELD_OUT, sentences, write_trained

from json_lines import write_lines
from settings_file import main, with_settings
from veriglot.datasets.generation import Account, read_account
from veriglot.datasets.translation.job import TranslationLanguage, TranslationSettings, translate
from veriglot.datasets.translation.translators import FunctionTranslator, Translation, TranslationRequest
from veriglot.records import Annotation, Kind, Sample, Span

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses.:UserWarning"),
]


MAIN = "import sys; from veriglot.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_trained(tmp_path_factory.mktemp("trained"))


def write_rows(path: Path, *, times: int = 1) -> Path:
    """Sentences that were not in the training, each with one of its parts as a span; the id has the part."""
    rows = []
    for number, (english, _, parts) in enumerate(sentences()[::HELD_OUT] * times):
        which = number % 4
        start = english.index(parts[which][0])
        span = {"start": start, "end": start + len(parts[which][0]), "type": ("entity", "relation")[which % 2]}
        gold = {"annotator": "gold", "kind": "human", "taxonomy": "fava", "spans": [span]}
        rows.append({"id": f"{number}-{which}", "language": "en", "response": english, "annotations": [gold]})
    return write_lines(path, rows)


@pytest.mark.parametrize("strategy", ["tags", "spans", "tags,spans,align"])
def test_spans_come_back_through_a_real_network(strategy: str, trained: Path, tmp_path: Path) -> None:
    data, out = write_rows(tmp_path / "data.jsonl"), tmp_path / "out.jsonl"
    options = ["-l", "de", "--translator", f"hf:{trained}", "--translator-options", "beams=1", "--strategy", strategy]
    assert main(["dataset", "translate", str(data), *options, "-o", str(out), "-q"]) == 0
    made = [msgspec.json.decode(line, type=Sample) for line in out.read_bytes().splitlines()]
    known = sentences()[::HELD_OUT]
    assert len(made) >= 0.9 * len(known)
    right = 0
    for sample in made:
        number, which = map(int, sample.id.partition("/")[0].split("-"))
        _, german, parts = known[number]
        (span,) = sample.annotations[0].spans or ()
        right += sample.response == german and german[span.start : span.end] == parts[which][1]
    assert right >= 0.95 * len(made)
    account = read_account(out, Account[TranslationLanguage]).total
    assert (account.rows, account.translated) == (len(known), len(made))


def test_a_run_that_was_killed_goes_on_and_ends_as_if_it_had_not_been(trained: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "data.jsonl", times=1)
    rows = data.read_bytes().splitlines()
    many = [line.replace(b'{"id":"', b'{"id":"%d.' % n, 1) for n in range(2) for line in rows]
    data.write_bytes(b"\n".join(many) + b"\n")
    options = ["dataset", "translate", str(data), "-l", "de", "--translator", f"hf:{trained}",
               "--translator-options", "beams=1",
               "--translator-options", "batch=1", "--strategy", "tags", "-q"]  # fmt: skip
    whole, parted = tmp_path / "whole.jsonl", tmp_path / "parted.jsonl"
    running = subprocess.Popen(
        [sys.executable, "-c", MAIN, *with_settings(options), "-o", str(parted)], stderr=subprocess.PIPE
    )
    kept = tmp_path / "parted.jsonl.rows.jsonl"
    until = time.monotonic() + 120
    while not (kept.exists() and kept.stat().st_size > 0) and running.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    _, said = running.communicate()
    assert running.returncode == -signal.SIGKILL, said.decode()
    assert not parted.exists()
    assert 0 < kept.read_bytes().count(b"\n") < len(many)
    for path in (parted, whole):
        assert main([*options, "-o", str(path)]) == 0
    assert parted.read_bytes() == whole.read_bytes()
    assert read_account(parted, Account[TranslationLanguage]) == read_account(whole, Account[TranslationLanguage])


SAMPLES = [Sample(name, "Anna opened the bridge in 1879.", language="en", annotations=(
    Annotation("gold", Kind.HUMAN, "fava", spans=(Span(0, 4, "entity"), Span(26, 30, "invented"))),))
    for name in "abc"]  # fmt: skip


class Broken:
    """A translator whose second call of each run fails, until it is repaired."""

    signature = "broken@1"
    by_sentence = False
    varies = False
    mended = False

    def __init__(self) -> None:
        self.calls = 0

    def translate(self, wanted: Sequence[TranslationRequest]) -> list[Translation]:
        self.calls += 1
        if self.calls == 2 and not self.mended:
            return [Translation("", "no_reply", "the line is dead") for _ in wanted]
        return [Translation("Im Jahr <2>1879</2> eröffnete <1>Anna</1> die Brücke.") for _ in wanted]


def test_failed_rows_are_taken_up_again_when_asked(tmp_path: Path) -> None:
    out, translator = tmp_path / "out.jsonl", Broken()
    settings = TranslationSettings(strategies=("tags",))
    first = translate(out, SAMPLES, ["de"], translator, settings=settings, block=1)
    assert (first.failed, read_account(out, Account[TranslationLanguage]).failed) == (1, 1)
    assert [line.split(b'"')[3] for line in out.read_bytes().splitlines()] == [b"a/de", b"c/de"]
    translator.mended = True
    again = translate(out, SAMPLES, ["de"], translator, settings=settings, block=1)
    assert again.failed == 1  # nobody asked for it
    last = translate(out, SAMPLES, ["de"], translator, settings=settings, block=1, retry=True)
    assert (last.failed, read_account(out, Account[TranslationLanguage]).total.translated) == (0, 3)


@pytest.mark.parametrize("dropped", ["aside", "keep"])
def test_a_row_that_lost_one_of_two_spans_is_kept_only_when_asked_and_says_so(dropped: str, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    said = {"Anna": "Anna", "1879": "achtzehnhundert"}
    translator = FunctionTranslator(lambda text, *_: said.get(text, "Anna eröffnete einst die Brücke."), "lossy@1")
    settings = TranslationSettings(strategies=("spans",), dropped=dropped)
    translate(out, SAMPLES[:1], ["de"], translator, settings=settings)
    account = read_account(out, Account[TranslationLanguage]).total
    assert (account.types["entity"].dropped, account.types["invented"].dropped) == (0, 1)
    if dropped == "aside":
        assert (account.translated, account.row_reasons) == (0, {"spans_dropped": 1})
        return
    (made,) = [msgspec.json.decode(line, type=Sample) for line in out.read_bytes().splitlines()]
    assert (account.translated, account.partial) == (1, 1)
    assert made.annotations[0].flags == ("spans_dropped",)
    assert [(span.start, span.end, span.type) for span in made.annotations[0].spans or ()] == [(0, 4, "entity")]

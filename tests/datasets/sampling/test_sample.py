"""`mt_sample` and `veriglot dataset sample`: from files to a sample, with every count."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from similarity import jaccard

from json_lines import read_lines
from settings_file import main
from veriglot.datasets.sampling.filters import Cleaning
from veriglot.datasets.sampling.lines import Columns
from veriglot.datasets.sampling.sample import MtSample, Sampling, mt_sample
from veriglot.errors import InputError, UsageError
from veriglot.formats.reader import read
from veriglot.records import Direction, Score, Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from veriglot.records import Sample

pytestmark = pytest.mark.slow

FATES = [
    ("Der Müller geht am Morgen zum alten Markt in der Stadt.", "kept"),
    ("Der Müller geht am  Morgen zum alten Markt in der Stadt.", "repeated"),
    ("Der Müller geht am Morgen zum alten Markt in der Stadt!", "near_duplicate"),
    ("", "no_source"),
    ("Ja, gut.", "too_short"),
    ("Das ist ein sehr langer Satz ohne Ende und ohne Sinn. " * 30, "too_long"),
    ("12345 67890 12345 67890", "language_untold"),
    ("The miller walks to the old market in the town every morning.", "other_language"),
    ("Am Abend kommt er müde nach Hause und liest noch ein Buch.", "kept"),
    ("Die Kinder spielen im Garten, bis es dunkel wird.", "no_target"),
]


WORDS = """
müller wald fluss markt turm garten bäcker lehrer hund winter sommer bruder nachbar kaiser bauer brücke schule kirche
straße wasser feuer morgen abend brief koffer fenster schlüssel teller zeitung wolke
""".split()  # noqa: SIM905


class Lengths:
    """Counts characters of translations; rejects those with a question mark, and crashes at `lethal`."""

    name = "lengths@1"
    direction = Direction.HIGHER_IS_WORSE
    signature = "scorer:lengths@1"

    def __init__(self, lethal: str = "") -> None:
        self.lethal = lethal
        self.seen = 0

    def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [self._one(sample) for sample in samples]

    def _one(self, sample: Sample) -> Score:
        assert sample.evidence[0].language == "de"
        assert sample.language == "en"
        if self.lethal and self.lethal in sample.response:
            raise MemoryError("too much")
        self.seen += 1
        if "?" in sample.response:
            return Score(sample.id, Status.FAILED, self.name, reason="a question")
        return Score(sample.id, Status.SCORED, self.name, value=float(len(sample.response)))


def write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def many(count: int) -> list[dict[str, Any]]:
    """Different sources; translations with some near-duplicates, and scores."""
    rows = []
    for number in range(count):
        words = random.Random(number).sample(WORDS, k=12)
        source = f"Der {words[0]} und die {' '.join(words[1:9])} sind nicht {' '.join(words[9:])}."
        target = f"It was {'the same' if number % 9 == 0 else words[3] + words[7]} thing {'x' * (number % 50)} again"
        target += "" if number % 9 == 0 else f", {words[4]} {words[8]} {words[1]} {words[11]}"
        rows.append({"id": f"r{number}", "source": source, "target": target, "qe": number * 7919 % 1000 / 10})
    return rows


def order(path: Path, scorer: Lengths | None = None, **sampling: Any) -> MtSample:
    made = scorer or Lengths()
    return MtSample(
        paths=(str(path),),
        target="en",
        cleaning=Cleaning("de"),
        sampling=Sampling(**{"worst": 30, "drawn": 20, "percentile": 10, "most": 80, **sampling}),
        columns=Columns(given=("qe",)),
        scorers=(("lengths", lambda: made),),
        given=(Direction.HIGHER_IS_BETTER,),
    )


def outputs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def test_every_line_has_the_fate_it_deserves(tmp_path: Path) -> None:
    rows = [
        {"source": text, "target": None if fate == "no_target" else f"Target {number}", "qe": 1}
        for number, (text, fate) in enumerate(FATES)
    ]
    path = write(tmp_path / "data.jsonl", rows)
    account = mt_sample(order(path), tmp_path / "out", rejected=tmp_path / "fallen.jsonl")
    expected = {fate: sum(own == fate for _, own in FATES) for _, fate in FATES}
    assert {fate: count for fate, count in account.cleaned.drop_reasons.items() if count} == expected
    assert account.cleaned.other_languages == {"en": 1}
    fallen = read_lines(tmp_path / "fallen.jsonl")
    assert [(row["source"], row["reason"]) for row in fallen] == [pair for pair in FATES if pair[1] != "kept"]
    kept = [json.loads(line) for part in HAT for line in (tmp_path / "out" / f"{part}.jsonl").read_bytes().splitlines()]
    assert {row["evidence"][0]["text"] for row in kept} == {text for text, fate in FATES if fate == "kept"}


HAT = ("train", "dev", "test")


def test_the_sample_says_where_each_line_comes_from_and_why(tmp_path: Path) -> None:
    path = write(tmp_path / "data.jsonl", many(600))
    account = mt_sample(order(path), tmp_path / "out")
    assert account.sample is not None
    assert account.sample.sample == 80
    assert account.sample.union == account.sample.worst + account.sample.drawn >= 80
    assert [part.lines for part in account.sample.parts.values()] == [40, 16, 24]
    native = [sample for part in HAT for sample in read(tmp_path / "out" / f"{part}.jsonl")]
    as_hat = [sample for part in HAT for sample in read(tmp_path / "out" / f"{part}.hat.json", format="hat")]
    # A regression: from a folder each line was read twice, and its report as a translation.
    assert sorted(sample.id for sample in read(tmp_path / "out")) == sorted(sample.id for sample in as_hat)
    (tmp_path / "out" / "train.jsonl").unlink()  # what is only in the HAT file is not a copy
    assert sorted(sample.id for sample in read(tmp_path / "out")) == sorted(sample.id for sample in as_hat)
    assert as_hat == native
    assert not any(sample.annotations for sample in as_hat)  # nobody has annotated them yet
    by_id = {row["id"]: (number, row) for number, row in enumerate(many(600), start=1)}
    for sample in native:
        number, row = by_id[sample.id]
        told = sample.meta["sampling"]
        assert (sample.evidence[0].text, sample.response) == (row["source"], row["target"])
        assert told["scores"] == {"qe": row["qe"], "lengths": float(len(row["target"]))}
        assert (told["file"], told["line"]) == ("data.jsonl", number)
        assert set(told["chosen_by"]) <= {"qe", "lengths"}
        assert told["chosen_by"]


def test_no_near_duplicates_stand_in_two_parts(tmp_path: Path) -> None:
    path = write(tmp_path / "data.jsonl", many(600))
    account = mt_sample(order(path, worst=150, most=400), tmp_path / "out")
    assert account.sample is not None
    assert account.sample.largest_group > 1
    parts = {part: list(read(tmp_path / "out" / f"{part}.jsonl")) for part in HAT}
    for one, other in (("train", "dev"), ("train", "test"), ("dev", "test")):
        pairs = [(a, b) for a in parts[one] for b in parts[other]]
        assert jaccard([a.response for a, _ in pairs], [b.response for _, b in pairs]).max() < 0.8
        assert jaccard([a.evidence[0].text for a, _ in pairs], [b.evidence[0].text for _, b in pairs]).max() < 0.8


def test_a_run_that_broke_off_goes_on_and_comes_out_the_same(tmp_path: Path) -> None:
    path = write(tmp_path / "data.jsonl", many(600))
    mt_sample(order(path), tmp_path / "whole")
    deadly = Lengths(lethal=many(600)[500]["target"])
    with pytest.raises(MemoryError):
        mt_sample(order(path, deadly), tmp_path / "broken")
    assert not (tmp_path / "broken" / "report.json").exists()
    mt_sample(order(path), tmp_path / "broken")
    assert outputs(tmp_path / "broken") == outputs(tmp_path / "whole")
    idle = Lengths()
    mt_sample(order(path, idle), tmp_path / "broken")
    assert idle.seen == 0  # finished scores are not computed again
    assert outputs(tmp_path / "broken") == outputs(tmp_path / "whole")


def test_other_ways_to_choose_need_no_new_scores(tmp_path: Path) -> None:
    path = write(tmp_path / "data.jsonl", many(300))
    mt_sample(order(path), tmp_path / "out")
    idle = Lengths()
    before = outputs(tmp_path / "out")
    other = order(path, idle, most=10, seed=4, parts={"train": 1, "held": 1})
    with pytest.raises(UsageError, match="most was 80 and is now 10"):
        mt_sample(other, tmp_path / "out")
    assert outputs(tmp_path / "out") == before
    account = mt_sample(other, tmp_path / "out", restart=True)
    assert set(outputs(tmp_path / "out")) == {
        "report.json", "train.jsonl", "train.hat.json", "held.jsonl", "held.hat.json"
    }  # fmt: skip
    assert account.sample is not None
    assert (account.sample.sample, idle.seen) == (10, 0)


def test_what_was_made_in_another_way_is_refused_or_made_again(tmp_path: Path) -> None:
    import msgspec

    path = write(tmp_path / "data.jsonl", many(300))
    mt_sample(order(path), tmp_path / "out")
    longer = msgspec.structs.replace(order(path), cleaning=Cleaning("de", min_length=95))
    with pytest.raises(UsageError, match="min_length was 15 and is now 95"):
        mt_sample(longer, tmp_path / "out")
    account = mt_sample(longer, tmp_path / "out", restart=True)
    assert account.cleaned.drop_reasons["too_short"] > 0
    write(path, many(301))
    with pytest.raises(UsageError, match="inputs was"):
        mt_sample(longer, tmp_path / "out")


def test_lines_that_a_scorer_refuses_are_counted_with_the_reason(tmp_path: Path) -> None:
    rows = many(200)
    rows[7]["target"] += "?"
    rows[9]["qe"] = None
    account = mt_sample(order(write(tmp_path / "data.jsonl", rows)), tmp_path / "out")
    assert account.sample is not None
    given, lengths = account.sample.scorers
    assert (given.unscored, given.reasons) == (1, {"the data hold no number": 1})
    assert (lengths.unscored, lengths.reasons) == (1, {"failed: a question": 1})


def test_translations_that_nothing_scores_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "data.jsonl", many(5))
    with pytest.raises(UsageError, match="nothing to score them by"):
        mt_sample(MtSample((str(path),), "en", Cleaning("de")), tmp_path / "out")
    with pytest.raises(UsageError, match="is not named"):
        mt_sample(MtSample((str(path),), None, Cleaning("de"), scorers=order(path).scorers), tmp_path / "out2")
    with pytest.raises(InputError, match="no line"):
        mt_sample(order(write(tmp_path / "empty.jsonl", [])), tmp_path / "out3")


def test_the_command_cleans_sources_and_samples_their_translations(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = many(400)
    crawl = tmp_path / "crawl.txt"
    crawl.write_text("".join(row["source"] + "\n\n" for row in rows), "utf-8")
    words = ["dataset", "sample", str(crawl), "-s", "German", "-o", str(tmp_path / "clean"), "--processes", "1"]
    assert main(words) == 0
    assert "add a target to each" in capfd.readouterr().err
    clean = read_lines(tmp_path / "clean" / "clean.jsonl")
    assert clean[1] == {"id": "crawl-3", "source": rows[1]["source"]}
    translated = [
        {**line, "target": f"{line['source'][::-1]} {'so and so on ' * (i % 9)}"} for i, line in enumerate(clean)
    ]
    path = write(tmp_path / "translated.jsonl", translated)
    words = [
        "dataset", "sample", str(path), "-s", "de", "-t", "en", "-o", str(tmp_path / "out"), "--processes", "1",
        "--worst", "20",
        "--drawn", "5", "--percentile", "20", "--scorer", "top-ngram graded=true", "--scorer", "length-ratio",
        "--parts", "train=1,test=1", "--json", "--quiet",
    ]  # fmt: skip
    assert main(words) == 0
    account = json.loads(capfd.readouterr().out)
    assert account == json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    assert account["cleaned"]["fates"]["kept"] == len(clean)
    assert [one["scorer"] for one in account["sample"]["scorers"]] == ["top-ngram graded=true", "length-ratio"]
    parts = account["sample"]["parts"]
    assert parts["train"]["lines"] + parts["test"]["lines"] == account["sample"]["sample"] >= 40
    assert abs(parts["train"]["lines"] - parts["test"]["lines"]) <= 1


def test_processes_make_no_difference(tmp_path: Path) -> None:
    path = write(tmp_path / "data.jsonl", many(300))
    words = ["dataset", "sample", str(path), "-s", "de", "-t", "en", "--scorer", "top-ngram graded=true", "-q"]
    assert main([*words, "-o", str(tmp_path / "one"), "--processes", "1"]) == 0
    assert main([*words, "-o", str(tmp_path / "two"), "--processes", "2", "--scorer-processes", "2"]) == 0
    assert outputs(tmp_path / "one") == outputs(tmp_path / "two")


def test_scorers_on_ray_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    path = write(tmp_path / "data.jsonl", many(300))
    words = ["dataset", "sample", str(path), "-s", "de", "-t", "en", "--scorer", "top-ngram graded=true", "-q"]
    for engine in ("local", "ray"):
        assert main([*words, "-o", str(tmp_path / engine), "--processes", "2", "--engine", engine]) == 0
    assert outputs(tmp_path / "local") == outputs(tmp_path / "ray")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--scores", "qe"], "qe:higher-is-better"),
        (["--scores", "qe:up"], "higher-is-worse"),
        (["--parts", "train"], "train=5000"),
        (["--scorer", "top-gram"], "top-ngram"),
        (["--scorer", "top-ngram graded"], "NAME=VALUE"),
        (["--scorer", "length-ratio", "--scorer", "length-ratio"], "the same name"),
        (["--engine", "ray", "--scorer-processes", "2"], "On Ray, --processes workers score"),
        (["--scores", "nothing:higher-is-better"], "Name the column of scores as the data do. All"),
    ],
)
def test_wrong_words_are_refused(
    words: list[str], told: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "data.jsonl", many(5))
    assert main(["dataset", "sample", str(path), "-s", "de", "-t", "en", "-o", str(tmp_path / "out"), *words]) != 0
    assert told in capfd.readouterr().err

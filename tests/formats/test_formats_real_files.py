"""The readers on real files: every tag accounted for, and each trap of the data."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from veriglot.errors import InputError
from veriglot.formats.base import Report, TagReport
from veriglot.formats.reader import guess, read, read_rows, readable_files
from veriglot.formats.tags import parse_tags
from veriglot.records import Kind, Sample
from veriglot.storage.checkpoint import FailedRow

GOLD = {"arabic": "ar", "chinese": "zh-Hans", "german": "de", "russian": "ru", "turkish": "tr"}
ROWS = {"arabic": 124, "chinese": 163, "german": 162, "russian": 119, "turkish": 108}


def read_all(path: Path) -> tuple[list[Sample], Report]:
    report = Report()
    rows = list(read_rows(path, report=report))
    assert not [row.message for row in rows if isinstance(row, FailedRow)]
    return [row for row in rows if isinstance(row, Sample)], report


def count_tags(text: str) -> int:
    """What looks like a tag, counted apart from the parser: whole pieces, beginnings, and a cut off end."""
    whole = re.findall(r"<[^<>\n]{0,40}>", text)
    rest = re.sub(r"<[^<>\n]{0,40}>", "", text)
    return len(whole) + len(re.findall(r"<[/\\]?(?=[A-Za-z])|<[/\\]?$", rest))


@pytest.mark.parametrize("where", ["gold_dev", pytest.param("silver", marks=pytest.mark.slow)])
def test_every_tag_is_accounted_for(shared_data: Path, where: str) -> None:
    _, report = read_all(shared_data / "mfava" / where)
    assert len(report.files) == {"gold_dev": 5, "silver": 24}[where]
    for path, file in report.files.items():
        data = json.loads(Path(path).read_text("utf-8"))
        for layer in ("gold", "silver"):
            key = f"{layer}_annotations"
            expected = sum(count_tags(row[key]) for row in data if key in row)
            tags = file.tags.get(layer, TagReport())
            assert tags.seen == tags.parsed + tags.repaired.total() + tags.reported.total()
            assert tags.seen == expected, (path, layer)


def test_gold_files(shared_data: Path) -> None:
    samples, report = read_all(shared_data / "mfava" / "gold_dev")
    assert Counter(s.language for s in samples) == {GOLD[name]: count for name, count in ROWS.items()}
    for sample in samples:
        assert [(a.annotator, a.kind, a.taxonomy) for a in sample.annotations] == [
            ("gold", Kind.HUMAN, "fava"),
            ("silver", Kind.MODEL, "fava"),
        ]
        for annotation in sample.annotations:
            for span in annotation.spans or ():
                text = sample.response[span.start : span.end]
                assert text.strip()
        assert not re.search(r"</?(entity|relation|contradict|invented|subjective|unverif)", sample.response)
    for file in report.files.values():  # the account's spans are the samples'
        mine = Counter(
            span.type
            for s in samples
            if s.id.startswith(Path(file.path).stem + "-")
            for span in s.annotations[0].spans or ()
        )
        assert mine == +file.tags["gold"].spans


def test_gold_spans_hold_the_text_that_was_tagged(shared_data: Path) -> None:
    """But for white space, and for the few rows in which the annotation tool changed the text itself."""
    same = other = 0
    for path in sorted((shared_data / "mfava" / "gold_dev").rglob("*.json")):
        rows = json.loads(path.read_text("utf-8"))
        for row, sample in zip(rows, read(path), strict=True):
            tagged = parse_tags(row["gold_annotations"], ("entity", "relation", "contradictory", "invented",
                                                                  "subjective", "unverifiable"))  # fmt: skip
            wanted = Counter("".join(tagged.text[s.start : s.end].split()) for s in tagged.spans)
            got = Counter("".join(sample.response[s.start : s.end].split()) for s in sample.annotations[0].spans or ())
            same += (wanted & got).total()
            other += (wanted - got).total()
    assert same + other == 2706
    assert other <= 25


def test_german_openers_used_as_closers(shared_data: Path) -> None:
    _, report = read_all(shared_data / "mfava" / "gold_dev" / "german")
    (file,) = report.files.values()
    assert file.tags["gold"].repaired["opener_as_closer"] == 60
    assert file.tags["silver"].repaired["opener_as_closer"] == 63
    assert file.tags["gold"].repaired["misspelt"] >= 10
    assert file.tags["gold"].repaired["capitalised"] >= 10


def test_strict_refuses_malformed_rows(shared_data: Path) -> None:
    path = shared_data / "mfava" / "gold_dev" / "german" / "silver_gold_german.json"
    rows = list(read_rows(path, strict=True))
    bad = [row for row in rows if isinstance(row, FailedRow)]
    assert 10 < len(bad) < len(rows)
    assert all(row.field for row in bad)
    with pytest.raises(InputError):
        list(read(path, strict=True))


def test_repeats_of_a_text_can_be_grouped(shared_data: Path) -> None:
    samples, _ = read_all(shared_data / "mfava" / "gold_dev" / "german")
    groups = defaultdict(list)
    for sample in samples:
        groups[sample.meta["group"]].append(sample)
    assert len(groups) < len(samples) == len({s.id for s in samples})
    for group in groups.values():
        assert len({"".join(s.response.split()) for s in group}) == 1


def test_garbled_references_are_kept_and_flagged(shared_data: Path) -> None:
    for name in ("latina", "malay", "persian"):
        samples, _ = read_all(shared_data / "mfava" / "silver" / f"silver_{name}.json")
        assert all(s.meta["reference_garbled"] for s in samples)
        assert all(s.evidence for s in samples)
    for name, low, high in (("cantonese", 0.3, 0.5), ("polish", 0, 0.02), ("french", 0, 0.02)):
        samples, _ = read_all(shared_data / "mfava" / "silver" / f"silver_{name}.json")
        assert low <= sum("reference_garbled" in s.meta for s in samples) / len(samples) <= high
    samples, _ = read_all(shared_data / "mfava" / "gold_dev" / "chinese")
    assert 0.25 <= sum("reference_garbled" in s.meta for s in samples) / len(samples) <= 0.4


def test_serbian_text_is_latin_and_its_references_cyrillic(shared_data: Path) -> None:
    samples, _ = read_all(shared_data / "mfava" / "silver" / "silver_serbian.json")
    assert {s.language for s in samples} == {"sr-Latn"}
    assert Counter(s.evidence[0].language for s in samples).most_common(1)[0][0] == "sr-Cyrl"


def test_glued_spans_are_pointed_out(shared_data: Path) -> None:
    def share(path: Path) -> float:
        samples, _ = read_all(path)
        spans = sum(s.type in {"entity", "relation"} for x in samples for s in x.annotations[-1].spans or ())
        return sum(len(x.meta.get("glued", ())) for x in samples) / spans

    for name in ("french", "czech", "indonesian"):
        assert share(shared_data / "mfava" / "silver" / f"silver_{name}.json") > 0.2
    for name in GOLD:
        assert share(shared_data / "mfava" / "gold_dev" / name) < 0.08


def test_nearly_no_row_of_gold_is_clean(shared_data: Path) -> None:
    samples, _ = read_all(shared_data / "mfava" / "gold_dev")
    assert sum(not s.annotations[0].spans for s in samples) <= 2


def test_queries_are_evidence_and_questions(shared_data: Path) -> None:
    samples, _ = read_all(shared_data / "mfava" / "queries" / "wiki_references_and_queries_zh-yue.csv")
    assert len(samples) == 109
    assert all(s.language == "yue" and s.question and s.evidence and s.response == "" for s in samples)
    samples, _ = read_all(shared_data / "mfava" / "queries" / "wiki_references_and_queries_zh.csv")
    assert len(samples) == 707


def test_mu_shroom(shared_data: Path) -> None:
    samples, report = read_all(shared_data / "mu_shroom_val")
    counts = Counter(s.language for s in samples)
    assert counts.pop("sv") == 49
    assert counts == dict.fromkeys(("ar", "de", "en", "es", "fi", "fr", "hi", "it", "zh-Hans"), 50)
    with_page = {s.language for s in samples if s.evidence}
    assert with_page == {"de", "es", "fi", "fr", "hi", "it", "sv"}
    assert sum(file.notes["empty_spans"] for file in report.files.values()) == 95
    assert sum(file.notes["spans_cut_to_the_text"] for file in report.files.values()) == 1
    assert sum("refs" in path for path in report.unread) == 7
    first = next(s for s in samples if s.id == "val-de-1")
    gold = first.annotations[0]
    assert gold.annotator == "gold"
    assert [first.response[s.start : s.end] for s in gold.spans or ()] == ["Álava"]
    assert [(u.start, u.end, u.probability) for u in gold.units or ()] == [(29, 34, 1.0)]
    assert len(first.annotations) == 4
    assert first.generator is not None
    for sample in samples:  # where units overlap a hard label, most people marked it
        units = sample.annotations[0].units or ()
        for span in sample.annotations[0].spans or ():
            inside = [u for u in units if u.start < span.end and span.start < u.end]
            assert all((u.probability or 0) >= 0.5 for u in inside)


def test_wice(shared_data: Path) -> None:
    samples, _ = read_all(shared_data / "wice")
    assert len(samples) == 349 + 124 + 105 + 374
    lines = (shared_data / "wice/non_supported_tokens/dev.jsonl").read_bytes().splitlines()
    tokens = [json.loads(line) for line in lines]
    by_id = {s.id: s for s in samples}
    for row in tokens:
        sample = by_id[row["meta"]["id"]]
        marked = {i for s in sample.annotations[0].spans or () for i in range(s.start, s.end)}
        inside = "".join(sample.response[i] for i in sorted(marked)).split()
        wanted = [t for t, m in zip(row["claim_tokens"], row["non_supported_spans"], strict=True) if m]
        assert "".join(inside) == "".join("".join(wanted).split())
        passage = sample.evidence[0].text
        for sets, indices in zip(sample.meta["supporting"], row["supporting_sentences"], strict=True):
            assert [passage[a:b] for a, b in sets] == [row["evidence"][i] for i in indices]
    claims = [s for s in samples if s.annotations[0].ratings["label"] == "supported"]
    assert claims
    assert all(s.annotations[0].spans == () for s in claims)


def test_xquad_answers_are_clean(shared_data: Path) -> None:
    samples, report = read_all(shared_data / "xquad")
    assert len(samples) == 12 * 1190
    assert len({s.language for s in samples}) == 12
    for sample in samples:
        assert sample.annotations[0].spans == ()
        start, end = sample.meta["answer_in_evidence"]
        assert sample.evidence[0].text[start:end] == sample.response
    assert not any(file.notes for file in report.files.values())


def test_xsum(shared_data: Path) -> None:
    samples, _ = read_all(shared_data / "xsum" / "hallucination_annotations_xsum_summaries.csv")
    assert len(samples) == 2500
    assert all(s.evidence for s in samples)
    types = Counter(span.type for s in samples for a in s.annotations for span in a.spans or ())
    assert types.keys() == {"contradicted", "unverified"}
    assert 10_000 < types.total() <= 7860 + 2537
    assert {len(s.annotations) for s in samples} <= {2, 3}
    assert any(a.spans == () for s in samples for a in s.annotations)


FOLDERS = {
    "mfava/gold_dev": "mfava",
    "mfava/silver": "mfava",
    "mfava/queries": "mfava-queries",
    "mu_shroom_val": "mu-shroom",
    "wice": "wice",
    "xsum": "xsum",
    "xquad": "squad",
}


@pytest.mark.parametrize("folder", FOLDERS)
def test_formats_of_folders_are_known_from_their_content(shared_data: Path, folder: str, tmp_path: Path) -> None:
    read_as = [guessed for _, guessed in readable_files(shared_data / folder, {})]
    assert FOLDERS[folder] in {guessed.format for guessed in read_as}
    assert all(guessed.why for guessed in read_as)
    file = next(p for p in sorted((shared_data / folder).rglob("*.*")) if p.suffix in {".json", ".jsonl", ".csv"}
                and "refs" not in p.name and "factuality" not in p.name)  # fmt: skip
    nameless = tmp_path / "nameless"
    nameless.symlink_to(file)
    assert guess(nameless).format == FOLDERS[folder]
    samples = read(nameless)
    if FOLDERS[folder] in {"mfava", "squad", "mfava-queries"}:
        assert next(samples).language is None  # no name to know it from, so it is not made up
        assert next(read(nameless, language="fi")).language == "fi"

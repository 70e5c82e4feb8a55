"""Data sets of a bench: how dev and test are parted, what is limited, what items they make."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from small_bench import samples

from json_lines import write_lines
from veriglot.bench.config import Config, DataEntry
from veriglot.bench.data import DataSet
from veriglot.bench.items import ItemTable
from veriglot.errors import InputError
from veriglot.records import Evidence, Sample, encode

if TYPE_CHECKING:
    from pathlib import Path


def read(folder: Path, rows: list[Sample], **options: object) -> DataSet:
    write_lines(folder / "rows.jsonl", rows)
    entry = DataEntry("rows", "rows.jsonl", **options)  # type: ignore[arg-type]
    return DataSet.read(entry, Config(path=folder / "bench.toml", data=(entry,)))


def test_samples_of_one_text_stay_on_one_side(tmp_path: Path) -> None:
    shared = Evidence("An otter, a heron and a badger share this page.")
    rows = [
        msgspec.structs.replace(row, evidence=(shared,) if number < 9 else row.evidence)
        for number, row in enumerate(samples())
    ]
    found = read(tmp_path, rows, dev_share=0.5)
    texts = [{found.texts[row.id] for row in part} for part in (found.test, found.dev)]
    assert not texts[0] & texts[1]
    assert len({found.texts[row.id] for row in rows[:9]}) == 1
    assert len(found.test) + len(found.dev) == len(rows)


def test_texts_hang_together_over_responses_groups_and_evidence(tmp_path: Path) -> None:
    one, two, three, four = samples(("en",))[:4]
    two = msgspec.structs.replace(two, evidence=one.evidence, meta={"group": "g"})
    three = msgspec.structs.replace(three, meta={"group": "g"})
    found = read(tmp_path, [one, two, three, four])
    assert found.texts[one.id] == found.texts[two.id] == found.texts[three.id] != found.texts[four.id]


def test_a_row_that_is_added_moves_no_other(tmp_path: Path) -> None:
    rows = samples()
    few, all_ = read(tmp_path, rows[:25]), read(tmp_path, rows)
    assert {row.id for row in few.dev} == {row.id for row in all_.dev} & {row.id for row in rows[:25]}


def test_a_limit_is_of_each_language_and_keeps_the_order(tmp_path: Path) -> None:
    found = read(tmp_path, samples(), limit=4, dev_limit=2)
    tags = [row.language for row in found.test]
    assert tags.count("en") == tags.count("de") == 4
    assert len(found.dev) == 4
    order = [row.id for row in samples()]
    assert [row.id for row in found.test] == sorted((row.id for row in found.test), key=order.index)


def test_a_dev_file_is_named_and_its_texts_leave_the_test_part(tmp_path: Path) -> None:
    rows = samples(("en",))
    named = [msgspec.structs.replace(row, id=f"dev-{row.id}") for row in rows[:5]]
    write_lines(tmp_path / "dev.jsonl", named)
    found = read(tmp_path, rows, dev="dev.jsonl")
    assert [row.id for row in found.dev] == [row.id for row in named]
    assert [row.id for row in found.test] == [row.id for row in rows[5:]]
    assert "5 test samples left out" in found.split


def test_other_languages_and_unlabelled_samples_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = samples()
    rows[0] = msgspec.structs.replace(rows[0], annotations=())
    found = read(tmp_path, rows, languages=("English",))
    assert {row.language for row in found.samples} == {"en"}
    assert found.unlabelled == 1


def test_data_that_is_all_for_tuning_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none is left for testing") as caught:
        read(tmp_path, samples(("en",))[:2], dev_share=0.99999)
    assert "Give more texts" in str(caught.value.remedy)


def test_of_labels_of_one_kind_nothing_is_taken_for_tuning(tmp_path: Path) -> None:
    marked, clean = samples()[1::2], samples()[::2]
    for rows, levels, kind in ((marked, ("response",), "all"), (clean, ("word", "response"), "nothing")):
        found = read(tmp_path, rows, levels=levels)
        assert (len(found.test), len(found.dev)) == (20, 0)
        assert found.split == f"none for tuning: the labels call {kind} unsupported"
    assert read(tmp_path, marked, levels=("word", "response")).dev  # words are of both kinds
    assert not read(tmp_path, samples(), dev_share=0.0).dev


def test_rows_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    rows = b"".join(encode(row) + b"\n" for row in samples())
    (tmp_path / "rows.jsonl").write_bytes(rows + b'{"id": 5, "response": {}}\n')
    entry = DataEntry("rows", "rows.jsonl")
    assert DataSet.read(entry, Config(path=tmp_path / "bench.toml", data=(entry,))).bad_rows == 1


@pytest.mark.parametrize("level", ["word", "sentence", "response"])
def test_items_are_in_order_and_of_their_samples(level: str) -> None:
    rows = samples()
    table = ItemTable.of(rows, {row.id: row.id for row in rows}, level)
    assert np.all(np.diff(table.owner) >= 0)
    assert set(table.owner.tolist()) == set(range(len(rows)))
    for index, row in enumerate(rows):
        part = table.of_sample(index)
        assert table.nonfactual[part].any() == bool(row.annotations[0].spans)
        assert set(table.languages[part].tolist()) == {row.language}
    assert (table.support is None) == (level == "word")


def test_translations_belong_to_both_languages(tmp_path: Path) -> None:
    rows = [
        msgspec.structs.replace(row, evidence=(Evidence(row.evidence[0].text, language="zho"),))
        for row in samples(("en",))
    ]
    assert read(tmp_path, rows).pairs() == {"en": ("en", "zh-Hans")}


def _flagged(rows: list[Sample], **flags: tuple[str, ...]) -> list[Sample]:
    """The rows, those of these numbers (`r0`, `r1` ...) with flags of their annotator."""
    return [
        msgspec.structs.replace(
            row,
            annotations=tuple(
                msgspec.structs.replace(each, flags=flags.get(f"r{number}", ())) for each in row.annotations
            ),
        )
        for number, row in enumerate(rows)
    ]


def test_samples_with_flags_are_dropped_where_asked_and_counted_always(tmp_path: Path) -> None:
    flags = {"r0": ("source_noise", "omission"), "r1": ("spelling_errors",), "r2": ("omission",)}
    rows = _flagged(samples(), **flags)
    every = read(tmp_path, rows)
    assert every.notes() == [
        'rows: 2 samples are flagged for a faulty source, and count; drop_flags = ["source"] drops them.'
    ]
    assert "dropped" not in every.split
    dropped = read(tmp_path, rows, drop_flags=("source",))
    assert {row.id for row in every.samples} - {row.id for row in dropped.samples} == {rows[0].id, rows[1].id}
    assert dropped.notes() == ["rows: 2 samples dropped by their flags: source_noise 1, spelling_errors 1."]
    assert dropped.split.endswith("; 2 samples dropped, flagged source")
    named = read(tmp_path, rows, drop_flags=("omission", "sensitive"))
    assert {row.id for row in every.samples} - {row.id for row in named.samples} == {rows[0].id, rows[2].id}
    assert named.notes()[0] == "rows: 2 samples dropped by their flags: omission 2."
    assert named.notes()[1].startswith("rows: 1 samples are flagged")
    assert read(tmp_path, rows, drop_flags=("none",)).notes()[0].endswith("dropped by their flags: none has none.")


def test_data_in_which_every_sample_is_flagged_says_so(tmp_path: Path) -> None:
    rows = _flagged(samples(), **{f"r{number}": ("source_noise",) for number in range(len(samples()))})
    with pytest.raises(InputError, match=rf"{len(rows)} samples dropped by their flags: source_noise {len(rows)}"):
        read(tmp_path, rows, drop_flags=("source",))


def test_flags_count_of_the_annotator_that_is_named(tmp_path: Path) -> None:
    rows = _flagged(samples(), r0=("source_noise",))
    other = msgspec.structs.replace(rows[1].annotations[0], annotator="other", flags=("source_noise",))
    rows[1] = msgspec.structs.replace(rows[1], annotations=(*rows[1].annotations, other))
    name = rows[0].annotations[0].annotator
    ids = {row.id for row in rows}
    for annotator, gone in ((None, 2), (name, 1)):
        left = read(tmp_path, rows, drop_flags=("source",), annotator=annotator)
        assert len(ids - {row.id for row in left.samples}) == gone

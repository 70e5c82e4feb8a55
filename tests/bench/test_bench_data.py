"""Data sets of a bench: how dev and test are parted, what is limited, what items they make."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from small_bench import samples

from veriglot.bench.config import Config, DataEntry
from veriglot.bench.data import DataSet
from veriglot.bench.items import ItemTable
from veriglot.errors import InputError
from veriglot.records import Evidence, Sample, encode

if TYPE_CHECKING:
    from pathlib import Path


def read(folder: Path, rows: list[Sample], **options: object) -> DataSet:
    (folder / "rows.jsonl").write_bytes(b"".join(encode(row) + b"\n" for row in rows))
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
    (tmp_path / "dev.jsonl").write_bytes(b"".join(encode(row) + b"\n" for row in named))
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
        read(tmp_path, samples(("en",))[:1], dev_share=0.99999)
    assert "Give more texts" in str(caught.value.remedy)


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

"""`veriglot dataset labels`: rows, files, accounts; and spans from labels in several scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

pytest.importorskip("transformers", reason="needs the extra local")
tokenizers = pytest.importorskip("tokenizers", reason="needs the extra hf")

from json_lines import write_lines  # noqa: E402
from veriglot.cli import main  # noqa: E402
from veriglot.datasets.generation import read_account  # noqa: E402
from veriglot.datasets.token_labels import LabelAccount, LabelledRow, spans_of_labels, token_labels  # noqa: E402
from veriglot.records import Span  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

TEXTS = {
    "ar": "افتُتح جسر نورفا في عام ١٨٧٩، وصممه كارل ماير.",
    "th": "สะพานนอร์วาเปิดใช้ในปี ๑๘๗๙ โดยคาร์ล ไมเออร์",
    "zh": "诺尔瓦大桥于1879年通车，由卡尔·迈耶设计。",
    "emoji": "Norva's 👩‍👩‍👧 bridge 🌉🌉 opened in 1879 👍🏽!",
}
TYPES = ("entity", "invented", "relation")


def spans_in(text: str) -> list[Span]:
    """Three spans that do not touch: from a word's beginning to another's end, in code points."""
    third = len(text) // 3
    return [Span(n * third + 1, n * third + third - 2, type_) for n, type_ in enumerate(TYPES)]


def write_tokenizer(path: Path, *, characters: bool = False) -> Path:
    """Byte-level BPE trained here; or one token a character, so that every span has token borders."""
    if characters:
        alphabet = sorted(set("".join(TEXTS.values())))
        inner = tokenizers.Tokenizer(
            tokenizers.models.WordLevel({char: n for n, char in enumerate(["?", *alphabet])}, unk_token="?")
        )
        inner.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex("."), "isolated")
    else:
        inner = tokenizers.Tokenizer(tokenizers.models.BPE())
        inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=400, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False
        )
        inner.train_from_iterator([*TEXTS.values()] * 4, trainer)
    inner.save(str(path))
    return path


def write_rows(path: Path, texts: dict[str, str], **more: Any) -> Path:
    rows = []
    for name, text in texts.items():
        spans = [{"start": s.start, "end": s.end, "type": s.type} for s in spans_in(text)]
        gold = {"annotator": "gold", "kind": "human", "taxonomy": "fava", "spans": spans}
        rows.append({"id": name, "language": "en", "response": text, "annotations": [gold], **more})
    return write_lines(path, rows)


def rows_of(path: Path) -> list[LabelledRow]:
    return [msgspec.json.decode(line, type=LabelledRow) for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize("scheme", ["io", "bio"])
def test_spans_come_back_to_the_code_point_in_every_script(scheme: str, tmp_path: Path) -> None:
    tokenizer = write_tokenizer(tmp_path / "characters.json", characters=True)
    data, out = write_rows(tmp_path / "data.jsonl", TEXTS), tmp_path / "out.jsonl"
    options = ["--tokenizer", str(tokenizer), "--scheme", scheme, "-o", str(out), "-q"]
    assert main(["dataset", "labels", str(data), *options]) == 0
    for row in rows_of(out):
        assert list(spans_of_labels(row.text, row.offsets, row.labels)) == spans_in(row.text)
    account = read_account(out, LabelAccount)
    assert account.spans == {"exact": 3 * len(TEXTS)}
    assert account.label_ids["O"] == 0
    assert sum(account.tokens.values()) == sum(len(row.input_ids) for row in rows_of(out))


@pytest.mark.parametrize("scheme", ["io", "bio"])
def test_with_longer_tokens_spans_come_back_as_wide_as_their_tokens(scheme: Any, tmp_path: Path) -> None:
    import transformers

    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(write_tokenizer(tmp_path / "bytes.json")))
    for text in TEXTS.values():
        spans = spans_in(text)
        found = token_labels(text, spans, tokenizer, scheme=scheme)
        back = spans_of_labels(text, found.offsets, found.labels)
        assert {span.type for span in back} <= set(TYPES)
        for span in spans:
            inside = [(a, b) for (a, b), label in zip(found.offsets, found.labels, strict=True)
                      if label is not None and label.endswith(span.type or "")]  # fmt: skip
            (same,) = [one for one in back if one.type == span.type]
            assert (same.start, same.end) == (min(a for a, _ in inside), max(b for _, b in inside))
            assert all(a < span.end and span.start < b for a, b in inside)


def test_parquet_holds_what_json_lines_hold(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra parquet")
    tokenizer = write_tokenizer(tmp_path / "bytes.json")
    data = write_rows(tmp_path / "data.jsonl", TEXTS)
    for name in ("out.jsonl", "out.parquet"):
        options = ["--tokenizer", str(tokenizer), "--scheme", "bio", "--max-length", "20", "-o", str(tmp_path / name)]
        assert main(["dataset", "labels", str(data), *options, "-q"]) == 0
    table = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    for row, other in zip(rows_of(tmp_path / "out.jsonl"), table, strict=True):
        plain = msgspec.to_builtins(row)
        counts = {key: value for key, value in other.pop("spans").items() if value is not None}
        assert counts == plain.pop("spans")
        assert other == {key: [list(one) for one in value] if key == "offsets" else
                         list(value) if isinstance(value, tuple | list) else value
                         for key, value in plain.items()}  # fmt: skip


def test_what_is_cut_is_counted(tmp_path: Path) -> None:
    tokenizer = write_tokenizer(tmp_path / "characters.json", characters=True)
    data, out = write_rows(tmp_path / "data.jsonl", {"zh": TEXTS["zh"]}), tmp_path / "out.jsonl"
    assert main(["dataset", "labels", str(data), "--tokenizer", str(tokenizer), "--max-length", "10",
                 "-o", str(out), "-q"]) == 0  # fmt: skip
    (row,) = rows_of(out)
    assert (len(row.input_ids), row.cut) == (10, 10)
    account = read_account(out, LabelAccount)
    assert (account.cut, account.spans) == (1, {"cut": 2, "exact": 1})


def test_spans_that_overlap_or_touch_are_said_to_be_merged(tmp_path: Path) -> None:
    tokenizer = write_tokenizer(tmp_path / "characters.json", characters=True)
    spans = {
        "nested": [{"start": 0, "end": 9, "type": "invented"}, {"start": 3, "end": 5, "type": "entity"}],
        "touching": [{"start": 0, "end": 3, "type": "entity"}, {"start": 3, "end": 5, "type": "entity"}],
    }
    rows = [{"id": name, "response": TEXTS["zh"], "annotations": [{"annotator": "gold", "kind": "human",
             "taxonomy": "fava", "spans": marked}]} for name, marked in spans.items()]  # fmt: skip
    data = tmp_path / "data.jsonl"
    write_lines(data, rows)
    found = {}
    for scheme in ("io", "bio"):
        out = tmp_path / f"{scheme}.jsonl"
        assert main(["dataset", "labels", str(data), "--tokenizer", str(tokenizer), "--scheme", scheme,
                     "-o", str(out), "-q"]) == 0  # fmt: skip
        found[scheme] = [row.spans for row in rows_of(out)]
    assert found["io"] == [{"exact": 1, "merged": 1}, {"merged": 2}]
    assert found["bio"] == [{"exact": 1, "merged": 1}, {"exact": 2}]


def test_a_row_of_two_annotators_is_failed_until_one_is_named(tmp_path: Path) -> None:
    tokenizer = write_tokenizer(tmp_path / "characters.json", characters=True)
    layers = [{"annotator": name, "kind": "human", "taxonomy": "fava", "spans": []} for name in "ab"]
    data, out = write_rows(tmp_path / "data.jsonl", {"zh": TEXTS["zh"]}, annotations=layers), tmp_path / "out.jsonl"
    command = ["dataset", "labels", str(data), "--tokenizer", str(tokenizer), "-o", str(out), "-q"]
    assert main(command) == 3
    assert "--annotator" in (tmp_path / "out.jsonl.failed.jsonl").read_text("utf-8")
    assert main([*command, "--annotator", "b", "--overwrite"]) == 0
    (row,) = rows_of(out)
    assert (row.annotator, set(row.labels), read_account(out, LabelAccount).clean) == ("b", {"O"}, 1)


def test_a_type_that_the_taxonomy_does_not_have_is_refused_and_never_a_label(tmp_path: Path) -> None:
    tokenizer = write_tokenizer(tmp_path / "characters.json", characters=True)
    rows = [{"id": name, "response": TEXTS["zh"], "annotations": [{"annotator": "gold", "kind": "human",
             "taxonomy": taxonomy, "spans": [{"start": 0, "end": 3, "type": type_}, {"start": 5, "end": 7}]}]}
            for name, taxonomy, type_ in (("ours", "fava", "entity"), ("typo", "fava", "entitty"),
                                          ("mine", "mills", "sieve"))]  # fmt: skip
    data, out = tmp_path / "data.jsonl", tmp_path / "out.jsonl"
    write_lines(data, rows)
    assert main(["dataset", "labels", str(data), "--tokenizer", str(tokenizer), "-o", str(out), "-q"]) == 3
    assert [(row.id, row.taxonomy) for row in rows_of(out)] == [("ours", "fava"), ("mine", "mills")]
    account = read_account(out, LabelAccount)
    assert set(account.label_ids) == {"O", "I", "I-entity", "I-sieve"}
    assert (account.taxonomies, account.unchecked, account.failed) == ({"fava": 1, "mills": 1}, ("mills",), 1)
    failed = msgspec.json.decode((tmp_path / "out.jsonl.failed.jsonl").read_bytes())
    assert failed["id"] == "typo"
    assert "'entitty', which is none of the taxonomy 'fava' (entity," in failed["message"]


def test_a_taxonomy_of_ones_own_is_told_to_be_unchecked(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tokenizer = write_tokenizer(tmp_path / "characters.json", characters=True)
    layer = {"annotator": "gold", "kind": "human", "taxonomy": "mills", "spans": [{"start": 0, "end": 3}]}
    data = write_rows(tmp_path / "data.jsonl", {"zh": TEXTS["zh"]}, annotations=[layer])
    command = ["dataset", "labels", str(data), "--tokenizer", str(tokenizer), "-o", str(tmp_path / "out.jsonl")]
    assert main(command) == 0
    assert "types could not be looked up: 'mills' (1 rows)" in capfd.readouterr().out

"""Labels laid onto translations, whatever the text: what is marked in the file is what is marked in the sample."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.formats.reader import read
from veriglot.formats.translations import ADDITION

pytestmark = pytest.mark.fuzz

characters = st.characters(exclude_categories=["Cs", "Zs", "Zl", "Zp", "Cc"], exclude_characters="<>")
tokens = st.text(characters, min_size=1, max_size=6)
pieces = st.lists(st.tuples(st.text(characters | st.just(" "), min_size=1, max_size=6), st.booleans()), min_size=1)


@given(st.lists(st.tuples(tokens, st.booleans(), st.sampled_from([" ", "  ", "\t"])), min_size=1, max_size=8))
def test_token_labels_come_back(labelled: list[tuple[str, bool, str]]) -> None:
    text = "".join(token + gap for token, _, gap in labelled)
    with TemporaryDirectory() as folder:
        path = Path(folder, "s.label")
        path.write_text(" ".join(str(int(label)) for _, label, _ in labelled) + "\n", encoding="utf-8")
        path.with_suffix(".target").write_bytes(text.encode() + b"\n")
        path.with_suffix(".source").write_bytes(b"source\n")
        (sample,) = read(path, format="token-labels")
    assert sample.response == text
    spans = sample.annotations[0].spans or ()
    place = 0
    for token, label, gap in labelled:
        inside = [s for s in spans if s.start < place + len(token) and place < s.end]
        assert len(inside) == label
        assert all(s.start <= place and place + len(token) <= s.end for s in inside)
        place += len(token) + len(gap)


@given(pieces)
def test_marked_parts_come_back(parts: list[tuple[str, bool]]) -> None:
    marked = "".join(f"<v>{text}</v>" if mark else text for text, mark in parts)
    plain = "".join(text for text, _ in parts)
    header = "system\tdoc\tseg_id\trater\tsource\ttarget\tcategory\tseverity\n"
    with TemporaryDirectory() as folder:
        path = Path(folder, "rows.tsv")
        path.write_bytes(f"{header}s\td\t1\tr\tsource\t{marked}\t{ADDITION}\tMajor\n".encode())
        (sample,) = read(path, format="mqm")
    assert sample.response == plain
    spans = sample.annotations[0].spans or ()
    assert [plain[s.start : s.end] for s in spans] == [text for text, mark in parts if mark]

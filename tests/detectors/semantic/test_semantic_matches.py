"""Matches by form, against all pairs looked at one by one; and texts whose pairs no memory would hold."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from veriglot.detectors.grounding.document import Document
from veriglot.detectors.grounding.features import number_values
from veriglot.detectors.semantic import features as module
from veriglot.detectors.semantic.features import likeness, matches

RESPONSE = "Luther nailed 95 theses, 95 THESES, in Wittenberg in 1,517. Luther's theses were 095 theses."
EVIDENCE = {
    "en": "In 1517 Martin Luther wrote ninety-five (95) theses. Wittenberg kept the theses. In 1517, in Wittenberg.",
    "ru": "В 1517 году Лютер вывесил 95 тезисов в Виттенберге. Лютер жил в Виттенберге. В Виттенберге, 1517.",
}


def words_of(document: Document) -> list[str]:
    text = "".join(map(chr, document.codes.tolist()))
    return [text[start:end] for start, end in document.bounds.tolist()]


def looked_at(response: Document, evidence: Document, *, across: bool) -> dict[tuple[int, int], float]:
    """The best match of every pair of words, the plain way."""
    found: dict[tuple[int, int], float] = {}
    ours, theirs = (dict(zip(*number_values(one), strict=True)) for one in (response, evidence))
    alike = likeness(words_of(response), words_of(evidence))
    for i in range(len(response)):
        for j in range(len(evidence)):
            same = response.stem[i] == evidence.stem[j] or (i in ours and ours[i] == theirs.get(j))
            name = 0.9 * float(alike[i, j]) if across and alike[i, j] >= 0.55 else 0.0
            if same or name:
                found[i, j] = 1.0 if same else name
    return found


@pytest.fixture(params=["whole", "in parts"])
def _parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in parts":
        monkeypatch.setattr(module, "_PAIRS", 2)
        monkeypatch.setattr(module, "_FORMS", 3)


@pytest.mark.usefixtures("_parts")
@pytest.mark.parametrize("language", EVIDENCE)
def test_pairs_and_shares_are_those_of_looking_at_every_pair(language: str) -> None:
    response, evidence = Document([RESPONSE], "en"), Document([EVIDENCE[language]], language)
    across = language != "en"
    wanted = looked_at(response, evidence, across=across)
    assert len(wanted) > 10
    found = matches(response, evidence, across=across)
    chosen = np.arange(1, len(evidence), 2)
    best: dict[tuple[int, int], float] = {}
    for i, j, value in zip(*(part.tolist() for part in found.with_words(chosen)), strict=True):
        best[i, j] = max(best.get((i, j), 0.0), value)
    assert best == pytest.approx({pair: value for pair, value in wanted.items() if pair[1] in chosen})
    sentence = np.arange(len(evidence)) // 5
    shares = [len({i for i, j in wanted if sentence[j] == s}) / len(response) for s in range(sentence[-1] + 2)]
    assert found.shared(sentence, len(shares)).tolist() == pytest.approx(shares)
    alike = likeness(words_of(response), words_of(evidence)).max(axis=1) if across else np.zeros(len(response))
    assert found.name.tolist() == pytest.approx(alike.tolist())


def test_one_word_over_and_over_takes_no_memory_to_speak_of() -> None:
    response, evidence = (Document(["stone 7 " * 15_000], "en") for _ in range(2))
    tracemalloc.start()
    found = matches(response, evidence, across=True)
    share = found.shared(np.arange(len(evidence)) // 10, len(evidence) // 10)
    pairs = found.with_words(np.arange(10))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert share.tolist() == [1.0] * 3000
    assert len(pairs[0]) >= 10 * len(response) / 2
    assert peak < 100e6  # all pairs would be 450 million


def test_texts_without_a_match() -> None:
    found = matches(Document(["Stein"], "de"), Document(["мост"], "ru"), across=True)
    assert [len(part) for part in found.with_words(np.arange(1))] == [0, 0, 0]
    assert found.shared(np.zeros(1, np.int64), 1).tolist() == [0.0]

"""The order of labels is read from what a configuration says; where it says nothing, that is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from tiny_nli import ORDERS, write_nli

from veriglot.errors import WeightsError
from veriglot.judging.nli import load_entailment

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

pytest.importorskip("transformers")

from veriglot.judging.nli_classifier import COLUMNS, labels_of

pytestmark = pytest.mark.slow

PAIRS = [("The lighthouse was built in 1901.", "Norva was built."), ("灯塔建于1901年", "Nobody lives there.")]


def logits(folder: Path) -> NDArray[np.float64]:
    """Probabilities of each output in the model's own order, straight from transformers."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    rows = []
    for premise, hypothesis in PAIRS:
        with torch.inference_mode():
            given = tokenizer(premise, hypothesis, return_tensors="pt")
            rows.append(torch.softmax(network(**given).logits[0], -1).numpy())
    return np.array(rows, np.float64)


@pytest.mark.parametrize("published", ORDERS)
def test_each_published_order_leads_to_the_same_columns(published: str, tmp_path: Path) -> None:
    labels = ORDERS[published]
    folder = write_nli(tmp_path, "bert", labels)
    model = load_entailment(folder, device="cpu")
    expected = np.zeros((len(PAIRS), 3))
    for place, label in enumerate(labels):
        column = {"entailment": 0, "neutral": 1, "not_entailment": 1, "contradiction": 2}[label.lower()]
        expected[:, column] = logits(folder)[:, place]
    np.testing.assert_allclose(model.judge(PAIRS), expected, atol=1e-5)
    assert model.labels == tuple(label.lower() for label in labels)
    assert COLUMNS == ("entailment", "neutral", "contradiction")


def test_labels_that_say_nothing_are_refused_until_somebody_gives_them(tmp_path: Path) -> None:
    write_nli(tmp_path, "bert", ("LABEL_0", "LABEL_1", "LABEL_2"))
    with pytest.raises(WeightsError, match="LABEL_1") as told:
        load_entailment(tmp_path)
    assert "labels=" in told.value.remedy
    given = load_entailment(tmp_path, labels="neutral, entailment, contradiction", device="cpu")
    np.testing.assert_allclose(given.judge(PAIRS)[:, [1, 0, 2]], logits(tmp_path), atol=1e-5)
    assert "labels:neutral,entailment,contradiction" in given.signature
    with pytest.raises(WeightsError, match="do not show which outputs"):
        load_entailment(tmp_path, labels="yes,no,perhaps")


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ({"0": "Entailment", "1": "NEUTRAL", "2": "contradiction"}, ("entailment", "neutral", "contradiction")),
        ({2: "ENTAILMENT", 0: "CONTRADICTION", 1: "NEUTRAL"}, ("contradiction", "neutral", "entailment")),
        ({0: "SUPPORTS", 1: "REFUTES", 2: "NOT ENOUGH INFO"}, ("entailment", "contradiction", "neutral")),
        (["e", "n", "c"], ("entailment", "neutral", "contradiction")),
        ("entailment,not-entailment", ("entailment", "not_entailment")),
    ],
)
def test_spellings(names: dict[int, str] | list[str] | str, found: tuple[str, ...]) -> None:
    assert labels_of(names, "m") == found


@pytest.mark.parametrize(
    "names",
    [
        {}, {0: "entailment"}, {0: "entailment", 1: "entailment"}, {0: "entailment", 1: "contradiction"},
        {0: "entailment", 1: "neutral", 2: "neutral"}, {0: "entailment", 1: "neutral", 2: "not_entailment"},
        {0: "entailment", 1: "neutral", 2: "contradiction", 3: "not_entailment"}, {0: "negative", 1: "positive"},
    ],
)  # fmt: skip
def test_names_that_do_not_tell(names: dict[int, str]) -> None:
    with pytest.raises(WeightsError, match="do not show which outputs"):
        labels_of(names, "m")

"""What the outputs of a token classifier mean."""

from __future__ import annotations

from typing import Any

import pytest

from veriglot.detectors.token_classifier.detector import labels_of
from veriglot.errors import WeightsError

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("names", "taxonomy", "types", "outputs", "supported", "begins"),
    [
        ({0: "supported", 1: "hallucination"}, "hat", ("hallucination",), ((1,),), (0,), ()),
        ({"1": "Not-Hallucinated", "0": "HALLUCINATED"}, "hat", ("hallucination",), ((0,),), (1,), ()),
        (["O", "B-HAL", "I-HAL"], "hat", ("hallucination",), ((1, 2),), (0,), (1,)),
        (["O", "Evident Conflict", "Evident Baseless Info", "Subtle Conflict"], "support",
         ("contradicted", "unverified"), ((1, 3), (2,)), (0,), ()),
        (["B-entity", "I-entity", "B-relation", "O", "S-entity"], "fava",
         ("entity", "relation"), ((0, 1, 4), (2,)), (3,), (0, 2, 4)),
        (["O", "entity", "sentence"], "halluverse", ("entity", "sentence"), ((1,), (2,)), (0,), ()),
        ("supported, unsupported", "hat", ("hallucination",), ((1,),), (0,), ()),
    ],
)  # fmt: skip
def test_names_say_what_outputs_mean(
    names: Any, taxonomy: str, types: Any, outputs: Any, supported: Any, begins: Any
) -> None:
    found = labels_of(names, "m")
    assert (found.taxonomy, found.types, found.outputs) == (taxonomy, types, outputs)
    assert (found.supported, found.begins) == (supported, begins)


@pytest.mark.parametrize(
    "names",
    [
        {0: "LABEL_0", 1: "LABEL_1"},
        ["O", "B-PER", "I-PER", "B-LOC"],
        ["supported", "supported"],
        ["hallucination"],
        ["O", "hallucination", "entity"],
        {},
        "",
    ],
)
def test_what_cannot_be_told_is_refused(names: Any) -> None:
    with pytest.raises(WeightsError, match="do not show which outputs"):
        labels_of(names, "m")


def test_outputs_without_names_are_those_of_lettucedetect() -> None:
    assert labels_of({0: "LABEL_0", 1: "LABEL_1"}, "m", unnamed=True).outputs == ((1,),)
    with pytest.raises(WeightsError):
        labels_of({0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}, "m", unnamed=True)


def test_the_line_tells_models_apart() -> None:
    assert labels_of(["O", "B-HAL", "I-HAL"], "m").line == "supported=0;hallucination=1,2;begins=1"
    assert labels_of(["O", "HAL", "HAL"], "m").line == "supported=0;hallucination=1,2"

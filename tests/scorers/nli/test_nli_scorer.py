"""The NLI scorer: kang's metrics of a response, reference-based and pairwise, and why there is none."""

from __future__ import annotations

import pickle
from functools import partial

import pytest
from scripted_nli import FindsWords, Scripted

from veriglot.errors import UnknownNameError, UsageError
from veriglot.records import Direction, Evidence, Sample, Score, Scorer, Status
from veriglot.scorers.nli import NLI
from veriglot.scorers.registry import load_scorer
from veriglot.testing import check_scorer, ordinary_samples

pytestmark = pytest.mark.slow

RESPONSE = "Ada kept it. It burned."
EVIDENCE = (Evidence("One is so. Two is so."), Evidence("Three is so."))
TABLE = {  # (premise, claim): entailment, neutral, contradiction
    ("One is so.", "Ada kept it."): (0.9, 0.1, 0.0), ("One is so.", "It burned."): (0.2, 0.3, 0.5),
    ("Two is so.", "Ada kept it."): (0.1, 0.5, 0.4), ("Two is so.", "It burned."): (0.1, 0.8, 0.1),
    ("Three is so.", "Ada kept it."): (0.3, 0.4, 0.3), ("Three is so.", "It burned."): (0.4, 0.4, 0.2),
}  # fmt: skip
BY_HAND = {  # mean over the two claims; the worst of them
    "ent": ((0.9 + 0.4) / 2, 0.4),
    "con": ((0.4 + 0.5) / 2, 0.5),
    "diff": ((0.5 + -0.1) / 2, -0.1),
    "unv": ((0.1 + 0.5) / 2, 0.5),
}
SAMPLE = Sample("1", RESPONSE, language="en", evidence=EVIDENCE)


def score_of(scorer: Scorer, sample: Sample = SAMPLE) -> Score:
    (score,) = scorer.score([sample])
    return score


@pytest.mark.parametrize("value", BY_HAND)
def test_values_by_hand(value: str) -> None:
    for summary, expected in zip(("mean", "worst"), BY_HAND[value], strict=True):
        scorer = load_scorer("nli", model=Scripted(TABLE), value=value, summary=summary)
        found = score_of(scorer)
        assert found.value == pytest.approx(expected)
        assert found.parts["claims"] == 2
        assert found.parts["premises"] == 3
        for other, numbers in BY_HAND.items():
            assert found.parts[other] == pytest.approx(numbers[summary == "worst"])
        worse = scorer.direction is Direction.HIGHER_IS_WORSE
        assert worse == (value in {"con", "unv"})
        assert scorer.name.startswith(f"nli-{value}@1-scripted")
        assert isinstance(scorer, Scorer)


def test_pairwise_holds_each_response_against_its_sisters() -> None:
    sisters = ["Ada kept the light.", "Nobody kept it."]
    sample = Sample("1", "Ada kept it.", language="en", meta={"samples": sisters})
    table = {
        (sisters[0], "Ada kept it."): (0.8, 0.1, 0.1),
        (sisters[1], "Ada kept it."): (0.0, 0.1, 0.9),
    }
    found = score_of(load_scorer("pairwise", scorer=NLI(Scripted(table), value="diff")), sample)
    assert found.value == pytest.approx((0.7 - 0.9) / 2)
    assert found.parts["ent"] == pytest.approx(0.4)
    assert found.parts["unv"] == pytest.approx((0.2 + 0.1) / 2)


def test_pairwise_by_name(tiny: str) -> None:
    sample = Sample("1", "Ada kept it.", language="en", meta={"samples": ["Ada kept the light.", "It burned."]})
    scorer = load_scorer(f"pairwise:nli:{tiny}", value="con", device="cpu")
    assert score_of(scorer, sample).status is Status.SCORED
    assert scorer.direction is Direction.HIGHER_IS_WORSE


@pytest.mark.parametrize("claim", ["sentence", "fact"])
def test_the_contract_of_scorers_is_kept(tiny: str, claim: str) -> None:
    check_scorer(partial(load_scorer, f"nli:{tiny}", claim=claim, device="cpu"), ordinary_samples()[::3])


def test_batches_and_travel(tiny: str) -> None:
    scorer = load_scorer(f"nli:{tiny}", claim="fact", device="cpu")
    texts = ("Ada kept it in 1901.", "灯塔建于岛上。", "It burned, and nobody came.")
    samples = [Sample(text, text, evidence=EVIDENCE) for text in texts]
    found = scorer.score(samples)
    fresh = load_scorer(f"nli:{tiny}", claim="fact", device="cpu", memory=0)
    for one, sample in zip(found, samples, strict=True):
        assert fresh.score([sample])[0].value == pytest.approx(one.value, abs=1e-5)
    again = pickle.loads(pickle.dumps(scorer))
    assert again.signature == scorer.signature
    assert again.score(samples) == found


def test_facts_where_there_are_no_rules_for_them() -> None:
    model = FindsWords()
    facts = load_scorer("nli", model=model, claim="fact")
    told = score_of(facts, Sample("1", "Ada kept it.", language="tlh", evidence=EVIDENCE))
    assert told.parts["facts_are_sentences"] == 1
    assert "facts_are_sentences" not in score_of(facts).parts


def test_what_is_not_scored() -> None:
    scorer = load_scorer("nli", model=FindsWords(languages=frozenset({"en"})))
    expected = [
        (Sample("bare", "Ada."), Status.NO_EVIDENCE),
        (Sample("marks", "Ada.", language="en", evidence=(Evidence("…"),)), Status.NO_EVIDENCE),
        (Sample("empty", " ", evidence=EVIDENCE), Status.NOTHING_TO_COMPARE),
        (Sample("wordless", "…", language="en", evidence=EVIDENCE), Status.NOTHING_TO_COMPARE),
        (Sample("runes", "ᚠᚢᚦ", evidence=EVIDENCE), Status.UNSUPPORTED_LANGUAGE),
        (Sample("german", "Ada war da.", language="de", evidence=EVIDENCE), Status.UNSUPPORTED_LANGUAGE),
        (Sample("broken", "It goes boom.", language="en", evidence=EVIDENCE), Status.FAILED),
        (SAMPLE, Status.SCORED),
    ]
    found = scorer.score([sample for sample, _ in expected])
    assert [one.status for one in found] == [status for _, status in expected]
    assert [one.id for one in found] == [sample.id for sample, _ in expected]


def test_two_labels_say_nothing_of_contradiction() -> None:
    two = Scripted(
        {key: (row[0], 1 - row[0], 0.0) for key, row in TABLE.items()}, labels=("entailment", "not_entailment")
    )
    found = score_of(load_scorer("nli", model=two))
    assert found.value == pytest.approx(0.65)
    assert "con" not in found.parts
    assert found.parts["unv"] == pytest.approx(0.35)
    for value in ("con", "diff"):
        with pytest.raises(UsageError, match="contradiction"):
            load_scorer("nli", model=two, value=value)


def test_names_and_options() -> None:
    for wrong in ({"value": "entail"}, {"summary": "median"}, {"claim": "word"}):
        with pytest.raises(UnknownNameError):
            load_scorer("nli", model=FindsWords(), **wrong)
    with pytest.raises(UsageError, match="nli:NAME"):
        load_scorer("nli")

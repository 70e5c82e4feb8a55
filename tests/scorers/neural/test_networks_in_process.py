"""Scorers that run in this process, each on a tiny network of its architecture, written to disk by transformers."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import pytest
from tiny_networks import write_classifier, write_gpt2, write_mt5, write_nllb, write_t5_tokenizer

from veriglot.errors import UsageError, WeightsError
from veriglot.records import Evidence, Sample, Status
from veriglot.scorers.registry import load_scorer
from veriglot.testing import check_scorer, ordinary_samples

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("transformers", reason="needs the extra `local`: pip install 'veriglot[local]'")
pytest.importorskip("torch", reason="needs the extra `local`: pip install 'veriglot[local]'")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("_offline")]


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERIGLOT_OFFLINE", "1")


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("networks")
    write_mt5(folder / "mt5")
    write_mt5(folder / "bare", tokenizer=False)
    write_mt5(folder / "tied", tied=True)
    write_mt5(folder / "small", vocabulary=300)
    write_t5_tokenizer(folder / "words")
    write_classifier(folder / "faithful", {0: "hallucinated", 1: "faithful"})
    write_classifier(folder / "unnamed", {0: "LABEL_0", 1: "LABEL_1"})
    write_classifier(folder / "single", {0: "LABEL_0"})
    write_gpt2(folder / "gpt2")
    write_nllb(folder / "nllb")
    return folder


def sample(response: str, source: str, language: str | None = "en", of: str | None = "de") -> Sample:
    return Sample("x", response, language=language, evidence=(Evidence(source, language=of),))


@pytest.mark.parametrize(
    "name",
    ["metricx:mt5", "seahorse:mt5", "mfact:faithful", "log-probability:gpt2", "log-probability:nllb", "alti:nllb"],
)
def test_the_contract_is_kept(tiny: Path, name: str) -> None:
    kind, _, folder = name.partition(":")
    load = partial(load_scorer, f"{kind}:{tiny / folder}")
    report = check_scorer(load, ordinary_samples()[::3], tolerance=2e-5)
    assert "contract is kept" in str(report)


def test_metricx_reads_what_the_published_code_reads(tiny: Path) -> None:
    """Encoder, decoder and head by hand, with the input and the token of google-research/metricx."""
    import torch
    from transformers import AutoTokenizer, MT5ForConditionalGeneration

    tokenizer = AutoTokenizer.from_pretrained(tiny / "mt5")
    model = MT5ForConditionalGeneration.from_pretrained(tiny / "mt5").eval()
    scorer = load_scorer(f"metricx:{tiny / 'mt5'}")
    values = []
    for source, response in [("der hund", "the dog"), ("abc " * 30, "x"), ("1", "2"), ("cde", "the the"), ("Z", "99")]:
        ids = tokenizer(f"source: {source} candidate: {response}", return_tensors="pt")["input_ids"]
        assert ids[0, -1] == tokenizer.eos_token_id
        with torch.no_grad():
            hidden = model.encoder(input_ids=ids[:, :-1]).last_hidden_state
            state = model.decoder(input_ids=torch.zeros(1, 1, dtype=torch.long), encoder_hidden_states=hidden)
            raw = float(model.lm_head(state.last_hidden_state)[0, 0, 250089])
        score = scorer.score([sample(response, source)])[0]
        assert score.parts["raw"] == pytest.approx(raw, abs=1e-5)
        assert score.value == pytest.approx(min(max(raw, 0.0), 25.0), abs=1e-5)
        values.append(raw)
    assert len({round(value, 4) for value in values}) == len(values)


def test_metricx_takes_a_tokenizer_from_elsewhere_and_cuts_nothing(tiny: Path) -> None:
    with pytest.raises(WeightsError, match="tokenizer"):
        load_scorer(f"metricx:{tiny / 'bare'}")
    scorer = load_scorer(f"metricx:{tiny / 'bare'}", tokenizer=str(tiny / "words"), max_length=40)
    found = scorer.score([sample("the dog", "der hund"), sample("the dog", "der hund " * 20)])
    assert [one.status for one in found] == [Status.SCORED, Status.TOO_LONG]
    assert "takes 40" in (found[1].reason or "")
    with pytest.raises(WeightsError, match="250,089"):
        load_scorer(f"metricx:{tiny / 'small'}")


def test_a_head_that_was_saved_apart_is_loaded_apart(tiny: Path) -> None:
    """The library ties mT5's head by default: read off the embeddings, every score would be another."""
    import torch
    from transformers import MT5ForConditionalGeneration

    from veriglot.scorers.neural import _head_scale

    apart = MT5ForConditionalGeneration.from_pretrained(tiny / "mt5")
    assert not torch.equal(apart.lm_head.weight, apart.shared.weight)
    tied = MT5ForConditionalGeneration.from_pretrained(tiny / "tied")
    assert torch.equal(tied.lm_head.weight, tied.shared.weight)
    assert _head_scale(str(tiny / "mt5"), apart) == 1
    assert _head_scale(str(tiny / "tied"), tied) == pytest.approx(8**-0.5)


def test_seahorse_gives_the_probability_of_the_token_one(tiny: Path) -> None:
    import torch
    from transformers import AutoTokenizer, MT5ForConditionalGeneration

    tokenizer = AutoTokenizer.from_pretrained(tiny / "mt5")
    model = MT5ForConditionalGeneration.from_pretrained(tiny / "mt5").eval()
    inputs = tokenizer("premise: the cat hypothesis: a dog", return_tensors="pt")
    with torch.no_grad():
        logits = model(**inputs, decoder_input_ids=torch.zeros(1, 1, dtype=torch.long)).logits[0, 0].double()
    zero, one = (tokenizer.convert_tokens_to_ids(name) for name in ("▁0", "▁1"))
    asked = sample("a dog", "the cat")
    whole = load_scorer(f"seahorse:{tiny / 'mt5'}").score([asked])[0]
    assert whole.value == pytest.approx(float(logits.softmax(0)[one]), rel=1e-3)
    two = load_scorer(f"seahorse:{tiny / 'mt5'}", among="answers").score([asked])[0]
    assert two.value == pytest.approx(1 / (1 + math.exp(float(logits[zero] - logits[one]))), rel=1e-3)


def test_evidence_is_seen_in_windows_and_the_best_counts(tiny: Path) -> None:
    scorer = load_scorer(f"mfact:{tiny / 'faithful'}")
    short = scorer.score([sample("the cat", f"the {word}.") for word in ("ab", "cd", "ef")])
    assert all(one.parts["windows"] == 1 for one in short)
    long = scorer.score([sample("the cat", "ab cd. " * 80)])[0]
    assert long.parts["windows"] > 5
    level = load_scorer(f"mfact:{tiny / 'faithful'}", level="sentence")
    parts = [level.score([sample(text, "the dog and 12 cats")])[0].value for text in ("Ab cd ef.", "Zz 99.")]
    both = level.score([sample("Ab cd ef. Zz 99.", "the dog and 12 cats")])[0]
    assert both.parts["claims"] == 2
    assert both.value == pytest.approx(sum(parts) / 2, abs=1e-6)  # type: ignore[arg-type]
    assert both.parts["least"] == pytest.approx(min(parts), abs=1e-6)  # type: ignore[type-var]
    refused = scorer.score([sample("a" * 70, "the dog")])[0]
    assert refused.status is Status.TOO_LONG
    assert "level=sentence" in (refused.reason or "")


def test_the_faithful_label_is_read_or_asked_for_and_never_guessed(tiny: Path) -> None:
    asked = sample("the dog", "the cat")
    with pytest.raises(WeightsError, match=r"LABEL_0, LABEL_1.*label="):
        load_scorer(f"mfact:{tiny / 'unnamed'}")
    one, other = (load_scorer(f"mfact:{tiny / 'unnamed'}", label=name).score([asked])[0] for name in ("LABEL_0", 1))
    assert one.value + other.value == pytest.approx(1, abs=1e-6)  # type: ignore[operator]
    with pytest.raises(UsageError, match="no label"):
        load_scorer(f"mfact:{tiny / 'unnamed'}", label="yes")
    assert 0 < (load_scorer(f"mfact:{tiny / 'single'}").score([asked])[0].value or 0) < 1


def test_what_is_no_classifier_is_refused(tiny: Path) -> None:
    with pytest.raises(WeightsError, match=r"lacks weights|cannot be loaded"):
        load_scorer(f"mfact:{tiny / 'gpt2'}")
    with pytest.raises(WeightsError, match="no folder"):
        load_scorer("mfact:./nowhere")


def test_the_log_probability_of_a_causal_model(tiny: Path) -> None:
    import torch
    from transformers import AutoTokenizer, GPT2LMHeadModel

    tokenizer, model = AutoTokenizer.from_pretrained(tiny / "gpt2"), GPT2LMHeadModel.from_pretrained(tiny / "gpt2")
    ahead, own = tokenizer("ab?")["input_ids"], tokenizer("the dog")["input_ids"]
    with torch.no_grad():
        chances = torch.log_softmax(model.eval()(torch.tensor([[*ahead, *own]])).logits[0].double(), -1)
    total = sum(float(chances[len(ahead) + place - 1, token]) for place, token in enumerate(own))
    score = load_scorer(f"log-probability:{tiny / 'gpt2'}", prompt="{source}?").score([sample("the dog", "ab")])[0]
    assert score.value == pytest.approx(total / len(own), abs=1e-5)
    assert score.parts == {"tokens": len(own), "sum": pytest.approx(total, abs=1e-4)}
    with pytest.raises(UsageError, match="neither source nor question"):
        load_scorer(f"log-probability:{tiny / 'gpt2'}", prompt="{answer}")


def test_the_log_probability_of_a_translation_is_told_its_languages(tiny: Path) -> None:
    scorer = load_scorer(f"log-probability:{tiny / 'nllb'}")
    found = scorer.score(
        [
            sample("the dog", "der hund"),
            sample("the dog", "der hund", of="fr"),
            sample("the dog", "der hund", language="fr"),
            sample("the dog", "der hund", of="zza"),
            sample("the dog", "der hund " * 200),
        ]
    )
    values = [one.value for one in found[:3]]
    assert len({round(value or 0, 6) for value in values}) == 3
    assert [one.parts["tokens"] for one in found[:3]] == [found[0].parts["tokens"]] * 3
    assert [one.status for one in found[3:]] == [Status.UNSUPPORTED_LANGUAGE, Status.TOO_LONG]
    told = load_scorer(f"log-probability:{tiny / 'nllb'}", codes="de=fra_Latn").score([sample("the dog", "der hund")])
    assert told[0].value == pytest.approx(found[1].value, abs=1e-6)
    with pytest.raises(UsageError, match="TAG=CODE"):
        load_scorer(f"log-probability:{tiny / 'nllb'}", codes="deu_Latn")

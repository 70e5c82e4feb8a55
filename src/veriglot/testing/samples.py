"""What a plug-in is tried on: ordinary samples in a dozen languages, and texts that break careless code."""

from __future__ import annotations

from importlib.resources import files

from veriglot.records import Evidence, Sample, Task, decode_json, sample_from

__all__ = ["BARE", "EMPTY", "hostile_samples", "ordinary_samples"]

EMPTY = ("empty", "blank")  # ids of the hostile samples whose response says nothing
BARE = ("no evidence", "blank evidence")  # ids of those without evidence

_FACT = "The mill was built in 1874 by Jonas Reed."
_CLAIM = "The mill was built in 1901."
_HALF = "\ud83d"  # of a surrogate pair: Python lets it stand in a text, UTF-8 cannot write it


def ordinary_samples() -> list[Sample]:
    """Short answers, a summary and a translation in thirteen languages, most of them with something unsupported."""
    lines = files(__package__).joinpath("samples.jsonl").read_bytes().splitlines()
    return [sample_from(decode_json(line)) for line in lines]


def hostile_samples() -> list[Sample]:
    """Samples that are empty, odd or huge. Each has to come back, scored or with a reason."""
    responses = {
        "empty": "",
        "blank": " \t\n\u3000\u200b ",
        "marks only": "?!… — «» 🙂",
        "emoji": "The mill 👩\u200d👩\u200d👧\u200d👦 was 🇪🇪 built 👍🏽 in 1874 🏴\U000e0067\U000e0062\U000e007f.",
        "combining": "The mi\u0301ll wa\u0308s\u0301 bui\u0300lt in 18\u20df74, Z\u0351\u036b\u0343algo.",
        "decomposed": "Nai\u0308ve cafe\u0301 \u1100\u1161\u11a8 \u0915\u094d\u0937\u093f.",
        "bidirectional": "The mill \u202ewas built\u202c in \u2067١٨٧٤\u2069 של טחנה.",
        "controls": "The mill\x00 was\x07 built\x1b[0m in\x7f 1874.\ufeff",
        "half a pair": f"The mill {_HALF} was built.",
        "line ends": "The mill\r\nwas built\u2028in\u20291874\x85by\xa0Jonas\vReed.",
        "special tokens": "[CLS] The mill [SEP] was </s> built <|endoftext|> <s> in <pad> [MASK] 1874.",
        "markup": '<entity>The mill</entity> ${question} {evidence} %s %(x)d {{0}} \\n "was" built.',
        "beyond the basic plane": "𝕿𝖍𝖊 𝖒𝖎𝖑𝖑 𠮷野家 𐍈𐌰𐌹 was built.",
        "unknown script": "ᚠᚢᚦᚨᚱᚲ ᚷᚹᚺᚾ",
        "one long word": "mill" * 2000,
        "many words": " ".join(f"The mill number {number} was built in {1000 + number}." for number in range(250)),
    }
    samples = [Sample(name, text, evidence=(Evidence(_FACT),), language="en") for name, text in responses.items()]
    return [*samples, *_odd_evidence(), *_odd_fields()]


def _odd_evidence() -> list[Sample]:
    evidence = {
        "no evidence": (),
        "blank evidence": (Evidence(""), Evidence(" \n")),
        "marks for evidence": (Evidence("— … !"),),
        "holes in evidence": (Evidence(""), Evidence(_FACT), Evidence("\u200b")),
        "half a pair in evidence": (Evidence(f"{_HALF} {_FACT}"),),
        "many passages": tuple(Evidence(f"Mill {number} stands by the river.") for number in range(60)),
        "long evidence": (Evidence(" ".join(f"Mill {n} was built in {1000 + n}." for n in range(400))),),
        "evidence in another script": (Evidence("Мельница была построена в 1874 году.", language="ru"),),
    }
    return [Sample(name, _CLAIM, evidence=passages, language="en") for name, passages in evidence.items()]


def _odd_fields() -> list[Sample]:
    passages = (Evidence(_FACT),)
    return [
        Sample("no language", _CLAIM, evidence=passages),
        Sample("language that is none", _CLAIM, evidence=passages, language="!!"),
        Sample("language that nobody knows", _CLAIM, evidence=passages, language="qq-Latn"),
        Sample("blank question", _CLAIM, evidence=passages, language="en", question="  "),
        Sample("half a pair in the question", _CLAIM, evidence=passages, language="en", question=_HALF),
        Sample("long question", _CLAIM, evidence=passages, language="en", question="When was the mill built? " * 300),
        Sample("translation", _CLAIM, task=Task.TRANSLATION, evidence=(Evidence("Die Mühle."),), language="en"),
        Sample("named twice", _CLAIM, evidence=passages, language="en"),
        Sample("named twice", "Jonas Reed built it.", evidence=passages, language="en"),
    ]

"""Judges whose model follows rules, and samples for them to judge."""

from __future__ import annotations

import json
from typing import Any

from veriglot.detectors.registry import load_detector
from veriglot.llm.registry import connect
from veriglot.records import Detector, Evidence, Sample

EVIDENCE = "The lighthouse of Norva was built in 1871 by Ada Berg."
RESPONSE = "The lighthouse of Norva was built in 1881 by Ada Berg. It is the tallest in the country."


def says(*replies: object, **rule: Any) -> dict[str, Any]:
    """A rule that gives these replies, by seed; what is no text is written as JSON."""
    texts = [reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False) for reply in replies]
    return {"reply": [text.replace("\\", "\\\\") for text in texts], **rule}


def judge(kind: str, *rules: dict[str, Any], **options: Any) -> Detector:
    """A judge whose model follows the rules."""
    client = connect("scripted", rules=list(rules))
    return load_detector(f"judge:{kind}", client=client, **{"model": "scripted", **options})


def sample(response: str = RESPONSE, *evidence: str, language: str | None = "en", **rest: Any) -> Sample:
    """A sample with passages; with our own evidence where none is given."""
    passages = tuple(Evidence(text) for text in evidence or (EVIDENCE,))
    return Sample(rest.pop("id", "one"), response, language=language, evidence=passages, **rest)

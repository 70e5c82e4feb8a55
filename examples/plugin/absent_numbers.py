"""A detector that marks the numbers of a response that its evidence does not hold."""

import re

from veriglot.records import Prediction, Span, Status, Word

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class AbsentNumbers:
    """A number is unsupported unless it stands in the evidence as it is written."""

    name, taxonomy = "absent-numbers@1.0", "support"

    def __init__(self, *, threshold=None, words=False):
        self.threshold, self.words = 0.5 if threshold is None else threshold, words
        self.signature = f"detector:{self.name}|threshold:{self.threshold}|unit:word"

    def predict(self, samples):
        return [self._judge(sample) for sample in samples]

    def _judge(self, sample):
        made = {"id": sample.id, "detector": self.name, "signature": self.signature, "language": sample.language}
        if not any(passage.text.strip() for passage in sample.evidence):
            return Prediction(status=Status.NO_EVIDENCE, reason="there is no evidence", **made)
        known = {number for passage in sample.evidence for number in _NUMBER.findall(passage.text)}
        found = [(match.span(), float(match[0] not in known)) for match in _NUMBER.finditer(sample.response)]
        if not found:
            return Prediction(status=Status.FAILED, reason="the response holds no number", **made)
        spans = tuple(Span(*place, "unverified", sure) for place, sure in found if sure >= self.threshold)
        words = tuple(Word(*place, sure) for place, sure in found) if self.words else None
        return Prediction(status=Status.SCORED, score=max(sure for _, sure in found), spans=spans, words=words, **made)

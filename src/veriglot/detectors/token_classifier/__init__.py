"""Token classifiers of transformers as detectors: `hf:MODEL`, LettuceDetect's checkpoints among them."""

from veriglot.detectors.token_classifier.detector import TokenClassifier

__all__ = ["TokenClassifier"]

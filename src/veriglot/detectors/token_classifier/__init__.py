"""Token classifiers of transformers as detectors: `hf:MODEL`."""

"""Running the trained network with ONNX Runtime, on one thread, one response at a time.

One at a time, unpadded: so a prediction depends on nothing but its sample, whatever the batch or the number of
processes. Speed comes from processes, not from threads inside one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime

from veriglot.errors import WeightsError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["OUTPUTS", "Model", "session_of"]

OUTPUTS = 7  # unsupported, then the six FAVA types
_LONGEST = 1200  # words that the network sees at a time
_HALO = 60  # words of context on either side of a part, about three sentences


def session_of(path: Path) -> Any:
    """An ONNX Runtime session of a file of weights, on one thread.

    Raises:
        WeightsError: the file is missing or is no network.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's errors share no base
        raise WeightsError(
            f"The network {path} cannot be loaded: {error}.", remedy="Install Veriglot again, or train anew."
        ) from error


class Model:
    """The network.

    Args:
        path: its ONNX file: `features` (1, n, f) and `pool` (1, s, n) in, `logits` (1, n, 7) out.

    Raises:
        WeightsError: the file is missing or is not such a network.
    """

    def __init__(self, path: Path) -> None:
        self._session = session_of(path)

    def logits(self, features: NDArray[np.float32], sentence: NDArray[np.int64]) -> NDArray[np.float32]:
        """Logits of every word, shape (n, 7).

        Args:
            features: shape (n, f).
            sentence: the sentence of each word, counted from 0 without gaps, shape (n,).
        """
        words = len(features)
        if words <= _LONGEST:
            return self._run(features, sentence)
        parts = []
        for low in range(0, words, _LONGEST):
            high = min(low + _LONGEST, words)
            begin, end = max(0, low - _HALO), min(words, high + _HALO)
            part = self._run(features[begin:end], sentence[begin:end] - sentence[begin])
            parts.append(part[low - begin : high - begin])
        return np.concatenate(parts)

    def _run(self, features: NDArray[np.float32], sentence: NDArray[np.int64]) -> NDArray[np.float32]:
        counts = np.bincount(sentence)
        pool = np.zeros((1, len(counts), len(features)), np.float32)
        pool[0, sentence, np.arange(len(features))] = 1.0 / counts[sentence]
        logits: NDArray[np.float32] = self._session.run(None, {"features": features[None], "pool": pool})[0][0]
        return logits

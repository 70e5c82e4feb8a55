"""Type aliases of arrays by dtype, for annotations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Bools",
    "Bounds",
    "Float16s",
    "Float32s",
    "Float64s",
    "Int8s",
    "Int32s",
    "Int64s",
    "Numbers",
    "UInt8s",
    "UInt32s",
    "UInt64s",
]

Bools = NDArray[np.bool_]
Int8s = NDArray[np.int8]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
UInt8s = NDArray[np.uint8]
UInt32s = NDArray[np.uint32]
UInt64s = NDArray[np.uint64]
Float16s = NDArray[np.float16]
Float32s = NDArray[np.float32]
Float64s = NDArray[np.float64]
Numbers = NDArray[Any]
Bounds = Int32s | Int64s  # half-open code point ranges, shape (n, 2)

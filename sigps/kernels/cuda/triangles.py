"""`triangles.cu` as Python sees it."""

from __future__ import annotations

import numpy as np

__all__ = ["SIMPLE_ROWS"]

SIMPLE_ROWS = np.dtype(
    [
        ("offsets", np.uint64),
        ("ends", np.uint64),
        ("num_lower", np.uint64),
        ("num_vertices", np.uint32),
    ],
    align=True,
)

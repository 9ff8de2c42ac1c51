"""Arrays that live on a GPU, brought to the host, where graphs are built."""

from __future__ import annotations

from typing import Any

import numpy as np

from sigps.errors import GraphError

__all__ = ["on_host"]

_HOST, _CUDA = (1, 3), (2, 13)
"""DLPack's numbers for memory: of the host, plain and pinned; of a GPU, its own and managed."""


def on_host(values: Any, what: str) -> Any:
    """Return what lives on a GPU as a NumPy array, and all else as it is. O(values) for a copy, which it waits for.

    Args:
        values: Anything. On a GPU is what has `__cuda_array_interface__`, or says so by DLPack. A tensor of the
            host that speaks nothing but DLPack becomes a NumPy array without a copy.
        what: How an error names it, such as `"sources"`.

    Raises:
        GraphError: If it lives on a GPU and CuPy, which copies it, is not installed.
    """
    if isinstance(values, (np.ndarray, list, tuple)):
        return values
    memory = values.__dlpack_device__()[0] if hasattr(values, "__dlpack_device__") else None
    if memory in _HOST and not hasattr(values, "__array__"):
        return np.from_dlpack(values)
    if memory not in _CUDA and not hasattr(values, "__cuda_array_interface__"):
        return values
    try:
        import cupy
    except ImportError as error:
        kind = f"{type(values).__module__}.{type(values).__name__}"
        raise GraphError(
            f"{what} is a {kind} on a GPU; a graph is built on the host, and CuPy, which copies it there, cannot be "
            f"imported ({error}). Install it with: pip install 'sigps[cu13]', or [cu12]; or give NumPy arrays"
        ) from error
    if memory in _CUDA and not isinstance(values, cupy.ndarray):
        values = cupy.from_dlpack(
            values
        )  # waits for the stream that wrote it; the other interface may not name one
    return cupy.asnumpy(values)

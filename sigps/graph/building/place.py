"""Where one process builds a graph: on its CPU cores or on a GPU, with equal results."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, get_args

from sigps.errors import GraphError
from sigps.group import Group

if TYPE_CHECKING:
    from sigps.device.cuda import Gpu

__all__ = ["BuildDevice", "building_on", "bytes_to_build", "gpu_for"]

BuildDevice = Literal["auto", "cpu", "cuda"]
"""`"cpu"`: CPU cores. `"cuda"`: the GPU, for MIN_EDGES and more that fit its memory. `"auto"`: the same where there is
a GPU, but for MIN_EDGES_COLD and more where this process has not loaded CuPy, or where edges are rows already: one core
transposes 100 million a second, and kernels for it are linked in over a second."""

MIN_EDGES = 1 << 20
MIN_EDGES_COLD = 1 << 24

_chosen: ContextVar[BuildDevice] = ContextVar("the device that builds graphs", default="auto")


@contextmanager
def building_on(device: BuildDevice | None) -> Iterator[None]:
    """Build graphs on a device while a block runs; None leaves the choice as it is.

    Raises:
        GraphError: If the device is none of `BuildDevice`.
    """
    if device is None:
        yield
        return
    if device not in get_args(BuildDevice):
        raise GraphError(
            f"device={device!r} builds no graphs; choose one of {', '.join(get_args(BuildDevice))}"
        )
    token = _chosen.set(device)
    try:
        yield
    finally:
        _chosen.reset(token)


def gpu_for(
    num_edges: int,
    columns: Mapping[str, Any],
    group: Group,
    *,
    symmetric: bool,
    holder: int | None = None,
    are_rows: bool = False,
) -> Gpu | None:
    """Return the GPU that builds a graph, and make it the current one; None: CPU cores build it.

    Args:
        num_edges: Edges as given.
        columns: Theirs.
        group: The ranks; several build on their CPU cores.
        symmetric: Whether edges are stored in both directions.
        holder: The GPU in whose memory the edges are already.
        are_rows: Whether they lie in rows, which are to be transposed.

    Raises:
        DeviceError: If a GPU is asked for and cannot be used; says why.
    """
    device = _chosen.get()
    is_asked_for = holder is not None or device == "cuda"
    pays_soon = is_asked_for or ("cupy" in sys.modules and not are_rows)
    if device == "cpu" or group.size > 1 or num_edges < (MIN_EDGES if pays_soon else MIN_EDGES_COLD):
        return None
    from sigps.device import cuda

    if device == "auto" and cuda.what_is_missing():
        return None
    gpu = cuda.find_gpu(holder or 0)
    return gpu if bytes_to_build(num_edges, columns, symmetric=symmetric) <= cuda.free_bytes() else None


def bytes_to_build(num_edges: int, columns: Mapping[str, Any], *, symmetric: bool) -> int:
    """Return what `on_gpu.rows_on_gpu` takes of a GPU's memory at most, the keys included."""
    stored = num_edges * (1 + symmetric)
    num_bytes = 8 * num_edges + (8 + 8 + 4) * stored  # stored keys, what sorting takes, targets
    if columns:
        widest = max(column.dtype.itemsize for column in columns.values())
        num_bytes += (
            8 + 8 + 8 + widest
        ) * stored + widest * num_edges  # order, its sort, kept places, a column
    return num_bytes + (1 << 26)

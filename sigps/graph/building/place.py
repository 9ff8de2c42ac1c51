"""Where a graph is built: on CPU cores or on GPUs, with equal results."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, get_args

from sigps.errors import GraphError, SigpsError
from sigps.group import Group, together

if TYPE_CHECKING:
    from sigps.device.cuda import Gpu

__all__ = ["BuildDevice", "building_on", "bytes_to_build", "gpu_for", "gpu_of_rank"]

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
        group: The ranks; several build on their CPU cores what they are given (`gpu_of_rank`).
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


def gpu_of_rank(num_edges: int, group: Group) -> tuple[Gpu, int] | None:
    """Return the GPU on which this rank builds its rows, and make it the current one; then its bytes for this rank.

    Ranks of a host take its GPUs in turn, and share what is free of one that several take. None on all ranks: CPU cores
    build the graph, since that is asked for, it is small, or a rank has no GPU. Collective.

    Args:
        num_edges: Edges as given, of all ranks.
        group: The ranks.

    Raises:
        DeviceError: If a GPU is asked for and cannot be used; says why. Other ranks raise a `GraphError`.
    """
    if num_edges < MIN_EDGES:
        return None
    device, host = _chosen.get(), platform.node()
    pays_soon = device == "cuda" or "cupy" in sys.modules
    can_pay = device != "cpu" and num_edges >= (MIN_EDGES if pays_soon else MIN_EDGES_COLD)
    ranks: list[Any] = group.all_gather([host, can_pay])
    if not all(can for _, can in ranks):
        return None
    from sigps.device import cuda

    def find() -> Gpu | None:
        if device == "auto" and cuda.what_is_missing():
            return None
        try:
            gpu = cuda.find_gpu([on for on, _ in ranks[: group.rank]].count(host))
            cuda.free_bytes()  # prepares the GPU for this process, which takes memory, too
        except (SigpsError, MemoryError, RuntimeError):  # which CuPy's errors are
            if device == "auto":
                return None
            raise
        return gpu

    gpu = together(find, group)
    found: list[Any] = group.all_gather(None if gpu is None else [host, gpu.bus_id])
    if gpu is None or None in found:
        return None
    return gpu, cuda.free_bytes() // found.count([host, gpu.bus_id])


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

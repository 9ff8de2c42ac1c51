"""Whole arrays of edges to a graph, on a GPU; `edges.edge_chunks` is the way of CPU cores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sigps.graph.arrays import GraphArrays
from sigps.graph.building.build import build_on_gpu, fits_gpu
from sigps.graph.building.place import gpu_for
from sigps.graph.building.rows import Duplicates, SelfLoops
from sigps.graph.report import LoadReport
from sigps.graph.user_arrays import as_column, as_cupy, as_ids, gpu_of, on_host
from sigps.group import Group

__all__ = ["from_whole_arrays"]


def from_whole_arrays(
    sources: Any,
    targets: Any,
    columns: Mapping[str, Any],
    vertices: ArrayLike | None,
    *,
    directed: bool,
    duplicates: Duplicates,
    self_loops: SelfLoops,
    group: Group,
) -> GraphArrays | None:
    """Return the graph's arrays; None where CPU cores build it, which check what is wrong with the arguments."""
    arrays = (sources, targets, *columns.values())
    holders = [gpu_of(array) for array in arrays]
    if not all(
        isinstance(array, np.ndarray) or on is not None for array, on in zip(arrays, holders, strict=True)
    ):
        return None
    if not all(hasattr(array, "shape") for array in arrays):
        return None
    shape = tuple(sources.shape)
    if len(shape) != 1 or any(tuple(array.shape) != shape for array in arrays):
        return None
    if not fits_gpu(duplicates, columns):
        return None
    holder = next((on for on in holders[:2] if on is not None), None)
    gpu = gpu_for(shape[0], columns, group, symmetric=not directed, holder=holder)
    if gpu is None:
        return None
    from sigps.graph.building.on_gpu import edges_of_arrays

    ends = [
        array if on is None else as_cupy(array) for array, on in zip(arrays[:2], holders[:2], strict=True)
    ]
    named = None if vertices is None else as_ids(vertices, "vertices").ravel()
    if named is not None and named.dtype.kind == "U":
        return None
    on_cpu = {name: as_column(on_host(column, name), name) for name, column in columns.items()}
    edges = edges_of_arrays(ends[0], ends[1], on_cpu, named, gpu)
    if edges is None:
        return None
    return build_on_gpu(
        edges,
        gpu,
        directed=directed,
        group=group,
        duplicates="keep" if duplicates == "keep" else "drop",
        self_loops=self_loops,
        report=LoadReport(format="memory"),
    )

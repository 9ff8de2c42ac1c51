"""Edges of a batch that lie in the memory of the GPU: they are taken and checked there, and the host sees none of them.

What is unusual about a batch (ids of no vertices, numbers that do not fit, edges on another device) is left to the
host, which has a way for all of it, or says what is wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from sigps.device.cuda import Gpu, Kernel
from sigps.device.transfers import copy_within
from sigps.engine.cpu.following import EdgeChanges
from sigps.engine.gpu.edited_rows import THREADS, num_blocks
from sigps.graph.user_arrays import as_cupy, as_numbers, gpu_of, on_host
from sigps.graph.versions.batch import Changes
from sigps.kernels.cuda.abi import structure

__all__ = ["GivenEdges", "columns_to_keep", "edges_on_gpu", "take_edges"]

_GIVEN = structure("GivenEdges").dtype
_TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
"""In the order of `NumberType`."""


class GivenEdges(NamedTuple):
    """Edges as CuPy arrays, as they were given.

    Attributes:
        sources: [edges] whole numbers.
        targets: Likewise.
        columns: [edges] each, by name, as they were given: on any device.
    """

    sources: Any
    targets: Any
    columns: Mapping[str, Any]


def edges_on_gpu(given: Any, gpu: Gpu) -> GivenEdges | None:
    """Return edges whose ends are arrays in the memory of a GPU; None of all others, wrong ones among them.

    Args:
        given: As `Graph.apply` takes edges, but no table.
        gpu: The GPU.
    """
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3):
        return None
    sources, targets = (_on(values, gpu) for values in given[:2])
    if any(array is None or array.ndim != 1 or array.dtype.kind not in "iu" for array in (sources, targets)):
        return None
    columns = given[2] if len(given) == 3 else {}
    columns = columns if isinstance(columns, Mapping) else {"weight": columns}
    if any(np.shape(values) != sources.shape for values in (targets, *columns.values())):
        return None
    return GivenEdges(sources, targets, columns)


def take_edges(
    kernel: Kernel,
    gpu: Gpu,
    inserts: GivenEdges | None,
    deletes: GivenEdges | None,
    *,
    column: tuple[str, np.dtype[Any]] | None,
    num_vertices: int,
) -> tuple[EdgeChanges, EdgeChanges, Any] | None:
    """Return edges by gid, uint32, in arrays of their own. Does not wait for the device.

    Args:
        kernel: `take_edges_thread_mapped`.
        gpu: The GPU.
        inserts: Edges to insert; None of none.
        deletes: Edges to delete, likewise.
        column: The number that new edges have in rows, and its type there; None where they have none.
        num_vertices: The graph's; its ids are the numbers below.

    Returns:
        Both, and [1], uint32, on the device: not 0 where the host is to look at them. None where it is known here.

    Raises:
        MemoryError: If the device has no room for them.
    """
    import cupy

    given, held = np.zeros((), dtype=_GIVEN), []
    taken: list[Any] = 4 * [np.empty(0, np.uint32)]
    parts = [edges[:2] if edges is not None else (None, None) for edges in (inserts, deletes)]
    for part, ids in enumerate(itertools.chain(*parts)):
        if ids is None or not ids.size:
            continue
        held.append(_in_one_piece(ids))
        taken[part] = cupy.empty(ids.size, dtype=cupy.uint32)
        given["ids"][part], given["id_types"][part] = held[-1].data.ptr, _TYPES.index(ids.dtype.name)
        given["gids"][part], given["id_counts"][part] = taken[part].data.ptr, ids.size
    columns = {}
    if column is not None and inserts is not None and inserts.sources.size:
        (name, dtype), count = column, inserts.sources.size
        numbers = _on(inserts.columns.get(name), gpu)
        if numbers is None or numbers.dtype.name not in _TYPES or numbers.dtype.kind == "f" != dtype.kind:
            return None
        held.append(_in_one_piece(numbers))
        columns[name] = weights = cupy.empty(count, dtype=dtype)
        given["numbers"], given["weights"] = held[-1].data.ptr, weights.data.ptr
        given["number_type"], given["num_numbers"] = _TYPES.index(numbers.dtype.name), count
    wrong = cupy.empty(1, dtype=cupy.uint32)
    wrong.data.memset_async(0, wrong.nbytes)
    given["num_vertices"], given["wrong"] = num_vertices, wrong.data.ptr
    kernel.launch(num_blocks(gpu, max(ids.size for ids in taken)), THREADS, (given,))
    return EdgeChanges(taken[0], taken[1], columns), EdgeChanges(taken[2], taken[3], {}), wrong


def columns_to_keep(
    given: GivenEdges, taken: EdgeChanges, types: Mapping[str, np.dtype[Any]], gpu: Gpu
) -> dict[str, Any]:
    """Return the numbers of new edges in the types that the graph has them in, on the GPU or on the host.

    Does not wait for the device.

    Args:
        given: The edges.
        taken: What `take_edges` made of them.
        types: The graph's columns, all of which were given.
        gpu: The GPU.

    Raises:
        GraphError: If a number does not fit.
    """
    import cupy

    columns = {}
    for name, dtype in types.items():
        values, weights = given.columns[name], taken.columns.get(name)
        there = _on(values, gpu)
        if weights is not None and weights.dtype == dtype:
            columns[name] = weights
        elif there is not None and there.dtype == dtype and (dtype.kind in "biu" or weights is not None):
            columns[name] = cupy.empty(there.size, dtype=dtype)
            copy_within(columns[name], _in_one_piece(there))
        else:
            columns[name] = as_numbers(on_host(values, name), name)
    on_host_now = {name: values for name, values in columns.items() if type(values) is np.ndarray}
    if on_host_now:
        columns |= Changes(columns=on_host_now).cast(types, "inserts").copied().columns
    return columns


def _on(values: Any, gpu: Gpu) -> Any:
    """Return values in the memory of this GPU as a CuPy array, which shares it; None of others."""
    import cupy

    if type(values) is np.ndarray or values is None:
        return None
    if not isinstance(values, cupy.ndarray):
        if gpu_of(values) is None:
            return None
        values = as_cupy(values)
    return values if values.device.id == gpu.ordinal else None


def _in_one_piece(values: Any) -> Any:
    import cupy

    return values if values.flags.c_contiguous else cupy.ascontiguousarray(values)

"""Path lengths found at once on a GPU; `engine/cpu/path_lengths.py` finds them on CPU cores."""

from __future__ import annotations

import functools
import time
from typing import Any

import numpy as np

from sigps.account import spent_on
from sigps.compiler.program import PathLengths as Claim
from sigps.compiler.program import VertexProgram
from sigps.device.cuda import Gpu, Kernel, Module, fits
from sigps.engine.fixed_points import Labels, Weights, bucket_width, choose_labels, real_width
from sigps.engine.gpu.graph import GpuGraph
from sigps.engine.stats import AT_ONCE, SuperstepStats
from sigps.kernels.cuda.abi import structure

__all__ = ["GpuPathLengths", "gpu_path_lengths", "lanes_of_vertex", "path_macros"]

_THREADS = 512
_OTHER_THREADS = 256
_BYTES_OF_VERTEX = 8 + 5 * 4
"""Of a label, a stamp, and a place on each of four piles."""

_ACCOUNT, _PATHS = structure("Account").dtype, structure("Paths").dtype
_UNREACHED = 2**63 - 1


def gpu_path_lengths(program: VertexProgram, graph: GpuGraph, gpu: Gpu) -> GpuPathLengths | None:
    """Return what finds path lengths in a run on one GPU; None where it does not pay, or memory is short."""
    claim, subgraph = program.path_lengths, graph.numbering.subgraph
    if claim is None or not subgraph.is_mesh or not fits(_BYTES_OF_VERTEX * graph.num_owned):
        return None
    name = program.edge_columns[claim.column]
    weights = graph.once(f"weights {name}", lambda: _measure(graph, name, gpu))
    labels = choose_labels(weights, graph.num_owned, program.state_dtypes[claim.length])
    width: float | None = None
    if labels is not None:
        width = bucket_width(weights, labels, is_gpu=True)
    elif claim.parent is None:
        keys = program.message_dtypes[0], program.state_dtypes[claim.length]
        width = real_width(weights, keys, is_gpu=True, num_edges=subgraph.num_edges)
    return GpuPathLengths(graph, gpu, name, claim, labels, width) if width is not None else None


class GpuPathLengths:
    """Runs all supersteps after the first at once.

    Args:
        graph: The graph; the current GPU has it.
        gpu: The GPU.
        column: The name of the weights.
        claim: Where lengths and parents are.
        labels: How labels are made of whole lengths; None where they are lengths, and there are no parents.
        width: Of a bucket, in labels.
    """

    def __init__(
        self, graph: GpuGraph, gpu: Gpu, column: str, claim: Claim, labels: Labels | None, width: float
    ) -> None:
        self._graph, self._gpu, self._column, self._claim = graph, gpu, column, claim
        self._labels, self._width = labels, width

    def run(self, states: list[Any], sent: Any, ids: Any) -> SuperstepStats | None:
        """Find lengths and parents; None where they are not exact, and states are as they were. Waits for the device.

        Args:
            states: Of the vertices, after superstep 0.
            sent: Bits of those that sent in it, uint32.
            ids: [num_owned] of the vertices.
        """
        import cupy

        began, n = time.perf_counter(), self._graph.num_owned
        lengths = states[self._claim.length]
        parents = None if self._claim.parent is None else states[self._claim.parent]
        numbers = cupy.empty(n, dtype=cupy.int64)
        piles = [cupy.empty(n, dtype=cupy.uint32) for _ in range(4)]
        stamps, account = cupy.zeros(n, dtype=cupy.uint32), _account()
        weights = self._graph.incoming.column(self._column), self._graph.outgoing.column(self._column)
        paths = np.zeros((), dtype=_PATHS)
        paths["in_edges"], paths["out_edges"] = (
            self._graph.incoming.structure(),
            self._graph.outgoing.structure(),
        )
        arrays = {
            "in_weights": weights[0],
            "out_weights": weights[1],
            "sent": sent,
            "ids": ids,
            "lengths": lengths,
            "labels": numbers,
            "stamps": stamps,
            "account": account,
        }
        for name, array in arrays.items():
            paths[name] = array.data.ptr
        paths["parents"] = 0 if parents is None else parents.data.ptr
        for i, pile in enumerate(piles):
            paths[("near", "far")[i // 2]][i % 2] = pile.data.ptr
        labels = self._labels
        paths["num_vertices"] = n
        if labels is not None:
            paths["unit"], paths["longest"], paths["most"] = labels.unit, labels.longest, labels.most
            paths["width"] = self._width
        else:
            limits = np.array([self._width, np.finfo(np.float64).max])
            paths["width"], paths["most"] = limits.view(np.int64)
        mean = -(-self._graph.numbering.subgraph.num_edges // max(1, n))
        types = lengths.dtype.name, weights[0].dtype.name, ids.dtype.name
        parent = types[2] if parents is None else parents.dtype.name
        kernels = _kernels(self._gpu, *types, parent, lanes_of_vertex(mean), labels is None)
        blocks = _grid(self._gpu, n)
        kernels["begin_labels_thread_mapped"].launch(blocks, _OTHER_THREADS, (paths,))
        kernels["relax_piles"].launch(self._gpu.num_sms, _THREADS, (paths,), cooperative=True)
        if _read(account)["is_refused"]:
            return None
        kernels["store_lengths_thread_mapped"].launch(blocks, _OTHER_THREADS, (paths,))
        found = _read(account)
        counts, seconds = (int(found["reached"]), int(found["relaxed"])), time.perf_counter() - began
        return SuperstepStats(1, AT_ONCE, *counts, 0, seconds, 1.0)


def lanes_of_vertex(mean_degree: int) -> int:
    """Return how many lanes share a vertex: as many as it has edges, a power of two.

    >>> [lanes_of_vertex(mean) for mean in (1, 4, 5, 40)]
    [1, 4, 8, 32]
    """
    return min(32, 1 << max(0, mean_degree - 1).bit_length())


def _measure(graph: GpuGraph, name: str, gpu: Gpu) -> Weights:
    column, account = graph.outgoing.column(name), _account()
    types = "float64", column.dtype.name, "int64", "int64"
    kernel = _kernels(gpu, *types, 1)["measure_weights_thread_mapped"]
    given = graph.outgoing.structure(), column, account
    kernel.launch(_grid(gpu, graph.num_owned), _OTHER_THREADS, given)
    found = _read(account)
    if found["is_below"] or found["greatest"] < found["least"]:
        return Weights(False, 0, 0)
    least, greatest = np.array([found["least"], found["greatest"]]).view(np.float64).tolist()
    if found["is_refused"]:
        return Weights(False, 0, 0, (least, greatest))
    return Weights(True, int(least), int(greatest))


def _account() -> Any:
    import cupy

    account = np.zeros(1, dtype=_ACCOUNT)
    account["least"], account["nearest"] = ~np.uint64(0), _UNREACHED
    on_device = cupy.empty(account.nbytes, dtype=cupy.uint8)
    on_device.set(account.view(np.uint8))
    return on_device


def _read(account: Any) -> Any:
    """Wait for the device, and return what kernels left."""
    import cupy

    return cupy.asnumpy(account).view(_ACCOUNT)[0]


def _grid(gpu: Gpu, num_threads: int) -> int:
    return max(1, min(gpu.num_sms * 16, -(-num_threads // _OTHER_THREADS)))


@functools.cache
@spent_on("compile")
def _kernels(
    gpu: Gpu, length: str, weight: str, vertex_id: str, parent: str, lanes: int, is_real: bool = False
) -> dict[str, Kernel]:
    from sigps.device.linking import link_kernel

    macros = path_macros(length, weight, vertex_id, parent, lanes, is_real)
    module = Module(link_kernel("path_lengths", gpu.arch, macros))
    names = "measure_weights_thread_mapped", "begin_labels_thread_mapped", "relax_piles"
    return {name: module.kernel(name) for name in (*names, "store_lengths_thread_mapped")}


def path_macros(
    length: str, weight: str, vertex_id: str, parent: str, lanes: int, is_real: bool = False
) -> dict[str, str]:
    """Return what `kernels/cuda/path_lengths.cu` is compiled with, of the names of NumPy's types."""
    return {
        "SIGPS_LENGTH": _c_type(length),
        "SIGPS_WEIGHT": _c_type(weight),
        "SIGPS_ID": _c_type(vertex_id),
        "SIGPS_PARENT": _c_type(parent),
        "SIGPS_THREADS": str(_THREADS),
        "SIGPS_LANES": str(lanes),
        "SIGPS_REAL": str(int(is_real)),
    }


def _c_type(name: str) -> str:
    return {"float32": "float", "float64": "double", "bool": "bool"}.get(name) or f"{name}_t"

"""Path lengths along edges that stay packed, found page by page without supersteps after the first.

Pages cross to the device in sweeps, those in which a vertex waits; what one changed the pages behind it send in the
same sweep (`kernels/cuda/packed_lengths.cu`).
"""

from __future__ import annotations

import functools
import time
from typing import Any

import numpy as np

from sigps.account import spent_on
from sigps.compiler.cuda.compile import c_type
from sigps.compiler.program import PathLengths as Claim
from sigps.compiler.program import VertexProgram
from sigps.device.cuda import Gpu, Kernel, Module
from sigps.engine.fixed_points import PageLabels, choose_page_labels
from sigps.engine.gpu.graph import GpuGraph
from sigps.engine.gpu.launch import WIDE
from sigps.engine.gpu.packed_edges import PackedGraph
from sigps.engine.gpu.placed_program import column_types
from sigps.engine.gpu.run_memory import RunMemory
from sigps.engine.stats import AT_ONCE, SuperstepStats
from sigps.kernels.cuda.abi import structure

__all__ = ["NOT_BY_PAGES", "PackedPathLengths", "packed_path_lengths", "page_path_macros"]

_SHAPE = WIDE
"""As that of a lease over packed edges, whose blocks have the scratch."""

_OTHER_THREADS = 256

_ACCOUNT, _PATHS = structure("PageAccount").dtype, structure("PagePaths").dtype


NOT_BY_PAGES = (
    "asynchronous=True finds paths along packed edges where these have a column of whole weights, where the program "
    "keeps 8 bytes a vertex or more, and where lengths, edges of paths and ids fit 63 bits together. Use "
    "asynchronous='auto', which goes by supersteps"
)


def packed_path_lengths(
    program: VertexProgram, graph: GpuGraph, gpu: Gpu, record_bytes: int, *, is_asked: bool
) -> PackedPathLengths | None:
    """Return what finds path lengths in a run on one GPU; None where supersteps do.

    Args:
        program: The program.
        graph: The partition, on the device.
        gpu: The GPU.
        record_bytes: Of a vertex, where its label lies.
        is_asked: Whether the user wants no supersteps; else meshes have them, where they are faster.
    """
    claim, subgraph = program.path_lengths, graph.numbering.subgraph
    if claim is None or not isinstance(graph, PackedGraph) or graph.packed.is_fed:
        return None
    if not graph.is_symmetric or (subgraph.is_mesh and not is_asked):
        return None
    if graph.columns != (program.edge_columns[claim.column],):
        return None
    labels = choose_page_labels(graph.num_owned, program.state_dtypes[claim.length])
    if record_bytes < np.dtype(np.uint64).itemsize or labels is None:
        return None
    weight = dict(column_types(subgraph))[graph.columns[0]]
    return PackedPathLengths(graph, gpu, claim, weight, labels)


class PackedPathLengths:
    """Runs all supersteps after the first at once.

    Args:
        graph: An undirected graph whose edges stay packed; the current GPU has it.
        gpu: The GPU.
        claim: Where lengths and parents are.
        weight: The type of weights.
        labels: How labels are made.
    """

    def __init__(
        self, graph: PackedGraph, gpu: Gpu, claim: Claim, weight: np.dtype[Any], labels: PageLabels
    ) -> None:
        self._graph, self._gpu, self._claim = graph, gpu, claim
        self._weight, self._labels = weight, labels

    def run(
        self, memory: RunMemory, parity: int, ids: Any, reader: tuple[int, Any, Any]
    ) -> SuperstepStats | None:
        """Find lengths and parents; None where they are not exact, and states are as they were. Waits for the device.

        Args:
            memory: The run's, after superstep 0. Labels and bits lie where the superstep after the next would write
                records and senders.
            parity: Of the arrays that have the senders of superstep 0.
            ids: [num_owned] of the vertices.
            reader: How many blocks may read pages, what they take, and the words and chains that they have read.
        """
        import cupy

        began, n = time.perf_counter(), self._graph.num_owned
        num_blocks, packed, num_read = min(reader[0], _SHAPE.blocks_per_sm * self._gpu.num_sms), *reader[1:]
        states, other = memory.states, 1 - parity
        lengths = states[self._claim.length]
        parents = None if self._claim.parent is None else states[self._claim.parent]
        account = cupy.zeros(_ACCOUNT.itemsize, dtype=cupy.uint8)
        waits = memory.array(f"sent{other}", np.uint32)
        paths = np.zeros((), dtype=_PATHS)
        arrays = {
            "degrees": self._graph.out_degrees,
            "sent": memory.array(f"sent{parity}", np.uint32),
            "ids": ids,
            "lengths": lengths,
            "labels": memory.array(f"records{other}", np.uint64),
            "waits": waits,
            "account": account,
        }
        for name, array in arrays.items():
            paths[name] = array.data.ptr
        paths["rows"], paths["parents"] = packed, 0 if parents is None else parents.data.ptr
        paths["num_vertices"], paths["longest"] = n, self._labels.longest
        paths["id_bits"], paths["edge_bits"] = self._labels.id_bits, self._labels.edge_bits
        types = lengths.dtype.name, self._weight.name, ids.dtype.name
        kernels = _kernels(self._gpu, *types, types[2] if parents is None else parents.dtype.name)
        grid = max(1, min(self._gpu.num_sms * 16, -(-n // _OTHER_THREADS)))
        kernels["begin_page_labels_thread_mapped"].launch(grid, _OTHER_THREADS, (paths,))
        kernels["send_pages"].launch(num_blocks, _SHAPE.threads, (paths,), cooperative=True)
        found = cupy.asnumpy(account).view(_ACCOUNT)[0]
        is_refused = found["is_refused"] or found["refused"]["value"].any()
        if not is_refused:
            kernels["store_page_lengths_thread_mapped"].launch(grid, _OTHER_THREADS, (paths,))
            found = cupy.asnumpy(account).view(_ACCOUNT)[0]
        self._graph.packed.require_whole()
        waits.fill(0)
        words = int(num_read.get()[0])
        num_read.fill(0)
        if is_refused:
            return None
        counts = int(found["reached"]), int(found["sent"])
        seconds = time.perf_counter() - began
        return SuperstepStats(1, AT_ONCE, *counts, 0, seconds, 1.0, bytes_read=4 * words)


@functools.cache
@spent_on("compile")
def _kernels(gpu: Gpu, length: str, weight: str, vertex_id: str, parent: str) -> dict[str, Kernel]:
    from sigps.device.linking import link_kernel

    macros = page_path_macros(length, weight, vertex_id, parent)
    module = Module(link_kernel("packed_lengths", gpu.arch, macros))
    names = "begin_page_labels_thread_mapped", "send_pages", "store_page_lengths_thread_mapped"
    return {name: module.kernel(name) for name in names}


def page_path_macros(length: str, weight: str, vertex_id: str, parent: str) -> dict[str, str]:
    """Return what `kernels/cuda/packed_lengths.cu` is compiled with, of the names of NumPy's types."""
    return {
        "SIGPS_LENGTH": c_type(np.dtype(length)),
        "SIGPS_COLUMN_TYPES": c_type(np.dtype(weight)),
        "SIGPS_ID": c_type(np.dtype(vertex_id)),
        "SIGPS_PARENT": c_type(np.dtype(parent)),
        **_SHAPE.macros(),
    }

"""The edges of a part of a graph by source, owned and ghosts, grouped on the GPU where that pays.

One CPU core took 7.1 s for half of kron-24 (260 million edges). With it, and with all threads of a rank laying parts
out, a first run of PageRank on kron-24 on two NVIDIA H100 takes 4.2 s where it took 15 to 16; 6.5 s, not 39, with empty
caches.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from sigps.device.cuda import Gpu, free_bytes
from sigps.engine.partition.edge_list import EdgeList, MovedColumns
from sigps.engine.partition.subgraph import Subgraph
from sigps.graph.building.on_gpu import transposed_on_gpu
from sigps.graph.building.place import MIN_EDGES, bytes_to_build
from sigps.graph.building.rows import Rows

__all__ = ["pushed_edges"]


def pushed_edges(subgraph: Subgraph, gpu: Gpu, *, min_edges: int = MIN_EDGES) -> EdgeList:
    """Return `subgraph.pushed`, on the host.

    Args:
        subgraph: The partition.
        gpu: The current GPU.
        min_edges: The CPU groups fewer edges, as it does where the GPU has no memory left.
    """
    incoming, num_sources = subgraph.incoming, subgraph.num_owned + subgraph.num_ghosts
    is_there = subgraph.gids is None or subgraph.is_symmetric
    if is_there or incoming.num_edges < min_edges or not _fit(incoming.num_edges, {}):
        return subgraph.pushed

    def grouped(columns: dict[str, NDArray[Any]]) -> Rows:
        return transposed_on_gpu(Rows(incoming.offsets, incoming.ends, columns), gpu, num_sources)

    def moved(name: str) -> NDArray[Any]:
        given = {name: incoming.columns[name]}
        if not _fit(incoming.num_edges, given):
            column: NDArray[Any] = subgraph.pushed.columns[name]
            return column
        return grouped(given).columns[name]

    found = grouped({})
    return EdgeList(found.offsets, found.targets, MovedColumns(incoming.columns, moved))


def _fit(num_edges: int, columns: dict[str, NDArray[Any]]) -> bool:
    return bytes_to_build(num_edges, columns, symmetric=False) <= free_bytes()

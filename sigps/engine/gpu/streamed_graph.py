"""A partition in the memory of a GPU whose in-edges stay in a packed store: what kernels take of it beside them."""

from __future__ import annotations

from typing import Any

import numpy as np

from sigps.device.cuda import Gpu
from sigps.engine.gpu.graph import GpuGraph
from sigps.engine.gpu.layout import Rows
from sigps.engine.gpu.numbering import Numbering
from sigps.engine.partition.subgraph import Subgraph
from sigps.kernels.cuda.lease import HUB_DEGREE

__all__ = ["BYTES_OF_VERTEX", "StreamedGraph"]

BYTES_OF_VERTEX = 25
"""About what a vertex takes: its ids and degrees."""


class StreamedGraph(GpuGraph):
    """Vertices alone, of programs that go along no edges.

    Local ids are the numbers of rows, those of vertices without a row behind them, and then those of ghosts.
    """

    def __init__(self, subgraph: Subgraph, gpu: Gpu) -> None:
        import cupy

        assert subgraph.gids is not None
        self.numbering = numbering = Numbering(cupy, subgraph)
        self.num_owned, self.num_lids = numbering.num_owned, numbering.num_lids
        self.is_symmetric = subgraph.is_symmetric
        self.in_degrees = cupy.asarray(numbering.in_degrees)
        rows: Any = _InRows(self.in_degrees, subgraph.incoming.num_edges)
        self.incoming = self.outgoing = rows
        self.tiles = self.spilling = None
        self.is_sorted = False
        degrees = subgraph.out_degrees.astype(np.uint32)
        self.out_degrees = self.in_degrees if self.is_symmetric else cupy.asarray(degrees)
        self.num_hubs = int(np.count_nonzero(degrees > HUB_DEGREE))
        self.could_send = int(np.count_nonzero(degrees))
        self.most_out_edges = int(degrees.max(initial=0))
        self.has_narrow_ids = subgraph.ids_fit_32_bits
        self.kept = {}
        self._gpu, self._arrays = gpu, {}


class _InRows:
    """What a lease takes of in-edges beside their pages."""

    def __init__(self, degrees: Any, num_edges: int) -> None:
        import cupy

        none = cupy.zeros(1, dtype=cupy.uint64)
        self.rows = Rows(degrees, none, none, 0, 0, 0, num_edges, 0)

    def column(self, name: str) -> Any:
        """Return what stands for a column, whose values kernels bring one by one."""
        return self.rows.offsets

    def structure(self) -> Any:
        return self.rows.structure(None)

"""What runs of a program on a partition share: the graph where it lies on a GPU, and kernels that run on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sigps.account import spent_on
from sigps.compiler.program import VertexProgram, compiling
from sigps.device.cuda import Gpu
from sigps.engine.aggregates import Aggregates
from sigps.engine.gpu import variant as gpu_variant
from sigps.engine.gpu.graph import GpuGraph
from sigps.engine.gpu.launch import CLUSTER_DEGREE, SharedCache, num_blocks
from sigps.engine.gpu.packed_edges import PackedGraph
from sigps.engine.gpu.placement import Placement
from sigps.engine.gpu.variant import LeaseForm, Packing, Variant
from sigps.engine.partition.streamed import StreamedEdges
from sigps.engine.partition.subgraph import Subgraph

__all__ = ["PlacedProgram", "column_types"]


@dataclass(frozen=True, eq=False)
class PlacedProgram:
    """What is the same for runs of a program on a partition that go alike. It does not hold the partition.

    Attributes:
        program: The program.
        gpu: The GPU; the current one.
        columns: Names and types of the edge columns.
        graph: The partition on the GPU.
        has_narrow_ids: Whether ids take 32 bits, on all ranks.
        aggregates: What aggregators begin with.
        packing: How the run goes over in-edges that stay packed.
        has_heads: Whether their rows have heads.
        has_peers: Whether GPUs write into each other's memory.
        goes_by_edge: Whether the run goes by the edge schedule.
        is_edited: Whether rows are going to change (`edited_rows.py`).
        page_turns: How often a packed page that is open is computed at most.
    """

    program: VertexProgram
    gpu: Gpu
    columns: tuple[tuple[str, np.dtype[Any]], ...]
    graph: GpuGraph
    has_narrow_ids: bool
    aggregates: Aggregates
    packing: Packing
    has_heads: bool
    has_peers: bool
    goes_by_edge: bool
    is_edited: bool
    page_turns: int
    _variants: dict[tuple[VertexProgram, bool], Variant] = field(default_factory=dict)
    _shapes: dict[tuple[Variant, int, int, int], tuple[int, SharedCache]] = field(default_factory=dict)

    @classmethod
    def of(cls, placement: Placement, graph: GpuGraph, has_narrow_ids: bool) -> PlacedProgram:
        """Return what runs share that were placed so."""
        return cls(
            placement.program,
            placement.gpu,
            placement.columns,
            graph,
            has_narrow_ids,
            Aggregates(placement.program.aggregators),
            packing=placement.packing,
            has_heads=placement.has_heads,
            has_peers=placement.has_peers,
            goes_by_edge=placement.goes_by_edge,
            is_edited=placement.is_edited,
            page_turns=placement.page_turns,
        )

    def variant(self, program: VertexProgram, *, has_turns: bool) -> Variant:
        """Return the kernels of the program or of a form of it, compiled and loaded at most once.

        Args:
            program: Which of its forms.
            has_turns: Whether leases end by the clock, and leave states by gid.

        Raises:
            DeviceError: If the edge schedule cannot run it, or it cannot be compiled.
        """
        key = program, has_turns
        if key not in self._variants:
            with spent_on("compile"), compiling:
                given = program, self.columns, self.has_narrow_ids, self.gpu
                self._variants[key] = gpu_variant.load_variant(*given, self._form(program, has_turns))
        return self._variants[key]

    def _form(self, program: VertexProgram, has_turns: bool) -> LeaseForm:
        graph, tiles = self.graph, self.graph.tiles
        return LeaseForm(
            has_peers=self.has_peers,
            goes_by_edge=self.goes_by_edge,
            has_tiles=tiles is not None,
            has_tile_columns=tiles is not None and tiles.varies(program.edge_columns),
            packing=self.packing,
            has_heads=self.has_heads,
            is_fed=isinstance(graph, PackedGraph) and graph.packed.is_fed,
            in_pieces=self.is_edited,
            is_mesh=graph.most_out_edges <= CLUSTER_DEGREE,
            has_turns=has_turns,
            page_turns=self.page_turns,
        )

    def launch_shape(self, variant: Variant, lease: Any, num_at_once: int) -> tuple[int, SharedCache]:
        """Return how many blocks a launch has, and their shared-memory cache.

        Args:
            variant: The kernels.
            lease: What they are given.
            num_at_once: How many runs share the GPU.
        """
        num_edges, num_positions = int(lease["num_in_edges"]), self.graph.incoming.rows.num_positions
        key = variant, num_at_once, num_edges, num_positions
        if key not in self._shapes:
            lanes = 32 if self.program.reads_neighbors else 1  # that compute a vertex
            blocks = num_blocks(
                max(1, self.gpu.num_sms * variant.blocks_per_sm // num_at_once),
                self.graph.num_owned * lanes,
                num_positions,
                variant.shape.threads,
            )
            cache = variant.shared_cache(
                num_vertices=self.graph.num_owned,
                num_edges=num_edges,
                num_blocks=blocks,
                num_hot_ghosts=int(lease["num_hot"]) if self.has_peers else 0,
            )
            self._shapes[key] = blocks, cache
        return self._shapes[key]


def column_types(subgraph: Subgraph) -> tuple[tuple[str, np.dtype[Any]], ...]:
    """Return names and types of the columns of a partition's in-edges, also where these are packed."""
    edges = subgraph.incoming
    columns: Mapping[str, Any] = (
        edges.rows.packed.columns if isinstance(edges, StreamedEdges) else edges.columns
    )
    return tuple((name, column.dtype) for name, column in columns.items())

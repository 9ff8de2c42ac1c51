"""The structure that tells kernels where a run's arrays are (`kernels/cuda/lease.cuh`).

It is the same for every run of a program on a graph, but for where the run's two blocks begin: so it is filled in once,
and moved to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cuda.compile import CudaProgram
from sigps.compiler.program import Consumption, Delivery, VertexProgram
from sigps.engine.gpu.beginning import Beginning, beginning_of
from sigps.engine.gpu.graph import GpuGraph
from sigps.engine.gpu.halo_layout import num_slots_of
from sigps.engine.gpu.layout import Rows
from sigps.engine.gpu.memory_plan import MemoryPlan, Sizes, bytes_to_commit, plan_run
from sigps.engine.gpu.placed_edges import PlacedEdges
from sigps.engine.gpu.tiles import TiledEdges
from sigps.engine.gpu.walked_rows import WalkedRows
from sigps.kernels.cuda.abi import ARGUMENTS
from sigps.kernels.cuda.lease import FAULTS_AT, LEASE

__all__ = ["LeaseTemplate", "lease_template"]


@dataclass(frozen=True, eq=False)
class LeaseTemplate:
    """A lease for any run of a program on a graph.

    Attributes:
        plan: Where the run's arrays lie in its two blocks.
        words: The lease, as 8-byte words, for blocks that begin at address 0.
        in_run: The words that are addresses in the block of the run.
        in_states: The words that are addresses in the block of states.
        in_values: The words that are addresses in the host's block.
        beginning: What the blocks begin with.
        to_commit: The temporary bytes of committing edge states where they cross ranks, by what they are for.
    """

    plan: MemoryPlan
    words: NDArray[np.uint64]
    in_run: NDArray[np.intp]
    in_states: NDArray[np.intp]
    in_values: NDArray[np.intp]
    beginning: Beginning
    to_commit: Mapping[str, int]

    def at(self, run: int, states: int, values: int = 0) -> Any:
        """Return a `kernels.cuda.lease.LEASE` for blocks that begin at these addresses."""
        words = self.words.copy()
        words[self.in_run] += np.uint64(run)
        words[self.in_states] += np.uint64(states)
        words[self.in_values] += np.uint64(values)
        return np.frombuffer(words, LEASE).reshape(())


def lease_template(
    compiled: CudaProgram,
    graph: GpuGraph,
    *,
    has_cluster: bool,
    num_peers: int,
    goes_by_edge: bool,
    pulls_alone: bool,
) -> LeaseTemplate:
    """Return the lease for runs of a program on a graph; filled in once. Arguments as `RunMemory`'s."""
    known: dict[Any, LeaseTemplate] = graph.kept
    key = compiled, has_cluster, num_peers, goes_by_edge, pulls_alone, graph.has_values_on_host
    if key not in known:
        subgraph = graph.numbering.subgraph
        has_values = bool(compiled.program.edge_states) or not subgraph.incoming.is_streamed
        reads_edges = compiled.program.reads_edges and has_values
        crosses = graph.numbering.ghosts is not None and not pulls_alone and subgraph.incoming.is_streamed
        sizes = Sizes(
            graph.num_owned,
            subgraph.incoming.num_edges,
            graph.num_hubs,
            num_lids=graph.num_lids,
            num_peers=num_peers,
            num_out_edges=graph.walked.num_edges if reads_edges else 0,
            num_mirrored=graph.walked.num_mirrored if reads_edges else 0,
            num_everywhere=subgraph.num_vertices,
            num_key_places=_num_key_places(compiled.program, graph.incoming.rows),
            num_slices=graph.tiles.num_slices if graph.tiles is not None else 0,
            pulls_alone=pulls_alone,
            has_values_on_host=graph.has_values_on_host,
            num_slots=num_slots_of(subgraph) if crosses else None,
            num_ranks=len(subgraph.halo),
        )
        plan = plan_run(compiled, sizes, has_cluster=has_cluster, goes_by_edge=goes_by_edge)
        here, *far = (
            _lease(compiled, graph, plan, *bases, goes_by_edge, num_peers).reshape(1).view(np.uint64)
            for bases in ((0, 0, 0), (_FAR, 0, 0), (0, _FAR, 0), (0, 0, _FAR))
        )
        in_run, in_states, in_values = (np.flatnonzero(words != here) for words in far)
        beginning, to_commit = beginning_of(compiled, plan), _to_commit(compiled, graph)
        known[key] = LeaseTemplate(plan, here, in_run, in_states, in_values, beginning, to_commit)
    return known[key]


def _to_commit(compiled: CudaProgram, graph: GpuGraph) -> dict[str, int]:
    if not compiled.program.edge_states or graph.walked.mirror_bounds is None:
        return {}
    walked = graph.walked
    return {"what crosses of edges": bytes_to_commit(walked.num_edges, walked.num_sent, walked.num_mirrored)}


_FAR = 1 << 40

_SINGLE = (
    *("status", "wrote", "targets", "senders", "hubs", "offsets", "key_words", "key_sums"),
    *("list_ends", "list_keys", "list_order", "partials", "partial_bits"),
    *("totals", "carried", "aggregates", "control", "stats"),
)


def _lease(
    compiled: CudaProgram,
    graph: GpuGraph,
    plan: MemoryPlan,
    run: int,
    states: int,
    values: int,
    goes_by_edge: bool,
    num_peers: int,
) -> Any:
    """Fill in a lease for blocks that begin at `run`, `states` and, on the host, `values`."""
    program, numbering = compiled.program, graph.numbering
    subgraph = numbering.subgraph
    lease = np.zeros((), dtype=LEASE)

    def at(name: str) -> int:
        if name in plan.on_host:
            return values + plan.on_host[name]
        return run + plan.offsets[name] if name in plan.offsets else 0

    for name, edges in (("in", graph.incoming), ("out", graph.outgoing)):
        lease[name] = _arguments(compiled, graph, plan, edges, states, at)
    lease["in_edges"], lease["out_edges"] = graph.incoming.structure(), graph.outgoing.structure()
    if graph.tiles is not None:
        lease["tiles"] = graph.tiles.tiles()
    lease["num_owned"], lease["num_lids"] = graph.num_owned, graph.num_lids
    lease["num_hubs"] = graph.num_hubs
    _fill_rows(lease, program, graph)
    if program.sorts_by and "list_order" in plan.sizes:  # else blocks that read packed rows have their own
        lease["num_listed"] = plan.sizes["list_order"] // 4
    lease["could_send"], lease["num_in_edges"] = graph.could_send, subgraph.incoming.num_edges
    lease["pull_cost"] = subgraph.incoming.num_edges + graph.num_owned
    if goes_by_edge:
        assert not isinstance(graph.incoming, TiledEdges)
        lease["num_positions"] = graph.incoming.rows.num_positions
        lease["edge_targets"] = graph.incoming.targets.data.ptr
    lease["carries_on"] = 1
    for i in range(2):
        for name in ("sent", "records", "inboxes", "touched"):
            lease[name][i] = at(f"{name}{i}")
    for name in _SINGLE:
        lease[name] = at(name)
    direct = lease["direct"]
    for name in ("messages", "counts", "block_sums", "overflowed"):
        direct[name] = at(name)
    if program.delivery is Delivery.DIRECT:
        by_gid = num_peers or (
            subgraph.gids is not None and numbering.ghosts is None
        )  # else hosts name local ids
        direct["lids_of_gids"] = (numbering.of_all_gids if by_gid else numbering.lids).data.ptr
        if (known := numbering.sorted_ids()) is not None:
            direct["sorted_ids"], direct["lids_of_ids"] = (array.data.ptr for array in known)
    return lease


def _arguments(
    compiled: CudaProgram,
    graph: GpuGraph,
    plan: MemoryPlan,
    edges: PlacedEdges | TiledEdges,
    states: int,
    at: Callable[[str], int],
) -> Any:
    """Return the `kernels.cuda.abi.ARGUMENTS` of functions along some edges, those of a pull or of a push.

    Args:
        compiled: The program.
        graph: The partition, on the device.
        plan: Where the run's arrays lie.
        edges: Its in-edges or its out-edges.
        states: Where the block of states begins.
        at: Returns where one of the run's arrays begins.
    """
    program, numbering, subgraph = compiled.program, graph.numbering, graph.numbering.subgraph
    narrow = compiled.defines["SIGPS_ID"] == "int32_t"
    arguments = np.zeros((), dtype=ARGUMENTS)
    arguments["num_vertices"], arguments["num_edges"] = subgraph.num_vertices, subgraph.num_edges
    arguments["params"], arguments["aggregates"] = at("params"), at("aggregates")
    arguments["faults"] = at("control") + FAULTS_AT
    arguments["ids"] = numbering.ids(narrow=narrow).data.ptr
    arguments["out_degrees"] = graph.out_degrees.data.ptr
    arguments["in_degrees"] = graph.in_degrees.data.ptr
    by_edge = graph.tiles is None or graph.tiles.varies(program.edge_columns)
    for i, column in enumerate(program.edge_columns):
        known = (
            edges.column(column, by_edge=by_edge) if isinstance(edges, TiledEdges) else edges.column(column)
        )
        arguments["columns"][i] = known.data.ptr
    for i, offset in enumerate(plan.states):
        arguments["states"][i] = states + offset
    for i in range(len(compiled.message)):
        arguments["lists"][i] = at(f"list{i}")
    for kind in ("num_direct", "direct_kinds", "direct_targets", "direct_senders", "direct_messages"):
        arguments[kind] = at(kind)
    arguments["direct_capacity"] = Sizes(graph.num_owned, 0, 0).direct_capacity
    if program.reads_edges and not subgraph.incoming.is_streamed:  # else `PackedEdges.walker` has them
        _fill_walked(arguments, graph, program)
    for kind in ("pending", "committed"):
        for i in range(len(program.edge_states)):
            arguments[kind][i] = at(f"{kind}{i}")
    return arguments


def _fill_rows(lease: Any, program: VertexProgram, graph: GpuGraph) -> None:
    """Fill in which rows of in-edges are block-mapped, warp-mapped, or a team's."""
    rows = graph.incoming.rows
    lease["num_warp_rows"] = rows.num_warp_rows
    if program.delivery is not Delivery.DIRECT:  # whose vertices have no bits to set
        sets_bits = program.reads_all_at_once or program.reads_neighbors  # of all CSR rows, one by one
        lease["num_block_rows"] = rows.num_csr_rows if sets_bits else rows.num_block_rows
        lease["num_team_rows"] = rows.num_csr_rows if sets_bits else rows.num_block_rows
    if graph.tiles is not None:
        lease["num_team_rows"] = graph.tiles.num_team_rows
    if program.consumption is Consumption.GROUPED:
        lease["num_team_rows"] = rows.num_long_rows
        lease["num_key_rows"] = rows.num_block_rows


def _num_key_places(program: VertexProgram, rows: Rows) -> int:
    """Return how many places the tables take that `kernels/cuda/grouped.cuh` has in device memory."""
    count = rows.num_block_rows
    return 2 * int(rows.offsets[count]) + count if program.consumption is Consumption.GROUPED and count else 0


def _fill_walked(arguments: Any, graph: GpuGraph, program: VertexProgram) -> None:
    """Fill in where the out-edges that compute() walks lie.

    Args:
        arguments: A `kernels.cuda.abi.ARGUMENTS`.
        graph: The partition, on the device.
        program: The program, which walks its out-edges.
    """
    walked = graph.walked
    assert isinstance(walked, WalkedRows)
    arguments["out_offsets"] = walked.offsets.data.ptr
    arguments["out_gids"] = walked.gids.data.ptr
    arguments["out_ids"] = walked.ids.data.ptr
    for i, column in enumerate(program.read_columns):
        arguments["out_columns"][i] = walked.column(column).data.ptr
    if program.reads_neighbors:
        arguments["out_rows"] = walked.rows.data.ptr
    if program.reads_reverse:
        arguments["reverse"] = walked.reverse.data.ptr

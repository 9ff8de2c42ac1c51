"""The best value of each component found at once on several GPUs that write into each other's memory.

Ranks join what their own edges connect, then trees that share a vertex (`kernels/cuda/rank_components.cu`). Two
exchanges are enough for any graph. What crosses lies in arrays of the run that no superstep needs any more.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sigps.account import spent_on
from sigps.compiler.program import VertexProgram
from sigps.device.cuda import Gpu, Kernel, Module, fits
from sigps.engine import fixed_points
from sigps.engine.exchange import Exchange
from sigps.engine.gpu.components import component_macros
from sigps.engine.gpu.graph import GpuGraph
from sigps.engine.gpu.placed_edges import PlacedEdges
from sigps.engine.gpu.run_memory import RunMemory
from sigps.engine.partition.subgraph import Subgraph
from sigps.engine.stats import AT_ONCE, SuperstepStats
from sigps.kernels.cuda.abi import structure
from sigps.kernels.cuda.lease import HUB_DEGREE

__all__ = ["RankComponents", "link_rank_components_ahead", "may_have_components", "rank_components"]

_THREADS = 256
_PART = structure("PartOfRank").dtype
_LEAST_VALUE_BYTES = 4
_WORD = 4
"""Of `records0` the first word counts pairs."""


def may_have_components(subgraph: Subgraph) -> bool:
    """Tell whether components are those of the graph, and it is large enough to gain. The same on all ranks."""
    return subgraph.is_undirected and subgraph.num_edges >= fixed_points.LEAST_EDGES


def rank_components(
    program: VertexProgram,
    graph: GpuGraph,
    memory: RunMemory,
    exchange: Exchange,
    gpu: Gpu,
    *,
    written_to: Sequence[Mapping[str, int]],
    lists: Sequence[int],
) -> RankComponents | None:
    """Return what finds components; None on all ranks where it does not pay, or one has no memory for it. Collective.

    Args:
        program: One that has a priority-order form.
        graph: This rank's partition.
        memory: This run's, on this rank.
        exchange: The way to the other ranks.
        gpu: The GPU; the current one.
        written_to: Where each rank's arrays of the run lie, by name.
        lists: Where each rank has lists of its ghosts of this rank's vertices.
    """
    if not may_have_components(graph.numbering.subgraph):
        return None
    values, n = memory.states[0], graph.numbering.subgraph.num_vertices
    records = memory.array("records1", np.uint8).size // max(1, values.itemsize)
    takes_values = values.ndim == 1 and values.itemsize >= _LEAST_VALUE_BYTES and records >= graph.num_lids
    needed = 4 * (graph.num_lids + n) + 4 * _most_hubs(graph)
    is_able = takes_values and n < 2**32 and graph.spilling is None and fits(needed)
    facts = exchange.gather(np.array([is_able, graph.num_owned], dtype=np.int64))
    if not facts[:, 0].all():
        return None
    given = graph, memory, exchange, gpu, facts[:, 1].tolist(), written_to, lists
    return RankComponents(*given, takes_min=program.slots[0].op == "min")


class RankComponents:
    """Runs all supersteps after the first at once.

    Args:
        graph: This rank's partition, of an undirected graph.
        memory: This run's, on this rank.
        exchange: The way to the other ranks.
        gpu: The GPU; the current one.
        num_owned: The vertices of each rank.
        written_to: Where each rank's arrays of the run lie, by name.
        lists: Where each rank has lists of its ghosts of this rank's vertices.
        takes_min: Whether the best value is the least, and not the greatest.
    """

    def __init__(
        self,
        graph: GpuGraph,
        memory: RunMemory,
        exchange: Exchange,
        gpu: Gpu,
        num_owned: list[int],
        written_to: Sequence[Mapping[str, int]],
        lists: Sequence[int],
        *,
        takes_min: bool,
    ) -> None:
        self._graph, self._memory, self._exchange, self._gpu = graph, memory, exchange, gpu
        self._takes_min = takes_min
        ghosts, bounds = graph.numbering.ghosts, graph.numbering.subgraph.ghost_bounds
        assert ghosts is not None
        assert bounds is not None
        self._parts = parts = np.zeros(exchange.size, dtype=_PART)
        parts["roots_there"] = lists
        for part, arrays in zip(parts, written_to, strict=True):
            part["num_pairs_there"] = arrays["records0"]
            part["others_there"] = arrays["records0"] + _WORD
            part["ones_there"], part["best_there"] = arrays["listed1"], arrays["records1"]
        parts["first_tree"] = np.cumsum([0, *num_owned[:-1]])
        parts["num_hot"], parts["first_hot"], parts["first_cold"] = (
            ghosts.num_hot,
            ghosts.hot[:-1],
            ghosts.cold[:-1],
        )
        parts["first_listed"] = ghosts.listed[:-1]
        parts["num_ghosts"] = np.diff(bounds)

    def run(self, values: Any) -> SuperstepStats:
        """Give each vertex the best value of its component. Waits for the device; collective.

        Args:
            values: [num_owned], integers.
        """
        import cupy

        began, graph, memory, exchange = time.perf_counter(), self._graph, self._memory, self._exchange
        kernels = _kernels(self._gpu, values.dtype.name, self._takes_min)
        n, num_lids = np.uint32(graph.num_owned), np.uint32(graph.num_lids)
        num_trees = np.uint32(graph.numbering.subgraph.num_vertices)
        parents = cupy.empty(graph.num_lids, dtype=cupy.uint32)
        forest = cupy.empty(int(num_trees), dtype=cupy.uint32)
        hubs = cupy.empty(1 + _most_hubs(graph), dtype=cupy.uint32)
        account = cupy.zeros(2, dtype=cupy.uint64)
        parts = cupy.empty(self._parts.nbytes, dtype=cupy.uint8)
        parts.set(self._parts.view(np.uint8))
        hubs[:1].data.memset_async(0, _WORD)
        best, roots = memory.array("records1", values.dtype), memory.array("listed0", np.uint32)
        pairs, ones = memory.array("records0", np.uint32), memory.array("listed1", np.uint32)
        num_pairs, others = pairs[:1], pairs[1:]
        halo, ranks = memory.lease["halo"], (parts, np.uint32(exchange.size))
        rows = graph.incoming.structure(), graph.outgoing.structure()

        def launch(name: str, count: int, *given: Any) -> None:
            blocks = max(1, min(self._gpu.num_sms * 16, -(-count // _THREADS)))
            kernels[name].launch(blocks, _THREADS, given)

        of_lids = graph.num_lids
        launch("begin_rank_trees_thread_mapped", of_lids, *rows, num_lids, parents, values, best)
        launch("join_first_edges_thread_mapped", of_lids, *rows, num_lids, parents)
        launch("join_other_edges_warp_mapped", of_lids, *rows, num_lids, parents, hubs[:1], hubs[1:])
        launch("join_hubs_grid_mapped", self._gpu.num_sms * 16 * _THREADS, *rows, parents, hubs[:1], hubs[1:])
        launch("settle_rank_trees_thread_mapped", of_lids, n, num_lids, parents, values, best)
        slots = np.uint64(halo["bounds"]), np.uint64(halo["vertices"])
        launch("publish_roots_thread_mapped", of_lids, *ranks, *slots, parents)
        launch("begin_forest_thread_mapped", int(num_trees), num_trees, forest, num_pairs)
        self._wait_for_ranks()
        mine = *ranks, np.uint32(exchange.rank)
        given = parents, roots, forest, num_pairs, ones, others
        launch("join_ghosts_thread_mapped", of_lids, *mine, num_trees, *given)
        self._wait_for_ranks()
        launch("join_pairs_thread_mapped", of_lids, *mine, num_trees, forest)
        launch("take_best_of_pairs_thread_mapped", of_lids, *mine, n, num_trees, forest, best)
        launch("take_best_thread_mapped", of_lids, n, parents, forest, best, values, num_pairs, account)
        passed = sum(lids.size for lids in graph.numbering.subgraph.halo)
        changed, found = cupy.asnumpy(account).tolist()
        seconds = time.perf_counter() - began
        moved = 4 * passed + 8 * found * (exchange.size - 1)
        facts = exchange.gather(np.array([changed, moved, int(seconds * 1e9)], dtype=np.int64))
        counts, num_edges = facts.sum(axis=0).tolist(), graph.numbering.subgraph.num_edges
        slowest = facts[:, 2].max() / max(1.0, facts[:, 2].mean())
        return SuperstepStats(1, AT_ONCE, counts[0], num_edges, counts[1], seconds, float(slowest))

    def _wait_for_ranks(self) -> None:
        """Wait until all ranks' kernels are done that were launched before. Collective."""
        import cupy

        cupy.cuda.get_current_stream().synchronize()
        self._exchange.gather(np.zeros(1, dtype=np.int64))


def _most_hubs(graph: GpuGraph) -> int:
    """Return how many rows may be a hub's: each edge is in two."""
    assert isinstance(graph.incoming, PlacedEdges)
    return 2 * int(graph.numbering.subgraph.incoming.num_edges) // HUB_DEGREE


@functools.cache
@spent_on("compile")
def _kernels(gpu: Gpu, value: str, takes_min: bool) -> dict[str, Kernel]:
    from sigps.device.linking import link_kernel

    module = Module(link_kernel("rank_components", gpu.arch, component_macros(value, takes_min)))
    names = (
        "begin_rank_trees_thread_mapped",
        "join_first_edges_thread_mapped",
        "join_other_edges_warp_mapped",
        "join_hubs_grid_mapped",
        "settle_rank_trees_thread_mapped",
        "publish_roots_thread_mapped",
        "begin_forest_thread_mapped",
        "join_ghosts_thread_mapped",
        "join_pairs_thread_mapped",
        "take_best_of_pairs_thread_mapped",
        "take_best_thread_mapped",
    )
    return {name: module.kernel(name) for name in names}


@functools.cache
def link_rank_components_ahead(gpu: Gpu, value: str, takes_min: bool) -> None:
    """Begin to link what finds components on ranks, for a type of NumPy's; once a process."""
    from sigps.device.linking import link_ahead

    link_ahead("rank_components", gpu.arch, component_macros(value, takes_min))

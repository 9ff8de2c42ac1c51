"""Where a run's edges lie, by what fits: in tiles or rows on the GPU, behind its memory on the host, or packed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from sigps.account import spent_on
from sigps.compiler.cuda.compile import CudaProgram, compile_for_cuda, key_bytes
from sigps.compiler.program import Consumption, Delivery, EarlyExit, VertexProgram, compiling
from sigps.device.cuda import Gpu, fits, free_bytes
from sigps.engine.direction import Direction
from sigps.engine.exchange import Exchange
from sigps.engine.gpu.components import link_components_ahead
from sigps.engine.gpu.crossing_plan import bytes_to_cross, bytes_to_stage
from sigps.engine.gpu.graph import PACKED, PAGELESS, GpuGraph, division_on_gpu, graph_on_gpu
from sigps.engine.gpu.halo_layout import num_slots_of
from sigps.engine.gpu.launch import CLUSTER_DEGREE
from sigps.engine.gpu.memory_plan import (
    Sizes,
    bytes_of_reverse,
    bytes_of_values,
    bytes_to_find,
    bytes_to_walk,
    plan_run,
    shape_over_packed,
)
from sigps.engine.gpu.numbering import num_lids_of
from sigps.engine.gpu.packed_edges import PackedGraph
from sigps.engine.gpu.packed_places import (
    arcs_of_spans,
    bytes_beside_pages,
    bytes_of_heads,
    key_tables,
    list_bytes,
    may_read_rows,
    places_in_pages,
    walk_bytes,
)
from sigps.engine.gpu.placed_edges import link_layout_ahead
from sigps.engine.gpu.priority import link_buckets_ahead
from sigps.engine.gpu.rank_components import link_rank_components_ahead, may_have_components
from sigps.engine.gpu.resident import forget_on_gpu, graphs_on_gpu, make_room
from sigps.engine.gpu.spilled_edges import SpilledEdges
from sigps.engine.gpu.spilling import Spilling, Stream, bytes_wanted, choose_spilling
from sigps.engine.gpu.streamed_graph import BYTES_OF_VERTEX, StreamedGraph
from sigps.engine.gpu.tiling import Tiles, Tiling, choose_tiling
from sigps.engine.gpu.variant import LeaseForm, Packing, link_variant_ahead
from sigps.engine.partition.crossing_edges import CrossingEdges, find_crossing_edges
from sigps.engine.partition.streamed import StreamedEdges
from sigps.engine.partition.subgraph import Subgraph
from sigps.errors import ConfigError, DeviceError
from sigps.graph.report import bytes_text
from sigps.kernels.cuda.lease import HUB_DEGREE

__all__ = ["Placement"]

T = TypeVar("T")

log = logging.getLogger(__name__)

_ALL = 1 << 62
"""More bytes than there are: what earlier runs kept goes, since edges fill what is left."""

_SPARE, _LEAST_SPARE = 8, 1 << 10
"""As `job/live_ranks.py` has them."""

_PAGE_TURNS = 4
"""As on CPU cores (`cpu/streamed_blocks.py`)."""

_MANY = 4096
"""Bytes a vertex and edge that no run takes: where there are so many, nothing is asked."""


@dataclass(frozen=True)
class Placement:
    """What decides where the edges of a run lie.

    Attributes:
        program: The program.
        gpu: The GPU.
        subgraph: The partition.
        columns: Names and types of its edge columns.
        exchange: The way to the other ranks.
        has_peers: Whether GPUs write into each other's memory.
        goes_by_edge: Whether the run goes by the edge schedule.
        can_wait: Whether values may be sent out of turn.
        forced: A direction to use always, or None.
        stream: Whether edges may stay on the host (`choose_spilling`).
        is_limited: Whether the user limits what the run takes of the GPU.
        tiles: Whether in-edges lie in tiles (`choose_tiling`).
        is_edited: Whether rows are going to change (`edited_rows.py`).
        is_bulk: Whether all packed pages are to cross in every superstep.
        host_bytes: What packed pages may take of the host; the others stay on disk. None for no limit.
        without_barriers: Whether a contraction has no barriers but those between sweeps over all pages.
    """

    program: VertexProgram
    gpu: Gpu
    subgraph: Subgraph
    columns: tuple[tuple[str, np.dtype[Any]], ...]
    exchange: Exchange
    has_peers: bool
    goes_by_edge: bool
    can_wait: bool
    forced: Direction | None
    stream: Stream
    is_limited: bool
    tiles: Tiles
    is_edited: bool
    is_bulk: bool
    host_bytes: int | None = None
    without_barriers: bool = False

    @property
    def is_alone(self) -> bool:
        """Whether there are no other ranks."""
        return self.exchange.size == 1

    @property
    def packing(self) -> Packing:
        """How the run goes over in-edges that stay packed."""
        if not self.subgraph.incoming.is_streamed:
            return Packing.NONE
        if not self.program.goes_along_edges:
            return Packing.ABSENT
        reads_all = self.program.reads_all_at_once or self.program.reads_edges
        searches = self.forced == "push" or not (self.program.sends_together or reads_all)
        has_rows = (self.subgraph.is_symmetric or self.subgraph.is_undirected) and searches
        in_place = not self.is_bulk and self.host_bytes is None and may_read_rows(self.program)
        reads_rows = has_rows and in_place
        if self.is_alone:
            return Packing.PUSHED if reads_rows else Packing.PULLED
        crosses = self.has_peers or self.exchange.on_device
        return Packing.PUSHED_PART if reads_rows and crosses else Packing.PART

    @property
    def has_heads(self) -> bool:
        """Whether pulls look at heads of packed rows first."""
        stops_early = self.program.early_exit is not EarlyExit.NEVER
        may_wait = self.packing is not Packing.PART and self.can_wait
        goes_in_order = may_wait and self.program.priority_form is not None
        searches = self.packing.reads_pages and not self.program.reads_edges and may_read_rows(self.program)
        return searches and not self.is_bulk and (stops_early or goes_in_order)

    @property
    def page_turns(self) -> int:
        """How often a packed page that is open is computed at most."""
        return _PAGE_TURNS if self.without_barriers else 1

    @property
    def packed_columns(self) -> tuple[str, ...]:
        """The edge columns that are read with packed edges; not those that are not there: all weights are 1."""
        if not self.subgraph.incoming.is_streamed:
            return ()
        return tuple(name for name in self.program.columns_of_edges if name in dict(self.columns))

    def graph(self) -> GpuGraph:
        """Return the partition on the GPU, which keeps it for later runs.

        Raises:
            ConfigError: If tiles are wanted and do not fit.
            DeviceError: If what has to be on the GPU does not fit it; it names the bytes.
        """
        if self.subgraph.incoming.is_streamed:
            return self._packed_graph()
        subgraph, sorts_rows = self.subgraph, not self._keeps_order
        if self.has_peers:  # all agree now, whatever else each has to do
            _ = self._has_narrow_ids
        tiling = spilling = None
        if self.exchange.size == 1:
            spilling = self._spilling()
        if spilling is None:
            tiling = self._tiling()
        elif self.tiles == "always":
            raise ConfigError(
                "tiles='always' needs all edges on the GPU, and they do not fit. Use tiles='auto'"
            )
        if division_on_gpu(subgraph, self.gpu, sorts_rows=sorts_rows) is None:
            self._link_ahead(tiling is not None)
        graph = graph_on_gpu(
            subgraph,
            self.gpu,
            sorts_rows=sorts_rows,
            tiling=tiling,
            spilling=spilling,
            is_edited=self.is_edited,
            spare=self._spare_ghosts,
            add_up=self._add_up if self.has_peers else list,
        )
        if isinstance(edges := graph.incoming, SpilledEdges):
            log.info("streaming: %s of edges on the GPU, %s on its host", *map(bytes_text, edges.divided))
        return graph

    @property
    def _spare_ghosts(self) -> list[int]:
        """How many vertices of each other rank may become ghosts where rows change; the same on all ranks."""
        if self.is_alone or not self.is_edited:
            return []
        size = self.exchange.size
        spare = max(_LEAST_SPARE, self.subgraph.num_vertices // size // _SPARE)
        return [0 if rank == self.exchange.rank else spare for rank in range(size)]

    @property
    def _keeps_order(self) -> bool:
        """Whether a row's edges keep the order that they have on the host."""
        is_listed = self.program.consumption is Consumption.LISTED
        return is_listed or self.program.early_exit is EarlyExit.LOWEST

    def _spilling(self) -> Spilling | None:
        """Return how edges are divided between the GPU and its host; None where all are on the GPU."""
        subgraph, program, stream = self.subgraph, self.program, self.stream
        num_edges = subgraph.incoming.num_edges
        counts = {
            "num_vertices": subgraph.num_owned,
            "num_edges": num_edges * (1 if subgraph.goes_both_ways else 2),
            "num_columns": len(program.edge_columns),
        }
        kept = division_on_gpu(subgraph, self.gpu, sorts_rows=not self._keeps_order)
        if stream != "never" and isinstance(kept, Spilling):
            return kept
        if stream == "auto" and kept is not None and not self.is_limited:  # as runs before; asks nobody
            return None
        if stream == "never" or (stream == "auto" and fits(_MANY * sum(counts.values()))):
            return None
        sizes = Sizes(
            subgraph.num_owned,
            num_edges,
            num_edges // HUB_DEGREE,  # at most: to count them takes 7 ms for 2**24 vertices
            num_out_edges=num_edges if program.reads_edges else 0,
        )
        plan = plan_run(self._compiled(), sizes, has_cluster=True, goes_by_edge=self.goes_by_edge)
        run_bytes = plan.nbytes + plan.state_bytes + bytes_to_walk(program, sizes.num_out_edges)
        if stream == "auto" and kept is not None and run_bytes <= free_bytes():
            return None
        forget_on_gpu(subgraph, self.gpu)
        wanted = bytes_wanted(stream, run_bytes=run_bytes, **counts)
        needed = bytes_wanted("always", run_bytes=run_bytes, **counts)
        free = make_room(_ALL if self.is_limited else wanted, self.gpu, needed=needed)
        return choose_spilling(stream, free=free, is_limited=self.is_limited, run_bytes=run_bytes, **counts)

    def _packed_graph(self) -> StreamedGraph:
        """Return the partition with its edges packed; what the run leaves of the GPU's memory holds the first pages."""
        subgraph, gpu = self.subgraph, self.gpu
        edges = subgraph.incoming
        assert isinstance(edges, StreamedEdges)
        num_lids = num_lids_of(subgraph)
        if num_lids >= 1 << 31:
            raise DeviceError(
                f"{num_lids:,} vertices and ghosts are more than a part on packed edges may have, 2,147,483,647. Use "
                "more ranks",
                rank=self.exchange.rank,
            )
        sizes = Sizes(
            subgraph.num_owned,
            edges.num_edges,
            edges.num_edges // HUB_DEGREE,  # at most
            num_lids=0 if self.is_alone else num_lids,
            num_peers=self.exchange.size if self.has_peers else 0,
            pulls_alone=self.packing.pulls_alone,
            has_values_on_host=True,
            num_slots=num_slots_of(subgraph) if self.packing is Packing.PUSHED_PART else None,
            num_ranks=self.exchange.size,
        )
        compiled = self._compiled()
        plan = plan_run(compiled, sizes, has_cluster=False, goes_by_edge=False)
        to_find = self._bytes_to_find()
        run_bytes = plan.nbytes + plan.state_bytes + to_find
        if self.packing is Packing.ABSENT:
            return self._pageless_graph(run_bytes, num_lids)
        crossing = self._crossing_edges()
        num_copies, most = (crossing.num_copies, crossing.most) if crossing is not None else (0, 0)
        wanted = (
            bytes_of_values(self.program, edges.num_edges, num_copies),
            bytes_of_reverse(self.program, edges.num_edges),
        )
        run_bytes += bytes_to_cross(self.program, most, subgraph.num_owned, self.exchange.size)
        run_bytes += self._bytes_to_stage(compiled)
        known = graphs_on_gpu(subgraph, gpu)
        kept = known.get(PACKED)
        slots_bytes = int(compiled.defines["SIGPS_SLOTS_BYTES"])
        num_blocks = gpu.num_sms * shape_over_packed(self.program).blocks_per_sm
        if self.program.reads_edges:
            walked = compiled.columns[1]
            run_bytes += walk_bytes(subgraph.num_owned, num_lids, edges.rows.most_arcs, num_blocks, walked)
        if self.program.consumption is Consumption.LISTED and self.program.delivery is not Delivery.DIRECT:
            sorts = bool(self.program.sorts_by)
            run_bytes += list_bytes(edges.rows.most_arcs, num_blocks, compiled.message, sorts=sorts)
        if self.program.consumption is Consumption.GROUPED:
            arcs, an_entry = arcs_of_spans(edges.rows), sum(key_bytes(compiled))
            tables = key_tables(int(arcs.max(initial=0)), arcs.size, num_blocks, an_entry)
            run_bytes += tables.num_bytes(an_entry)
        heads = bytes_of_heads(edges.rows) if self.has_heads else 0
        columns, now = self.packed_columns, (self.packed_columns, self.host_bytes)
        if isinstance(kept, PackedGraph) and (kept.columns, kept.host_bytes) == now:
            more = 0 if kept.packed.has_heads else heads
            run_bytes_now = run_bytes + kept.packed.scratch_bytes(num_blocks, slots_bytes) + more
            run_bytes_now -= (to_find if kept.numbering.has_sorted_ids else 0) + kept.halo_bytes
            kept.walked.crossing = crossing  # also of a rank that has no edges
            fills = self.is_limited or self.stream == "auto"  # then pages have what the last run left
            if not (fills or more or any(wanted)):
                return self._with_heads(kept)
            free = make_room(run_bytes_now + sum(wanted), gpu, (subgraph,), needed=run_bytes_now)
            free += kept.reverse_bytes if wanted[1] else 0  # which this run reads, too
            if run_bytes_now <= free:
                stays = _stays(wanted, free - run_bytes_now)
                on_host = self._values_on_host(wanted, stays)
                if self.host_bytes is None or kept.packed.host_bytes + on_host <= self.host_bytes:
                    kept.place_values(*stays, on_host=on_host, crossing=crossing)
                    return self._with_heads(kept)
        kept = None
        known.pop(PACKED, None)
        places = places_in_pages(edges.rows)
        needed = bytes_beside_pages(edges, places, num_lids, num_blocks, columns, slots_bytes)
        needed += heads
        needed += run_bytes
        fills = self.is_limited or self.stream == "auto"
        free = make_room(_ALL if fills else needed + sum(wanted), gpu, needed=needed)
        if (spare := free - needed) < 0:
            raise self._no_room(free, needed)
        stays = _stays(wanted, spare)
        spare -= sum(size for size, on_device in zip(wanted, stays, strict=True) if on_device)
        resident_bytes = spare if fills else 0
        on_host = self._values_on_host(wanted, stays)
        room = None if self.host_bytes is None else self.host_bytes - on_host
        limits: dict[str, Any] = {"host_bytes": self.host_bytes, "host_room": room}
        limits |= {"places": places, "rank": self.exchange.rank}
        made = PackedGraph(subgraph, gpu, resident_bytes, columns, **limits)
        known[PACKED] = made
        made.place_values(*stays, on_host=on_host, crossing=crossing)
        return self._with_heads(made)

    def _values_on_host(self, wanted: Sequence[int], stays: Sequence[bool]) -> int:
        """Return what values on edges take of the host, where the GPU has no room for them."""
        values = sum(size for size, on_device in zip(wanted, stays, strict=True) if not on_device)
        if self.host_bytes is not None and values > self.host_bytes:
            raise DeviceError(
                f"values on edges take {values:,} bytes of this host's memory, since the GPU has no room for them, "
                f"and host_memory is {self.host_bytes:,}",
                rank=self.exchange.rank,
            )
        return values

    def _bytes_to_stage(self, compiled: CudaProgram) -> int:
        """Return what is taken so that records and messages cross between launches, from GPU to GPU."""
        subgraph, stages = self.subgraph, self.exchange.on_device and not self.has_peers
        if self.is_alone or not stages or self.program.delivery is not Delivery.RECORD:
            return 0
        assert subgraph.ghost_bounds is not None
        pushed = len(compiled.neutral or b"") if self.packing is Packing.PUSHED_PART else None
        counts = [part.size for part in subgraph.halo], np.diff(subgraph.ghost_bounds).tolist()
        return bytes_to_stage(
            *counts, subgraph.num_owned, int(compiled.defines["SIGPS_RECORD_BYTES"]), pushed
        )

    def _crossing_edges(self) -> CrossingEdges | None:
        """Return the packed edges that lead to other ranks, if values on them cross. Collective."""
        if self.is_alone or not self.program.reads_reverse:
            return None
        given = self.subgraph, self.exchange
        return self.subgraph.derived("crossing edges", lambda: find_crossing_edges(*given))

    def _bytes_to_find(self) -> int:
        """Return what finding the targets of direct messages takes, which stays with the graph."""
        if self.program.delivery is not Delivery.DIRECT:
            return 0
        subgraph = self.subgraph
        by_gid = self.has_peers or subgraph.ghost_bounds is None
        return bytes_to_find(
            subgraph.num_vertices, subgraph.num_owned, by_gid=by_gid, by_id=subgraph.ids.size > 0
        )

    def _pageless_graph(self, run_bytes: int, num_lids: int) -> StreamedGraph:
        """Return the partition without its edges."""
        known = graphs_on_gpu(self.subgraph, self.gpu)
        needed = run_bytes + (0 if PAGELESS in known else BYTES_OF_VERTEX * num_lids)
        kept = known.pop(PAGELESS, None)
        if (free := make_room(needed, self.gpu)) < needed:
            raise self._no_room(free, needed)
        graph = kept if isinstance(kept, StreamedGraph) else StreamedGraph(self.subgraph, self.gpu)
        known[PAGELESS] = graph
        return graph

    def _no_room(self, free: int, needed: int) -> DeviceError:
        return DeviceError(
            f"the GPU has {free:,} bytes for this run, which needs {needed:,} even with its edges packed on the "
            "host. precision='single' takes less, and arrays of Result.to_cupy() that are let go of leave more",
            rank=self.exchange.rank,
        )

    def _with_heads(self, graph: PackedGraph) -> PackedGraph:
        if self.has_heads:
            graph.make_heads()
        return graph

    def _tiling(self) -> Tiling | None:
        """Return how in-edges go into tiles; None where the program or the user does not let them."""
        may_be_none = self.tiles != "always"
        if may_be_none and (self.goes_by_edge or self.forced == "push" or not self.program.sends_together):
            return None
        machine = {"shared_bytes": self.gpu.shared_bytes, "num_blocks": self.gpu.num_sms}
        num_edges = self.subgraph.incoming.num_edges if self.is_alone else 0
        return choose_tiling(
            self._compiled(), **machine, varying=self._varying, num_edges=num_edges, tiles=self.tiles
        )

    @property
    def _varying(self) -> set[str]:
        """The edge columns that do not have one value throughout, on some rank where GPUs decide together."""
        return self._kept("varying", self._find_varying)

    def _find_varying(self) -> set[str]:
        columns = self.subgraph.incoming.columns
        vary = [int(column.strides != (0,)) for column in columns.values()]
        if self.has_peers and columns:
            vary = self._add_up(vary)
        return {name for name, times in zip(columns, vary, strict=True) if times}

    @property
    def _has_narrow_ids(self) -> bool:
        """Whether ids take 32 bits; the same on GPUs that write into each other's memory. Collective among these."""
        fit = self.subgraph.ids_fit_32_bits
        return self._kept("narrow", lambda: self._add_up([int(not fit)]) == [0]) if self.has_peers else fit

    def _kept(self, name: str, find: Callable[[], T]) -> T:
        """Return what was found before; without the lock of Python 3.11's cached_property, for ranks may be threads."""
        if name not in self.__dict__:
            self.__dict__[name] = find()
        found: T = self.__dict__[name]
        return found

    def _add_up(self, values: Sequence[int]) -> list[int]:
        """Return the sums over all ranks. Collective."""
        sums: list[int] = self.exchange.gather(np.array(values, dtype=np.int64)).sum(axis=0).tolist()
        return sums

    def _link_ahead(self, may_have_tiles: bool) -> None:
        """Begin to link what runs on a graph while the graph is laid out."""
        compiled = self._compiled()
        link_layout_ahead(self.gpu, may_have_tiles)
        for has_tiles in (False, True) if may_have_tiles else (False,):
            form = LeaseForm(
                has_peers=self.has_peers,
                goes_by_edge=self.goes_by_edge,
                has_tiles=has_tiles,
                has_tile_columns=has_tiles and not self._varying.isdisjoint(self.program.edge_columns),
                is_mesh=self.subgraph.most_out_edges <= CLUSTER_DEGREE,
            )
            link_variant_ahead(compiled, self.gpu, form)
        if self.can_wait and self.program.priority_form is not None:
            subgraph, value = self.subgraph, compiled.states[0].name
            takes_min = self.program.slots[0].op == "min"
            if subgraph.gids is None and subgraph.goes_both_ways and subgraph.is_mesh:
                link_components_ahead(self.gpu, value, takes_min)
            elif self.has_peers and may_have_components(subgraph):
                link_rank_components_ahead(self.gpu, value, takes_min)
            else:
                link_buckets_ahead(self.gpu, value, takes_min)

    def _compiled(self) -> CudaProgram:
        narrow = self._has_narrow_ids  # collective: not with the lock, which is of all ranks that are threads
        with spent_on("compile"), compiling:
            return compile_for_cuda(self.program, dict(self.columns), narrow_ids=narrow, arch=self.gpu.arch)


def _stays(wanted: Sequence[int], room: int) -> list[bool]:
    """Return which of some arrays are on the device, of so many bytes each; the others are on its host.

    >>> _stays((50, 60, 20), 75)
    [True, False, True]
    """
    found = []
    for size in wanted:
        found.append(size <= room)
        room -= size if found[-1] else 0
    return found

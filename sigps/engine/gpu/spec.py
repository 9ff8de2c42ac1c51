"""The engine for GPUs as the table of engines has it: alone, among peers, and directed by hosts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sigps.compiler.program import Consumption, Delivery, VertexProgram
from sigps.device.cpu import Threads
from sigps.engine.contract import (
    DeviceKind,
    Engine,
    EngineSpec,
    Executable,
    LaneRun,
    ManyRuns,
    Needs,
    RunContext,
    RunFacts,
    RunOptions,
    Share,
)
from sigps.engine.gpu import choice
from sigps.engine.master_compute import MasterCompute
from sigps.engine.partition.subgraph import Subgraph
from sigps.errors import CompileError, ConfigError, DeviceError
from sigps.graph.graph import Graph
from sigps.graph.measures.neighbourhood import CountShare
from sigps.model.vertex import Vertex

if TYPE_CHECKING:
    from sigps.graph.packing.unpacker import PackedRows

__all__ = ["SPEC"]

_SHARED_BYTES, _NUM_SMS, _MEMORY = 232_448, 132, 143_000_000_000
"""The shared memory of a block, multiprocessors and memory of an NVIDIA H200, for which plans are without a GPU."""


class GpuSpec(EngineSpec):
    """One NVIDIA GPU a rank; graph, states and messages in its memory."""

    device = "cuda"
    crosses_devices = True
    shares_runs = True
    predicted_as: DeviceKind | None = "h200"

    def missing(self) -> str:
        from sigps.device.cuda import what_is_missing

        return what_is_missing()

    def check_machine(self) -> None:
        from sigps.device.cuda import find_gpu

        if self.missing():
            find_gpu()

    def first_device(self) -> int:
        from sigps.device.cuda import first_gpu

        return first_gpu()

    @property
    def pays_from_edges(self) -> int:  # type: ignore[override]
        return choice.GPU_PAYS_FROM_EDGES

    def obstacle(self, program: VertexProgram | None, facts: RunFacts) -> str | None:
        assert program is not None
        if facts.without_barriers:
            return "runs without barriers (asynchronous=True)"
        return choice.find_gpu_obstacle(program, facts.deterministic)

    def reasons_against(
        self, program: VertexProgram, graph: Graph, facts: RunFacts, rank_on_host: int
    ) -> Iterator[str]:
        """Edges and the program first; then the machine, which loads CUDA's libraries; then memory and the compiler."""
        known: dict[str, Any] = {
            "num_edges": facts.num_edges // facts.num_ranks,
            "obstacle": self.obstacle(program, facts) or choice.reason_not_to_resume(program, facts.resumes),
        }
        yield choice.reason_against_gpu(**known)
        yield self._why_slower(program)
        yield choice.reason_against_gpu(**known, missing=self.missing())
        yield choice.reason_against_gpu(**known, **self._memory(program, graph, rank_on_host))
        yield self._why_not_compiled(program, graph, facts, rank_on_host)

    def compile(
        self, program: VertexProgram | None, graph: Graph, facts: RunFacts, rank_on_host: int
    ) -> Executable:
        """Find the GPU. The program is compiled when the engine is made: ids are narrow or not on all ranks alike."""
        from sigps.compiler.cpu.exact import with_exact_sums
        from sigps.device.cuda import find_gpu
        from sigps.engine.gpu.engine import GpuProgram

        assert program is not None
        if facts.deterministic:
            program = with_exact_sums(program, graph.column_types())
        return Executable(self, program, GpuProgram(program, find_gpu(rank_on_host)))

    def needs(self, executable: Executable, program: Vertex, graph: Graph, num_ranks: int) -> Needs:
        derived = executable.program
        assert derived is not None
        gpu = executable.code.gpu if num_ranks > 1 else None
        return Needs(derived.reads_edges, derived.reads_neighbors or derived.reads_reverse, gpu=gpu)

    @property
    def streaming(self) -> EngineSpec | None:
        return _STREAMING

    def make(self, context: RunContext) -> Engine:
        from sigps.device.cuda import limit_memory
        from sigps.engine.gpu.engine import GpuEngine
        from sigps.engine.gpu.peers import GpuPeerEngine
        from sigps.engine.gpu.staged import GpuStagedEngine

        options, exchange, params = context.options, context.exchange, context.params()
        common: dict[str, Any] = {
            "forced": options.forced,
            "asynchronous": bool(options.asynchronous),
            "master": MasterCompute.of(context, params),
            "saves": options.saves,
            "schedule": options.schedule,
            "stream": options.stream,
            "is_limited": options.device_memory is not None,
            "tiles": options.tiles,
            "is_bulk": options.transfer == "bulk",
            "host_bytes": options.host_memory,
        }
        limit_memory(options.device_memory)
        given = context.executable.code, params, context.subgraph, exchange
        try:
            if options.has_peers:
                return GpuPeerEngine(*given, patience=options.patience, **common)
            if exchange.size == 1:
                return GpuEngine(*given, without_barriers=options.asynchronous is True, **common)
            return GpuStagedEngine(*given, **common)
        except MemoryError as error:
            raise DeviceError(
                f"the GPU has too little memory for this graph: {error}. "
                "precision='single' and fewer edge columns take less; device='cpu' uses the host's",
                rank=exchange.rank,
            ) from error

    def lanes_obstacle(
        self,
        program: VertexProgram | None,
        facts: RunFacts,
        options: RunOptions,
        num_runs: int,
        num_threads: int,
    ) -> str:
        return ""

    def run_lanes(self, context: RunContext, many: ManyRuns) -> Iterator[LaneRun]:
        from sigps.engine.gpu.lanes import run_side_by_side

        return run_side_by_side(context, many)

    def num_bytes(self, program: VertexProgram, share: Share) -> dict[str, int]:
        """Return what the graph takes while it is laid out, and out-edges as compute() walks them."""
        return self._bytes_at_peak(program, share, 0)

    def _bytes_at_peak(self, program: VertexProgram, share: Share, run_bytes: int) -> dict[str, int]:
        """Return what the graph takes while it is laid out, or beside so much of a run, and walked out-edges."""
        from sigps.engine.gpu import memory_plan
        from sigps.engine.gpu.simple_rows import bytes_while_counted

        directions = 2 if share.directed or share.num_ranks > 1 else 1
        laid_out = share.num_vertices, share.num_edges * directions, share.num_columns
        needed = memory_plan.bytes_while_laid_out(*laid_out, run_bytes=run_bytes)
        if any(field.measure for field in program.states):
            num_keys = share.edges_everywhere * (2 if share.directed else 1)
            copied = 4 * share.edges_everywhere if share.num_ranks > 1 else 0
            counted = bytes_while_counted(share.num_vertices, num_keys) + copied
            needed = max(needed, memory_plan.bytes_kept(*laid_out) + counted)
        looks = program.reads_neighbors or program.reads_reverse
        most_mirrored = share.edges_everywhere - share.num_edges if looks else 0  # nothing is partitioned yet
        return {"graph": needed, "walks": memory_plan.bytes_to_walk(program, share.num_edges, most_mirrored)}

    def room(
        self,
        program: VertexProgram,
        graph: Graph,
        options: RunOptions,
        *,
        num_ranks: int = 1,
        rank_on_host: int = 0,
    ) -> tuple[int, int]:
        from sigps.compiler.cuda.compile import compile_for_cuda
        from sigps.compiler.program import compiling
        from sigps.device.cuda import find_gpu, free_bytes
        from sigps.engine.gpu.graph import division_on_gpu
        from sigps.engine.gpu.memory_plan import Sizes, plan_run
        from sigps.engine.gpu.resident import bytes_of_edges, make_room
        from sigps.kernels.cuda.lease import HUB_DEGREE

        limit, num_edges = options.device_memory, -(-graph.num_edges // num_ranks)
        num_lids = graph.num_vertices if num_ranks > 1 else 0  # at most
        share = Share(graph.num_vertices, num_edges, 0, graph.directed, num_ranks, graph.num_edges)
        laid_out_bytes = sum(self.num_bytes(program, share).values())
        if self.missing():  # a plan of a run elsewhere
            return laid_out_bytes, _MEMORY if limit is None else limit
        gpu = find_gpu(rank_on_host)
        free = free_bytes() if limit is None else min(free_bytes(), limit)
        known: dict[Any, tuple[Any, Subgraph]] = graph.derived("partitions", dict)
        laid_out = [division_on_gpu(s, gpu, sorts_rows=o) for _, s in known.values() for o in (True, False)]
        if limit is None and any(laid_out):
            return 0, free
        with compiling:
            compiled = compile_for_cuda(
                program, graph.column_types(), narrow_ids=_are_narrow(graph), arch=gpu.arch
            )
        num_owned = -(-graph.num_vertices // num_ranks)
        plan = plan_run(compiled, Sizes(num_owned, num_edges, num_edges // HUB_DEGREE, num_lids=num_lids))
        needed = run_bytes = plan.nbytes + plan.state_bytes
        if "whole" not in laid_out:
            needed = sum(self._bytes_at_peak(program, share, run_bytes).values())
        if (
            free < needed
        ):  # it may run with its edges on the host, of which a part may be here from the last run
            own = [part for _, whole in known.values() for part in (whole, *whole.derivatives(Subgraph))]
            free = make_room(needed, gpu, besides=own, needed=0)
            if free < needed <= free + bytes_of_edges(own, gpu):
                free = make_room(needed, gpu, needed=0)
        return needed, free if limit is None else min(free, limit)

    def memory_of_rank(self, rank_on_host: int, ranks_here: int) -> int | None:
        """Return half of what is free, shared by the ranks that have the same GPU."""
        import cupy

        from sigps.device.cuda import find_gpu, free_bytes

        find_gpu(rank_on_host)
        of_this_gpu = -(-ranks_here // int(cupy.cuda.runtime.getDeviceCount()))
        return free_bytes() // (2 * of_this_gpu)

    def held_bytes(self) -> int:
        """Return what CuPy's pool has taken of the GPU, which it keeps after a run."""
        import cupy

        return int(cupy.get_default_memory_pool().total_bytes())

    def facts_of_rank(self, rank_on_host: int, num_threads: int, *, alone: bool) -> dict[str, Any]:
        from sigps.device.cuda import find_gpu

        gpu = find_gpu(rank_on_host)
        facts = super().facts_of_rank(rank_on_host, num_threads, alone=alone)
        facts |= {"gigabytes_per_second": gpu.gigabytes_per_second, "priority_by": ["peer"]}
        return facts | choice.gpu_facts(gpu, alone=alone)

    def count_share(self, executable: Executable, threads: Threads) -> CountShare:
        import functools

        from sigps.engine.gpu.triangles import count_share

        return functools.partial(count_share, executable.code.gpu)

    def explained(self, program: VertexProgram, graph: Graph) -> dict[str, str]:
        """Return whether in-edges would lie in tiles, and what they would take of the GPU's memory, to the byte.

        Counted as a run counts, for the GPU that is here or an H200.
        """
        from sigps.compiler.cuda.compile import macros_of
        from sigps.device.cuda import find_gpu
        from sigps.engine.gpu.tile_sizes import measure_tiles
        from sigps.engine.gpu.tiling import count_on_host, find_reason_against, plan_tiling
        from sigps.kernels.cpu.layout import number_by_degree

        defines = macros_of(program, graph.column_types(), narrow_ids=_are_narrow(graph))
        varying = {name for name, column in graph.columns.items() if column.strides != (0,)}
        if obstacle := find_reason_against(program, defines, varying, graph.in_edges().sources.size):
            return {"tiles": f"no: {obstacle}"}
        gpu = None if self.missing() else find_gpu()
        shared_bytes, num_sms = (gpu.shared_bytes, gpu.num_sms) if gpu else (_SHARED_BYTES, _NUM_SMS)
        record_bytes = int(defines["SIGPS_RECORD_BYTES"])
        tiling = plan_tiling(record_bytes, shared_bytes, num_sms)
        inward = graph.in_edges()
        lids, _ = number_by_degree(np.diff(inward.offsets).astype(np.uint32))
        counts = count_on_host(inward.offsets, inward.sources, lids, tiling.size)
        why = f"{counts}, in segments of {tiling.size:,}"
        if reason := counts.reason_against:
            return {"tiles": f"no: {why}; {reason}"}
        sizes = measure_tiles(inward.offsets, inward.sources, lids, tiling)
        return {"tiles": f"yes: {why}", "tile bytes": f"{sizes.num_bytes:,}"}

    def _memory(self, program: VertexProgram, graph: Graph, rank_on_host: int) -> dict[str, Any]:
        """Compare what a run takes on this rank's GPU with what that has."""
        from sigps.device.cuda import find_gpu, free_bytes

        find_gpu(rank_on_host)
        size = graph.group.size
        share = Share(
            graph.num_vertices,
            graph.num_edges // size,
            len(graph.columns),
            graph.directed,
            size,
            graph.num_edges,
        )
        needed = sum(self.num_bytes(program, share).values())
        return {"needed_bytes": needed, "free_bytes": free_bytes()}

    def _why_slower(self, program: VertexProgram) -> str:
        """Name what a GPU is slower at than CPU cores; empty where nothing is known."""
        if not program.reads_neighbors:
            return ""
        from sigps.compiler.cuda.lanewise import shares_all

        return "" if shares_all(program) else choice.SLOWER_ON_GPUS

    def _why_not_compiled(
        self, program: VertexProgram, graph: Graph, facts: RunFacts, rank_on_host: int
    ) -> str:
        """Compile, and name what CUDA lacks that other devices have; empty where it lacks nothing."""
        from sigps.compiler.cuda.compile import compile_for_cuda
        from sigps.compiler.program import compiling
        from sigps.device.cuda import find_gpu
        from sigps.engine.gpu.variant import find_edge_obstacle

        is_narrow = _are_narrow(graph)
        arch = find_gpu(rank_on_host).arch
        try:
            with compiling:
                compiled = compile_for_cuda(program, graph.column_types(), narrow_ids=is_narrow, arch=arch)
        except CompileError as error:
            return str(error)
        obstacle = find_edge_obstacle(compiled, arch) if facts.schedule == "edge" else None
        return f"by edges it takes {obstacle}" if obstacle else ""


def _are_narrow(graph: Graph) -> bool:
    """Return whether all ids that compute() sees fit 32 bits. Collective when a graph is first asked."""

    def find() -> bool:
        ends = np.array([0, graph.num_vertices - 1])
        if graph.ids.kind != "strings":
            ends = graph.ids.to_oids(ends)  # ascending, so these two bound all
        return bool(ends[0] > -(2**31) and ends[1] < 2**31)

    return graph.derived("ids fit 32 bits", find)


class StreamingGpuSpec(GpuSpec):
    """The same, with in-edges in packed pages: on the GPU's host but for the first, unpacked when they are read."""

    def needs(self, executable: Executable, program: Vertex, graph: Graph, num_ranks: int) -> Needs:
        return Needs(streamed=True)

    def streaming_obstacle(self, program: VertexProgram, graph: Graph, options: RunOptions) -> str:
        from sigps.compiler.cpu.exact import with_exact_sums
        from sigps.compiler.cuda.compile import macros_of
        from sigps.engine.gpu.packed_places import MOST_SLOTS_BYTES, may_read_rows

        if options.schedule == "edge":
            return "packed edges are read vertex by vertex"
        if program.edge_states and not program.reads_edges:
            return f"{program.name} keeps values on edges, and does not walk them"
        if not program.goes_along_edges:
            return ""
        if program.reads_neighbors:
            return f"{program.name} looks through rows of neighbours, which are in memory"
        if program.edge_states and program.delivery is Delivery.RECORD:
            return f"{program.name} keeps values on edges, and sends what goes along them as a record, too"
        if program.reads_edges and graph.directed:
            return f"compute() of {program.name} walks its out-edges, and the store of a directed graph has in-edges"
        if len(program.columns_of_edges) > _MOST_COLUMNS:
            return f"{program.name} reads more than {_MOST_COLUMNS} values of an edge"
        assert graph.packed is not None
        in_order = program.consumption is Consumption.LISTED and options.deterministic
        if graph.packed.order is not None and (in_order or program.reads_edges):
            walks, are_listed = f"compute() of {program.name} walks", f"messages of {program.name} are listed"
            return (
                f"{walks if program.reads_edges else are_listed}, in the order of edges, and the rows of "
                f"{graph.packed.rows.where} are by degree. Write it with order='given', or sigps convert --packed "
                "--order given"
            )
        if options.host_memory is not None and graph.packed.rows.file is None:
            return "host_memory is of pages that are read from a file, and the store is in memory"
        totals = choice.bytes_of_totals(program, options.deterministic)
        most_totals = _MOST_TOTALS_BYTES
        if program.delivery is Delivery.DIRECT:
            most_totals = _MOST_TOTALS_OF_DIRECT if graph.group.size == 1 else _MOST_TOTALS_OF_DIRECT_ON_RANKS
        if totals > most_totals:
            return (
                f"aggregators of {program.name} have {totals:,} bytes, more than the {most_totals:,} that kernels over "
                "packed edges have room for: let it have fewer, or run it in memory"
            )
        if program.delivery is Delivery.DIRECT:
            return ""
        if options.forced == "push" and (
            graph.directed
            or program.reads_all_at_once
            or program.reads_edges
            or options.transfer == "bulk"
            or options.host_memory is not None
            or not may_read_rows(program)
        ):
            return (
                "packed edges of a directed graph, with transfer='bulk' or host_memory, and where messages are listed "
                "or grouped by key, read more than two values of an edge, or compute() walks edges, are pulled"
            )
        if options.deterministic:
            program = with_exact_sums(program, graph.column_types())
        defines = macros_of(program, graph.column_types(), narrow_ids=_are_narrow(graph))
        if int(defines["SIGPS_SLOTS_BYTES"]) > MOST_SLOTS_BYTES:
            return f"combined messages of {program.name} have more than {MOST_SLOTS_BYTES} bytes"
        return ""

    def bytes_beside_edges(
        self,
        program: VertexProgram,
        graph: Graph,
        options: RunOptions,
        rows: PackedRows,
        num_ranks: int = 1,
    ) -> dict[str, int]:
        from sigps.compiler.cuda.compile import macros_of
        from sigps.engine.gpu.memory_plan import shape_over_packed
        from sigps.engine.gpu.packed_places import may_read_rows
        from sigps.engine.gpu.packed_plan import bytes_beside_packed

        assert graph.packed is not None
        defines = macros_of(program, graph.column_types(), narrow_ids=_are_narrow(graph))
        is_part, is_by_degree = num_ranks > 1, graph.packed.order is not None
        searches = not (program.reads_all_at_once or program.reads_edges or program.sends_together)
        searches &= options.transfer != "bulk" and may_read_rows(program)
        goes_by_rows = searches and options.host_memory is None
        return bytes_beside_packed(
            program,
            defines,
            rows,
            graph.num_vertices,
            pushes=goes_by_rows and not graph.directed,
            num_ranks=num_ranks,
            has_heads=searches,
            is_descending=is_by_degree and not graph.directed,
            num_blocks=_NUM_SMS * shape_over_packed(program).blocks_per_sm,
            has_ids=is_part or is_by_degree or (graph.ids.kind != "strings" and not graph.ids.is_identity),
        )

    def bytes_of_values(self, program: VertexProgram, num_edges: int, num_ranks: int) -> tuple[int, ...]:
        from sigps.engine.gpu.memory_plan import bytes_of_reverse, bytes_of_values

        num_copies = num_edges if num_ranks > 1 and program.reads_reverse else 0  # at most
        return bytes_of_values(program, num_edges, num_copies), bytes_of_reverse(program, num_edges)

    def lanes_obstacle(
        self,
        program: VertexProgram | None,
        facts: RunFacts,
        options: RunOptions,
        num_runs: int,
        num_threads: int,
    ) -> str:
        return "edges are streamed for one run at a time"

    def make(self, context: RunContext) -> Engine:
        options, size = context.options, context.exchange.size
        crosses = options.has_peers or context.exchange.on_device
        if options.forced == "push" and size > 1 and not crosses:
            raise ConfigError(
                "direction='push' on packed edges of several ranks needs messages that cross from GPU to GPU, and here "
                "they would go through hosts, where packed edges are pulled. Use direction='auto', or transport='peer' "
                "or 'nccl'"
            )
        return super().make(context._replace(subgraph=_by_rows(context.subgraph)))


def _by_rows(subgraph: Subgraph) -> Subgraph:
    """Return a partition whose local ids are the numbers of rows on a GPU too."""
    if subgraph.gids is not None:
        return subgraph
    return subgraph.derived(
        "by rows", lambda: replace(subgraph, gids=np.arange(subgraph.num_owned), _derived={})
    )


_MOST_COLUMNS = 8  # a group's place in a page with its columns has 23 bits (packed_rows.cuh)
_MOST_TOTALS_BYTES = 256  # of each warp, in shared memory beside what packed rows need of it
_MOST_TOTALS_OF_DIRECT = 1024  # where no messages along them are read; kernels do not link with 1,472
_MOST_TOTALS_OF_DIRECT_ON_RANKS = 512  # and in reports of peers; they do not link with 1,024

SPEC = GpuSpec()
_STREAMING = StreamingGpuSpec()

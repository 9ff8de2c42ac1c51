"""The engine for CPU cores as the table of engines has it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sigps.compiler.program import Consumption, Delivery, EarlyExit, VertexProgram
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
)
from sigps.engine.master_compute import MasterCompute
from sigps.errors import ConfigError
from sigps.graph.graph import Graph
from sigps.model.vertex import Vertex

if TYPE_CHECKING:
    from sigps.engine.cpu.engine import Engine as CpuEngine

__all__ = ["SPEC"]


class CpuSpec(EngineSpec):
    """Compiled loops on the cores of this rank, in host memory."""

    device = "cpu"
    shares_runs = True
    predicted_as: DeviceKind | None = "cpu"

    def reasons_against(
        self, program: VertexProgram, graph: Graph, facts: RunFacts, rank_on_host: int
    ) -> Iterator[str]:
        """None: it runs every program that compiles."""
        yield from ()

    def compile(
        self, program: VertexProgram | None, graph: Graph, facts: RunFacts, rank_on_host: int
    ) -> Executable:
        from sigps.compiler.cpu.exact import with_exact_sums
        from sigps.compiler.cpu.native import compile_for_cpu
        from sigps.compiler.program import compiling
        from sigps.engine.cpu.work import needs_order

        assert program is not None
        with compiling:
            if facts.deterministic:
                program = with_exact_sums(program, graph.column_types())
            native = compile_for_cpu(program, graph.column_types())
        if facts.schedule == "edge" and needs_order(native, facts.deterministic):
            raise ConfigError(
                f"{program.name} cannot run with schedule='edge' and deterministic=True: what combines its "
                "floats depends on their order, and pieces of edges are combined by themselves. Use schedule='vertex', "
                "or leave deterministic out"
            )
        return Executable(self, program, native)

    def needs(self, executable: Executable, program: Vertex, graph: Graph, num_ranks: int) -> Needs:
        """Out-edges and rows as the program walks them; degree order where that pays (`_gains_by_degree`)."""
        derived = executable.program
        assert derived is not None
        return Needs(
            out_edges=derived.reads_edges,
            neighbor_rows=derived.reads_neighbors or derived.reads_reverse,
            degree_order=num_ranks == 1 and _gains_by_degree(derived, graph),
            ascending=_gains_by_ascending(derived, graph),
        )

    @property
    def streaming(self) -> EngineSpec | None:
        return _STREAMING

    def make(self, context: RunContext) -> Engine:
        from sigps.engine.cpu.engine import Engine as CpuEngine

        return self._made(CpuEngine, context)

    def _made(self, engine: type[CpuEngine], context: RunContext, **more: Any) -> CpuEngine:
        options, blocks = context.options, None
        if options.asynchronous is True:
            from sigps.engine.cpu.crew import Schedule as BlockSchedule

            blocks = BlockSchedule()
        return engine(
            context.executable.code,
            context.params(),
            context.subgraph,
            context.exchange,
            context.threads,
            deterministic=options.deterministic,
            forced=options.forced,
            asynchronous=bool(options.asynchronous),
            blocks=blocks,
            master=MasterCompute.of(context),
            saves=options.saves,
            schedule=options.schedule,
            **more,
        )

    def lanes_obstacle(
        self,
        program: VertexProgram | None,
        facts: RunFacts,
        options: RunOptions,
        num_runs: int,
        num_threads: int,
    ) -> str:
        from sigps.engine.cpu.lanes import find_obstacle

        assert program is not None
        return find_obstacle(program, facts, options, num_runs, num_threads)

    def run_lanes(self, context: RunContext, many: ManyRuns) -> Iterator[LaneRun]:
        from sigps.engine.cpu.lanes import run_waves

        return run_waves(context, many)


def _gains_by_degree(program: VertexProgram, graph: Graph) -> bool:
    """Tell whether degree order pays: records are read along edges of a skewed graph, and this is not its first run.

    Laying kron-18 out takes 74 ms, ten times as long as a search; then a superstep of PageRank takes 3.7 ms instead of
    6.4 (2 cores). A graph that is run once never waits for it.
    """
    from sigps.engine.partition.degree_order import gains_by_degree

    if program.delivery is not Delivery.RECORD or program.reads_edge_links:
        return False
    was_run = graph.derived("runs on CPU cores", lambda: [False])
    if not was_run[0]:
        was_run[0] = True
        return False
    return graph.derived("gains by degree order", lambda: gains_by_degree(graph))


_MANY_VERTICES = 1 << 21


def _gains_by_ascending(program: VertexProgram, graph: Graph) -> bool:
    """Tell whether in-edges may be in the order in which records lie, and gain: where records are in no core's cache.

    A superstep of PageRank on kron-22 takes 116 ms instead of 176, in single precision 91 instead of 147, and the run
    that lays out 5.1 s instead of 2.7 (2 cores); on kron-20 22 instead of 27, and 1.5 s instead of 0.6.
    """
    if graph.num_vertices < _MANY_VERTICES:
        return False
    return program.consumption is Consumption.COMBINED and program.early_exit is not EarlyExit.LOWEST


class StreamingCpuSpec(CpuSpec):
    """The same, with edges in a packed store: unpacked block by block, by the thread that uses them."""

    def needs(self, executable: Executable, program: Vertex, graph: Graph, num_ranks: int) -> Needs:
        return Needs(streamed=True)

    def streaming_obstacle(self, program: VertexProgram, graph: Graph, options: RunOptions) -> str:
        if program.reads_neighbors:
            return f"{program.name} looks through rows of neighbours, which are in memory"
        if (program.reads_edges or program.edge_states) and graph.directed:
            return f"compute() of {program.name} walks its out-edges, and the store of a directed graph has in-edges"
        if options.schedule == "edge":
            return "schedule='edge' goes along all edges in memory"
        if options.asynchronous is True and (why := self._barrier_obstacle(program, options)):
            return f"asynchronous=True is not built for streamed edges {why}"
        assert graph.packed is not None
        if graph.packed.order is None:
            return ""
        given = (
            f"the rows of {graph.packed.rows.where} are by degree. Write it with order='given', or sigps convert "
            "--packed --order given"
        )
        if program.reads_edges or program.edge_states or program.delivery is Delivery.DIRECT:
            return f"{program.name} sends to single vertices, or its compute() walks out-edges, and {given}"
        if options.deterministic and _depends_on_order(program, graph):
            return f"messages of {program.name} are listed, or combine in an order of its own, and {given}"
        return ""

    def _barrier_obstacle(self, program: VertexProgram, options: RunOptions) -> str:
        if options.saves:
            return "with state logs"
        if program.asynchronous is not None and program.asynchronous.has_parents:
            return f"of programs with parents, as {program.name} is"
        if program.delivery is not Delivery.RECORD or program.consumption is Consumption.LISTED:
            return "of messages that are not combined along edges"
        return "of programs whose compute() walks edges" if program.reads_edges else ""

    def compile(
        self, program: VertexProgram | None, graph: Graph, facts: RunFacts, rank_on_host: int
    ) -> Executable:
        """Compile it; where rows are by degree their first sender is not the one of the lowest id."""
        assert program is not None
        assert graph.packed is not None
        if graph.packed.order is not None and program.early_exit is EarlyExit.LOWEST:
            program = replace(program, early_exit=EarlyExit.NEVER, key=f"{program.key} reads all")
        return super().compile(program, graph, facts, rank_on_host)

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
        from sigps.engine.cpu.streamed import StreamingEngine

        options, program = context.options, context.executable.program
        assert program is not None
        contracts = False
        if options.asynchronous == "auto" and program.asynchronous and program.asynchronous.factor:
            is_built = not self._barrier_obstacle(program, options)
            contracts = is_built and options.forced is None and context.exchange.size == 1
        if options.asynchronous is not True:
            context = context._replace(options=options._replace(asynchronous=False))
        room = {"cache_bytes": options.cache_bytes, "value_bytes": options.value_bytes}
        return self._made(StreamingEngine, context, **room, contracts=contracts)


def _depends_on_order(program: VertexProgram, graph: Graph) -> bool:
    """Tell whether what a vertex gets depends on the order of its in-edges in a deterministic run."""
    from sigps.compiler.cpu.exact import with_exact_sums
    from sigps.compiler.cpu.native import compile_for_cpu
    from sigps.engine.cpu.work import needs_order

    types = graph.column_types()
    native = compile_for_cpu(with_exact_sums(program, types), types)
    return program.reads_all_at_once or needs_order(native, deterministic=True)


SPEC = CpuSpec()
_STREAMING = StreamingCpuSpec()

"""The interpreter as the table of engines has it."""

from __future__ import annotations

from sigps.compiler.program import VertexProgram
from sigps.engine.contract import Engine, EngineSpec, Executable, Needs, RunContext, RunFacts
from sigps.graph.graph import Graph
from sigps.model.vertex import Vertex

__all__ = ["SPEC"]


class InterpreterSpec(EngineSpec):
    """The class as it is, one vertex after another, in plain Python."""

    device = "python"
    is_compiled = False
    traces = True

    def compile(
        self, program: VertexProgram | None, graph: Graph, facts: RunFacts, rank_on_host: int
    ) -> Executable:
        return Executable(self, None, None)

    def needs(self, executable: Executable, program: Vertex, graph: Graph, num_ranks: int) -> Needs:
        """Out-edges always. One rank has the rows of neighbours, and a function outside the class may read them."""
        declared = program.declaration
        reads_rows = declared.reads_neighbors or bool(declared.edge_states) or num_ranks == 1
        return Needs(out_edges=True, neighbor_rows=reads_rows)

    def make(self, context: RunContext) -> Engine:
        from sigps.engine.interpreter.engine import InterpretedEngine

        options = context.options
        return InterpretedEngine(
            context.program,
            context.subgraph,
            context.exchange,
            deterministic=options.deterministic,
            precision=options.precision,
            trace=options.trace,
        )


SPEC = InterpreterSpec()

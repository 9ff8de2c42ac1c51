"""What a graph and a run take of the GPU's memory, an edge and a vertex.

CuPy's pool holds all of it. A graph that the device has not seen is run on twice: what stays after the first run
is the graph, and what the second run has at its peak beyond that is the run's.
"""

from __future__ import annotations

import gc
from typing import Any

import cupy
from measuring import Case, Table, run

import sigps
from sigps.apps import BFS, PageRank
from sigps.compiler.cuda.compile import compile_for_cuda
from sigps.compiler.frontend.analysis import analyse
from sigps.device.cuda import find_gpu

WANTED_AN_EDGE, WANTED_A_VERTEX = 4.5, 24.0
"""Bytes of a graph without edge columns and of a run on it, but for the program's fields."""

MIB = 1 << 20


def measure(case: Case, table: Table, repeats: int) -> None:
    """Measure BFS and PageRank, which lay edges out in different orders; once, since memory does not vary."""
    for program in (BFS(source=case.sources[0]), PageRank(iterations=10)):
        measure_program(program, case, table)


def measure_program(program: sigps.Vertex, case: Case, table: Table) -> None:
    """Measure one program on a graph without edge columns."""
    graph = without_columns(case.graph)
    before = used_bytes()
    with Peak() as laying_out:
        run(program, graph)
    laid_out = used_bytes() - before
    with Peak() as running:
        run(program, graph)
    taken = running.num_bytes - before - laid_out
    edges, vertices, fields = graph.num_edges, graph.num_vertices, bytes_of_fields(program)
    wanted = WANTED_AN_EDGE * edges + (WANTED_A_VERTEX + fields) * vertices
    row = {
        "graph_mib": round(laid_out / MIB, 1),
        "run_mib": round(taken / MIB, 1),
        "laying_out_mib": round((laying_out.num_bytes - before) / MIB, 1),
        "graph_bytes_an_edge": round(laid_out / edges, 3),
        "run_bytes_a_vertex": round(taken / vertices, 2),
        "field_bytes_a_vertex": fields,
        "bytes_a_vertex_beyond_edges": round((laid_out + taken - WANTED_AN_EDGE * edges) / vertices, 2),
        "share_of_wanted": round((laid_out + taken) / wanted, 3),
    }
    table.add(
        {"work": f"memory of {type(program).__name__}", "graph": case.name, **row},
        f"{row['graph_bytes_an_edge']} B an edge for the graph, {row['run_bytes_a_vertex']} B a vertex for the run"
        f" ({fields} of them fields): {row['share_of_wanted']} of what is wanted;"
        f" {row['laying_out_mib']:,.0f} MiB at most while laid out",
    )


def without_columns(graph: sigps.Graph) -> sigps.Graph:
    """Return the same graph without weights, as one that the device does not know."""
    return sigps.Graph(
        offsets=graph.offsets,
        targets=graph.targets,
        columns={},
        num_edges=graph.num_edges,
        directed=graph.directed,
        ids=graph.ids,
        row_bounds=graph.row_bounds,
        group=graph.group,
        report=graph.report,
    )


def bytes_of_fields(program: sigps.Vertex) -> int:
    """Return what a vertex's fields take on the device, where ids fit 32 bits."""
    compiled = compile_for_cuda(analyse(program, "single"), {}, narrow_ids=True, arch=find_gpu().arch)
    return sum(dtype.itemsize for dtype in compiled.states)


def used_bytes() -> int:
    """Return what is in use of CuPy's pool, with garbage gone."""
    gc.collect()
    return int(cupy.get_default_memory_pool().used_bytes())


class Peak(cupy.cuda.MemoryHook):  # type: ignore[misc]
    """The most bytes in use at once while the hook is on."""

    name = "Peak"

    def __init__(self) -> None:
        self.num_bytes = used_bytes()

    def malloc_postprocess(self, **_: Any) -> None:
        """Look after every allocation; CuPy calls this."""
        self.num_bytes = max(self.num_bytes, int(cupy.get_default_memory_pool().used_bytes()))

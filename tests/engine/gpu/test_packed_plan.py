"""What a run on packed edges is planned to take beside them is about what it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import host_gpu
import pytest

import sigps
from sigps.apps import BFS, CDLP, SSSP, WCC, LeidenRound, PageRank
from sigps.compiler.cuda.compile import compile_for_cuda, macros_of
from sigps.compiler.frontend.analysis import analyse
from sigps.compiler.program import VertexProgram
from sigps.engine.gpu.memory_plan import Sizes, plan_run
from sigps.engine.gpu.packed_places import (
    arcs_of_spans,
    bytes_beside_pages,
    bytes_of_heads,
    places_in_pages,
)
from sigps.engine.gpu.packed_plan import bytes_beside_packed
from sigps.engine.partition.streamed import StreamedEdges
from sigps.graph.formats.packed_store import save_packed
from sigps.graph.packing.paged import PagedRows
from sigps.graph.report import bytes_text


@pytest.mark.parametrize("order", ["given", "degree"])
@pytest.mark.parametrize(
    "program", [PageRank(), BFS(source=1), WCC(), SSSP(source=1)], ids=lambda p: type(p).__name__
)
def test_it_is_about_what_is_taken(program: sigps.Vertex, order: str, tmp_path: Path) -> None:
    made = sigps.generate("rmat", scale=17, edge_factor=4, seed=1, directed=False)
    save_packed(made, tmp_path / "store", order=order)
    graph = sigps.load(tmp_path / "store")
    assert graph.packed is not None
    derived, n = analyse(program, "double"), graph.num_vertices
    pushes = not derived.sends_together
    defines = macros_of(derived, graph.column_types(), narrow_ids=True)
    planned = bytes_beside_packed(
        derived,
        defines,
        graph.packed.rows,
        n,
        pushes=pushes,
        has_heads=pushes,
        is_descending=order == "degree",
        num_blocks=132,
    )
    edges = StreamedEdges(PagedRows(graph.packed.rows, 1), n)
    taken = bytes_beside_pages(edges, places_in_pages(edges.rows), n, 132, ())
    compiled = compile_for_cuda(derived, graph.column_types(), narrow_ids=True, arch="sm_90")
    plans = [
        plan_run(compiled, Sizes(count, graph.num_edges, 0, pulls_alone=not pushes)) for count in (n, 0)
    ]  # without what does not grow with the graph
    by_vertex = plans[0].nbytes + plans[0].state_bytes - plans[1].nbytes - plans[1].state_bytes
    if pushes:
        _assert_holds_what_crosses(derived, defines, graph, planned["messages"])
    assert planned["graph"] + planned["unpacking"] == pytest.approx(taken, rel=0.05)
    assert planned["state"] + planned["messages"] == pytest.approx(by_vertex, rel=0.35)  # ids may be narrower
    stops_early = type(program) in (BFS, WCC)
    assert edges.rows.is_descending == (order == "degree")
    heads = bytes_of_heads(edges.rows) if stops_early else 0
    assert heads <= planned.get("heads", 0) <= 1.15 * heads


@pytest.mark.parametrize("program", [CDLP(), LeidenRound()], ids=lambda p: type(p).__name__)
def test_tables_and_lists_are_in_the_plan(program: sigps.Vertex, tmp_path: Path) -> None:
    """A key and its sum have 8 bytes, and up to 16 for the plan; pages behind a row that spans some count for it."""
    made = sigps.generate("rmat", scale=10, seed=1, directed=False)
    save_packed(made, tmp_path / "store", order="degree", page_arcs=256)
    graph = sigps.load(tmp_path / "store")
    assert graph.packed is not None
    derived, paged = analyse(program, "double"), PagedRows(graph.packed.rows, 1)
    defines = macros_of(derived, graph.column_types(), narrow_ids=True)
    planned = bytes_beside_packed(
        derived, defines, graph.packed.rows, graph.num_vertices, pushes=False, has_heads=False, num_blocks=132
    )
    arcs = arcs_of_spans(paged)
    if isinstance(program, CDLP):
        taken = min(arcs.size, 132) * (2 * int(arcs.max()) + 1) * 8
        assert arcs.size > 4
        assert taken <= planned["tables"] <= 4 * taken
    else:
        compiled = compile_for_cuda(derived, graph.column_types(), narrow_ids=True, arch="sm_90")
        size = sum(dtype.itemsize for dtype in compiled.message)
        taken = 132 * paged.most_arcs * (2 * size + 12)
        assert taken <= planned["lists"] <= 2 * taken  # ids may be narrower


def _assert_holds_what_crosses(
    derived: VertexProgram, defines: dict[str, str], graph: sigps.Graph, alone: int
) -> None:
    """Of two ranks one has room for as much as all of the other's vertices may send it, and what it sends them."""
    assert graph.packed is not None
    n, half = graph.num_vertices, graph.num_vertices // 2
    how: dict[str, Any] = {"pushes": True, "has_heads": False, "num_blocks": 132}
    part = bytes_beside_packed(derived, defines, graph.packed.rows, n, num_ranks=2, **how)
    compiled = compile_for_cuda(derived, graph.column_types(), narrow_ids=True, arch="sm_90")
    many, few = (
        plan_run(
            compiled, Sizes(own, graph.num_edges, 0, num_lids=all_, num_peers=2, num_ranks=2, num_slots=own)
        )
        for own, all_ in ((half, n), (0, 0))
    )
    taken = many.nbytes - few.nbytes - (many.sizes["listed0"] + many.sizes["listed1"]) - many.sizes["status"]
    assert alone < part["messages"]
    assert taken <= part["messages"]


def test_a_run_says_what_stays_and_what_crosses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sigps.generate("grid", rows=30, columns=30).save(tmp_path / "store", packed=True)
    host_gpu.use_host_as_gpu(monkeypatch)
    graph = sigps.load(tmp_path / "store")
    with caplog.at_level("INFO", "sigps"):
        sigps.run(BFS(source=1), graph, device="cuda", stream="always")
    assert graph.packed is not None
    said = next(message for message in caplog.messages if message.startswith("streaming: "))
    words = graph.packed.rows.words.nbytes
    assert f"0 B of edges kept, at most {bytes_text(words)} a superstep" in said

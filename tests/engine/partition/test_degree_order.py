"""Partitions of one rank whose vertices are numbered by degree, for CPU cores: the same results, by the same ids."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from battery import BATTERY
from equality_programs import program_for
from turns import half_of
from ways import Way, assert_all_equal

from sigps import Checkpoint, Graph, State, Vertex, generate, run
from sigps.apps import SCC, KCore, OutDegree, PageRank
from sigps.compiler.frontend.analysis import analyse
from sigps.engine.partition.degree_order import build_by_degree, gains_by_degree, with_rows
from sigps.engine.partition.subgraph import Subgraph


class BothEnds(Vertex, message=int):
    """Walks its out-edges, and sends along them."""

    loops: State[int] = 0
    heard: State[int] = 0

    def compute(self, messages):
        self.heard += sum(messages)
        if self.superstep == 0:
            self.loops = sum(1 for edge in self.out_edges if edge.target == self.id)
            self.send_to_neighbors(self.loops + 1)
        self.vote_to_halt()


WAYS = [
    Way(),
    Way(direction="push"),
    Way(direction="pull", threads=2),
    Way(deterministic=True),
    Way(asynchronous="auto"),
    Way(schedule="edge"),
]
READERS = ["pagerank_tolerance", "wcc", "coreness", "extremes", "neighbourhood", "floods", "sssp"]


@pytest.fixture
def _always() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sigps.engine.partition.degree_order.gains_by_degree", lambda graph: True)
        patch.setattr("sigps.engine.cpu.spec._MANY_VERTICES", 0)
        yield


@pytest.mark.parametrize(
    ("name", "graph"), half_of(READERS, ["skewed", "string_ids", "self_loop_undirected"], whole=["skewed"])
)
@pytest.mark.usefixtures("_always")
def test_all_ways_agree(name: str, graph: str) -> None:
    """Every other way, the others with the next program."""
    program = program_for(name, graph)
    by_edge = analyse(program).edge_obstacle is None
    ways = WAYS[READERS.index(name) % 2 :: 2]
    assert_all_equal(program, BATTERY[graph], [way for way in ways if by_edge or way.schedule == "vertex"])


@pytest.mark.parametrize("graph", ["skewed", "string_ids", "parallel_edges"])
@pytest.mark.parametrize("program", [KCore(), SCC()])
@pytest.mark.usefixtures("_always")
def test_programs_with_phases_agree(program: Vertex, graph: str) -> None:
    assert_all_equal(program, BATTERY[graph], WAYS[:3])


def test_a_log_is_read_by_the_other_numbering(tmp_path: Path) -> None:
    graph = BATTERY["skewed"].build()
    whole = run(
        PageRank(iterations=9), graph, deterministic=True
    )  # by its own numbers: it is the first on this graph
    for turn in range(2):
        folder = Checkpoint(tmp_path / str(turn), every=2)
        decide(graph, turn == 0)
        run(PageRank(iterations=9), forgotten(graph), deterministic=True, checkpoint=folder, max_supersteps=4)
        decide(graph, turn == 1)
        result = run(
            PageRank(iterations=9), forgotten(graph), deterministic=True, checkpoint=folder, resume=True
        )
        assert result["rank"].tolist() == whole["rank"].tolist()


def decide(graph: Graph, gains: bool) -> None:
    """Let the next run on CPU cores find that degree order pays, or that it does not."""
    graph.derived("runs on CPU cores", lambda: [True])[0] = True
    graph._derived["gains by degree order"] = gains


def forgotten(graph: Graph) -> Graph:
    """Let the next run lay the graph out anew."""
    graph.derived("partitions", dict).clear()
    return graph


def layouts(graph: Graph) -> list[tuple[bool, bool]]:
    """Tell of each kept partition whether it is by degree, and whether out-edges are there too."""
    return [
        (part.gids is not None, part.outgoing is not None)
        for _, part in graph.derived("partitions", dict).values()
    ]


@pytest.mark.usefixtures("_always")
def test_a_graph_is_laid_out_when_it_is_read_again_and_once() -> None:
    graph = BATTERY["skewed"].build()
    run(OutDegree(), graph)  # reads no records
    run(PageRank(iterations=2), graph)
    assert layouts(graph) == [(False, True)]
    run(PageRank(iterations=2), graph)
    assert layouts(graph) == [(False, True), (True, False)]
    run(BothEnds(), graph)
    run(PageRank(iterations=2), graph)
    assert layouts(graph) == [(False, True), (True, True)]


def laid_out(graph: Graph, *, with_outgoing: bool = False) -> Subgraph:
    part = build_by_degree(graph, num_threads=2)
    return with_rows(part, graph, num_threads=2) if with_outgoing else part


def test_the_layout_of_a_small_graph() -> None:
    # 3 has four edges into it, 1 two, 0 one, 2 none; in-edges stay in the order of their sources' gids.
    weights = [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5]
    graph = Graph.from_edges([0, 1, 2, 3, 0, 2, 1], [3, 3, 3, 3, 1, 1, 0], weights)
    part = laid_out(graph, with_outgoing=True)
    assert part.gids is not None
    assert part.gids.tolist() == [3, 1, 0, 2]
    assert part.incoming.offsets.tolist() == [0, 4, 6, 7, 7]
    assert part.incoming.ends.tolist() == [2, 1, 3, 0, 2, 3, 1]  # 0 1 2 3, 0 2, 1
    assert part.incoming.columns["weight"].tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5]
    assert part.incoming.columns["weight"] is part.incoming.columns["weight"]
    assert list(part.incoming.columns) == ["weight"]
    assert part.out_degrees.tolist() == [1, 2, 2, 2]
    assert part.outgoing is not None
    assert part.outgoing.ends.tolist() == [3, 0, 3, 1, 3, 1, 3]  # of 3; 1; 0; 2: gids
    assert part.pushed.offsets.tolist() == [0, 1, 3, 5, 7]
    assert part.pushed.ends.tolist() == [0, 0, 2, 0, 1, 0, 1]
    assert part.local_ids(np.array([2, 3])).tolist() == [3, 0]
    ascending = build_by_degree(graph, num_threads=2, ascending=True).incoming
    assert ascending.offsets.tolist() == part.incoming.offsets.tolist()
    assert ascending.ends.tolist() == [0, 1, 2, 3, 2, 3, 1]
    assert ascending.columns["weight"].tolist() == [3.5, 1.5, 0.5, 2.5, 4.5, 5.5, 6.5]


def test_an_undirected_graph_is_laid_out_once_for_both_directions() -> None:
    part = laid_out(Graph.from_edges([0, 1, 1], [1, 2, 3], directed=False))
    assert part.pushed is part.incoming


def test_graphs_that_are_small_or_even_stay_as_they_are() -> None:
    assert not gains_by_degree(BATTERY["skewed"].build())
    assert not gains_by_degree(generate("grid", rows=300, columns=300))
    assert not gains_by_degree(Graph.from_edges([0], [1], vertices=range(70_000)))
    assert gains_by_degree(generate("rmat", scale=17, edge_factor=2))

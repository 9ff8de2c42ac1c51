"""What several tests share of `test_equality`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import rank_programs as programs
from battery import BATTERY, Sample
from hypothesis import strategies as st
from master_programs import Floods
from thread_group import ThreadGroup

from sigps import Graph, Vertex
from sigps.apps import BFS, SSSP, WCC, OutDegree, PageRank

NAMES = [name for name in BATTERY if name != "empty"]  # run() refuses the empty graph: test_job.py


PROGRAMS: dict[str, Vertex | Callable[[int | str], Vertex]] = {
    "pagerank": PageRank(iterations=8),
    "pagerank_tolerance": PageRank(iterations=60, tolerance=1e-4, dangling="leak"),
    "wcc": WCC(),
    "out_degree": OutDegree(),
    "coreness": programs.Coreness(),
    "jump": programs.Jump(),
    "totals": programs.Totals(),
    "extremes": programs.Extremes(),
    "two_letters": programs.TwoLetters(),
    "spread": programs.Spread(),
    "product": programs.Product(),
    "climb": programs.Climb(),
    "market": programs.Market(),
    "neighbourhood": programs.Neighbourhood(),
    "floods": Floods(),
    "bfs": lambda source: BFS(source=source),
    "sssp": lambda source: SSSP(source=source),
    "reach": lambda source: programs.Reach(start=source),
}


def program_for(program: str, graph: str) -> Vertex:
    """Return a program; one that begins somewhere begins at the first id that the sample names."""
    made = PROGRAMS[program]
    sample = BATTERY[graph]
    return made((sample.sources or sample.vertices)[0]) if callable(made) else made


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    """Draw any small multigraph, with ids of any kind and weights that tie and round."""
    size = draw(st.integers(1, 9))
    ids = draw(
        st.sampled_from(
            [
                list(range(size)),
                [7 * i - 20 for i in range(size)],
                [(-1) ** i * (10**17 + i) for i in range(size)],
                [f"v{i * i}" for i in range(size)],
            ]
        )
    )
    vertex = st.sampled_from(ids)
    edges = draw(st.lists(st.tuples(vertex, vertex), max_size=24))
    weights = st.sampled_from([0.0, 0.1, 0.5, 1.0, 1.0, 3.3])
    return Sample(
        [s for s, _ in edges],
        [t for _, t in edges],
        draw(st.lists(weights, min_size=len(edges), max_size=len(edges))),
        directed=draw(st.booleans()),
        vertices=ids,
    )


def busy_graph(group: ThreadGroup | None = None) -> Graph:
    """A hub with 6000 neighbours and a ring through them: enough work for threads to divide."""
    rim = np.arange(1, 6001)
    ring = np.roll(rim, 1)
    weights = np.concatenate([0.1 + rim % 9, 1.0 + rim % 5, 0.3 + rim % 7])
    sources, targets = np.concatenate([rim * 0, rim, rim]), np.concatenate([rim, rim * 0, ring])
    return Graph.from_edges(sources, targets, weights, group=group)

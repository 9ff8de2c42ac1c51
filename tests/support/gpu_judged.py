"""What several tests share of `test_engine`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import PROGRAMS
from rank_programs import Totals
from ways import RELATIVE, Way, assert_same

from sigps import Graph, Result, State, Vertex, run
from sigps.apps import BFS, SSSP, WCC, PageRank
from sigps.engine.gpu.layout import BLOCK_DEGREE, WARP_DEGREE
from sigps.kernels.cuda.lease import HUB_DEGREE

DIRECTIONS = ("auto", "push", "pull")


WAYS = [
    Way(device="cuda", direction=direction, asynchronous=asynchronous)
    for direction in DIRECTIONS
    for asynchronous in (False, True)
]


def assert_as_judged(
    program: Vertex, graph: Graph, *, judge: str = "python", ways: list[Way] = WAYS, **options: Any
) -> None:
    """Check all ways on the GPU against another device."""
    relative = 1e-5 if options.get("precision") == "single" else RELATIVE
    expected = run(program, graph, device=judge, asynchronous=False, **options)  # type: ignore[arg-type]
    for way in ways:
        chosen = {**way.options(), **options}
        try:
            result = run(program, graph, **chosen)
            assert result.device == "cuda"
            in_order = not way.asynchronous
            if judge == "cpu":  # which leaves out who hears nothing better than it knows
                assert_same(
                    expected, result, exact=False, in_order=in_order, only_better=True, relative=relative
                )
            else:
                assert_same(result, expected, exact=False, in_order=in_order, relative=relative)
            if judge == "cpu" and not way.asynchronous:  # the interpreter leaves out what a filter held back
                assert [s.messages for s in result.stats] == [s.messages for s in expected.stats]
        except Exception as error:
            error.add_note(f"{type(program).__name__} {program.params} on {way}")
            raise


def rows_of_every_kind(directed: bool, **options: Any) -> Graph:
    """Rows by a block, a warp and a lane, each at its limit; three hubs; a path; vertices without edges.

    Vertices 0 to 2 have thousands of in-edges and out-edges, 3 and 4 as many in-edges as a warp takes and one
    more, 10 to 59 as many as a lane takes, 60 to 109 one more; the path goes from 7000 to 7059.
    """
    draw = np.random.default_rng(5)
    wanted = {0: 6000, 1: 4500, 2: 5000, 3: BLOCK_DEGREE, 4: BLOCK_DEGREE + 1}
    wanted |= dict.fromkeys(range(10, 60), WARP_DEGREE) | dict.fromkeys(range(60, 110), WARP_DEGREE + 1)
    pairs = [(draw.integers(110, 7000, degree), np.full(degree, v)) for v, degree in wanted.items()]
    if directed:
        fans = {0: 6500, 1: HUB_DEGREE, 2: HUB_DEGREE + 1}
        pairs += [(np.full(degree, v), draw.integers(110, 7000, degree)) for v, degree in fans.items()]
        pairs.append((np.array([0, 1, 0]), np.array([1, 2, 7000])))
    else:
        pairs.append((np.array([0]), np.array([7000])))
    pairs.append((np.arange(7000, 7059), np.arange(7001, 7060)))
    sources, targets = (np.concatenate(column) for column in zip(*pairs, strict=True))
    weights = 0.5 + draw.integers(0, 16, sources.size) / 4
    return Graph.from_edges(sources, targets, weights, directed=directed, vertices=np.arange(7100), **options)


BUSY: dict[str, Vertex] = {
    "pagerank": PageRank(iterations=6),
    "bfs": BFS(source=0),
    "bfs_from_the_path": BFS(source=7000),
    "sssp": SSSP(source=0),
    "wcc": WCC(),
    "spread": PROGRAMS["spread"],  # type: ignore[dict-item]
    "totals": Totals(),
    "extremes": PROGRAMS["extremes"],  # type: ignore[dict-item]
    "climb": PROGRAMS["climb"],  # type: ignore[dict-item]
    "market": PROGRAMS["market"],  # type: ignore[dict-item]
}


def fans(count: int, degree: int) -> Graph:
    """Vertex 0 has an edge to each of so many others, and each of these so many to vertices of their own."""
    begins = np.repeat(np.arange(1, count + 1), degree)
    targets = count + 1 + (np.arange(begins.size) * 7919) % 5003
    sources = np.append(begins, np.zeros(count, dtype=np.int64))
    return Graph.from_edges(
        sources, np.append(targets, np.arange(1, count + 1)), 1.0 + (np.arange(sources.size) * 31) % 17
    )


def assert_same_in_leases(
    program: Vertex, graph: Graph, size: int, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> Result:
    """Check a run that is leased so many supersteps at a time against one lease to the end."""
    whole = run(program, graph, device="cuda", asynchronous=False, **options)
    heard: list[int] = []
    monkeypatch.setattr("sigps.system.master.lease_size", lambda left, *_: min(left or size, size))
    parts = run(
        program,
        graph,
        device="cuda",
        asynchronous=False,
        progress=lambda stats: heard.append(len(stats)),
        **options,
    )
    monkeypatch.undo()
    assert_same(parts, whole, exact=False)
    assert [s.superstep for s in parts.stats] == list(range(whole.supersteps))
    assert len(heard) >= whole.supersteps // size
    return parts


class Simmer(Vertex, message=float):
    """Whoever is reached passes it on at once, and stays active for some supersteps more."""

    left: State[int] = -1
    heat: State[float] = 0.0
    heard: State[int] = 0

    def compute(self, messages):
        best = max(messages, default=-1.0)
        if self.superstep == 0 and self.id == 0:
            best = 5.0
        if best > self.heat:
            self.heat = best
            self.left = 3
            for edge in self.out_edges:
                self.send(edge, best + edge.weight / 1024 - 0.25)
        elif self.left > 0:
            self.left -= 1
            self.heard += 1
        if self.left <= 0 or self.id % 2 == 0:
            self.vote_to_halt()

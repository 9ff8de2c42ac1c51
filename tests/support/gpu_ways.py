"""Ways of running a program on a GPU, compared with another device, and graphs with rows for every schedule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from battery import Sample
from equality_programs import PROGRAMS, Totals
from ways import RELATIVE, Way, assert_same, results_of

from sigps import Graph, Result, Vertex, run
from sigps.apps import BFS, SSSP, WCC, PageRank
from sigps.engine.gpu.layout import BLOCK_DEGREE, warp_degree
from sigps.kernels.cuda.lease import HUB_DEGREE

DIRECTIONS = ("auto", "push", "pull")


WAYS = [
    Way(device="cuda", direction=direction, asynchronous=asynchronous)
    for direction in DIRECTIONS
    for asynchronous in (False, "auto")
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
            if judge == "cpu":  # which leaves out vertices whose messages improve nothing
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


def assert_ranks_agree(program: Vertex, sample: Sample, ways: list[Way]) -> None:
    judge = results_of(program, sample, [Way(device="python")])[0][1]
    compiled = results_of(program, sample, [Way(device="cpu")])[0][1]
    for way, result in results_of(program, sample, ways):
        try:
            assert result.device == "cuda"
            assert_same(result, judge, exact=False)
            # The interpreter leaves out what a filter held back.
            assert [s.messages for s in result.stats] == [s.messages for s in compiled.stats]
        except AssertionError as error:
            error.add_note(f"{type(program).__name__} {program.params} on {way}")
            raise


def rows_of_every_kind(directed: bool, **options: Any) -> Graph:
    """Rows by a block, a warp and a lane, each at its limit; three hubs; a path; vertices without edges.

    Vertices 0 to 2 have thousands of in-edges and out-edges, 3 and 4 as many in-edges as a warp takes and one
    more, 10 to 59 as many as a lane takes, 60 to 109 one more; the path goes from 7000 to 7059.
    """
    draw = np.random.default_rng(5)
    wanted = {0: 6000, 1: 4500, 2: 5000, 3: BLOCK_DEGREE, 4: BLOCK_DEGREE + 1}
    of_lanes = warp_degree(0)
    wanted |= dict.fromkeys(range(10, 60), of_lanes) | dict.fromkeys(range(60, 110), of_lanes + 1)
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


def fans(count: int, degree: int) -> Graph:
    """Vertex 0 has an edge to each of so many others, and each of these so many to vertices of their own."""
    begins = np.repeat(np.arange(1, count + 1), degree)
    targets = count + 1 + (np.arange(begins.size) * 7919) % 5003
    sources = np.append(begins, np.zeros(count, dtype=np.int64))
    return Graph.from_edges(
        sources, np.append(targets, np.arange(1, count + 1)), 1.0 + (np.arange(sources.size) * 31) % 17
    )

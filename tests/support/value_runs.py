"""Runs that keep values on edges beside packed rows, with limits of memory, and the same runs with edges in memory."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np

import sigps
from sigps import Graph, Result, Vertex, run
from sigps.compiler.frontend.analysis import analyse
from sigps.engine.contract import RunOptions
from sigps.graph.formats.packed_store import save_packed
from sigps.job.streaming import Streaming, decide_streaming

PAGE = 64
"""Arcs of a page: the row of a hub spans three and more, and there are dozens."""


SHARES = [0.0, 0.4, None]
"""Of values on edges, those that are in memory; None for no limit."""


OPTIONS: dict[str, Any] = {"deterministic": True, "max_supersteps": 50}


def skewed() -> Graph:
    """2,000 edges on few vertices, one of which has 1,000; many are parallel, and some are loops."""
    draw = np.random.default_rng(3)
    hub, others = np.zeros(500, dtype=int), draw.integers(0, 300, 500)
    sources = np.concatenate([hub, others, (300 * draw.random(1000) ** 3).astype(int)])
    targets = np.concatenate([others, hub, draw.integers(0, 300, 1000)])
    return Graph.from_edges(sources, targets, draw.random(sources.size), directed=False, vertices=range(310))


@functools.cache
def both_in_memory(program: Vertex) -> tuple[Result, Result]:
    """Return runs with edges in memory, compiled and interpreted."""
    return run(program, skewed(), device="cpu", **OPTIONS), run(program, skewed(), device="python", **OPTIONS)


def packed(graph: Graph, folder: Path, **options: Any) -> Graph:
    """Return a graph opened from a packed store."""
    save_packed(graph, folder / "graph.sigps", **{"order": "given", "page_arcs": PAGE, **options})
    return sigps.load(folder / "graph.sigps")


def streaming_of(
    program: Vertex, stored: Graph, threads: int, limit: int | None, *, ranks: int = 1, saves: bool = False
) -> Streaming:
    """Return what is decided of a run on so many ranks: of the one that takes most."""
    options = RunOptions(deterministic=True, saves=saves)
    given: dict[str, Any] = {"host_memory": limit, "stream": "always", "threads": [threads] * ranks}
    found = decide_streaming(program, analyse(program), stored, "cpu", options, **given)
    assert found is not None
    return found


def limit_for(
    program: Vertex,
    stored: Graph,
    threads: int,
    share: float | None,
    *,
    ranks: int = 1,
    saves: bool = False,
) -> int | None:
    """Return a limit of a rank with which a share of the values on edges is in memory."""
    if share is None:
        return None
    found = streaming_of(program, stored, threads, None, ranks=ranks, saves=saves)
    return sum(found.resident.values()) + int(share * found.values)


def assert_equal(found: Result, expected: Result, *, exact: bool = True) -> None:
    """Compare fields, values on edges and supersteps."""
    for mine, theirs in ((found, expected), (found.edges, expected.edges)):
        for name in theirs.fields if isinstance(theirs, Result) else theirs:
            one, other = np.asarray(mine[name]), np.asarray(theirs[name])
            if exact or one.dtype.kind != "f":
                assert one.tolist() == other.tolist(), name
            else:
                np.testing.assert_allclose(one, other, rtol=1e-12, err_msg=name)
    assert found.supersteps == expected.supersteps

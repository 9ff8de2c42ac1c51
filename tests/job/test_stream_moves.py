"""Streams on several ranks whose partitions move: vertices that only came to another rank did not change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from thread_group import ThreadGroup, run_ranks

import sigps
from sigps import Graph, Updates
from sigps.apps import SSSP, PageRank
from sigps.model.vertex import Vertex


@pytest.mark.parametrize(
    ("program", "names"),
    [(SSSP(source="0"), False), (SSSP(source="0"), True), (PageRank(iterations=3), False)],
)
@pytest.mark.parametrize("gather", [False, True])
def test_vertices_that_only_moved_did_not_change(program: Vertex, names: bool, gather: bool) -> None:
    """Edges among the first vertices of a path, which change no length, but how vertices are shared among ranks."""
    n = 400
    to_id = str if names else int
    if isinstance(program, SSSP) and not names:
        program = SSSP(source=0)

    def ids(values: Any) -> Any:
        return np.array([to_id(v) for v in values])

    near = [(i, j) for i in range(40) for j in range(i) if i - j > 1]
    few = ids([i for i, _ in near]), ids([j for _, j in near]), np.full(len(near), 1e6)
    more = None if isinstance(program, PageRank) else ids([n])  # for which partitions are laid out anew
    batch = Updates(inserts=few, vertices=more)

    def first(group: Any = None) -> Graph:
        ends = ids(range(n - 1)), ids(range(1, n))
        return Graph.from_edges(*ends, np.ones(n - 1), directed=False, group=group)

    def of(group: ThreadGroup) -> Any:
        with sigps.stream(program, first(group), device="cpu", threads=1, gather=gather) as live:
            before = set(live.result.ids.tolist())
            result = live.apply(batch)
            return before, set(result.ids.tolist()), result.changed_ids.tolist()

    alone = changed_alone(program, first(), batch)
    found = run_ranks(2, of)
    (_, after, changed), other = found
    assert other[1] - other[0] or other[0] - other[1]  # some moved
    assert set(other[2]) == alone & other[1]
    assert set(changed) == alone & after


def changed_alone(program: Vertex, graph: Graph, batch: Updates) -> set[Any]:
    """Return the ids of vertices whose states differ by plain runs before and after, and of new ones."""
    old = sigps.run(program, graph, device="cpu")
    new = sigps.run(program, graph.apply(inserts=batch.inserts, vertices=batch.vertices), device="cpu")
    before, after = (
        dict(zip(r.ids.tolist(), zip(*(r[f].tolist() for f in r.fields), strict=True), strict=True))
        for r in (old, new)
    )
    return {v for v in after if before.get(v) != after[v]}

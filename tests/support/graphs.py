"""Graphs beside the battery: small random ones drawn by hypothesis, and one with work for many threads."""

from __future__ import annotations

import numpy as np
from battery import Sample
from hypothesis import strategies as st
from thread_group import ThreadGroup

from sigps import Graph


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
    """A hub with 1500 neighbours and a ring through them: threads divide it where little is divided."""
    rim = np.arange(1, 1501)
    ring = np.roll(rim, 1)
    weights = np.concatenate([0.1 + rim % 9, 1.0 + rim % 5, 0.3 + rim % 7])
    sources, targets = np.concatenate([rim * 0, rim, rim]), np.concatenate([rim, rim * 0, ring])
    return Graph.from_edges(sources, targets, weights, group=group)

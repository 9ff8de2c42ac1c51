"""Tiny graphs, each named for the bug it finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sigps.graph import Graph


@dataclass(frozen=True)
class Sample:
    """The arguments of `Graph.from_edges`."""

    sources: list[Any]
    targets: list[Any]
    weights: list[float] | None = None
    directed: bool = True
    vertices: list[Any] | None = None

    def build(self, **options: Any) -> Graph:
        given = {"weights": self.weights, "directed": self.directed, "vertices": self.vertices}
        return Graph.from_edges(self.sources, self.targets, **{**given, **options})


def _undirected_grid(rows: int, columns: int) -> Sample:
    cells = np.arange(rows * columns).reshape(rows, columns)
    sources = np.concatenate([cells[:, :-1].ravel(), cells[:-1].ravel()])
    targets = np.concatenate([cells[:, 1:].ravel(), cells[1:].ravel()])
    weights = 1.0 + (sources * 7 + targets * 3) % 5
    return Sample(sources.tolist(), targets.tolist(), weights.tolist(), directed=False)


def _skewed(scale: int) -> Sample:
    """Many edges on few vertices, parallel edges and self-loops among them; no two runs differ."""
    draw = np.random.default_rng(8)
    sources, targets = ((2**scale * draw.random(8 * 2**scale) ** 3).astype(int) for _ in range(2))
    return Sample(sources.tolist(), targets.tolist(), draw.integers(1, 256, sources.size).tolist())


BATTERY: dict[str, Sample] = {
    "empty": Sample([], []),
    "one_vertex": Sample([], [], vertices=[7]),
    "only_isolated": Sample([], [], vertices=[4, 0, 2]),
    "self_loop": Sample([0], [0], [1.0]),
    "self_loop_undirected": Sample([0, 0], [0, 1], [1.0, 2.0], directed=False),
    "isolated": Sample([0, 3], [3, 5], vertices=[1, 9]),
    "path": Sample([0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [1.0] * 5),
    "path_undirected": Sample([0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [1.0, 2.0, 3.0, 4.0, 5.0], directed=False),
    "star_out": Sample([0] * 9, list(range(1, 10)), [1.0] * 9),
    "star_in": Sample(list(range(1, 10)), [0] * 9, [1.0] * 9),
    "two_components": Sample([0, 1, 5, 6], [1, 2, 6, 7], directed=False),
    "complete_5": Sample(
        [0, 0, 0, 0, 1, 1, 1, 2, 2, 3], [1, 2, 3, 4, 2, 3, 4, 3, 4, 4], [1.0] * 10, directed=False
    ),
    "grid": _undirected_grid(4, 5),
    "directed_cycle": Sample([0, 1, 2, 3], [1, 2, 3, 0], [1.0, 1.0, 1.0, 1.0]),
    "parallel_edges": Sample([0, 0, 1, 0], [1, 1, 2, 1], [3.0, 1.0, 1.0, 2.0]),
    "parallel_edges_undirected": Sample([0, 1, 0, 2], [1, 0, 1, 2], [3.0, 1.0, 2.0, 4.0], directed=False),
    "weight_ties": Sample([0, 0, 1, 2], [1, 2, 3, 3], [1.0, 1.0, 1.0, 1.0]),
    "hub_on_a_partition_border": Sample(
        [3] * 6 + [0, 1, 2, 4, 5, 6], [0, 1, 2, 4, 5, 6] + [3] * 6, [1.0, 2.0, 3.0] * 4
    ),
    "sparse_ids": Sample([-(2**62), 5, 10**15], [5, 10**15, -(2**62)], [1.0, 2.0, 3.0]),
    "string_ids": Sample(["bob", "ann", "eve"], ["ann", "eve", "zoë"], [1.0, 2.0, 3.0], vertices=["dan"]),
    "skewed": _skewed(8),
}

NAMES = [name for name in BATTERY if name != "empty"]
"""Those that can be run: `run()` refuses the empty graph."""

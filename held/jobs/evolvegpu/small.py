"""A few batches of BFS and Triangles on a small graph with long rows, for compute-sanitizer; prints SAME or DIFFERENT."""

import sys

import numpy as np

import sigps
from sigps import Graph
from sigps.apps import BFS, Triangles

device = sys.argv[1] if len(sys.argv) > 1 else "cuda"
n, draw = 2600, np.random.default_rng(3)
ends = np.concatenate([(n * draw.random((2, 3 * n)) ** 4).astype(int), [np.zeros(n, int), np.arange(n)]], 1)
graph = Graph.from_edges(*ends, vertices=range(n), directed=False)
for program, fields in ((BFS(source=n // 2), ("level", "parent")), (Triangles(), ("triangles",))):
    with sigps.stream(program, graph, device=device, guard="incremental") as live:
        for count in (1, 200, 40):
            inserts, gone = (n * draw.random((2, count)) ** 3).astype(int), ends[:, draw.integers(0, ends.shape[1], count)]
            result = live.apply(inserts=tuple(inserts), deletes=tuple(gone))
            judge = sigps.run(program, live.graph, device="cpu")
            same = all(np.array_equal(result[f], judge[f]) for f in fields)
            print(type(program).__name__, count, result.path, "SAME" if same else "DIFFERENT", flush=True)

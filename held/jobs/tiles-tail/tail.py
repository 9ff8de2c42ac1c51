"""PageRank's superstep and a search's device time by the bound above which a row is a block's; rows laid out anew."""

import statistics
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, "scripts/bench")
from beside_cugraph import Subject

import sigps
from sigps.apps import BFS, SSSP, PageRank
from sigps.device.cuda import find_gpu
from sigps.engine.gpu import graph as gpu_graph
from sigps.engine.gpu import layout

plain = layout.block_degree
BOUNDS = [4096, 2048, 1024, 512, 256, None]
for name in sys.argv[2:]:
    subject = Subject(name, Path(sys.argv[1]))
    graph = subject.graph
    hub = int(np.argmax(np.diff(graph.offsets)))
    degrees = np.sort(np.diff(graph.offsets).astype(np.int64))[::-1]
    print(f"{name}: {graph.num_edges:,} edges, degrees {degrees[:3]}, of blocks {plain(graph.num_edges)}", flush=True)
    first, rows = None, {}
    works = [
        ("PageRank single", lambda: PageRank(iterations=20), "rank", "single"),
        ("PageRank double", lambda: PageRank(iterations=20), "rank", "double"),
        ("BFS", lambda: BFS(source=graph.ids.to_oids(np.array([hub]))[0]), "level", "single"),
        ("SSSP", lambda: SSSP(source=graph.ids.to_oids(np.array([hub]))[0]), "distance", "single"),
    ]
    answers = {}
    for turn in range(2):  # each bound twice, in turn
        for bound in BOUNDS:
            layout.block_degree = plain if bound is None else (lambda n, b=bound: b)
            for _, subgraph in graph.derived("partitions", dict).values():
                gpu_graph.forget_on_gpu(subgraph, find_gpu())
            for work, make, field, precision in works:
                for repeat in range(6):
                    result = sigps.run(make(), graph, device="cuda", precision=precision, tiles="never")
                    seconds = [s.seconds for s in result.stats]
                    if repeat:
                        rows.setdefault((work, bound), []).extend(
                            seconds[2:-1] if work.startswith("PageRank") else [sum(seconds)]
                        )
                found = np.array(result[field])
                judge = answers.setdefault(work, found)
                tolerance = {"PageRank single": 1e-4, "PageRank double": 1e-10}.get(work, 1e-5)
                good = np.allclose(found, judge, rtol=tolerance, atol=1e-12)
                if not good:
                    print("WRONG", work, bound, flush=True)
    for work, *_ in works:
        told = "  ".join(f"{b or 'chosen'}: {statistics.median(rows[work, b]) * 1e3:.4f}" for b in BOUNDS)
        print(f"| {name} | {work} | {told} | ms", flush=True)

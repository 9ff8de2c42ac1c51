"""Where whole runs on ranks go: supersteps by the device, and the host around them.

where.py WORK GRAPH REPEATS [TRANSPORT] [cpu]     WORK: WCC, BFS, PageRank or path
"""

import cProfile
import io
import pstats
import statistics
import sys
import time

import numpy as np

import sigps
from sigps.apps import BFS, WCC, PageRank
from sigps.group import world

group = world()
work, name, repeats = sys.argv[1], sys.argv[2], int(sys.argv[3])
transport = sys.argv[4] if len(sys.argv) > 4 else "auto"
device = "cpu" if "cpu" in sys.argv else "cuda"
options = {"device": device, "precision": "single", "gather": False, "transport": transport}
kind, _, size = name.partition("-")
if kind == "path":
    ids = np.arange(int(size))
    graph = sigps.Graph.from_edges(ids[:-1], ids[1:], group=group)
    options["partitioner"] = "hash"
elif kind == "grid":
    graph = sigps.generate("grid", rows=int(size), columns=int(size))
else:
    graph = sigps.generate("rmat", scale=int(size))
source = group.broadcast(int(np.argmax(np.diff(graph.offsets)) + graph.first_row))
program = {"WCC": WCC(), "BFS": BFS(source=0 if kind == "path" else source), "PageRank": PageRank(iterations=30)}[work]


def once():
    group.barrier()
    began = time.perf_counter()
    result = sigps.run(program, graph, **options)
    group.barrier()
    return time.perf_counter() - began, result


for _ in range(3):
    once()
runs = [once() for _ in range(repeats)]
whole = statistics.median(r[0] for r in runs)
devices = [sum(s.seconds for s in r[1].stats) for r in runs]
if group.rank == 0:
    account = {k: round(v * 1e3, 2) for k, v in runs[-1][1].account.items() if v > 1e-5}
    print(f"{work} {name} {transport} on {group.size}: whole {whole * 1e3:.3f} ms, supersteps {statistics.median(devices) * 1e3:.3f}"
          f" ms in {runs[-1][1].supersteps}; account of one, ms: {account}", flush=True)
    stats = list(runs[-1][1].stats)
    for s in stats[:14] if len(stats) <= 40 else stats[100:106]:
        print(f"    {s.superstep:5} {s.direction:6} active {s.active:10} messages {s.messages:11} {s.seconds * 1e6:9.1f} us"
              f"  moved {s.bytes_moved:10}  imbalance {s.imbalance:.2f}", flush=True)
profile = cProfile.Profile()
profile.enable()
for _ in range(max(1, repeats // 2)):
    once()
profile.disable()
if group.rank == 0:
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(28)
    for line in text.getvalue().splitlines():
        if line.strip() and not line.startswith(("Ordered", "   List")):
            print(line.replace("/sigps/", " ", 1)[:150], flush=True)

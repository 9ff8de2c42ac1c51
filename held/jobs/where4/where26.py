import cProfile, io, pstats, time
import numpy as np, sigps
from sigps.apps import BFS, PageRank
from sigps.group import world
g = world()
graph = sigps.generate("rmat", scale=26)
o = {"device": "cuda", "precision": "single", "gather": False}
p = cProfile.Profile(); p.enable()
b = time.perf_counter(); r = sigps.run(PageRank(iterations=2), graph, **o); p.disable()
if g.rank == 0:
    print("first run", round(time.perf_counter() - b, 2), {k: round(v, 2) for k, v in r.account.items() if v > .01}, flush=True)
    t = io.StringIO(); pstats.Stats(p, stream=t).sort_stats("tottime").print_stats(16)
    print("\n".join(l[:140] for l in t.getvalue().splitlines() if l.strip()), flush=True)
degrees = np.diff(graph.offsets)
cand = graph.first_row + np.flatnonzero(degrees > 0)
for s in g.broadcast(np.random.default_rng(1).choice(cand, 4).tolist()):
    for _ in range(3):
        g.barrier(); b = time.perf_counter(); r = sigps.run(BFS(source=s), graph, **o); g.barrier(); w = time.perf_counter() - b
    if g.rank == 0:
        print("source", s, "whole", round(w * 1e3, 2), "device", round(1e3 * sum(x.seconds for x in r.stats), 2))
        for x in r.stats: print("   ", x.superstep, x.direction, "active", x.active, "messages", x.messages, round(x.seconds * 1e6), "us moved", x.bytes_moved, "imbalance", round(x.imbalance, 2), flush=True)

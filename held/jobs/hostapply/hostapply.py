"""What the host takes for what a stream put off: kron-22 with weights."""
import cProfile, io, pstats, sys, time
sys.path.insert(0, "scripts/bench")
import numpy as np
import sigps
from updates import random_edges
scale, k = int(sys.argv[1]), int(sys.argv[2])
graph = sigps.generate("rmat", scale=scale, weights="random")
draw = random_edges(graph)
numbers = np.random.default_rng(1)
for count, kind in ((k, "inserts"), (k, "deletes"), (4*k, "inserts")):
    i = draw(count, kind, numbers)
    t = time.perf_counter(); p = cProfile.Profile(time.perf_counter); p.enable()
    newer = graph.apply(inserts=i[0], deletes=i[1]); newer.by_target if hasattr(newer, "by_target") else None
    p.disable(); print(kind, count, f"{time.perf_counter()-t:.3f} s", flush=True)
    out = io.StringIO(); pstats.Stats(p, stream=out).sort_stats("tottime").print_stats(22); print(out.getvalue()[:4200], flush=True)
    graph = newer

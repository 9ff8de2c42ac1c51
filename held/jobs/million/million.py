"""Where a batch of a million goes: kron-22, SSSP."""
import cProfile, io, pstats, sys, time
sys.path.insert(0, "scripts/bench")
import numpy as np
import sigps, cupy
from sigps.apps import SSSP
from updates import random_edges, rows_timed, Times
from measuring import synchronise
graph = sigps.generate("rmat", scale=22, weights="random")
source = int(np.asarray(graph.ids)[np.argmax(graph.out_degrees())])
draw = random_edges(graph)
numbers = np.random.default_rng(1)
batches = {kind: [draw(1_000_000, kind, numbers) for _ in range(6)] for kind in ("inserts", "deletes")}
with sigps.stream(SSSP(source=source), graph, device="cuda", gather=False) as live:
    live.apply()
    for kind, drawn in batches.items():
        times = Times(wait=synchronise)
        with rows_timed(live, times):
            for i, d in zip(drawn[:3], [None]*3):
                t = time.perf_counter(); live.apply(inserts=i[0], deletes=i[1]); synchronise(); print(kind, "apply ms", 1e3*(time.perf_counter()-t), "rows", 1e3*times.seconds["rows_ms"][-1], flush=True)
            profile = cProfile.Profile(time.perf_counter)
            for i in drawn[3:]:
                profile.enable(); live.apply(inserts=i[0], deletes=i[1]); synchronise(); profile.disable()
        out = io.StringIO(); pstats.Stats(profile, stream=out).sort_stats("tottime").print_stats(45); print("==", kind, "3 batches,", "rows", [round(1e3*s, 2) for s in times.seconds["rows_ms"]]); print(out.getvalue()[:9000], flush=True)

import cProfile, pstats, time, sys
sys.path.insert(0, "scripts/bench"); sys.path.insert(0, ".")
import sigps
from multi_gpu import GROUP
from sigps.apps import PageRank
from streaming_gpus import opened
from pathlib import Path
scale = int(sys.argv[1])
t = time.perf_counter(); g = opened(Path(f"/tmp/packed26/kron-{scale}"), scale)
if GROUP.rank == 0: print("drawn, opened", time.perf_counter() - t, flush=True)
warm = opened(Path("/tmp/packed26/kron-14"), 14)
t = time.perf_counter(); sigps.run(PageRank(iterations=2), warm, device="cuda", stream="always", precision="single", transfer="bulk")
if GROUP.rank == 0: print("links", time.perf_counter() - t, flush=True)
pr = cProfile.Profile(); pr.enable()
t = time.perf_counter(); r = sigps.run(PageRank(iterations=4), g, device="cuda", stream="always", precision="single", transfer="bulk")
pr.disable()
if GROUP.rank == 0:
    print("run", time.perf_counter() - t, [s.seconds for s in r.stats], flush=True)
    pstats.Stats(pr).sort_stats("tottime").print_stats(22); pstats.Stats(pr).sort_stats("cumtime").print_stats(60)

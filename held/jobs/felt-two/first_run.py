"""Where the first run on a graph goes, on each rank: accounts, and the functions that take most."""
import cProfile, io, pstats, sys, time
import sigps
from sigps.apps import PageRank
from sigps.group import world
group = world()
scale, device = int(sys.argv[1]), sys.argv[2]
tiny = sigps.generate("rmat", scale=10)
options = {"device": device, "precision": "single", "gather": False}
sigps.run(PageRank(iterations=2), tiny, **options)
graph = sigps.generate("rmat", scale=scale)
group.barrier()
profile = cProfile.Profile(time.process_time if device == "cpu" else time.perf_counter)
began = time.perf_counter()
profile.enable()
result = sigps.run(PageRank(iterations=2), graph, **options)
profile.disable()
seconds = time.perf_counter() - began
for rank in range(group.size):
    group.barrier()
    if rank == group.rank:
        print(f"== rank {rank}: {seconds:.3f} s", {k: round(v, 3) for k, v in result.account.items() if v > .001}, flush=True)
        text = io.StringIO()
        pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(22)
        print("\n".join(line[:140] for line in text.getvalue().splitlines()[4:34] if line.strip()), flush=True)

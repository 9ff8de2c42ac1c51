"""Where a stream's batch goes on the host of each rank: kron-22, SSSP, 1,000 inserts and 1 insert, 40 batches each."""
import cProfile, io, pstats, sys, time
sys.path.insert(0, "scripts/bench")
import numpy as np
import sigps
from sigps.apps import SSSP
from sigps.group import world
from updates_on_gpus import random_edges, batch_ms
group, scale = world(), int(sys.argv[1])
device = sys.argv[2] if len(sys.argv) > 2 else "cuda"
graph = sigps.generate("rmat", scale=scale, weights="random")
source = group.broadcast(int(np.argmax(np.diff(graph.offsets.astype(np.int64)))) + graph.first_row)
draw = random_edges(graph, scale)
with sigps.stream(SSSP(source=source), graph, device=device, gather=False) as live:
    for size in (1000, 1):
        numbers = np.random.default_rng(size)
        batches = [draw(size, "inserts", numbers) for _ in range(45)]
        for batch in batches[:5]:
            batch_ms(live, batch)
        profile = cProfile.Profile(time.perf_counter)
        profile.enable()
        times = [batch_ms(live, batch)[0] for batch in batches[5:]]
        profile.disable()
        if group.rank == 0:
            print(f"== {size} inserts, {group.size} ranks: {np.median(times):.3f} ms with the profile", flush=True)
            text = io.StringIO()
            pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(30)
            print("\n".join(line[:130] for line in text.getvalue().splitlines() if line.strip())[:6000], flush=True)

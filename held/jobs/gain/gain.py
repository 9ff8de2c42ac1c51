import sys, time, tempfile
sys.path.insert(0, "scripts/bench"); sys.path.insert(0, ".")
import numpy as np
import sigps
import streaming_gpu as b
from sigps.engine.gpu import variant
from sigps.device.cuda import find_gpu
from sigps.graph.generators.drawn_store import write_drawn
from sigps.graph.generators.generate import edge_stream
FIELD = 'distance'
scale = int(sys.argv[1])
with tempfile.TemporaryDirectory() as folder:
    t = time.perf_counter()
    write_drawn(edge_stream("rmat", scale=scale, seed=1, weights="random"), folder + "/s", find_gpu())
    g = sigps.load(folder + "/s", verify="none"); print("drawn", time.perf_counter() - t, flush=True)
    for work in ("SSSP",):
        program = b.PROGRAMS[work](g)
        least = b.least_memory(work, g)
        for kept in (0, 0.125, 0.5, 1):
            limit = least + int(kept * b.bytes_of_pages(program, g))
            for gain in (10, 16, 25, 40, 10**6):
                variant.GPU_PULL_GAIN = gain
                times = []
                for _ in range(3):
                    found = sigps.run(program, g, device="cuda", device_memory=limit, stream="always"); times.append(sum(s.seconds for s in found.stats))
                    ways = "".join(s.direction[1] for s in found.stats); read = sum(s.bytes_read for s in found.stats)
                    each = " ".join(f"{1e3*s.seconds:.1f}" for s in found.stats)
                    total = float(np.nansum(np.where(np.isfinite(np.asarray(found[FIELD])), np.asarray(found[FIELD]), 0))); del found
                print(work, "kept", kept, "gain", gain, f"{1e3*np.median(times):.2f} ms (first {1e3*times[0]:.1f})  {read/1e6:.0f} MB", ways, each, "sum", total, flush=True)

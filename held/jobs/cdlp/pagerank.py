"""Times PageRank over packed pages, all on the host and all on the GPU: python pagerank.py WHAT STORE"""

import sys
import time

import numpy as np

import sigps
from sigps.apps import PageRank

what, path = sys.argv[1:]
for way, limit in (("all on the host", None), ("all on the GPU", 12_000_000_000)):
    graph = sigps.load(path, verify="none")
    least = []
    for _ in range(4):
        began = time.perf_counter()
        options = {"stream": "always", "transfer": "bulk", "precision": "single", "device_memory": limit}
        found = sigps.run(PageRank(iterations=12), graph, device="cuda", **options)
        steps = [s.seconds for s in found.stats[2:11]]
        read = found.stats[3].bytes_read
        total = float(np.asarray(found["rank"]).astype(np.float64).sum())
        del found
        least.append(float(np.median(steps)))
    took = time.perf_counter() - began
    print(f"{what:<7} PageRank, {way:<16} {1e3 * min(least):7.2f} ms a superstep, reads {read / 1e6:7.1f} MB, sum {total:.6f} ({took:.1f} s)", flush=True)

"""Supersteps with edges in memory, packed on the host, packed on the GPU; and messages in the GPU's memory, or not."""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import send_programs
import vector_programs
from walk_programs import WALKS, Around

import sigps
from sigps.apps import Bridges, Node2vecWalks
from sigps.graph.formats.packed_store import save_packed

scale = int(sys.argv[1])
folder = Path(tempfile.mkdtemp())
began = time.time()
made = sigps.generate("rmat", scale=scale, seed=1, weights="random").undirected(simple=True)
save_packed(made, folder / "store", order="given")
print(f"kron-{scale}: {made.num_vertices:,} vertices, {made.num_edges:,} arcs, written in {time.time() - began:.1f} s", flush=True)


def told(what, graph, program, steps, **more):
    try:
        times = []
        for _ in range(3):
            found = sigps.run(program, graph, device="cuda", max_supersteps=steps, seed=1, **more)
            times.append(sum(s.seconds for s in found.stats))
        read = sum(s.bytes_read for s in found.stats)
        first, best = max(s.seconds for s in found.stats), min(times)
        print(f"{type(program).__name__:16s} {what:28s} {best * 1e3:9.2f} ms of {len(found.stats)} supersteps, the "
              f"longest {first * 1e3:.2f}; {read / 1e6:.1f} MB crossed, {sum(s.messages for s in found.stats):,} messages "
              f"({', '.join(f'{t * 1e3:.1f}' for t in times)})", flush=True)
        return found
    except Exception as error:
        print(f"{type(program).__name__:16s} {what:28s} {type(error).__name__}: {str(error)[:200]}", flush=True)


packed = sigps.load(folder / "store")
for program, steps in ((Around(), 4), (Bridges(), 12), (vector_programs.Throws(), 4), (Node2vecWalks(), 12)):
    before = told("edges in memory", made, program, steps)
    after = told("packed, on the host", packed, program, steps, stream="always")
    also = told("packed, on the GPU", packed, program, steps, stream="always", device_memory="40GB")
    for found in (after, also):
        if before is not None and found is not None:
            for field in before.fields:
                same = np.allclose(np.asarray(before[field]), np.asarray(found[field]), rtol=1e-9)
                print("   ", field, "same" if same else "DIFFERENT", flush=True)
for name in ("FloodSum", "Flood"):
    program = getattr(send_programs, name)(copies=20)
    before = told("edges in memory", made, program, 5)
    after = told("no page, all memory", packed, program, 5, stream="always")
    n = made.num_vertices
    for limit in (n * 20 * 20, n * 20 * 40):
        limited = told(f"no page, {limit / 1e9:.2f} GB", packed, program, 5, stream="always", device_memory=limit)
        if before is not None and limited is not None:
            print("   ", "same" if np.array_equal(np.asarray(before["total"]), np.asarray(limited["total"])) else "DIFFERENT", flush=True)

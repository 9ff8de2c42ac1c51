"""Times CDLP over packed edges, with shares of them on the GPU, beside unpacked rows on the host and in memory.

    python measure.py FOLDER SCALE [NAME]     # with a name fewer ways, of a store that is there

TRIAL=1 runs it without a GPU, by the stand-in of the tests.
"""

import os
import re
import sys
import time

import numpy as np

import sigps
from sigps.apps import CDLP

IS_TRIAL = bool(os.environ.get("TRIAL"))
if IS_TRIAL:
    sys.path.insert(0, "tests/support")
    import host_gpu
    import pytest

    host_gpu.use_host_as_gpu(pytest.MonkeyPatch())

folder, scale, name = sys.argv[1], int(sys.argv[2]), " ".join(sys.argv[3:])
path = os.path.join(folder, f"kron-{scale}")
began = time.perf_counter()
if os.path.exists(path):
    pass
elif IS_TRIAL:
    sigps.generate("rmat", scale=scale, seed=1).undirected(simple=True).save(path, packed=True, order="degree")
else:
    from sigps.device.cuda import find_gpu
    from sigps.graph.generators.drawn_store import write_drawn
    from sigps.graph.generators.generate import edge_stream

    write_drawn(edge_stream("rmat", scale=scale, seed=1), path, find_gpu())
graph = sigps.load(path, verify="none")
pages = graph.packed.rows.words.nbytes
print(f"kron-{scale}: {graph.num_edges:,} arcs, {pages:,} bytes packed, made in {time.perf_counter() - began:.1f} s")
program = CDLP(iterations=10)


def least():
    try:
        sigps.run(program, graph, device="cuda", device_memory="1KB" if IS_TRIAL else "1MB", stream="always")
    except sigps.SigpsError as error:
        return int(re.search(r"needs ([\d,]+)", str(error))[1].replace(",", "")) + 16 * graph.num_vertices


needed = least()
print(f"beside edges: {needed:,} bytes")
expected = None


def measure(way, given, **options):
    global expected
    seconds = []
    try:
        for turn in range(3):
            began = time.perf_counter()
            found = sigps.run(program, given, device="cuda", **options)
            labels = np.asarray(found["label"]).copy()
            whole = time.perf_counter() - began
            first = whole if turn == 0 else first
            steps = [s.seconds for s in found.stats]
            read = [s.bytes_read for s in found.stats]
            del found
            seconds.append(sum(steps))
            if sum(seconds) > 6:
                break
    except sigps.SigpsError as error:
        print(f"{way:<34} {type(error).__name__}: {str(error)[:200]}", flush=True)
        return
    expected = labels if expected is None else expected
    each = " ".join(f"{1e3 * s:.1f}" for s in steps)
    rate = max(read) / sorted(steps)[len(steps) // 2] / 1e9
    print(
        f"{name:<7}{way:<34} first {first:6.2f} s, supersteps {1e3 * min(seconds):8.1f} ms ({each}), a superstep reads "
        f"{max(read) / 1e6:8.1f} MB ({rate:.1f} GB/s), same: {np.array_equal(labels, expected)}",
        flush=True,
    )


always = {"stream": "always", "transfer": "bulk"}
measure("packed, all on the host", graph, **always)
for share in (0.125, 1.0) if name else (0.125, 0.5, 1.0):
    more = needed + int(share * pages) + (1 << 26 if share == 1 else 0)
    graph = sigps.load(path, verify="none")
    measure(f"packed, {share:.3f} on the GPU", graph, device_memory=more, **always)
graph = sigps.load(path, verify="none")
if not IS_TRIAL:
    from sigps.device.cuda import limit_memory

    limit_memory(None)
if not name:
    measure("in memory", graph, stream="never")
if not name and scale <= 22:
    graph = sigps.load(path, verify="none")
    measure("unpacked rows on the host", graph, stream="always", transfer="rows")

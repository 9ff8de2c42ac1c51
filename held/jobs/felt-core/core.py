"""Core numbers on a tree's code: whole, device and host times, and what supersteps of each kind take.

core.py LABEL FOLDER GRAPH,GRAPH [narrow|few|apart]
  narrow: six blocks a multiprocessor, as before; few: at most 16384 messages a superstep of the small-frontier
  kernel; apart: that kernel has no phases (as before)
"""

import statistics
import sys
import time
import zlib
from pathlib import Path

import numpy as np

import sigps
from sigps.apps import KCore

label, folder, names = sys.argv[1], Path(sys.argv[2]), sys.argv[3].split(",")
ways = sys.argv[4:]
DEVICE = "cpu" if "cpu" in ways else "cuda"

if "narrow" in ways:
    from sigps.engine.gpu import launch, memory_plan, variant

    memory_plan.choose_shape = lambda **known: launch.NARROW
if "few" in ways:
    from sigps.engine.gpu import launch, variant

    variant.choose_cluster = lambda arch: launch.Cluster(16, 1024, 1 << 14, 1 << 14)
if "apart" in ways:
    from sigps.engine.gpu import launch, variant

    variant.choose_cluster = lambda arch: launch.NO_CLUSTER


def graph_of(name):
    kind, _, size = name.partition("-")
    if kind == "kron":
        graph = sigps.generate("rmat", scale=int(size))
    elif kind == "grid":
        graph = sigps.generate("grid", rows=int(size), columns=int(size))
    else:
        (file,) = folder.glob(f"{name}.*")
        graph = sigps.load(file, directed=False, weights=False, duplicates="drop", self_loops="drop")
    return graph


def once(graph):
    if DEVICE == "cuda":
        import cupy

        cupy.cuda.Device().synchronize()
    began = time.perf_counter()
    result = sigps.run(KCore(), graph, device=DEVICE, precision="single")
    if DEVICE == "cuda":
        cupy.cuda.Device().synchronize()
    whole = time.perf_counter() - began
    core = np.asarray(result["core"])
    return result, whole, time.perf_counter() - began, core


for name in names:
    began = time.perf_counter()
    graph = graph_of(name)
    once(graph)
    runs = [once(graph) for _ in range(9)]
    device = [sum(s.seconds for s in r[0].stats) for r in runs]
    best = min(range(len(runs)), key=device.__getitem__)
    result, stats = runs[best][0], list(runs[best][0].stats)
    marks = zlib.crc32(runs[-1][3].tobytes()), zlib.crc32(np.asarray(runs[-1][0]["left"]).tobytes())
    print(
        f"{label:8} {name:14} device {statistics.median(device) * 1e3:8.3f} (least {min(device) * 1e3:8.3f})"
        f"  whole {statistics.median(r[1] for r in runs) * 1e3:8.3f}"
        f"  host {statistics.median(r[2] for r in runs) * 1e3:8.3f} ms"
        f"  supersteps {len(stats)}  answer {marks[0]:08x} {marks[1]:08x}  in all {time.perf_counter() - began:.0f} s",
        flush=True,
    )
    arrived = [0, *(s.messages for s in stats[:-1])]
    kinds = {}
    for s, came in zip(stats, arrived):
        size = "none" if came == 0 else "to 2k" if came <= 2000 else "to 100k" if came <= 100_000 else "over"
        many = "few run" if s.active <= 10_000 else "many run"
        kinds.setdefault((s.direction, size, many), []).append(s.seconds * 1e6)
    for kind, took in sorted(kinds.items()):
        print(f"    {' '.join(kind):28} {len(took):5} supersteps  mean {statistics.mean(took):8.2f} us  "
              f"median {statistics.median(took):8.2f}  sum {sum(took) / 1e3:8.3f} ms", flush=True)

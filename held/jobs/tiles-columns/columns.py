"""Supersteps of programs that read values of edges, over rows and over tiles in turn in one process, and their layouts."""

import statistics
import sys
import time

import numpy as np

import sigps
from sigps.apps import HITS, HeatDiffusion, PageRank
from sigps.engine.gpu import placement
from sigps.engine.gpu.run_memory import RunMemory

DEVICE = "cuda"
WAYS = ("never", "always")
SPENT = []


def on_clock(call):
    def act(*given, **options):
        began = time.perf_counter()
        found = call(*given, **options)
        SPENT.append(time.perf_counter() - began)
        return found

    return act


placement.graph_on_gpu = on_clock(placement.graph_on_gpu)
RunMemory.__init__ = on_clock(RunMemory.__init__)  # where columns are laid out, at their first use


def measure(name, graph, program, fields, precision):
    answers, times, firsts, told = {}, {w: [] for w in WAYS}, {w: [] for w in WAYS}, {}
    for way in WAYS:
        SPENT.clear()
        result = sigps.run(program, graph, device=DEVICE, precision=precision, tiles=way)
        told[way] = " + ".join(f"{s * 1e3:.0f}" for s in SPENT)
        answers[way] = [np.array(result[f], np.float64) for f in fields]
    for field, mine, judge in zip(fields, answers["always"], answers["never"], strict=True):
        worst = np.abs(mine - judge).max() / max(np.abs(judge).max(), 1e-300)
        good = worst < (1e-5 if precision == "single" else 1e-12)
        print(f"  {name} {field}: {worst:.1e} of the largest", "ok" if good else "WRONG", flush=True)
    for _ in range(4):
        for way in WAYS:
            seconds = [s.seconds * 1e3 for s in sigps.run(program, graph, device=DEVICE, precision=precision, tiles=way).stats]
            times[way] += seconds[2:-1]
            firsts[way].append(seconds[0])
    rows, tiles = (statistics.median(times[w]) for w in WAYS)
    print(f"| {name} {precision} | rows {rows:.4f} | tiles {tiles:.4f} ms | {rows / tiles:.2f} times | superstep 0:"
          f" {min(firsts['never']):.3f}, {min(firsts['always']):.3f} | first layouts and columns, ms:"
          f" rows {told['never']}, tiles {told['always']} |", flush=True)


for scale in map(int, sys.argv[1:]):
    graph = sigps.generate("rmat", scale=scale, weights="random")
    degrees = np.diff(graph.offsets)
    hub = graph.ids.to_oids(np.array([int(np.argmax(degrees))]))[0]
    rate = 1e-3 / float(degrees.max())
    for precision in ("single", "double"):
        measure(f"heat kron-{scale}", graph, HeatDiffusion(source=hub, rate=rate, steps=12), ("heat",), precision)
    measure(f"PageRank kron-{scale} (as before)", graph, PageRank(iterations=12), ("rank",), "single")
    arcs = sigps.generate("rmat", scale=scale, directed=True)
    measure(f"HITS directed kron-{scale}", arcs, HITS(iterations=6), ("hub", "authority"), "single")
    del graph, arcs

"""Supersteps of label spreading of 4 numbers and of PageRank over rows and over tiles: bounds of pairs, sizes, kernels.

    python labels.py SECONDS [--few] GRAPH...

Each line is a variant; `ms` is the median of supersteps but the first two and the last. Answers are compared with those
over rows. Begins nothing after so many seconds.
"""

import functools
import statistics
import sys
import time
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), "scripts/bench"]
import kernel_variants
from tiles import ROUNDS, Spreading

import sigps
from sigps.apps import PageRank
from sigps.device.cuda import find_gpu
from sigps.engine.gpu import graph as gpu_graph
from sigps.engine.gpu import placement, tiling, variant

BEGAN = time.monotonic()
DEVICE, GPU_OF = "cuda", find_gpu
REPEATS = 5
MADE = []
PLAIN = {"SHORTEST_PAIRS": dict(tiling.SHORTEST_PAIRS), "_LEFT_TO_L1": tiling._LEFT_TO_L1, "_STEP": tiling._STEP}
COST = tiling.Cost


def noted(make):
    def act(*given, **options):
        began = time.perf_counter()
        MADE.append(make(*given, **options))
        MADE.append((time.perf_counter() - began) * 1e3)
        return MADE[-2]

    return act


placement.graph_on_gpu = noted(placement.graph_on_gpu)


def set_variant(kernels="", shortest=None, left_kb=32, step=4096, cost=None):
    kernel_variants.use_kernels(kernels)
    tiling.SHORTEST_PAIRS.update(PLAIN["SHORTEST_PAIRS"])
    if shortest is not None:
        tiling.SHORTEST_PAIRS.update(dict.fromkeys(tiling.SHORTEST_PAIRS, shortest))
    tiling._LEFT_TO_L1, tiling._STEP = left_kb << 10, step
    tiling.Cost = functools.partial(COST, **cost) if cost else COST


def forget(graph):
    for _, subgraph in graph.derived("partitions", dict).values():
        gpu_graph.forget_on_gpu(subgraph, GPU_OF())


def measure(name, graph, program, field, precision, judge, way="always", **how):
    """Lay out, run, compare and time; returns the answer."""
    set_variant(**how)
    forget(graph)
    MADE.clear()
    options = {"device": DEVICE, "precision": precision, "tiles": way}
    found = np.array(sigps.run(program, graph, **options)[field], np.float64)
    edges, layout_ms = MADE[0], MADE[1]
    told, tiles = "rows", edges.tiles
    if tiles is not None:
        planned = tiles._tiling
        told = f"S {planned.size:,} bound {planned.shortest_pair} slices {tiles.num_slices:,}"
        told += f" ends {int(tiles.rows.degrees.sum()):,} bytes an edge {tiles.nbytes / edges.numbering.subgraph.incoming.num_edges:.2f}"
    verdict = ""
    if judge is not None:
        worst = np.abs(found - judge).max() / max(np.abs(judge).max(), 1e-300)
        good = worst < (1e-4 if precision == "single" else 1e-12)
        verdict = "not compared" if how.get("kernels") == "rows alone" else f"{worst:.0e} {'ok' if good else 'WRONG'}"
    seconds = []
    for _ in range(REPEATS):
        seconds += [s.seconds * 1e3 for s in sigps.run(program, graph, **options).stats][2:-1]
    print(f"| {name} | {statistics.median(seconds):.4f} ms | {told} | layout {layout_ms:.0f} ms | {verdict} |", flush=True)
    return found


WORKS = {
    "labels": (Spreading, "scores", "single", [
        ("as before", {"kernels": "kept records", "step": 16384}),
        ("default", {}),
        ("bound 3", {"shortest": 3}),
        ("bound 4", {"shortest": 4}),
        ("L1 0 KB", {"left_kb": 0}),
        ("L1 64 KB", {"left_kb": 64}),
        ("cost of segments", {"cost": {"segment": 1800.0, "slice": 3.0}}),
        ("window 16", {"kernels": "window 16"}),
        ("ends ahead", {"kernels": "ends ahead"}),
        ("partials streamed", {"kernels": "partials streamed"}),
        ("rows alone", {"kernels": "rows alone"}),
        ("rows alone, bound 3", {"kernels": "rows alone", "shortest": 3}),
        ("bound 3, L1 0 KB", {"shortest": 3, "left_kb": 0}),
        ("not unrolled", {"kernels": "not unrolled"}),
        ("one slice", {"kernels": "one slice"}),
        ("steps of 1024", {"step": 16384}),
        ("bound 6", {"shortest": 6}),
        ("bound 8", {"shortest": 8}),
        ("default again", {}),
    ]),
    "PageRank double": (PageRank, "rank", "double", [
        ("as before", {"kernels": "kept records", "step": 8192}),
        ("default", {}),
        ("bound 3", {"shortest": 3}),
        ("bound 4", {"shortest": 4}),
        ("ends ahead", {"kernels": "ends ahead"}),
        ("L1 0 KB", {"left_kb": 0}),
        ("window 16", {"kernels": "window 16"}),
    ]),
    "PageRank single": (PageRank, "rank", "single", [
        ("as before", {"kernels": "kept records"}),
        ("default", {}),
        ("ends ahead", {"kernels": "ends ahead"}),
        ("bound 3", {"shortest": 3}),
        ("window 16", {"kernels": "window 16"}),
    ]),
}  # fmt: skip

FEW = ("as before", "default", "bound 3", "ends ahead", "window 16")


def main():
    seconds, names = float(sys.argv[1]), [name for name in sys.argv[2:] if name != "--few"]
    few = FEW if "--few" in sys.argv else None
    for name in names:
        graph = sigps.generate("rmat", scale=int(name.removeprefix("kron-")))
        print(f"{name}: {graph.num_edges:,} edges, after {time.monotonic() - BEGAN:.0f} s", flush=True)
        for work, (program, field, precision, variants) in WORKS.items():
            made = program() if program is Spreading else program(iterations=ROUNDS)
            judge = measure(f"{work} {name}: rows", graph, made, field, precision, None, "never")
            for told, how in (v for v in variants if few is None or v[0] in few):
                if time.monotonic() - BEGAN > seconds:
                    print(f"no time for {work} {name}: {told}")
                    continue
                try:
                    measure(f"{work} {name}: {told}", graph, made, field, precision, judge, **how)
                except Exception as error:
                    print(f"| {work} {name}: {told} | FAILED: {type(error).__name__}: {error} |", flush=True)
            print(f"  {time.monotonic() - BEGAN:.0f} s", flush=True)
        forget(graph)


if __name__ == "__main__":
    main()

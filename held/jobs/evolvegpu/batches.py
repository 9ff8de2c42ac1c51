"""Time a stream's batches on a GPU, and compare the last result with a run on its version laid out anew.

    python batches.py LABEL PROGRAM GRAPH SECONDS SIZES... [--guard full]

PROGRAM is BFS or Triangles, GRAPH kron-N or grid-N (edges near the far corner). Prints a line a size and kind:
| label | program graph | batch | kind | median ms | least ms | paths | vertices that changed |
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path("scripts/bench").resolve()))

import numpy as np
import updates
from measuring import synchronise

import sigps
from sigps.apps import BFS, Triangles

options = argparse.ArgumentParser()
options.add_argument("label")
options.add_argument("program", choices=["BFS", "Triangles"])
options.add_argument("graph")
options.add_argument("seconds", type=float)
options.add_argument("sizes", type=int, nargs="+")
options.add_argument("--guard", default="auto")
options.add_argument("--near", type=int, default=500)
options.add_argument("--device", default="cuda")
given = options.parse_args()
began = time.perf_counter()
if given.device == "cpu":
    synchronise = lambda: None  # noqa: E731

kind, size = given.graph.split("-")
updates.NEAR = min(given.near, int(size) - 3)
if kind == "kron":
    graph = sigps.generate("rmat", scale=int(size))
    source = int(np.asarray(graph.ids)[np.argmax(graph.out_degrees())])
    drawn = updates.random_edges(graph)
else:
    graph = sigps.generate("grid", rows=int(size), columns=int(size))
    source, drawn = 0, updates.corner_edges(int(size))
program, field = (BFS(source=source), "level") if given.program == "BFS" else (Triangles(), "triangles")
print(f"# {given.label} {given.graph}: {graph.num_edges:,} edges after {time.perf_counter() - began:.1f} s", flush=True)


def left() -> float:
    return given.seconds - (time.perf_counter() - began)


def without_weight(batch):
    return batch if batch is None else tuple(batch[:2])


def show(*cells) -> None:
    print("|", " | ".join(str(c) for c in cells), "|", flush=True)


draw = np.random.default_rng(1)
with sigps.stream(program, graph, device=given.device, guard=given.guard) as live:
    run = live._live
    print(f"# first run done after {time.perf_counter() - began:.1f} s; follows: {run is not None} {live._why}", flush=True)
    if run is not None and hasattr(run, "full"):
        times = []
        for _ in range(4):
            at = time.perf_counter()
            done = run.full()
            synchronise()
            times.append(1e3 * (time.perf_counter() - at))
        show(given.label, f"{given.program} {given.graph}", "-", "full run of the stream", round(statistics.median(times[1:]), 3), round(min(times), 3), len(done.stats), "")
    for count in given.sizes:
        for kind in ("inserts", "deletes"):
            if left() < 3:
                print("# no time left", flush=True)
                break
            times, paths, changed = [], [], []
            for _ in range(8):
                inserts, deletes = drawn(count, kind, draw)
                inserts, deletes = without_weight(inserts), without_weight(deletes)
                at = time.perf_counter()
                result = live.apply(inserts=inserts, deletes=deletes)
                synchronise()
                times.append(1e3 * (time.perf_counter() - at))
                paths.append(result.path)
                changed.append(result.changed_ids.size)
                why = result.why
                del result
                if left() < 3 and len(times) > 1:
                    break
            some = times[1:] or times
            show(given.label, f"{given.program} {given.graph}", count, kind, round(statistics.median(some), 3),
                 round(min(some), 3), f"{paths.count('incremental')} of {len(paths)} incremental", int(statistics.median(changed)))
            if "full" in paths:
                print(f"#   {why}", flush=True)
    if left() > 2:
        times = []
        version = live.graph
        version.num_edges  # the host's rows
        for _ in range(4):
            at = time.perf_counter()
            found = sigps.run(program, version, device=given.device)
            synchronise()
            times.append(1e3 * (time.perf_counter() - at))
        is_same = all(np.array_equal(found[f], live.result[f]) for f in ([field, "parent"] if field == "level" else [field]))
        show(given.label, f"{given.program} {given.graph}", "-", "sigps.run, first and least", round(times[0], 1), round(min(times), 3), "SAME" if is_same else "DIFFERENT", "")

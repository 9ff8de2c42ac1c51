"""Draw packed stores; time PageRank and BFS whose edges stream on one rank or several, all pages on hosts."""

import sys
import time
from pathlib import Path

import numpy as np

import sigps
from sigps.apps import BFS, PageRank
from sigps.group import world


def draw(folder, *scales):
    from sigps.device.cuda import find_gpu
    from sigps.graph.generators.drawn_store import write_drawn
    from sigps.graph.generators.generate import edge_stream

    Path(folder).mkdir(exist_ok=True)
    for scale in scales:
        begin = time.perf_counter()
        write_drawn(edge_stream("rmat", scale=int(scale), seed=1), Path(folder) / scale, find_gpu())
        print(f"kron-{scale} drawn and packed in {time.perf_counter() - begin:.1f} s", flush=True)


def run(store, transport, repeats):
    group = world()
    begin = time.perf_counter()
    graph = sigps.load(store, verify="none", group=group)
    rows = graph.packed.rows
    sums = None
    for turn in range(int(repeats)):
        for program, more in (
            (PageRank(iterations=12), {"transfer": "bulk", "precision": "single"}),
            (BFS(source=1), {}),
        ):
            found = sigps.run(program, graph, device="cuda", stream="always", transport=transport, **more)
            if group.rank == 0:
                name = type(program).__name__
                if name == "PageRank":
                    steps = found.stats[2:11]
                    seconds = float(np.median([s.seconds for s in steps]))
                    what = f"superstep {1e3 * seconds:.2f} ms, {steps[0].bytes_read / seconds / 1e9:.1f} GB/s of pages"
                    what += f", {steps[0].bytes_moved / 1e6:.1f} MB between ranks, imbalance {steps[0].imbalance:.2f}"
                    sums = float(np.asarray(found["rank"]).sum())
                else:
                    what = f"all {1e3 * sum(s.seconds for s in found.stats):.2f} ms in {len(found.stats)} supersteps, "
                    what += f"{sum(s.bytes_read for s in found.stats) / 1e6:.1f} MB of pages, reached "
                    what += f"{np.count_nonzero(np.asarray(found['level']) >= 0)}"
                print(
                    f"{Path(store).name} ranks {group.size} {transport} {name} {turn}: {what}; "
                    f"pages {rows.words.nbytes / 1e9:.2f} GB, since the start {time.perf_counter() - begin:.1f} s",
                    flush=True,
                )
            del found
    if group.rank == 0:
        print("sum of ranks", sums)


{"draw": draw, "run": run}[sys.argv[1]](*sys.argv[2:])

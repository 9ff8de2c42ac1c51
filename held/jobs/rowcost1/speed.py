"""Draw a packed Kronecker graph with weights; time searches whose edges stream, on one rank or several."""

import sys
import time
from pathlib import Path

import numpy as np

import sigps
from sigps.apps import BFS, SSSP, WCC, KCore
from sigps.group import world

FIELDS = {"BFS": "level", "WCC": "component", "SSSP": "distance", "KCore": "core"}


def draw(store, scale, device="cuda"):
    begin = time.perf_counter()
    if device == "cpu":
        sigps.generate("rmat", scale=int(scale), seed=1, weights="random").save(store, packed=True)
    else:
        from sigps.device.cuda import find_gpu
        from sigps.graph.generators.drawn_store import write_drawn
        from sigps.graph.generators.generate import edge_stream

        Path(store).parent.mkdir(parents=True, exist_ok=True)
        write_drawn(edge_stream("rmat", scale=int(scale), seed=1, weights="random"), Path(store), find_gpu())
    print(f"kron-{scale} drawn and packed in {time.perf_counter() - begin:.1f} s", flush=True)


def run(label, store, programs, repeats, transport="auto", device="cuda", verbose=""):
    group = world()
    begin = time.perf_counter()
    graph = sigps.load(store, verify="none", group=group)
    order = graph.packed.order  # vertices with edges, by degree
    source = 1 if order is None else int(order[: order.size // 100].min())
    for name in programs.split(","):
        program = {"BFS": BFS(source=source), "WCC": WCC(), "SSSP": SSSP(source=source), "KCore": KCore()}[name]
        kept = []
        for turn in range(1 + int(repeats)):
            found = sigps.run(
                program, graph, device=device, stream="always", transport=transport, gather=False
            )
            stats = list(found.stats)
            if turn == 0:
                values = np.ma.filled(found[FIELDS[name]], 0).astype(np.float64)
                values = values[np.isfinite(values) & (values > 0)]
                total = sum(group.all_gather((float(values.sum()), int(values.size)))[r][0] for r in range(group.size))
                count = sum(part[1] for part in group.all_gather((float(values.sum()), int(values.size))))
                first = time.perf_counter() - begin
            kept.append((1e3 * sum(s.seconds for s in stats), sum(s.bytes_read for s in stats) / 1e6,
                         sum(s.bytes_moved for s in stats) / 1e6))
            del found
        if group.rank == 0:
            times = sorted(row[0] for row in kept[1:])
            _, read, moved = kept[-1]
            way = " ".join(s.direction[:4] for s in stats) if len(stats) < 40 else f"{len(stats)} supersteps"
            print(f"{label:>8} ranks {group.size} {transport} {name:>5}: median {times[len(times) // 2]:9.2f} ms, least "
                  f"{times[0]:9.2f}; read {read:9.1f} MB, between ranks {moved:8.1f} MB; sum {total:.9g} of {count}; {way}; "
                  f"first at {first:.1f} s, all at {time.perf_counter() - begin:.1f} s", flush=True)
            if verbose:
                for s in stats:
                    print(f"      {s.superstep} {s.direction}: {1e3 * s.seconds:.3f} ms, active {s.active}, messages "
                          f"{s.messages}, read {s.bytes_read / 1e6:.2f} MB, skipped {s.blocks_skipped}, moved "
                          f"{s.bytes_moved / 1e6:.2f} MB, imbalance {s.imbalance:.2f}", flush=True)


{"draw": draw, "run": run}[sys.argv[1]](*sys.argv[2:])

"""Runs whose packed edges stream on all ranks equal those of CPU cores; prints each as it ends. agree.py TRANSPORT FOLDER NAMES"""

import sys
import time
from pathlib import Path

import numpy as np

from sigps import generate, load, run
from sigps.apps import BFS, SSSP, WCC, KCore, PageRank
from sigps.graph.formats.packed_store import save_packed
from sigps.group import Alone, world

transport, folder, names, device = sys.argv[1], sys.argv[2], sys.argv[3].split(","), (sys.argv[4:] or ["cuda"])[0]
group, begin, bad = world(), time.perf_counter(), 0
WAYS = ({"direction": "push"}, {}, {"asynchronous": False}, {"device_memory": "60MB"}) if device == "cuda" else ({},)
stores = []
for scale, page_arcs, order in ((9, 64, "given"), (13, 1 << 12, "degree"), (16, 1 << 14, "degree")):
    stores.append(Path(folder) / f"{scale}")
    if group.rank == 0:
        drawn = generate("rmat", scale=scale, seed=3, weights="random", group=Alone()).undirected(simple=True)
        save_packed(drawn, stores[-1], order=order, page_arcs=page_arcs)
group.all_gather(0)
MADE = BFS(source=2), WCC(), KCore(), PageRank(iterations=5), SSSP(source=2)
for program in (made for made in MADE if type(made).__name__ in names):
    for store in stores[:2] if isinstance(program, KCore) else stores:
        judge = run(program, load(store, group=Alone()), device="cpu") if group.rank == 0 else None
        for more in WAYS:
            graph = load(store, group=group)
            result = run(program, graph, device=device, transport=transport, stream="always", **more)
            if judge is not None:
                ways = "".join(s.direction[2] for s in result.stats)
                text = "same"
                for field in judge.fields:
                    found, expected = (np.ma.filled(r[field], -1) for r in (result, judge))
                    if not np.allclose(found, expected, rtol=1e-9, atol=0, equal_nan=True):
                        text, bad = f"{field} DIFFERS in {int((found != expected).sum())}", bad + 1
                print(f"{time.perf_counter() - begin:6.1f} s {transport} {type(program).__name__} {store.name} {more}: {text}; "
                      f"{ways[:40]}, read {sum(s.bytes_read for s in result.stats)}", flush=True)
            del graph, result
if group.rank == 0:
    print(f"all agree ({transport})" if bad == 0 else f"{bad} DIFFER ({transport})", flush=True)

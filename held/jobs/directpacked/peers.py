"""Two ranks by peers: each program beside packed edges alone, told as it goes; where it stands after 100 s."""

import faulthandler
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from walk_programs import ALONG_NO_EDGES, WALKS

import sigps
from sigps.graph.formats.packed_store import save_packed
from sigps.group import Alone, world

faulthandler.dump_traceback_later(100, exit=True)
group = world()
folder = Path(sys.argv[1])
if group.rank == 0:
    drawn = sigps.generate("rmat", scale=9, seed=3, weights="random", group=Alone()).undirected(simple=True)
    save_packed(drawn, folder / "given", order="given", page_arcs=1 << 10)
group.all_gather(0)
for program in [*ALONG_NO_EDGES[:3], *(WALKS[name] for name in ("folds", "silent", "records", "weights", "sorted", "listed records", "sorted records"))]:
    began = time.time()
    graph = sigps.load(folder / "given", group=group)
    result = sigps.run(program, graph, device="cuda", transport=sys.argv[2], stream="always", max_supersteps=10)
    if group.rank == 0:
        judge = sigps.run(program, sigps.load(folder / "given", group=Alone()), device="python", max_supersteps=10)
        same = all(np.allclose(np.asarray(result[f]), np.asarray(judge[f]), rtol=1e-9) for f in judge.fields)
        seconds = sum(s.seconds for s in result.stats)
        print(type(program).__name__, "same" if same else "DIFFERENT", len(result.stats), f"supersteps {seconds:.3f} s, with all {time.time() - began:.1f} s", flush=True)

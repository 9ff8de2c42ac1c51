"""Supersteps of dense programs on small graphs: tail.py LABEL DATA GRAPH,GRAPH [NAME=VALUE ...] [shape=THREADSxBLOCKS] [only=HITS]

NAME=VALUE are macros of lease.cu. Answers are compared with those of the first label that ran.
"""

import statistics
import sys
import time
from pathlib import Path

import numpy as np

import sigps
from sigps.apps import HITS, EigenvectorCentrality, Katz, PageRank, PersonalisedPageRank
from sigps.engine.gpu import launch, memory_plan, variant

label, data, names = sys.argv[1], Path(sys.argv[2]), sys.argv[3].split(",")
given = dict(word.split("=") for word in sys.argv[4:])
DEVICE = given.pop("device", "cuda")
only = given.pop("only", "")
if shape := given.pop("shape", ""):
    threads, blocks = map(int, shape.split("x"))
    memory_plan.choose_shape = lambda **known: launch.Shape(threads, blocks)
if given:
    made_of = variant._made_of

    def with_macros(*args, **options):
        chosen, cluster, macros = made_of(*args, **options)
        return chosen, cluster, macros | given

    variant._made_of = with_macros

kept = Path("/tmp/felt-tail")
kept.mkdir(exist_ok=True)


def synchronise():
    if DEVICE == "cuda":
        import cupy

        cupy.cuda.Device().synchronize()


for name in names:
    if name.startswith("kron"):
        graph = directed = sigps.generate("rmat", scale=int(name[5:]))
    else:
        (file,) = data.glob(f"{name}.*")
        read = {"weights": False, "duplicates": "drop", "self_loops": "drop"}
        graph = sigps.load(file, directed=False, **read)
        directed = sigps.load(file, directed=True, **read) if "dblp" not in name else graph
    degrees = np.diff(graph.offsets)
    hub = int(np.asarray(graph.ids)[np.argmax(degrees)])
    works = {
        "PageRank": (PageRank(iterations=30), graph, "rank"),
        "personalised": (PersonalisedPageRank(source=hub, iterations=50), graph, "rank"),
        "eigenvector": (EigenvectorCentrality(iterations=60, tolerance=0), graph, "score"),
        "Katz": (Katz(attenuation=1 / (1 + float(degrees.max())), tolerance=1e-6), graph, "score"),
        "HITS": (HITS(iterations=30), directed, "authority"),
    }
    for work, (program, on, field) in works.items():
        if only and work != only:
            continue
        times, wholes = [], []
        for _ in range(9):
            synchronise()
            began = time.perf_counter()
            result = sigps.run(program, on, device=DEVICE, precision="single")
            synchronise()
            wholes.append(time.perf_counter() - began)
            times.append([s.seconds for s in result.stats])
        answer, at = np.asarray(result[field]), kept / f"{name}-{work}.npy"
        if at.exists():
            first = np.load(at)
            near = np.allclose(answer, first, rtol=1e-4, atol=1e-7 * np.abs(first).max())
        else:
            np.save(at, answer)
            near = "first"
        middle = statistics.median(statistics.median(t[1:-1]) for t in times) * 1e6
        device = statistics.median(map(sum, times)) * 1e3
        print(
            f"{label:12} {name:14} {work:13} superstep {middle:8.2f} us  device {device:8.3f} ms"
            f"  whole {statistics.median(wholes[1:]) * 1e3:8.3f} ms  supersteps {len(times[0])}  as the first: {near}",
            flush=True,
        )
